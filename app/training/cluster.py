"""Fit the folds of a selection on a Dask cluster, where one is configured, with the same result as here."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from importlib.metadata import version
from typing import Any

from joblib import parallel_config

from app.registry.publication import code_version

logger = logging.getLogger(__name__)

PATIENCE = 10.0
"""Seconds to wait for the scheduler's answer, and for its first worker."""
WITHOUT_WORKERS_SECONDS = 60.0
"""A run waits so long for workers that went away meanwhile, or for a scheduler that has fallen silent."""
_PACKAGES = ("numpy", "scipy", "numba", "llvmlite", "pyamg")
"""What decides on the last bits of a result, beside our own code."""


class ClusterLost(Exception):
    """The scheduler or its workers went away meanwhile; a new attempt may find them, or do without."""


@contextmanager
def folds_on(scheduler: str | None) -> Iterator[None]:
    """Let joblib work on the cluster of this scheduler within the block.

    Where the cluster cannot be used, and with no scheduler, it works on this machine.

    Raises
    ------
    ClusterLost
        The scheduler or all of its workers went away within the block, or workers died of what they fitted.
    """
    client = None if scheduler is None else _connected(scheduler)
    if client is None:
        yield
        return
    is_over, is_deserted = threading.Event(), threading.Event()
    threading.Thread(target=_watch, args=(client, is_over, is_deserted), name="cluster", daemon=True).start()
    try:
        with parallel_config(backend="dask", client=client, wait_for_workers_timeout=PATIENCE):
            yield
    except Exception as error:
        if isinstance(error, import_module("distributed").KilledWorker):
            raise ClusterLost(f"workers of the Dask scheduler {scheduler} died: {error}") from error
        if client.status == "running" and not is_deserted.is_set():
            raise
        raise ClusterLost(f"the Dask scheduler {scheduler} or all of its workers went away") from error
    finally:
        is_over.set()
        client.close()


def _watch(client: Any, is_over: threading.Event, is_deserted: threading.Event) -> None:
    """Give up what the cluster was asked for whenever it has been without workers for long.

    Otherwise the scheduler would keep it for workers that may never come.
    """
    future, seen = import_module("distributed").Future, time.monotonic()
    while not is_over.wait(WITHOUT_WORKERS_SECONDS / 20):
        if _has_workers(client):
            seen = time.monotonic()
            is_deserted.clear()
        elif time.monotonic() > seen + WITHOUT_WORKERS_SECONDS:
            is_deserted.set()
            client.cancel([future(key, client) for key in list(client.futures)])


def _has_workers(client: Any) -> bool:
    try:
        return bool(client.sync(client.scheduler.ncores, callback_timeout=PATIENCE))
    except Exception:  # it is silent or closed
        return False


def _connected(scheduler: str) -> Any:
    """Return a client of the scheduler; None, with a warning, where its workers cannot be used."""
    try:
        client = import_module("distributed").Client(scheduler, timeout=PATIENCE, set_as_default=False)
    except (OSError, ValueError) as error:
        _warn(scheduler, str(error))
        return None
    try:
        client.wait_for_workers(1, timeout=PATIENCE)
        there, here = client.run(_versions), _versions()
        reason = next(
            (f"{w} has {found}, and this machine {here}" for w, found in there.items() if found != here), ""
        )
    except Exception as error:  # what the workers raise, for example where they lack this package
        reason = str(error) or type(error).__name__
    if reason:
        _warn(scheduler, reason)
        client.close()
        return None
    logger.info("folds are fitted by %d workers of the Dask scheduler %s", len(there), scheduler)
    return client


def _versions() -> list[str]:
    return [code_version(), *(f"{name} {version(name)}" for name in _PACKAGES)]


def _warn(scheduler: str, reason: str) -> None:
    logger.warning("the Dask scheduler %s cannot be used, folds are fitted here: %s", scheduler, reason)

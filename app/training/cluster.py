"""Fit the folds of a selection on a Dask cluster, where one is configured, with the same result as here."""

from __future__ import annotations

import logging
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
_PACKAGES = ("numpy", "scipy", "numba", "llvmlite", "pyamg")
"""What decides on the last bits of a result, beside our own code."""


class ClusterLost(Exception):
    """The scheduler went away while folds were fitted; a new attempt may find it again, or go on without."""


@contextmanager
def folds_on(scheduler: str | None) -> Iterator[None]:
    """Let joblib work on the cluster of this scheduler within the block.

    Where the cluster cannot be used, and with no scheduler, it works on this machine.

    Raises
    ------
    ClusterLost
        The scheduler went away within the block.
    """
    client = None if scheduler is None else _connected(scheduler)
    if client is None:
        yield
        return
    try:
        with parallel_config(backend="dask", client=client, wait_for_workers_timeout=PATIENCE):
            yield
    except Exception as error:
        if client.status == "running":
            raise
        raise ClusterLost(f"the Dask scheduler {scheduler} went away") from error
    finally:
        client.close()


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

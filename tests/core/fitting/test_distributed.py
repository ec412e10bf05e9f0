"""Statistics and selection on a cluster of worker processes, one of which is killed while it works."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import fields
from pathlib import Path

import joblib
import numpy as np
import polars as pl
import pytest
from distributed import Client, LocalCluster

from ccmtl_core import SufficientStatistics, select, statistics_from_files
from ccmtl_core.data.synthetic import syn
from tests.support.processes import PATIENCE

FEATURES = ["x_1", "x_2", "x_3"]
N_FILES, N_ROWS, N_WORKERS = 24, 30_000, 2


@pytest.fixture(scope="module")
def client() -> Iterator[Client]:
    """A local cluster of worker processes."""
    with (
        LocalCluster(
            n_workers=N_WORKERS, threads_per_worker=1, processes=True, host="127.0.0.1",
            dashboard_address=":0", memory_limit=0, silence_logs=50,
        ) as cluster,
        Client(cluster) as client,
    ):  # fmt: skip
        yield client


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> list[Path]:
    folder, rng = tmp_path_factory.mktemp("files"), np.random.default_rng(0)
    files = [folder / f"{number}.parquet" for number in range(N_FILES)]
    for file in files:
        columns = {name: rng.normal(size=N_ROWS) for name in ("y", *FEATURES)}
        pl.DataFrame({"id": rng.integers(0, 200, N_ROWS), **columns}).write_parquet(file)
    return files


@contextmanager
def a_worker_is_killed(client: Client) -> Iterator[list[int]]:
    """Kill, with SIGKILL, a worker that is at work; yields how many pieces of work it had taken on."""
    pids = client.run(os.getpid)
    lost: list[int] = []

    def kill() -> None:
        deadline = time.monotonic() + PATIENCE
        while time.monotonic() < deadline:
            busy = {address: keys for address, keys in client.processing().items() if keys}
            if len(busy) == N_WORKERS:
                victim = sorted(busy)[0]
                os.kill(pids[victim], signal.SIGKILL)
                lost.append(len(busy[victim]))
                return
            time.sleep(0.01)

    thread = threading.Thread(target=kill)
    thread.start()
    yield lost
    thread.join()
    client.wait_for_workers(N_WORKERS, timeout=PATIENCE)


def assert_same_bits(one: SufficientStatistics, other: SufficientStatistics) -> None:
    for field in fields(SufficientStatistics):
        np.testing.assert_array_equal(getattr(one, field.name), getattr(other, field.name))


def test_statistics_of_many_files(client: Client, files: list[Path]) -> None:
    columns = {"task": "id", "target": "y", "features": FEATURES}
    expected = statistics_from_files(files, **columns)  # type: ignore[arg-type]
    with a_worker_is_killed(client) as lost, joblib.parallel_config(backend="dask"):
        found = statistics_from_files(files, n_jobs=-1, **columns)  # type: ignore[arg-type]
    assert lost, "no worker was killed at work"
    assert_same_bits(found, expected)


def test_folds_times_strengths(client: Client) -> None:
    data = syn(np.random.default_rng(0), n_tasks=600, n_features=8, n_samples=30).dataset
    strengths = np.geomspace(0.1, 100.0, 14)
    expected = select(data, strengths, n_folds=4)
    with a_worker_is_killed(client) as lost, joblib.parallel_config(backend="dask"):
        found = select(data, strengths, n_folds=4, n_jobs=-1)
    assert lost, "no worker was killed at work"
    np.testing.assert_array_equal(found.fold_errors, expected.fold_errors)
    np.testing.assert_array_equal(found.n_groups, expected.n_groups)
    np.testing.assert_array_equal(found.fit.model.weights, expected.fit.model.weights)

"""A job whose folds are fitted on a Dask cluster has the same result, and does without one that is away."""

from __future__ import annotations

import logging
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from typing import Any

import joblib
import pytest
from distributed import LocalCluster
from fastapi.testclient import TestClient

from app.training import cluster
from app.training.cluster import ClusterLost, folds_on
from tests.app.training.conftest import IDS, Run, sales_csv
from tests.support.processes import PATIENCE, wait_until
from tests.support.training import add_series


@pytest.fixture(scope="module")
def database_kind() -> str:
    return "sqlite"


@pytest.fixture
def scheduler(request: pytest.FixtureRequest) -> Iterator[LocalCluster]:
    """A scheduler with a worker: in this process, or in one of its own."""
    with LocalCluster(
        n_workers=1, threads_per_worker=2, processes=getattr(request, "param", False), protocol="tcp://",
        host="127.0.0.1", dashboard_address=":0", memory_limit=0, silence_logs=50,
    ) as cluster:  # fmt: skip
        yield cluster


@pytest.mark.parametrize(
    "scheduler", [False, pytest.param(True, marks=pytest.mark.slow)], indirect=True, ids=["here", "processes"]
)
@pytest.mark.parametrize(
    "asked",
    [
        {"lags": 3, "fusion_strength": [0.1, 1.0, 10.0], "n_folds": 2, "holdout": None},
        pytest.param({"horizon": 2, "fusion_strength": "auto"}, marks=pytest.mark.slow),
    ],
)
def test_a_job_with_folds_on_a_cluster_has_the_same_result_to_the_last_bit(
    client: TestClient,
    run: Run,
    scheduler: LocalCluster,
    asked: dict[str, Any],
    caplog: pytest.LogCaptureFixture,
) -> None:
    add_series(client, content=sales_csv())
    found = []
    for address in (None, scheduler.scheduler_address):
        run.dask_scheduler = address
        with caplog.at_level(logging.INFO, logger=cluster.__name__):
            version = run.trained(**asked)
        exported = client.get(
            "/v1/models/m/weights", headers={"Accept": "application/vnd.apache.arrow.stream"}
        )
        forecasts = client.post("/v1/models/m/forecast", json={"unique_id": IDS}).json()["forecasts"]
        found.append((exported.content, forecasts, version["metrics"], version["report"].get("selection")))
    assert "folds are fitted by 1 workers" in caplog.text
    assert found[0] == found[1]


def test_without_a_scheduler_that_answers_folds_are_fitted_here(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(cluster, "PATIENCE", 0.2)
    with folds_on("tcp://127.0.0.1:1"):
        assert joblib.Parallel(n_jobs=2, prefer="threads")(joblib.delayed(abs)(n) for n in (-1, -2)) == [1, 2]
    assert "tcp://127.0.0.1:1 cannot be used, folds are fitted here" in caplog.text


def versions_of_this_thread() -> list[str]:
    """The worker of this process answers in a thread of its own."""
    return ["main" if threading.current_thread() is threading.main_thread() else "not main"]


def test_workers_with_other_versions_are_not_used(
    scheduler: LocalCluster, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(cluster, "_versions", versions_of_this_thread)
    with folds_on(scheduler.scheduler_address):
        pass
    assert "has ['not main'], and this machine ['main']" in caplog.text


def test_a_scheduler_that_goes_away_meanwhile_ends_the_run_as_lost(
    scheduler: LocalCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cluster, "PATIENCE", 2.0)

    def work() -> None:
        with folds_on(scheduler.scheduler_address):
            scheduler.close()
            joblib.Parallel(n_jobs=2)(joblib.delayed(abs)(n) for n in range(4))

    with pytest.raises(ClusterLost, match="went away"):
        work()


def test_workers_that_die_meanwhile_end_the_run_as_lost(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cluster, "WITHOUT_WORKERS_SECONDS", 0.5)
    monkeypatch.setattr(cluster, "PATIENCE", PATIENCE)
    ends: list[Any] = []

    def work(scheduler: LocalCluster, worker: subprocess.Popen[bytes]) -> None:
        def kill() -> None:
            state: Any = scheduler.scheduler
            wait_until(lambda: any(each.processing for each in state.workers.values()), "the first task")
            worker.kill()

        ends.append(threading.Thread(target=kill))
        with folds_on(scheduler.scheduler_address):
            ends[0].start()
            joblib.Parallel(n_jobs=2)(joblib.delayed(time.sleep)(2 * PATIENCE) for _ in range(2))

    with LocalCluster(
        n_workers=0, processes=False, protocol="tcp://", host="127.0.0.1", dashboard_address=":0",
        silence_logs=50,
    ) as scheduler:  # fmt: skip
        command = [sys.executable, "-m", "distributed.cli.dask_worker", scheduler.scheduler_address]
        worker = subprocess.Popen([*command, "--no-nanny", "--no-dashboard", "--nthreads", "2"],
                                  stderr=subprocess.DEVNULL)  # fmt: skip
        try:
            with pytest.raises(ClusterLost, match="or all of its workers went away"):
                work(scheduler, worker)
        finally:
            worker.kill()
            worker.wait()
    ends[0].join()

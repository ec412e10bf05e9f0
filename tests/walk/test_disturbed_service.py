"""Whatever happens to a job, its worker or its fit, it ends: published once, cancelled or failed in words.

An API that is killed during an upload leaves no trace of it, and one that is killed while a client waits
comes back for it.
"""

from __future__ import annotations

import os
import signal
import socket
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import httpx2
import psutil
import pytest

from ccmtl_client import Client, Progress
from tests.support.database_kinds import quickly_on
from tests.support.processes import PATIENCE, is_running, wait_until
from tests.support.service import (
    Service,
    create_daily_dataset,
    queue_long_training,
    read_job,
    sales_csv,
    start_training,
    upload_csv,
    versions_of,
    wait_for_end,
    wait_for_phase,
)

pytestmark = quickly_on("postgresql")

Suspend = Callable[[int], None]


@pytest.fixture
def suspend() -> Iterator[Suspend]:
    """Suspend a process; at the latest when the test ends it goes on."""
    pids: list[int] = []

    def suspend(pid: int) -> None:
        os.kill(pid, signal.SIGSTOP)
        pids.append(pid)

    yield suspend
    for pid in pids:
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGCONT)


@pytest.mark.slow
def test_killed_and_suspended_fits_are_run_again(service: Service, suspend: Suspend) -> None:
    job_id = queue_long_training(service.client, "fit")
    os.kill(service.fit_of(job_id), signal.SIGKILL)
    wait_until(lambda: read_job(service.client, job_id)["attempt"] == 2, "the second attempt")
    assert "ended by SIGKILL" in service.log
    fit = service.fit_of(job_id)
    wait_for_phase(service.client, job_id, "solve")
    suspend(fit)
    job = wait_for_end(service.client, job_id)
    assert (job["state"], job["attempt"]) == ("succeeded", 3)
    assert not is_running(fit)
    assert versions_of(service.client, "fit") == [1]


def suspended_run(service: Service, suspend: Suspend, job_id: str) -> tuple[int, int]:
    """Suspend the job's worker and fit, as in a suspended container, until another has the job."""
    fit = service.fit_of(job_id)
    wait_for_phase(service.client, job_id, "solve")
    worker, attempt = psutil.Process(fit).ppid(), read_job(service.client, job_id)["attempt"]
    suspend(worker)
    suspend(fit)
    wait_until(lambda: read_job(service.client, job_id)["attempt"] > attempt, "the next attempt")
    return worker, fit


@pytest.mark.landing
def test_run_suspended_past_its_lease_writes_nothing_when_it_wakes(
    service: Service, suspend: Suspend
) -> None:
    """First the worker wakes before its fit; then, of the next run, the fit before its worker."""
    job_id = queue_long_training(service.client, "suspended-run")
    worker, fit = suspended_run(service, suspend, job_id)
    os.kill(worker, signal.SIGCONT)
    wait_until(lambda: not is_running(fit), "the end of the stale fit")
    _, fit = suspended_run(service, suspend, job_id)
    job = wait_for_end(service.client, job_id)
    assert (job["state"], job["attempt"]) == ("succeeded", 3)
    os.kill(fit, signal.SIGCONT)
    wait_until(lambda: f"{job_id} attempt 2 is no longer ours" in service.log, "the stale fit's end")
    assert read_job(service.client, job_id) == job
    assert versions_of(service.client, "suspended-run") == [1]


def test_a_running_job_is_cancelled(service: Service) -> None:
    job_id = queue_long_training(service.client)
    fit = service.fit_of(job_id)
    wait_for_phase(service.client, job_id, "solve")
    answer = service.client.post(f"/v1/training-jobs/{job_id}/cancel")
    assert (answer.status_code, answer.json()["cancel_requested"]) == (202, True)
    assert wait_for_end(service.client, job_id)["state"] == "cancelled"
    wait_until(lambda: not is_running(fit), "the end of the fit")
    assert versions_of(service.client, "long") == []
    assert service.client.post(f"/v1/training-jobs/{job_id}/cancel").status_code == 409


def test_a_job_whose_data_is_at_fault_fails_in_words(service: Service) -> None:
    definition = {"name": "huge", "kind": "series", "frequency": "D"}
    assert service.client.post("/v1/datasets", json=definition).status_code == 201
    rows = "".join(f"tea,2025-01-{day:02d},{1e200 if day == 9 else 1.0}\n" for day in range(1, 29))
    upload_csv(service.client, "huge", f"unique_id,ds,y\n{rows}".encode())
    job_id = start_training(service.client, dataset="huge", model="huge", fusion_strength=1.0)
    job = wait_for_end(service.client, job_id)
    assert job["state"] == "failed"
    assert job["error"]["code"] == "training_failed"
    assert "'tea'" in job["error"]["detail"]
    assert versions_of(service.client, "huge") == []


def test_killed_workers_are_started_again(service: Service) -> None:
    for pid in service.workers():
        os.kill(pid, signal.SIGKILL)
        wait_until(lambda pid=pid: not is_running(pid), "its end")
    wait_until(lambda: len(service.workers()) == 2, "the workers' restart")


def files_in(folder: Path) -> list[Path]:
    return [path for path in folder.rglob("*") if path.is_file() and path.suffix != ".lock"]


def test_killed_api_leaves_no_trace_of_an_upload(service: Service) -> None:
    create_daily_dataset(service.client, "sales")
    content = sales_csv(500, 60)
    stored = service.settings.data_dir
    before = set(files_in(stored))
    url = service.client.base_url
    with socket.create_connection((url.host, url.port or 0)) as connection:
        head = (
            "POST /v1/datasets/sales/versions?mode=full HTTP/1.1\r\nHost: localhost\r\n"
            f"Content-Type: text/csv\r\nContent-Length: {len(content)}\r\n\r\n"
        )
        connection.sendall(head.encode() + content[: len(content) // 2])
        wait_until(lambda: set(files_in(stored)) - before, "the incoming file")
        killed = service.api()
        os.kill(killed, signal.SIGKILL)
    wait_until(lambda: not is_running(killed), "its end")
    # The supervisor holds the socket: a call during the restart waits for its answer.
    assert httpx2.get(f"{service.client.base_url}/healthz", timeout=PATIENCE).status_code == 200
    assert service.api() != killed
    wait_until(lambda: service.client.get("/readyz").status_code == 200, "readiness")
    assert service.client.get("/v1/datasets/sales/versions").json()["items"] == []
    left = {path for path in set(files_in(stored)) - before if not path.name.startswith("ccmtl.db")}
    assert left == set()
    assert upload_csv(service.client, "sales", content)["version"] == 1


def test_a_client_waits_for_its_job_through_a_killed_api(service: Service) -> None:
    killed: list[int] = []

    def kill_once(step: Progress) -> None:
        if not killed:
            killed.append(service.api())
            os.kill(killed[0], signal.SIGKILL)

    with Client(str(service.client.base_url), retry_for=PATIENCE) as client:
        client.datasets.upload("shop", sales_csv(20, 60), definition={"frequency": "D"})
        job = client.train("shop", "shop", lags=2, fusion_strength=1)
        assert job.wait(progress=kill_once, timeout=PATIENCE).model == "shop/versions/1"
        assert service.api() != killed[0]
        assert client.forecast_all("shop").height == 20

"""Whatever is done to a worker or its fit, the job ends with exactly one version."""

from __future__ import annotations

import os
import signal
import time

import psutil
import pytest

from tests.support.processes import is_running, wait_until
from tests.support.service import (
    Service,
    queue_long_training,
    read_job,
    versions_of,
    wait_for_end,
    wait_for_phase,
)


def test_killed_worker(service: Service) -> None:
    """The product's promise, with its default lease: gone within 2 s, runs again within 20 s."""
    job_id = queue_long_training(service.client)
    fit = service.fit_of(job_id)
    wait_for_phase(service.client, job_id, "solve")
    os.kill(service.workers()[0], signal.SIGKILL)
    killed_at = time.monotonic()
    wait_until(lambda: not is_running(fit), 2, "the end of the fit")
    wait_until(lambda: read_job(service.client, job_id)["attempt"] == 2, 20, "the second attempt")
    assert service.fit_of(job_id) != fit
    assert time.monotonic() - killed_at < 20
    assert wait_for_end(service.client, job_id, 120)["state"] == "succeeded"
    assert versions_of(service.client, "long") == [1]


@pytest.mark.service(job_lease_seconds="3")
def test_killed_fit(service: Service) -> None:
    job_id = queue_long_training(service.client)
    os.kill(service.fit_of(job_id), signal.SIGKILL)
    wait_until(lambda: read_job(service.client, job_id)["attempt"] == 2, 5, "the second attempt")
    assert wait_for_end(service.client, job_id, 120)["state"] == "succeeded"
    assert versions_of(service.client, "long") == [1]
    assert "ended by SIGKILL" in service.log


@pytest.mark.service(job_lease_seconds="3", workers="2")
def test_worker_suspended_past_its_lease_writes_nothing_when_it_wakes(service: Service) -> None:
    job_id = queue_long_training(service.client)
    fit = service.fit_of(job_id)
    wait_for_phase(service.client, job_id, "solve")
    worker = parent_of(fit)
    os.kill(worker, signal.SIGSTOP)
    wait_until(lambda: read_job(service.client, job_id)["attempt"] == 2, 20, "the second attempt")
    os.kill(worker, signal.SIGCONT)
    wait_until(lambda: not is_running(fit), 5, "the end of the stale fit")
    job = wait_for_end(service.client, job_id, 120)
    assert (job["state"], job["attempt"]) == ("succeeded", 2)
    assert versions_of(service.client, "long") == [1]


@pytest.mark.service(job_lease_seconds="3", workers="2")
def test_whole_run_suspended_past_its_lease_writes_nothing_when_it_wakes(service: Service) -> None:
    """Worker and fit sleep together, as in a suspended container, and wake together."""
    job_id = queue_long_training(service.client)
    fit = service.fit_of(job_id)
    wait_for_phase(service.client, job_id, "solve")
    sleepers = [parent_of(fit), fit]
    for pid in sleepers:
        os.kill(pid, signal.SIGSTOP)
    job = wait_for_end(service.client, job_id, 120)
    assert (job["state"], job["attempt"]) == ("succeeded", 2)
    for pid in reversed(sleepers):
        os.kill(pid, signal.SIGCONT)
    wait_until(lambda: not is_running(fit), 5, "the end of the stale fit")
    assert read_job(service.client, job_id) == job
    assert versions_of(service.client, "long") == [1]


@pytest.mark.service(job_lease_seconds="3")
def test_suspended_fit_is_given_up_and_run_again(service: Service) -> None:
    job_id = queue_long_training(service.client)
    fit = service.fit_of(job_id)
    wait_for_phase(service.client, job_id, "solve")
    os.kill(fit, signal.SIGSTOP)
    job = wait_for_end(service.client, job_id, 120)
    assert (job["state"], job["attempt"]) == ("succeeded", 2)
    assert not is_running(fit)
    assert versions_of(service.client, "long") == [1]


def test_cancelled_fit_is_gone_and_publishes_nothing(service: Service) -> None:
    job_id = queue_long_training(service.client)
    fit = service.fit_of(job_id)
    assert service.client.post(f"/v1/training-jobs/{job_id}/cancel").status_code == 202
    wait_until(lambda: not is_running(fit), 3, "the end of the fit")
    assert wait_for_end(service.client, job_id, 5)["state"] == "cancelled"
    assert versions_of(service.client, "long") == []


def parent_of(pid: int) -> int:
    return psutil.Process(pid).ppid()

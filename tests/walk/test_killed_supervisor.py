"""The end of ``ccmtl serve``, in good order or not, ends everything and loses no job."""

from __future__ import annotations

import os
import signal
import time

import pytest

from tests.support.processes import is_running, wait_until
from tests.support.service import queue_long_training, read_job, versions_of, wait_for_end
from tests.walk.conftest import StartService


@pytest.mark.service(job_lease_seconds="3")
def test_killed_supervisor_takes_everything_with_it(start_service: StartService) -> None:
    with start_service() as service:
        job_id = queue_long_training(service.client)
        service.fit_of(job_id)
        pids = service.all_pids()
        assert len(pids) == 4
        service.process.kill()
        service.process.wait()
        wait_until(lambda: not any(map(is_running, pids)), 2, "the end of all processes")
    with start_service() as service:
        job = wait_for_end(service.client, job_id, 120)
        assert (job["state"], job["attempt"]) == ("succeeded", 2)
        assert versions_of(service.client, "long") == [1]


def test_ended_supervisor_ends_everything_and_gives_the_job_back(start_service: StartService) -> None:
    with start_service() as service:
        job_id = queue_long_training(service.client)
        service.fit_of(job_id)
        pids = service.all_pids()
        service.process.terminate()
        assert service.process.wait(timeout=15) == 0, service.log
        assert [pid for pid in pids if is_running(pid)] == []
    started_at = time.monotonic()
    with start_service() as service:
        wait_until(lambda: read_job(service.client, job_id)["attempt"] == 2, 9, "the second attempt")
        assert time.monotonic() - started_at < 10, "it waited for the lease to run out"
        assert service.client.post(f"/v1/training-jobs/{job_id}/cancel").status_code == 202


@pytest.mark.service(workers="1")
def test_ended_children_are_started_again(start_service: StartService) -> None:
    with start_service() as service:
        for pid, find in ((service.api(), service.api), (service.workers()[0], lambda: service.workers()[0])):
            os.kill(pid, signal.SIGKILL)
            wait_until(lambda pid=pid: not is_running(pid), 2, "its end")
            wait_until(lambda: len(service.all_pids()) == 3, 10, "the restart")
            assert find() != pid
        # The supervisor holds the socket: a call during the restart waits for the answer.
        assert service.client.get("/healthz").status_code == 200

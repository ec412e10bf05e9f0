"""A job outlives whatever runs it, and publishes once."""

from __future__ import annotations

import os
import signal

from tests.support.database_kinds import quickly_on
from tests.support.processes import is_running, wait_until
from tests.support.service import (
    queue_long_training,
    read_job,
    versions_of,
    wait_for_end,
    wait_for_phase,
)
from tests.walk.conftest import StartService

pytestmark = quickly_on("sqlite")


def test_job_outlives_supervisor_service_and_worker(start_service: StartService) -> None:
    with start_service(job_lease_seconds=2) as service:
        job_id = queue_long_training(service.client, "m")
        service.fit_of(job_id)
        pids = service.all_pids()
        assert len(pids) == 4, "supervisor, API, worker, fit"
        service.process.kill()
        service.process.wait()
        wait_until(lambda: not any(map(is_running, pids)), "the end of all processes")

    with start_service(job_lease_seconds=2) as service:
        fit = service.fit_of(job_id)
        assert read_job(service.client, job_id)["attempt"] == 2
        wait_for_phase(service.client, job_id, "solve")
        os.kill(service.workers()[0], signal.SIGKILL)
        wait_until(lambda: not is_running(fit), "the end of the fit")
        wait_until(lambda: read_job(service.client, job_id)["attempt"] == 3, "the next attempt")
        assert service.fit_of(job_id) != fit

        assert wait_for_end(service.client, job_id)["state"] == "succeeded"
        assert read_job(service.client, job_id)["attempt"] == 3
        assert versions_of(service.client, "m") == [1]

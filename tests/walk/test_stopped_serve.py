"""A service that is stopped, by SIGTERM, finishes what it has begun."""

from __future__ import annotations

import socket

import pytest

from app.jobs import queue
from app.persistence.database import Database
from tests.support.database_kinds import quickly_on
from tests.support.processes import PATIENCE, is_running, wait_until
from tests.support.service import Service, create_daily_dataset, queue_long_training, sales_csv
from tests.walk.conftest import StartService

pytestmark = [quickly_on("sqlite"), pytest.mark.landing]


def _begin_upload(service: Service, content: bytes) -> socket.socket:
    """Send the head of an upload and half of its content."""
    create_daily_dataset(service.client, "sales")
    url = service.client.base_url
    connection = socket.create_connection((url.host, url.port or 0), timeout=PATIENCE)
    head = (
        "POST /v1/datasets/sales/versions?mode=full HTTP/1.1\r\nHost: localhost\r\n"
        f"Content-Type: text/csv\r\nContent-Length: {len(content)}\r\n\r\n"
    )
    connection.sendall(head.encode() + content[: len(content) // 2])
    return connection


def test_stopped_service_ends_event_streams_hands_its_job_back_and_finishes_answers(
    start_service: StartService,
) -> None:
    with start_service() as service:
        job_id = queue_long_training(service.client)
        service.fit_of(job_id)
        pids = service.all_pids()
        content = sales_csv(100, 60)
        with (
            _begin_upload(service, content) as upload,
            service.client.stream("GET", f"/v1/training-jobs/{job_id}/events") as events,
        ):
            lines = events.iter_lines()
            next(lines)
            service.process.terminate()
            told = list(lines)  # raises where the stream is cut off instead of ended
            wait_until(lambda: "Waiting for" in service.log, "the API's stop")
            upload.sendall(content[len(content) // 2 :])
            assert upload.recv(4096).startswith(b"HTTP/1.1 201 ")
        assert service.process.wait(PATIENCE) == 0, service.log
        assert [pid for pid in pids if is_running(pid)] == []
        assert any('"state":"queued"' in line for line in told)
        assert "killed" not in service.log

        database = Database(service.settings)
        with database.write() as session:
            job = queue.claim(session, "another", 60, max_attempts=1)
        assert job is not None, "it is not free at once, or the run was counted as lost"
        assert (job.id, job.attempt) == (job_id, 2)
        database.dispose()

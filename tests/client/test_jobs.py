"""A job is followed to its end, through connections that end and services that are away."""

from __future__ import annotations

import json
from typing import Any

import httpx2
import pytest

from ccmtl_client import Client, Conflict, Forbidden, JobFailed, Progress, WaitedTooLong
from ccmtl_client.jobs import Job
from tests.client.conftest import Told, Working, problem

LOST = httpx2.RemoteProtocolError("the server ended the stream")


def status(state: str, **more: Any) -> dict[str, Any]:
    return {"id": "job_1", "state": state, "progress": None, "jobs_ahead": 0, "error": None, "model": None,
            **more}  # fmt: skip


def running(phase: str, **more: Any) -> dict[str, Any]:
    return status("running", progress={"phase": phase, "round": 0, "gap": None, "selection": None, **more})


DONE = status("succeeded", model={"name": "shop", "version": 3})


class Ended(httpx2.SyncByteStream):
    """An event stream that ends in the middle."""

    def __init__(self, *events: dict[str, Any]) -> None:
        self._events = events

    def __iter__(self) -> Any:
        yield b": ping\n\n"
        for event in self._events:
            yield b"data: " + json.dumps(event).encode() + b"\n\n"
        raise LOST


def stream(*events: dict[str, Any]) -> httpx2.Response:
    return httpx2.Response(200, text="".join(f"data: {json.dumps(event)}\n\n" for event in events))


def job(*answers: Any) -> tuple[Job, Told]:
    told = Told(status("queued"), *answers)
    return Client("http://service", transport=told).jobs.get("job_1"), told


def test_a_job_is_followed_by_its_events_to_its_end() -> None:
    waiting, _ = job(stream(status("queued", jobs_ahead=2), running("selection", round=0, selection={
        "fits_done": 3, "fits": 43}), running("solve", round=4, gap=0.0012), DONE), DONE)  # fmt: skip
    assert repr(waiting) == "Job('job_1', 'queued')"
    assert waiting.model is None
    seen: list[Progress] = []
    assert waiting.wait(progress=seen.append) is waiting
    assert seen == [
        Progress("queued", text="2 jobs ahead"),
        Progress("selection", 3, 43, "fit 3 of 43"),
        Progress("solve", text="round 4, certified gap 1.2e-03"),
        Progress("succeeded"),
    ]
    assert waiting.model == "shop/versions/3"


def test_waiting_survives_streams_that_end_and_a_service_that_is_away(pauses: list[float]) -> None:
    cut_off = httpx2.Response(200, stream=Ended(running("reading")))
    waiting, told = job(cut_off, LOST, httpx2.ConnectError("refused"), problem(503, "away"), running("solve"),
                        httpx2.ReadTimeout("silence"), running("solve"), problem(503, "away"),
                        running("publishing"), stream(DONE), DONE)  # fmt: skip
    phases: list[str] = []
    waiting.wait(progress=lambda step: phases.append(step.task))
    assert phases == ["reading", "solve", "solve", "publishing", "succeeded"]
    assert told.answers == []


@pytest.mark.parametrize("state", ["failed", "cancelled"])
def test_a_job_that_did_not_succeed_raises_with_its_status(state: str) -> None:
    error = {"code": "out_of_memory", "detail": "The fit took more memory than it may."}
    ended = status(state, error=error if state == "failed" else None)
    waiting, _ = job(stream(ended), ended)
    with pytest.raises(JobFailed) as caught:
        waiting.wait()
    assert caught.value.status == ended


def test_waiting_ends_when_the_time_is_over_and_the_job_goes_on(pauses: list[float]) -> None:
    waiting, told = job(*[stream(running("solve")), running("solve")] * 60)
    with pytest.raises(WaitedTooLong, match="job_1 is running after 10 seconds"):
        waiting.wait(timeout=10)
    assert 10 <= sum(pauses) < 11
    assert {request.method for request in told.sent} == {"GET"}


def test_a_refusal_ends_the_wait() -> None:
    waiting, _ = job(problem(403, "scope_missing"), problem(403, "scope_missing"))
    with pytest.raises(Forbidden):
        waiting.wait()


def test_a_job_is_cancelled_once(pauses: list[float]) -> None:
    cancelled = status("cancelled")
    waiting, _ = job(LOST, problem(409, "job_ended"), cancelled)
    assert waiting.cancel().state == "cancelled"
    waiting, _ = job(problem(409, "job_ended"), DONE)
    with pytest.raises(Conflict):
        waiting.cancel()


def test_a_real_job_runs_to_its_end_and_is_found_again(client: Client, sold: str, working: Working) -> None:
    started = client.train(sold, "nightly", lags=2, fusion_strength=1, idempotency_key="night-2")
    again = client.train(sold, "nightly", lags=2, fusion_strength=1, idempotency_key="night-2")
    assert [each.id for each in client.jobs.list(state="queued", model="nightly")] == [started.id]
    assert again.id == started.id
    seen: list[Progress] = []
    with working():
        started.wait(progress=seen.append, timeout=240)
    assert seen[-1].task == "succeeded"
    assert started.model == "nightly/versions/1"
    assert client.jobs.get(started.id).status == started.status

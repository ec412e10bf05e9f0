"""Processes that read large uploads start while these come in, are used once, and leave nothing behind."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
from collections.abc import AsyncIterator, Iterator
from typing import Any

import pytest

from app.datasets.upload import apart, reader_process
from app.datasets.upload.reader_process import ReaderProcess, ReaderProcesses
from app.settings import Settings
from tests.app.datasets.conftest import Shop

ROWS = "unique_id,ds,y\na,2024-01-01,1\na,2024-01-02,2\n"


@pytest.fixture
def started(monkeypatch: pytest.MonkeyPatch) -> list[subprocess.Popen[bytes]]:
    """Processes that wait for their standard input to end, as they are started."""
    children: list[subprocess.Popen[bytes]] = []

    def start(module: str, *arguments: str, **options: Any) -> subprocess.Popen[bytes]:
        command = [sys.executable, "-S", "-c", "import sys; sys.stdin.read()"]
        children.append(subprocess.Popen(command, stdin=subprocess.PIPE, start_new_session=True))
        return children[-1]

    monkeypatch.setattr(reader_process, "spawn_module", start)
    return children


@pytest.fixture
def processes(settings: Settings) -> Iterator[ReaderProcesses]:
    made = ReaderProcesses(settings)
    yield made
    made.close()


def received(processes: ReaderProcesses, *chunks: bytes) -> bytes:
    """What comes of a body of which 10 bytes are large."""

    async def body() -> AsyncIterator[bytes]:
        for chunk in chunks:
            yield chunk

    async def whole() -> bytes:
        return b"".join([chunk async for chunk in processes.begin_after(10, body())])

    return asyncio.run(whole())


def test_a_process_is_started_once_much_of_a_body_has_come(
    processes: ReaderProcesses, started: list[subprocess.Popen[bytes]]
) -> None:
    assert received(processes, b"123456789") == b"123456789"
    assert received(processes, b"", b"123456", b"789a", b"bcdefghijklmnop") == b"123456789abcdefghijklmnop"
    process = processes.take()
    assert [process.child] == started
    process.end()


def test_one_that_waits_serves_the_first_that_takes_it_and_the_next_one_starts_anew(
    processes: ReaderProcesses, started: list[subprocess.Popen[bytes]]
) -> None:
    for _ in range(3):
        received(processes, b"x" * 10)
    first, second = processes.take(), processes.take()
    assert [first.child, second.child] == started
    first.end(), second.end()


@pytest.mark.parametrize("why", ["it ended", "it waited too long"])
def test_one_that_is_of_no_use_any_more_is_replaced(
    why: str,
    processes: ReaderProcesses,
    started: list[subprocess.Popen[bytes]],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    received(processes, b"x" * 10)
    processes._starter.submit(int).result(60)
    if why == "it ended":
        started[0].kill()
        started[0].wait(60)
    else:
        monkeypatch.setattr(reader_process, "SPARE_SECONDS", -1.0)
    process = processes.take()
    assert process.child is started[1]
    assert started[0].returncode is not None
    process.end()


@pytest.mark.parametrize("why", ["it ended", "it waited too long"])
def test_nothing_is_left_of_one_that_no_upload_takes(
    why: str,
    processes: ReaderProcesses,
    started: list[subprocess.Popen[bytes]],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(reader_process, "LOOK_SECONDS", 0.01)

    async def body() -> AsyncIterator[bytes]:
        yield b"x" * 10

    async def wait() -> ReaderProcess:
        async for _ in processes.begin_after(10, body()):
            pass
        assert processes._spare is not None
        ready = await asyncio.wrap_future(processes._spare)
        if why == "it ended":
            started[0].kill()
        else:
            monkeypatch.setattr(reader_process, "SPARE_SECONDS", -1.0)
        async with asyncio.timeout(60):
            while not ready.answer.closed:
                await asyncio.sleep(0.01)
        return ready

    assert asyncio.run(wait()).child.returncode == -signal.SIGKILL
    processes.take().end()
    assert len(started) == 2, "the next upload gets another"


def test_one_that_cannot_be_started_is_tried_again(
    processes: ReaderProcesses, started: list[subprocess.Popen[bytes]], monkeypatch: pytest.MonkeyPatch
) -> None:
    def fails(*arguments: Any, **options: Any) -> subprocess.Popen[bytes]:
        raise BlockingIOError("too many processes")

    before = len(os.listdir("/proc/self/fd")) if sys.platform == "linux" else 0
    with monkeypatch.context() as patch:
        patch.setattr(reader_process, "spawn_module", fails)
        received(processes, b"x" * 10)
        with pytest.raises(BlockingIOError):
            processes.take()
    if sys.platform == "linux":
        assert len(os.listdir("/proc/self/fd")) == before
    process = processes.take()
    assert process.child is started[0]
    process.end()


def test_the_one_that_waits_ends_with_the_api(
    settings: Settings, started: list[subprocess.Popen[bytes]]
) -> None:
    processes = ReaderProcesses(settings)
    received(processes, b"x" * 10)
    processes.close()
    assert started[0].returncode is not None


@pytest.mark.parametrize(("seconds", "is_closed"), [(0, False), (60, True)])
def test_a_process_that_gets_no_upload_ends_by_itself(seconds: int, is_closed: bool) -> None:
    program = f"from app.datasets.upload import apart; apart.SPARE_SECONDS = {seconds}; apart.main()"
    child = subprocess.Popen([sys.executable, "-c", program, "1"], stdin=subprocess.PIPE)
    assert child.stdin is not None
    if is_closed:
        child.stdin.close()
    assert child.wait(120) == 0
    child.stdin.close()


def test_an_upload_is_read_by_the_process_that_was_started_while_it_came(
    shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(apart, "APART_FROM_BYTES", 0)
    monkeypatch.setattr("app.datasets.endpoints.APART_FROM_BYTES", 1)
    spawn, n_started = reader_process.spawn_module, 0

    def counted(*arguments: Any, **options: Any) -> subprocess.Popen[bytes]:
        nonlocal n_started
        n_started += 1
        return spawn(*arguments, **options)

    monkeypatch.setattr(reader_process, "spawn_module", counted)
    shop.accepted(shop.series(), ROWS)
    assert n_started == 1

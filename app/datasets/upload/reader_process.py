"""Start the processes that read large uploads, one of them while its upload still comes in."""

from __future__ import annotations

import asyncio
import os
import subprocess
import threading
import time
from collections.abc import AsyncIterator
from concurrent.futures import Future, ThreadPoolExecutor
from typing import BinaryIO, NamedTuple

from app.processes.lifeline import kill, spawn_module
from app.settings import Settings

MODULE = "app.datasets.upload.apart"
SPARE_SECONDS = 60.0
"""How long a process that was started early may be used. It ends by itself after twice as long."""
LOOK_SECONDS = 1.0
"""How often the API looks whether that process is of use still."""


class ReaderProcess(NamedTuple):
    """A process that waits for one upload on its standard input, and the pipe on which it tells of it."""

    child: subprocess.Popen[bytes]
    answer: BinaryIO
    started: float

    def end(self) -> None:
        """Kill it unless it has ended, and close its pipes."""
        kill(self.child)
        self.answer.close()


class ReaderProcesses:
    """Starts processes; one is kept ready while a large upload comes in.

    A thread of its own starts them, as a process ends with the thread that started it.
    """

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._starter = ThreadPoolExecutor(1, "upload-processes")
        self._spare: Future[ReaderProcess] | None = None
        self._changing = threading.Lock()

    async def begin_after(self, n_bytes: int, body: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
        """Yield a body, and have a process ready once so many bytes of it have come."""
        n_received = 0
        async for chunk in body:
            if n_received < n_bytes <= n_received + len(chunk):
                self._keep_one_ready(asyncio.get_running_loop())
            n_received += len(chunk)
            yield chunk

    def take(self) -> ReaderProcess:
        """Return the process that is ready or about to be; start one where there is none."""
        with self._changing:
            found, self._spare = self._usable(), None
        return found.result()

    def close(self) -> None:
        """End the one that is ready, and start no more."""
        self._starter.shutdown()
        with self._changing:
            ready, self._spare = self._spare, None
        _end(ready)

    def _keep_one_ready(self, loop: asyncio.AbstractEventLoop) -> None:
        with self._changing:
            ready = self._usable()
            if ready is not self._spare:
                self._spare = ready
                loop.call_later(LOOK_SECONDS, self._look_after, ready, loop)

    def _look_after(self, spare: Future[ReaderProcess], loop: asyncio.AbstractEventLoop) -> None:
        """End the process that is ready once it is of no use any more, so that nothing is left of it."""
        with self._changing:
            if self._spare is not spare:  # an upload has taken it
                return
            if _is_usable(spare):
                loop.call_later(LOOK_SECONDS, self._look_after, spare, loop)
            else:
                self._spare = None
                self._starter.submit(_end, spare)

    def _usable(self) -> Future[ReaderProcess]:
        if self._spare is not None and _is_usable(self._spare):
            return self._spare
        _end(self._spare)
        return self._starter.submit(self._start)

    def _start(self) -> ReaderProcess:
        reader, writer = os.pipe()
        try:
            environment = self._settings.environment()
            child = spawn_module(MODULE, str(writer), environment=environment, pass_fds=[writer])
        except BaseException:
            os.close(reader)
            raise
        finally:
            os.close(writer)
        return ReaderProcess(child, open(reader, "rb"), time.monotonic())


def _is_usable(spare: Future[ReaderProcess]) -> bool:
    if not spare.done():
        return True
    if spare.exception() is not None:
        return False
    process = spare.result()
    return process.child.poll() is None and time.monotonic() - process.started < SPARE_SECONDS


def _end(spare: Future[ReaderProcess] | None) -> None:
    """End a process that was started, if it was."""
    if spare is not None and spare.exception() is None:
        spare.result().end()

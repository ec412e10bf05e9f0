"""Start child processes that end with their parent, and wait for signals or for a child to end.

A child learns in two ways that its parent has ended. On Linux the kernel kills it (``PR_SET_PDEATHSIG``).
Everywhere its standard input is a pipe that only the parent holds open, so the child ends at end of file.
"""

from __future__ import annotations

import ctypes
import os
import select
import signal
import subprocess
import sys
import threading
from collections.abc import Sequence
from contextlib import suppress
from types import FrameType

_PR_SET_PDEATHSIG = 1
# Loaded here and not between fork and exec, where nothing may be imported or opened.
_prctl = ctypes.CDLL(None).prctl if sys.platform == "linux" else None


def die_with_parent(parent: int, by: signal.Signals = signal.SIGKILL) -> None:
    """Ask the kernel for the signal ``by`` when the parent ends; to be called between fork and exec."""
    if _prctl is not None:
        _prctl(_PR_SET_PDEATHSIG, int(by), 0, 0, 0)
    if os.getppid() != parent:  # it ended before the kernel was asked
        os._exit(1)


def spawn_module(
    module: str, *arguments: str, environment: dict[str, str] | None = None, pass_fds: Sequence[int] = ()
) -> subprocess.Popen[bytes]:
    """Start ``python -m module`` as a child in a session of its own, which ends with this process.

    The module must call :func:`end_with_standard_input`. Call this from the main thread: for the kernel,
    the parent is the thread that forks.
    """
    parent = os.getpid()
    return subprocess.Popen(
        [sys.executable, "-m", module, *arguments],
        stdin=subprocess.PIPE,
        env=None if environment is None else {**os.environ, **environment},
        pass_fds=pass_fds,
        start_new_session=True,
        preexec_fn=lambda: die_with_parent(parent),
    )


def kill(child: subprocess.Popen[bytes]) -> None:
    """End ``child`` and all of its own children at once, wait until it is gone, and close its pipe."""
    if child.poll() is None:
        os.killpg(child.pid, signal.SIGKILL)
    child.wait()
    if child.stdin is not None:
        with suppress(BrokenPipeError):  # what was written before it ended, and cannot reach it any more
            child.stdin.close()


def is_stopped(child: subprocess.Popen[bytes]) -> bool:
    """Whether ``child`` is suspended (SIGSTOP), that is, alive but not running."""
    if child.poll() is not None:
        return False
    return os.waitid(os.P_PID, child.pid, os.WSTOPPED | os.WNOHANG | os.WNOWAIT) is not None


def end_with_standard_input() -> None:
    """End this process when its standard input ends; for one that :func:`spawn_module` started."""

    def wait_for_end() -> None:
        while os.read(0, 4096):
            pass
        os._exit(1)

    threading.Thread(target=wait_for_end, name="lifeline", daemon=True).start()


class Signals:
    """Counts SIGTERM, SIGINT and SIGHUP; :meth:`wait` sleeps until one of them comes, or a child ends."""

    def __init__(self) -> None:
        self.stops = 0
        self._reader, self._writer = os.pipe()
        os.set_blocking(self._reader, False)
        os.set_blocking(self._writer, False)
        signal.set_wakeup_fd(self._writer, warn_on_full_buffer=False)
        for number in (signal.SIGTERM, signal.SIGINT, signal.SIGHUP):
            if signal.getsignal(number) is not signal.SIG_IGN:  # `nohup` asks for that
                signal.signal(number, self._on_stop)
        signal.signal(signal.SIGCHLD, lambda number, frame: None)

    @property
    def stop(self) -> bool:
        """Whether this process was asked to end."""
        return self.stops > 0

    def wait(self, seconds: float) -> None:
        """Sleep up to ``seconds``; return early when a signal came in."""
        if select.select([self._reader], [], [], max(seconds, 0.0))[0]:
            os.read(self._reader, 4096)

    def _on_stop(self, number: int, frame: FrameType | None) -> None:
        self.stops += 1

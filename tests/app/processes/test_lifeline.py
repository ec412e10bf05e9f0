from __future__ import annotations

import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from app.processes.lifeline import is_stopped, kill, spawn_module
from tests.support.processes import PATIENCE, is_running, wait_until


def _pid(path: Path) -> int:
    return int(wait_until(lambda: path.exists() and path.read_text(), "the child's start"))


@pytest.mark.parametrize(
    ("watching", "kind"),
    [("blind", "kernel"), ("watching", "portable")],
    ids=["killed by the kernel", "by end of standard input"],
)
def test_child_is_gone_soon_after_its_parent_was_killed(tmp_path: Path, watching: str, kind: str) -> None:
    command = [sys.executable, "-m", "tests.support.tying_parent", str(tmp_path / "pid"), watching, kind]
    parent = subprocess.Popen(command)
    child = _pid(tmp_path / "pid")
    assert is_running(child)
    parent.kill()
    parent.wait()
    wait_until(lambda: not is_running(child), "the child's end")


def test_child_whose_parent_is_gone_before_it_asked_the_kernel_ends(tmp_path: Path) -> None:
    program = "import os, app.processes.lifeline as l; l.die_with_parent(os.getppid() + 1); print('alive')"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert (done.returncode, done.stdout) == (1, "")


def test_kill_ends_the_whole_process_group(tmp_path: Path) -> None:
    child = spawn_module("tests.support.forking_child", str(tmp_path / "pid"))
    grandchild = _pid(tmp_path / "pid")
    kill(child)
    assert child.returncode == -signal.SIGKILL
    wait_until(lambda: not is_running(grandchild), "the grandchild's end")


def test_kill_closes_the_pipe_of_a_child_that_ended_before_it_read() -> None:
    child = subprocess.Popen([sys.executable, "-S", "-c", ""], stdin=subprocess.PIPE, start_new_session=True)
    child.wait()
    assert child.stdin is not None
    child.stdin.write(b"work that waits in the buffer")
    kill(child)
    assert child.stdin.closed


def test_suspended_child_is_seen_as_such_until_it_goes_on(tmp_path: Path) -> None:
    child = spawn_module("tests.support.tied_child", str(tmp_path / "pid"), "watching")
    _pid(tmp_path / "pid")
    assert not is_stopped(child)
    child.send_signal(signal.SIGSTOP)
    wait_until(lambda: is_stopped(child), "the suspension")
    assert is_stopped(child), "the second look must see it as well"
    child.send_signal(signal.SIGCONT)
    wait_until(lambda: not is_stopped(child), "the continuation")
    kill(child)
    assert not is_stopped(child)


SIGNALS_PROGRAM = """
import os, signal, subprocess, sys, time
from app.processes.lifeline import Signals
signal.signal(signal.SIGHUP, signal.SIG_DFL)
signals = Signals()
started = time.monotonic()
subprocess.Popen([sys.executable, "-c", ""])
signals.wait(600)
print("child's end", signals.stop)
signals.wait(0.2)
print("time", signals.stop)
print("ready", flush=True)
signals.wait(600)
print("signal", signals.stop, time.monotonic() - started < 300)
"""


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT, signal.SIGHUP])
def test_wait_ends_at_a_childs_end_after_its_time_and_at_a_signal(number: signal.Signals) -> None:
    program = subprocess.Popen([sys.executable, "-c", SIGNALS_PROGRAM], stdout=subprocess.PIPE, text=True)
    assert program.stdout is not None
    lines = [program.stdout.readline().strip() for _ in range(3)]
    assert lines == ["child's end False", "time False", "ready"]
    time.sleep(0.1)
    program.send_signal(number)
    assert program.communicate(timeout=PATIENCE)[0].strip() == "signal True True"
    assert program.returncode == 0


def test_a_signal_that_the_starter_ignores_stays_ignored() -> None:
    program = (
        "import os; from app.processes.lifeline import Signals; "
        "s = Signals(); os.kill(os.getpid(), {}); print(s.stop)"
    )
    for number, stop in ((signal.SIGHUP, "False"), (signal.SIGTERM, "True")):
        done = subprocess.run(
            ["nohup", sys.executable, "-c", program.format(int(number))], capture_output=True, text=True
        )
        assert done.stdout == f"{stop}\n", done.stderr

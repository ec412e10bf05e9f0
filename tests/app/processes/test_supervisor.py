from __future__ import annotations

import subprocess
import sys

from app.processes.lifeline import kill
from app.processes.supervisor import MAX_PAUSE_SECONDS, Child, restart_pause
from tests.support.processes import wait_until


def test_pauses_grow_up_to_a_limit() -> None:
    assert [restart_pause(n) for n in range(4)] == [0.0, 0.5, 1.0, 2.0]
    assert restart_pause(50) == MAX_PAUSE_SECONDS


def _start(program: str) -> subprocess.Popen[bytes]:
    return subprocess.Popen([sys.executable, "-c", program], start_new_session=True)


def test_a_child_that_ends_early_is_restarted_after_a_pause() -> None:
    starts = []

    def start() -> subprocess.Popen[bytes]:
        starts.append(_start("raise SystemExit(3)" if len(starts) < 2 else "import time; time.sleep(60)"))
        return starts[-1]

    child = Child("worker", start)

    def runs_third() -> bool:
        child.keep_running()
        return len(starts) == 3

    wait_until(runs_third, "two restarts")
    assert child.quick_ends == 2
    child.keep_running()
    assert len(starts) == 3, "a running child is left alone"
    kill(starts[-1])


def test_a_child_that_lived_long_is_restarted_at_once() -> None:
    child = Child("api", lambda: _start("import time; time.sleep(60)"))
    child.keep_running()
    first = child.process
    assert first is not None
    child.started_at -= 3600.0
    first.kill()
    first.wait()
    child.keep_running()
    assert child.process is not None
    assert child.process is not first
    assert child.quick_ends == 0
    kill(child.process)


def test_what_waits_beside_the_api_leaves_the_library_to_others() -> None:
    """A supervisor and idle workers with all of its packages would take three times the memory."""
    program = "import sys, app.processes.supervisor, app.jobs.worker; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert not {"ccmtl_core", "fastapi", "numba", "numpy", "polars"} & set(done.stdout.split())

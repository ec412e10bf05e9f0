"""What ``ccmtl serve`` does: start the API and the workers, restart those that end, and stop all together.

The supervisor opens the listening socket itself. So callers wait while the API is restarted, instead of being
turned away, and a port that is taken is noticed at once.
"""

from __future__ import annotations

import logging
import subprocess
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from app.access.required_keys import require_keys
from app.persistence.database import Database
from app.persistence.schema import prepare
from app.processes.extras import require_extras
from app.processes.lifeline import Signals, kill, spawn_module
from app.processes.listener import listen
from app.processes.logs import configure_logging
from app.settings import Settings

logger = logging.getLogger(__name__)

STEADY_SECONDS = 10.0
"""A child that ran this long is restarted at once; one that ended earlier, after a pause."""
MAX_PAUSE_SECONDS = 10.0
WORKER_STOP_SECONDS, API_STOP_SECONDS = 10.0, 25.0
"""A child that has not ended this long after SIGTERM is killed; the API may have answers to finish."""


@dataclass
class Child:
    """One process that is kept running."""

    name: str
    start: Callable[[], subprocess.Popen[bytes]]
    process: subprocess.Popen[bytes] | None = None
    started_at: float = 0.0
    quick_ends: int = 0
    start_due: float = field(default_factory=time.monotonic)

    def keep_running(self) -> None:
        """Start the process if it has ended, after a pause that grows each time that it ended early."""
        now = time.monotonic()
        if self.process is not None and self.process.poll() is not None:
            code = self.process.returncode
            kill(self.process)
            self.process = None
            self.quick_ends = self.quick_ends + 1 if now - self.started_at < STEADY_SECONDS else 0
            pause = restart_pause(self.quick_ends)
            self.start_due = now + pause
            logger.warning("%s ended with code %d; restart in %.1f s", self.name, code, pause)
        if self.process is None and now >= self.start_due:
            self.process, self.started_at = self.start(), now
            logger.info("%s started with pid %d; it is ready in some seconds", self.name, self.process.pid)


def restart_pause(quick_ends: int) -> float:
    """Return the seconds to wait before a restart, after ``quick_ends`` early ends in a row."""
    return 0.0 if quick_ends == 0 else min(0.5 * 2.0 ** (quick_ends - 1), MAX_PAUSE_SECONDS)


def supervise(settings: Settings) -> None:
    """Keep the API and the workers running until SIGTERM or SIGINT, then end the workers, then the API."""
    configure_logging("supervisor", settings.log_level, settings.log_format)
    require_extras(settings)
    database = Database(settings)
    prepare(database)
    signals = Signals()
    with listen(settings.host, settings.port) as listener:
        require_keys(database, settings)
        database.dispose()
        fileno, environment = listener.fileno(), settings.environment()
        api = Child(
            "api", lambda: spawn_module("app.main", str(fileno), environment=environment, pass_fds=[fileno])
        )
        workers = [
            Child(f"worker {n}", lambda: spawn_module("app.jobs.worker", environment=environment))
            for n in range(1, settings.workers + 1)
        ]
        try:
            while not signals.stop:
                for child in (api, *workers):
                    child.keep_running()
                signals.wait(1.0)
        finally:
            _stop(workers, signals, WORKER_STOP_SECONDS)
            listener.close()  # now only the API holds it, and callers are refused as soon as it stops
            _stop([api], signals, API_STOP_SECONDS)
    logger.info("all has ended")


def _stop(children: Sequence[Child], signals: Signals, seconds: float) -> None:
    """Ask all children to end, and kill those that take too long, or all when another signal comes."""
    processes = {child.name: child.process for child in children if child.process is not None}
    for process in processes.values():
        process.terminate()
    stops, deadline = signals.stops, time.monotonic() + seconds
    while any(process.poll() is None for process in processes.values()):
        if signals.stops > stops or time.monotonic() >= deadline:
            break
        signals.wait(deadline - time.monotonic())
    for name, process in processes.items():
        logger.info("%s %s", name, "did not end and is killed" if process.poll() is None else "ended")
        kill(process)

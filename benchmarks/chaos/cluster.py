"""Two services on one data folder and one database: their processes, and how to reach and restart them."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path

import psycopg

from app.processes.lifeline import die_with_parent
from app.settings import Settings
from benchmarks.processes import all_below, command_of
from scripts.postgres_server import PostgresServer

HOST = "127.0.0.1"
API, WORKER = "app.main", "app.jobs.worker"
FIT, READER = "app.jobs.fit_child", "app.datasets.upload.apart"
LEASE_SECONDS = 4.0
TMPFS_BYTES = 384 * 1024 * 1024
_DURABLE = {"synchronous_commit": "on", "full_page_writes": "on"}
"""What PostgreSQL needs to lose nothing when it is killed. Only a machine that fails would need fsync."""


@dataclass
class Node:
    """One ``ccmtl serve`` with an API and workers, which it starts again when they end."""

    name: str
    settings: Settings
    log: Path
    process: subprocess.Popen[bytes] | None = None

    @property
    def url(self) -> str:
        """Where its API listens."""
        return f"http://{HOST}:{self.settings.port}"

    def start(self) -> None:
        """Start it; it is ready some seconds later."""
        kept = {name: value for name, value in os.environ.items() if not name.startswith("CCMTL_")}
        parent = os.getpid()
        with self.log.open("ab") as log:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "app.commands.cli", "serve"],
                env={**kept, **self.settings.environment()},
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
                preexec_fn=lambda: die_with_parent(parent, signal.SIGTERM),
            )

    def pids(self, module: str) -> list[int]:
        """Return the processes below it that run a module."""
        below = [] if self.process is None else all_below(self.process.pid)
        return [pid for pid in below if module in command_of(pid)]

    def stop(self) -> int:
        """End it as an operator does, and return its exit code."""
        assert self.process is not None
        if self.process.poll() is None:
            self.process.terminate()
        try:
            return self.process.wait(60)
        except subprocess.TimeoutExpired:
            self.process.kill()
            return self.process.wait()


class Proxy:
    """Between the services and PostgreSQL: passes bytes on, unless it is told to cut off or be silent."""

    def __init__(self, to: Path) -> None:
        self._to = to
        self._listener = socket.create_server((HOST, 0))
        self.port = int(self._listener.getsockname()[1])
        self._open: set[socket.socket] = set()
        self._lock = threading.Lock()
        self._passing = threading.Event()
        self._passing.set()
        self._is_cut = False
        threading.Thread(target=self._accept, daemon=True).start()

    def cut(self) -> None:
        """Close all connections, and every new one at once."""
        self._is_cut = True
        with self._lock:
            for connection in self._open:
                with suppress(OSError):
                    connection.shutdown(socket.SHUT_RDWR)

    def fall_silent(self) -> None:
        """Keep connections open, and pass nothing on."""
        self._passing.clear()

    def restore(self) -> None:
        """Pass everything on again."""
        self._is_cut = False
        self._passing.set()

    def close(self) -> None:
        """Accept nothing more."""
        self._listener.close()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                near, _ = self._listener.accept()
                if self._is_cut:
                    near.close()
                    continue
                far = socket.socket(socket.AF_UNIX)
                try:
                    far.connect(str(self._to))
                except OSError:
                    near.close()
                    far.close()
                    continue
                with self._lock:
                    self._open |= {near, far}
                for source, target in ((near, far), (far, near)):
                    threading.Thread(target=self._pass_on, args=(source, target), daemon=True).start()

    def _pass_on(self, source: socket.socket, target: socket.socket) -> None:
        with suppress(OSError):
            while data := source.recv(1 << 16):
                self._passing.wait()
                target.sendall(data)
        for end in (source, target):
            with suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)
        with self._lock:
            gone = {source} & self._open
            self._open -= gone
        for end in gone:
            end.close()


@dataclass
class Cluster:
    """All that a run needs, and what it has of it."""

    folder: Path
    nodes: list[Node]
    is_small_disk: bool
    postgres: PostgresServer | None = None
    proxy: Proxy | None = None
    skipped: list[str] = field(default_factory=list)

    @property
    def data_dir(self) -> Path:
        """The folder of data that all processes share."""
        return self.folder / "var"

    def restart_postgres(self) -> None:
        """Start PostgreSQL after it was killed, once what it left behind has ended."""
        assert self.postgres is not None
        until = time.monotonic() + 60
        while True:
            try:
                self.postgres.start()
            except AssertionError:  # processes of the one before still hold its memory
                if time.monotonic() > until:
                    raise
                time.sleep(0.2)
            else:
                return

    def postgres_pids(self) -> list[int]:
        """Return the processes of PostgreSQL, the first one first."""
        assert self.postgres is not None
        assert self.postgres.process is not None
        return [self.postgres.process.pid, *all_below(self.postgres.process.pid)]


@contextmanager
def running(database: str) -> Iterator[Cluster]:
    """Run two services, with three workers together, while the block runs."""
    with tempfile.TemporaryDirectory(prefix="ccmtl-chaos-") as name, ExitStack() as at_end:
        folder = Path(name)
        (folder / "var").mkdir()
        is_small = _mount(folder / "var")
        skipped = [] if is_small else ["a full disk: mounting a small one takes root on Linux"]
        at_end.callback(_unmount, folder / "var", is_small)
        cluster = Cluster(folder, [], is_small, skipped=skipped)
        url = None
        if database == "postgresql":
            (folder / "pg").mkdir()
            os.chmod(folder, 0o755)
            cluster.postgres = PostgresServer(folder / "pg", options=_DURABLE)
            cluster.postgres.start()
            at_end.callback(cluster.postgres.stop)
            with psycopg.connect(
                host=str(folder / "pg"), user="postgres", dbname="postgres", autocommit=True
            ) as connection:
                connection.execute("CREATE DATABASE ccmtl")
            cluster.proxy = Proxy(cluster.postgres.socket)
            at_end.callback(cluster.proxy.close)
            url = f"postgresql+psycopg://postgres@{HOST}:{cluster.proxy.port}/ccmtl"
        for number, n_workers in enumerate((2, 1), start=1):
            settings = Settings(
                data_dir=folder / "var",
                database_url=url,
                port=_free_port(),
                workers=n_workers,
                job_lease_seconds=LEASE_SECONDS,
                job_poll_seconds=0.2,
                job_max_attempts=10,
                log_level="info",
            )
            node = Node(f"service {number}", settings, folder / f"service-{number}.log")
            cluster.nodes.append(node)
            at_end.callback(_end, node)
            if url is not None and number == 1:
                _migrate(node)
            node.start()
        yield cluster


def _end(node: Node) -> None:
    if node.process is not None and node.process.poll() is None:
        node.stop()


def _migrate(node: Node) -> None:
    command = [sys.executable, "-m", "app.commands.cli", "migrate"]
    subprocess.run(
        command, env={**os.environ, **node.settings.environment()}, check=True, capture_output=True
    )


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind((HOST, 0))
        return int(probe.getsockname()[1])


def _mount(folder: Path) -> bool:
    if sys.platform != "linux" or os.geteuid() != 0:
        return False
    options = f"size={TMPFS_BYTES},mode=700"
    done = subprocess.run(["mount", "-t", "tmpfs", "-o", options, "tmpfs", str(folder)], capture_output=True)
    return done.returncode == 0


def _unmount(folder: Path, is_mounted: bool) -> None:
    if is_mounted:
        subprocess.run(["umount", "--lazy", str(folder)], check=True)


def wait_for(condition: Callable[[], bool], seconds: float) -> float | None:
    """Return the seconds until a condition holds, None if it does not within so many."""
    begun = time.monotonic()
    while time.monotonic() - begun < seconds:
        if condition():
            return time.monotonic() - begun
        time.sleep(0.1)
    return None

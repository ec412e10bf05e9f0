"""A shell or a Python that runs one block after another and keeps its variables, like a reader's terminal."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from app.processes.lifeline import die_with_parent

_DONE, _FAILED = "\x01done\x01", "\x01failed\x01"
_BASH = rf"""
set -euo pipefail
trap 'printf "{_FAILED}%s %s" "$LINENO" "$BASH_COMMAND"' ERR
# Set up is the environment already: it is the one that walks.
make() {{ command make --old-file=runtime --old-file=dev "$@"; }}
curl() {{
    if [ -n "$refused" ]; then
        local answer && answer=$(command curl --write-out "\nstatus %{{http_code}}" "$@")
        printf '%s\n' "$answer"
        [[ "$answer" == *"status 4"* ]]
    elif [[ " $* " == *" --fail "* ]]; then command curl "$@"
    else command curl --fail-with-body "$@"; fi
}}
# The throw-away PostgreSQL server belongs to whoever walks, not to a user `postgres` of this machine.
sudo() {{ shift 2; PGHOST="$SERVER_FOLDER" PGUSER=postgres "$@"; }}
while read -r refused file; do
    refused=${{refused#-}}
    . "$file" </dev/null
    printf '{_DONE}'
done
"""
_PYTHON = f"""
import pathlib, sys, traceback
names = {{"__name__": "__main__"}}
for line in sys.stdin:
    page, file = line.split()
    try:
        exec(compile(pathlib.Path(file).read_text(), page, "exec"), names)
    except BaseException as error:
        traceback.print_exc(file=sys.stdout)
        frames = traceback.extract_tb(error.__traceback__)
        lines = [getattr(error, "lineno", 0), *(frame.lineno for frame in frames if frame.filename == page)]
        print(f"{_FAILED}{{lines[-1]}} ", end="", flush=True)
        sys.exit(1)
    print("{_DONE}", end="", flush=True)
"""


class Stopped(Exception):
    """What ran in a terminal failed, ended or took too long: its output; line and command where known."""

    def __init__(self, text: str) -> None:
        self.output, _, place = text.partition(_FAILED)
        line, _, self.command = place.partition(" ")
        self.line = int(line or 0)
        super().__init__(self.output)


class Terminal:
    """A process that is given files to run, with all its output in one file."""

    def __init__(self, language: str, folder: Path, environment: Mapping[str, str]) -> None:
        command = (
            ["bash", "-c", _BASH] if language == "sh" else [sys.executable, "-W", "error", "-c", _PYTHON]
        )
        self._folder, self._n_files, self._read = folder, 0, 0
        self._log = folder / f".terminal-{time.monotonic_ns()}"
        parent = os.getpid()

        def prepare() -> None:
            signal.signal(signal.SIGINT, signal.SIG_DFL)
            die_with_parent(parent, by=signal.SIGTERM)

        with self._log.open("wb") as log:
            self._process = subprocess.Popen(
                command,
                cwd=folder,
                env=environment,
                stdin=subprocess.PIPE,
                stdout=log,
                stderr=subprocess.STDOUT,
                start_new_session=True,
                preexec_fn=prepare,
            )

    @property
    def returncode(self) -> int | None:
        """The exit code of the shell or the Python; None while it runs."""
        return self._process.poll()

    def type(self, text: str, tag: str) -> None:
        """Begin to run a text; ``tag`` is what the process is told beside it."""
        self._n_files += 1
        file = self._log.with_name(f"{self._log.name}-{self._n_files}")
        file.write_text(text)
        assert self._process.stdin is not None
        self._process.stdin.write(f"{tag} {file}\n".encode())
        self._process.stdin.flush()

    def wait_for(self, seconds: float, text: str = _DONE) -> str:
        """Wait until ``text`` is written, by default at the end of what runs; return what came before it.

        Raises
        ------
        Stopped
            It failed, or the time is over.
        """
        deadline = time.monotonic() + seconds
        while True:
            ended = self._process.poll() is not None
            written = self._log.read_text(errors="replace")[self._read :]
            before, found, _ = written.partition(text)
            if found:
                self._read += len(before + found)
                return before
            if ended:
                raise Stopped(written)
            if time.monotonic() > deadline:
                raise Stopped(f"{written}\nIt did not end within {seconds:g} s.")
            time.sleep(0.02)

    def close(self) -> None:
        """End what waits for more to run; then, as Ctrl-C and closing its window would, all else in it."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        with suppress(subprocess.TimeoutExpired):  # polars keeps Ctrl-C from a Python that waits for input
            self._process.wait(timeout=2)
        for by in (signal.SIGINT, signal.SIGKILL):
            try:
                os.killpg(self._process.pid, by)
                self._process.wait(timeout=20)
            except (ProcessLookupError, subprocess.TimeoutExpired):
                continue

"""Starts `ccmtl serve` on SQLite in a folder of its own, speaks JSON to it, and stops it without a trace."""

from __future__ import annotations

import contextlib
import http.client
import json
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any
from urllib.parse import quote

from app.processes.lifeline import die_with_parent

HOST = "127.0.0.1"


class ServiceFailed(Exception):
    """The service did not start, stopped, or refused a request; the message holds its own words."""


class LocalService:
    """A running service, from entering the ``with`` block until leaving it."""

    def __init__(self, data_dir: Path, preferred_port: int = 8000) -> None:
        self.data_dir = data_dir
        self.log = data_dir / "service.log"
        self.port = _free_port(preferred_port)
        self.url = f"http://{HOST}:{self.port}"

    def __enter__(self) -> LocalService:
        # The demo must never reach a database that the caller's own settings name.
        env = {key: value for key, value in os.environ.items() if not key.startswith("CCMTL_")}
        env |= {"CCMTL_DATA_DIR": str(self.data_dir), "CCMTL_HOST": HOST, "CCMTL_PORT": str(self.port)}
        parent = os.getpid()
        with self.log.open("wb") as log:
            self._process = subprocess.Popen(
                [str(Path(sys.executable).with_name("ccmtl")), "serve"],
                env=env,
                stdout=log,
                stderr=subprocess.STDOUT,
                preexec_fn=lambda: die_with_parent(parent, by=signal.SIGTERM),
            )
        try:
            self._wait_until_ready(seconds=120)
        except BaseException:
            self._stop()
            raise
        return self

    def __exit__(self, *exception: object) -> None:
        self._stop()

    def get(self, path: str, **query: str) -> Any:
        """GET ``path`` and return the JSON of the answer."""
        suffix = "&".join(f"{key}={quote(value, safe='')}" for key, value in query.items())
        return self._request("GET", f"{path}?{suffix}" if suffix else path)

    def post(self, path: str, body: Any) -> Any:
        """POST ``body`` as JSON and return the JSON of the answer."""
        return self._request("POST", path, json.dumps(body).encode(), {"Content-Type": "application/json"})

    def upload(self, path: str, blocks: Iterable[bytes], size: int) -> Any:
        """POST ``size`` bytes of CSV, block by block, and return the JSON of the answer."""
        return self._request("POST", path, blocks, {"Content-Type": "text/csv", "Content-Length": str(size)})

    def wait(self) -> None:
        """Wait until the service ends, which is a failure."""
        code = self._process.wait()
        raise ServiceFailed(f"ccmtl serve ended with code {code}\n{self._log_tail()}")

    def _request(
        self,
        method: str,
        path: str,
        body: bytes | Iterable[bytes] | None = None,
        headers: dict[str, str] | None = None,
    ) -> Any:
        connection = http.client.HTTPConnection(HOST, self.port, timeout=300)
        try:
            with contextlib.suppress(
                BrokenPipeError, ConnectionResetError
            ):  # refused early: the answer says why
                connection.request(method, path, body, headers or {})
            response = connection.getresponse()
            content = response.read()
        except OSError as error:
            raise ServiceFailed(f"{method} {path}: no answer ({error})\n{self._log_tail()}") from error
        finally:
            connection.close()
        if response.status >= 400:
            raise ServiceFailed(f"{method} {path}: {response.status}\n{content.decode(errors='replace')}")
        return json.loads(content)

    def _wait_until_ready(self, seconds: float) -> None:
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            if self._process.poll() is not None:
                raise ServiceFailed(
                    f"ccmtl serve ended with code {self._process.returncode}\n{self._log_tail()}"
                )
            try:
                self.get("/readyz")
                return
            except ServiceFailed:
                time.sleep(0.1)
        raise ServiceFailed(f"ccmtl serve was not ready after {seconds:.0f} s\n{self._log_tail()}")

    def _stop(self) -> None:
        self._process.send_signal(signal.SIGTERM)
        try:
            self._process.wait(timeout=20)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()

    def _log_tail(self, n_lines: int = 15) -> str:
        return "\n".join(self.log.read_text(errors="replace").splitlines()[-n_lines:])


def _free_port(preferred: int) -> int:
    for port in (preferred, 0):
        with socket.socket() as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind((HOST, port))
            except OSError:
                continue
            return int(probe.getsockname()[1])
    raise ServiceFailed(f"no free port on {HOST}")

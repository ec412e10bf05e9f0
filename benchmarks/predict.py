"""Measure how long one prediction takes over HTTP, beside an answer that does nothing.

A model of 23,812 products with five lags is published into an empty SQLite database; `ccmtl api` serves it.
"""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from app.persistence.database import Database
from app.persistence.schema import prepare
from app.registry.publication import History
from app.settings import Settings
from benchmarks.report import Row, Section
from benchmarks.runner import Sections, command_line, run
from tests.support.models import add_version, trained

HOST = "127.0.0.1"
N_TASKS, N_FEATURES = 23_812, 5
N_WARM_UP, N_REQUESTS, N_BATCH = 300, 3000, 1000
N_CLIENTS, N_CONNECTIONS, SECONDS = 2, 8, 4.0


def publish_model(folder: Path) -> None:
    """Publish random weights and histories as version 1 of `m`."""
    rng = np.random.default_rng(0)
    database = Database(Settings(data_dir=folder))
    prepare(database)
    ids = [f"{t:013d}" for t in range(N_TASKS)]
    history = History(rng.poisson(1.0, (N_TASKS, N_FEATURES)).astype(float), np.full(N_TASKS, 11_381))
    weights = rng.normal(size=(N_TASKS, N_FEATURES)) / N_FEATURES
    add_version(database, trained(weights, ids, history=history, frequency="D"), "m")
    database.dispose()


@contextmanager
def running_api(folder: Path, cpu: int | None = None, log: Path | None = None) -> Iterator[tuple[int, int]]:
    """Run the API on `folder` while the block runs, on one CPU if it is given; yield its port and pid.

    What it says goes to the file `log`, or nowhere.
    """
    with socket.socket() as probe:
        probe.bind((HOST, 0))
        port = int(probe.getsockname()[1])
    environment = {"PATH": os.environ["PATH"], "CCMTL_DATA_DIR": str(folder), "CCMTL_PORT": str(port)}
    command = [sys.executable, "-m", "app.commands.cli", "api"]
    pinned = None if cpu is None else partial(os.sched_setaffinity, 0, {cpu})
    with open(log or os.devnull, "wb") as said:
        server = subprocess.Popen(
            command, env=environment, stdin=subprocess.PIPE, stderr=said, preexec_fn=pinned
        )
    try:
        while True:
            try:
                socket.create_connection((HOST, port)).close()
                break
            except ConnectionRefusedError:
                if server.poll() is not None:
                    raise SystemExit(f"the API ended with code {server.returncode}") from None
                time.sleep(0.05)
        yield port, server.pid
    finally:
        server.terminate()
        server.wait()


def requests() -> dict[str, bytes]:
    """Return the requests that are measured, the one for reference first."""
    lags = {f"lag_{p + 1}": float(p) for p in range(N_FEATURES)}
    row = {"rows": [{"unique_id": f"{4711:013d}", "features": lags}]}
    batch = {
        "unique_id": [f"{t:013d}" for t in range(N_BATCH)],
        "features": {name: [value + 0.1] * N_BATCH for name, value in lags.items()},
    }
    return {
        "healthz": b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n",
        "predict, one row": _post("/v1/models/m/predict", row),
        "forecast, one product, h=1": b"GET /v1/models/m/forecast?unique_id=%013d HTTP/1.1\r\n"
        b"Host: localhost\r\n\r\n" % 4711,
        f"predict, {N_BATCH} rows in columns": _post("/v1/models/m/predict", batch),
    }


def _post(path: str, document: Any) -> bytes:
    body = json.dumps(document).encode()
    head = f"POST {path} HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
    return head.encode() + b"Content-Length: %d\r\n\r\n" % len(body) + body


def latencies(port: int, request: bytes, n_requests: int) -> list[float]:
    """Ask one after the other on one connection; return the milliseconds of each answer."""
    measured = []
    with socket.create_connection((HOST, port)) as connection:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        for _ in range(n_requests):
            start = time.perf_counter()
            connection.sendall(request)
            _receive(connection)
            measured.append((time.perf_counter() - start) * 1e3)
    return measured


def ask(port: int, request: bytes) -> int:
    """Keep a request under way on every connection; return how many were answered."""
    connections = [socket.create_connection((HOST, port)) for _ in range(N_CONNECTIONS)]
    answered = 0
    deadline = time.monotonic() + SECONDS
    while time.monotonic() < deadline:
        for connection in connections:
            connection.sendall(request)
        for connection in connections:
            _receive(connection)
            answered += 1
    for connection in connections:
        connection.close()
    return answered


def _receive(connection: socket.socket) -> None:
    head, _, body = connection.recv(1 << 20).partition(b"\r\n\r\n")
    if not head.startswith(b"HTTP/1.1 200"):
        raise SystemExit(f"refused: {head.decode()}\n{body.decode()}")
    length = int(head.lower().split(b"content-length:")[1].split(b"\r\n")[0])
    received = len(body)
    while received < length:
        received += len(connection.recv(1 << 20))


def measure() -> Section:
    """Return, for each kind of request, the latency of one client and the requests a second of many."""
    rows: list[Row] = []
    with tempfile.TemporaryDirectory() as folder:
        publish_model(Path(folder))
        with running_api(Path(folder)) as (port, _), ProcessPoolExecutor(N_CLIENTS) as pool:
            for name, request in requests().items():
                latencies(port, request, N_WARM_UP)
                p50, p99 = np.percentile(latencies(port, request, N_REQUESTS), [50, 99])
                answered = sum(pool.map(ask, [port] * N_CLIENTS, [request] * N_CLIENTS))
                rows.append(
                    {
                        "request": name,
                        "median ms": float(p50),
                        "99 % below, ms": float(p99),
                        "requests/s": round(answered / SECONDS),
                    }
                )
    title = f"Latency of one client; requests of {N_CLIENTS} with {N_CONNECTIONS} connections each"
    return Section({title: rows})


SECTIONS: Sections = {"predict": lambda _: measure()}

if __name__ == "__main__":
    sys.exit(run(SECTIONS, command_line("predict", __doc__, SECTIONS).parse_args()))

"""Measure the API under load, beside its own `/ping`, while a training keeps the other core busy.

The API stays on one CPU; wrk (Debian's package `wrk`) asks it on 16 connections from another, which it shares
with fits that begin anew until the end. A model of 23,812 products with five features is served. Each kind of
request is asked in turn with `/ping`, several times, so that other load meets both.
"""

from __future__ import annotations

import argparse
import io
import json
import os
import re
import shutil
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import polars as pl

from benchmarks.predict import HOST, N_BATCH, N_FEATURES, publish_model, running_api
from benchmarks.report import Bar, Row, Section, step
from benchmarks.runner import Sections, command_line, run

N_CONNECTIONS = 16
TRAINING = (
    "import numpy as np; from ccmtl_core import SufficientStatistics, TaskDataset, select, random_folds\n"
    "rng = np.random.default_rng(0); X = list(rng.normal(size=(2000, 30, 10)))\n"
    "data = TaskDataset.from_arrays(X, [x @ rng.normal(size=10) for x in X])\n"
    "parts = SufficientStatistics.by_fold(data, random_folds(data, 5, rng), 5)\n"
    "while True: select(parts, folds='random')\n"
)
_ABOUT = (
    "An API second is a processor second of the API. On a busy machine, where few requests are answered in a "
    "second, looking up five times a second which version is the newest weighs more than it else would."
)
_UNITS = {"us": 1e-3, "ms": 1.0, "s": 1e3}


@dataclass(frozen=True)
class Asked:
    """What wrk saw of one kind of request, and the processor seconds that the API needed."""

    n_requests: int
    n_errors: int
    seconds: float
    p50: float
    p99: float
    api_seconds: float

    @property
    def per_api_second(self) -> float:
        """Requests for each processor second of the API: what a core does that it has for itself."""
        return self.n_requests / self.api_seconds


def bodies() -> dict[str, tuple[str, str, bytes]]:
    """Return path, content type and body of each kind of request; others are held to the first."""
    features = {f"lag_{p + 1}": [p + 0.1] * N_BATCH for p in range(N_FEATURES)}
    ids = [f"{t:013d}" for t in range(N_BATCH)]
    one = {"unique_id": ids[711], "features": {name: values[0] for name, values in features.items()}}
    stream = io.BytesIO()
    pl.DataFrame({"unique_id": ids, **features}).write_ipc_stream(stream)
    columns = json.dumps({"unique_id": ids, "features": features}, separators=(",", ":")).encode()
    path, as_json = "/v1/models/m/predict", "application/json"
    return {
        "/ping": ("/ping", "", b""),
        "predict, one product": (path, as_json, json.dumps({"rows": [one]}).encode()),
        f"predict, {N_BATCH} rows, columns of JSON": (path, as_json, columns),
        f"predict, {N_BATCH} rows, Arrow": (path, "application/vnd.apache.arrow.stream", stream.getvalue()),
    }


def ask(
    folder: Path, port: int, pid: int, request: tuple[str, str, bytes], seconds: float, cpu: int
) -> Asked:
    """Ask with wrk, and return what it saw."""
    path, content_type, body = request
    script = folder / "request.lua"
    if body:
        (folder / "body").write_bytes(body)
        script.write_text(
            f'wrk.method = "POST"\nwrk.headers["Content-Type"] = "{content_type}"\n'
            f'wrk.body = io.open("{folder / "body"}", "rb"):read("*a")\n'
        )
    else:
        script.write_text('wrk.method = "GET"\n')
    command = [
        "wrk",
        "-t1",
        f"-c{N_CONNECTIONS}",
        f"-d{seconds:g}s",
        "--latency",
        "--timeout",
        "30s",
        "-s",
        str(script),
    ]
    before = processor_seconds(pid)
    told = subprocess.run(
        [*command, f"http://{HOST}:{port}{path}"],
        check=True,
        capture_output=True,
        text=True,
        preexec_fn=lambda: os.sched_setaffinity(0, {cpu}),
    ).stdout
    used = processor_seconds(pid) - before
    n_requests, took = re.findall(r"(\d+) requests in ([\d.]+)s", told)[0]
    failed = re.findall(r"(?:Non-2xx or 3xx responses:|connect|read|write|timeout) (\d+)", told)
    p50, p99 = (_milliseconds(told, percent) for percent in (50, 99))
    return Asked(int(n_requests), sum(map(int, failed)), float(took), p50, p99, used)


def processor_seconds(pid: int) -> float:
    """Return the processor seconds that a process has used so far."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def _milliseconds(told: str, percent: int) -> float:
    value, unit = re.findall(rf"{percent}%\s+([\d.]+)(us|ms|s)", told)[0]
    return float(value) * _UNITS[unit]


@contextmanager
def training_on(cpu: int) -> Iterator[None]:
    """Keep a CPU busy with fits while the block runs."""
    environment = {**os.environ, "NUMBA_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}
    child = subprocess.Popen(
        [sys.executable, "-c", TRAINING], env=environment, preexec_fn=lambda: os.sched_setaffinity(0, {cpu})
    )
    try:
        yield
    finally:
        child.kill()
        child.wait()


def measure(chosen: argparse.Namespace) -> Section:
    """Return rates, latencies and processor time of each kind of request."""
    cpus = sorted(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else []
    if len(cpus) < 2 or shutil.which("wrk") is None:
        return Section(skipped="it needs Linux, two CPUs and wrk (apt-get install wrk)")
    seen: dict[str, list[Asked]] = {name: [] for name in bodies()}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        publish_model(folder)
        with running_api(folder, cpus[0]) as (port, pid), training_on(cpus[1]):
            for request in bodies().values():
                ask(folder, port, pid, request, 1, cpus[1])
            for n in range(chosen.rounds):
                step(f"round {n + 1} of {chosen.rounds}")
                for kind, request in bodies().items():
                    seen[kind].append(ask(folder, port, pid, request, chosen.seconds, cpus[1]))
    return _section(seen)


def _section(seen: dict[str, list[Asked]]) -> Section:
    rows: list[Row] = []
    ratios: dict[str, dict[str, float]] = {}
    for kind, asked in seen.items():
        n_rows = N_BATCH if str(N_BATCH) in kind else 1
        pairs = list(zip(asked, seen["/ping"], strict=True))
        ratios[kind] = {
            "rate": _median([a.per_api_second / ping.per_api_second for a, ping in pairs]),
            "p99": _median([a.p99 / ping.p99 for a, ping in pairs]),
            "rows": n_rows * _median([a.per_api_second for a in asked]),
        }
        rows.append(
            {
                "request": kind,
                "requests": sum(a.n_requests for a in asked),
                "errors": sum(a.n_errors for a in asked),
                "requests/s": round(_median([a.n_requests / a.seconds for a in asked])),
                "median ms": _median([a.p50 for a in asked]),
                "99 % below, ms": _median([a.p99 for a in asked]),
                "of /ping": round(ratios[kind]["p99"], 2),
                "rows per API second": round(ratios[kind]["rows"]),
                "requests, of /ping": round(ratios[kind]["rate"], 2),
            }
        )
    one, *batches = list(ratios)[1:]
    bars = [
        Bar("errors", sum(row["errors"] for row in rows), 0),
        Bar("rate of one product, of /ping", ratios[one]["rate"], 0.7, at_least=True),
        Bar("99 % of one product, of /ping", ratios[one]["p99"], 2.0),
        Bar("rows per core of a batch", max(ratios[b]["rows"] for b in batches), 500_000, at_least=True),
    ]
    return Section({f"{N_CONNECTIONS} keep-alive connections, the API on one core": rows}, bars, [_ABOUT])


def _median(values: list[float]) -> float:
    return float(statistics.median(values))


SECTIONS: Sections = {"serving": measure}

if __name__ == "__main__":
    parser = command_line("serving", __doc__, SECTIONS)
    parser.add_argument("--rounds", type=int, default=5, help="how often each request is measured")
    parser.add_argument("--seconds", type=float, default=4, help="how long each time")
    sys.exit(run(SECTIONS, parser.parse_args()))

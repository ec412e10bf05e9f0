"""Measure the API under load, beside its own `/ping`, while a training keeps the other core busy.

The API stays on one CPU; wrk (Debian's package `wrk`) asks it on 16 connections from another, which it shares
with fits that begin anew until the end. A model of 23,812 products with five features is served. Each kind of
request is asked in turn with `/ping`, several times, so that other load meets both. `--requests 500000` then
asks for single predictions until there were so many. What went wrong is told by its kind: the step at which
connections failed, as wrk counts them, and the statuses that the API's own `/metrics` counts.
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
import urllib.request
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import polars as pl

from benchmarks.predict import HOST, N_BATCH, N_FEATURES, publish_model, running_api
from benchmarks.processes import processor_seconds
from benchmarks.report import Bar, Row, Section, step
from benchmarks.runner import Sections, command_line, run

N_CONNECTIONS = 16
PATIENCE = 30
"""Seconds until a request counts as not answered."""
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
    errors: dict[str, int]
    """By kind: the step of a connection that failed, or the status of the answer."""
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
        f"{PATIENCE}s",
        "-s",
        str(script),
    ]
    before, refused = processor_seconds(pid), refusals(port)
    told = subprocess.run(
        [*command, f"http://{HOST}:{port}{path}"],
        check=True,
        capture_output=True,
        text=True,
        preexec_fn=lambda: os.sched_setaffinity(0, {cpu}),
    ).stdout
    used = processor_seconds(pid) - before
    n_requests, took = re.findall(r"(\d+) requests in ([\d.]+)s", told)[0]
    errors = {f"{kind} failed": int(n) for kind, n in re.findall(r"(connect|read|write) (\d+)", told)}
    errors |= {f"no answer in {PATIENCE} s": int(n) for n in re.findall(r"timeout (\d+)", told)}
    for n in map(int, re.findall(r"Non-2xx or 3xx responses: (\d+)", told)):
        # Requests that wrk cuts off at its end are among the API's, as 400, and not among wrk's.
        statuses = ", ".join(f"{n} × {status}" for status, n in (refusals(port) - refused).items())
        errors[f"refused (the API's own count: {statuses})"] = n
    p50, p99 = (_milliseconds(told, percent) for percent in (50, 99))
    return Asked(int(n_requests), {kind: n for kind, n in errors.items() if n}, float(took), p50, p99, used)


def refusals(port: int) -> Counter[str]:
    """Return how many requests the API has answered with which status from 400 on, as its metrics say."""
    with urllib.request.urlopen(f"http://{HOST}:{port}/metrics", timeout=PATIENCE) as answer:
        told = answer.read().decode()
    counted: Counter[str] = Counter()
    for status, n in re.findall(
        r'^ccmtl_http_requests_total\{.*status="([45]\d\d)".*\} ([\d.e+]+)$', told, re.M
    ):
        counted[status] += int(float(n))
    return counted


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
        log = folder / "log"
        with running_api(folder, cpus[0], log) as (port, pid), training_on(cpus[1]):
            for request in bodies().values():
                ask(folder, port, pid, request, 1, cpus[1])
            for n in range(chosen.rounds):
                step(f"round {n + 1} of {chosen.rounds}")
                for kind, request in bodies().items():
                    seen[kind].append(ask(folder, port, pid, request, chosen.seconds, cpus[1]))
            one = list(bodies())[1]
            while sum(asked.n_requests for asked in seen[one]) < chosen.requests:
                step(f"{sum(asked.n_requests for asked in seen[one]):,} of {chosen.requests:,} requests")
                for kind in ("/ping", one):
                    seen[kind].append(ask(folder, port, pid, bodies()[kind], chosen.seconds, cpus[1]))
        complaints = [line for line in log.read_text().splitlines() if re.search(" (ERROR|CRITICAL) ", line)]
    return _section(seen, complaints)


def _section(seen: dict[str, list[Asked]], complaints: list[str]) -> Section:
    rows: list[Row] = []
    ratios: dict[str, dict[str, float]] = {}
    for kind, asked in seen.items():
        n_rows = N_BATCH if str(N_BATCH) in kind else 1
        pairs = list(zip(asked, seen["/ping"], strict=False))  # of what was asked more often
        ratios[kind] = {
            "rate": _median([a.per_api_second / ping.per_api_second for a, ping in pairs]),
            "p99": _median([a.p99 / ping.p99 for a, ping in pairs]),
            "rows": n_rows * _median([a.per_api_second for a in asked]),
        }
        rows.append(
            {
                "request": kind,
                "requests": sum(a.n_requests for a in asked),
                "errors": sum(sum(a.errors.values()) for a in asked),
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
    notes = [_ABOUT, *_kinds_of_errors(seen)]
    notes += [f"The API said: {line}" for line in complaints[:20]]
    return Section({f"{N_CONNECTIONS} keep-alive connections, the API on one core": rows}, bars, notes)


def _kinds_of_errors(seen: dict[str, list[Asked]]) -> Iterator[str]:
    for kind, asked in seen.items():
        found: Counter[str] = Counter()
        for one in asked:
            found.update(one.errors)
        if found:
            yield f"Errors of {kind}: {', '.join(f'{n} × {what}' for what, n in found.most_common())}."


def _median(values: list[float]) -> float:
    return float(statistics.median(values))


SECTIONS: Sections = {"serving": measure}

if __name__ == "__main__":
    parser = command_line("serving", __doc__, SECTIONS)
    parser.add_argument("--rounds", type=int, default=5, help="how often each request is measured")
    parser.add_argument("--seconds", type=float, default=4, help="how long each time")
    parser.add_argument("--requests", type=int, default=0, help="single predictions to ask for, at least")
    sys.exit(run(SECTIONS, parser.parse_args()))

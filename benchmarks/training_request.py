"""Measure how long a training request on Ta-Feng takes to be answered, and what memory the API takes for it.

The API runs without a worker: a request is answered and queued, and nothing is trained. It is started anew
after the upload, so that what the upload took is not counted.
"""

from __future__ import annotations

import json
import statistics
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import psutil  # type: ignore[import-untyped]

from benchmarks.predict import HOST, running_api
from benchmarks.report import Section
from benchmarks.runner import Sections, command_line, run
from benchmarks.ta_feng import transactions
from examples.demo import DATASET, JOB

N_REQUESTS = 50


def send(port: int, path: str, body: bytes | Iterable[bytes], media_type: str = "application/json") -> Any:
    """Post the body and return the answer's document."""
    request = urllib.request.Request(f"http://{HOST}:{port}/v1/{path}", body, {"Content-Type": media_type})
    with urllib.request.urlopen(request) as answer:
        return json.load(answer)


def resident_mb(pid: int) -> float:
    """Return the memory of a process in megabytes."""
    return float(psutil.Process(pid).memory_info().rss) / 1e6


def measure(data: Path) -> Section:
    """Upload the transactions, then ask for a training again and again."""
    with tempfile.TemporaryDirectory() as folder:
        return _measured(Path(folder), data)


def _measured(folder: Path, data: Path) -> Section:
    with running_api(folder) as (port, _):
        send(port, "datasets", json.dumps(DATASET).encode())
        versions = f"datasets/{DATASET['name']}/versions"
        report = send(port, versions, transactions(data).blocks(), "text/csv")["report"]
    job = json.dumps(JOB).encode()
    with running_api(folder) as (port, pid):
        urllib.request.urlopen(f"http://{HOST}:{port}/v1/datasets").close()
        before, taken = resident_mb(pid), []
        for _ in range(N_REQUESTS):
            start = time.perf_counter()
            send(port, "training-jobs", job)
            taken.append((time.perf_counter() - start) * 1e3)
        row = {
            "first ms": taken[0],
            "median ms": statistics.median(taken),
            "largest ms": max(taken),
            "MB before": before,
            "MB more": resident_mb(pid) - before,
        }
    title = f"{N_REQUESTS} requests to train on {report['rows']:,} rows of {report['series']:,} products"
    return Section({title: [row]})


SECTIONS: Sections = {"training_request": lambda chosen: measure(chosen.data)}

if __name__ == "__main__":
    options = command_line("training_request", __doc__, SECTIONS, "folder with ta_feng/ta_feng.csv.zip")
    sys.exit(run(SECTIONS, options.parse_args()))

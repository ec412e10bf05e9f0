"""How long a training request on Ta-Feng takes to be answered, and how much memory the API takes for it.

The API runs without a worker: a request is answered and queued, and nothing is trained. It is started anew
after the upload, so that what the upload took is not counted.
"""

from __future__ import annotations

import argparse
import json
import statistics
import tempfile
import time
import urllib.request
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import psutil  # type: ignore[import-untyped]

from benchmarks.predict import HOST, running_api
from benchmarks.runner import DATA
from benchmarks.ta_feng import transactions
from examples.demo import DATASET, JOB

N_REQUESTS = 50


def send(port: int, path: str, body: bytes | Iterable[bytes], media_type: str = "application/json") -> Any:
    """Post the body and return the answer's document."""
    request = urllib.request.Request(f"http://{HOST}:{port}/v1/{path}", body, {"Content-Type": media_type})
    with urllib.request.urlopen(request) as answer:
        return json.load(answer)


def resident_mb() -> float:
    """Return the memory of the one child of this process, the API, in megabytes."""
    (api,) = psutil.Process().children()
    return float(api.memory_info().rss) / 1e6


def measure(folder: Path, data: Path) -> dict[str, float]:
    """Upload the transactions, then ask for a training again and again."""
    with running_api(folder) as port:
        send(port, "datasets", json.dumps(DATASET).encode())
        report = send(port, f"datasets/{DATASET['name']}/versions", transactions(data).blocks(), "text/csv")
        print(f"{report['report']['rows']:,} rows of {report['report']['series']:,} products uploaded")
    job = json.dumps(JOB).encode()
    with running_api(folder) as port:
        urllib.request.urlopen(f"http://{HOST}:{port}/v1/datasets").close()
        before, taken = resident_mb(), []
        for _ in range(N_REQUESTS):
            start = time.perf_counter()
            send(port, "training-jobs", job)
            taken.append((time.perf_counter() - start) * 1e3)
        return {
            "first_ms": taken[0],
            "median_ms": statistics.median(taken),
            "largest_ms": max(taken),
            "memory_before_mb": before,
            "memory_growth_mb": resident_mb() - before,
        }


def main() -> None:
    """Print the figures."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.training_request", description=__doc__)
    parser.add_argument("--data", type=Path, default=DATA, help="folder with ta_feng/ta_feng.csv.zip")
    with tempfile.TemporaryDirectory() as folder:
        figures = measure(Path(folder), parser.parse_args().data)
    print(f"{N_REQUESTS} requests for a training:")
    for name, value in figures.items():
        print(f"{name:<18}{value:9.1f}")


if __name__ == "__main__":
    main()

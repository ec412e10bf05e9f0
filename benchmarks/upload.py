"""Measure an upload of a long CSV file over HTTP, beside what polars takes to make Parquet of the same file.

``python -m benchmarks.upload`` writes the daily sales of 40 stores, sends them to a server of its own in turn
with ``polars.scan_csv(…).sink_parquet(…)``, and watches the memory of the API and of the process that it
starts to read the file. Both are resident memory, pages of the file included where they are mapped.
"""

from __future__ import annotations

import argparse
import http.client
import json
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from datetime import date, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl

from benchmarks.predict import HOST, running_api
from benchmarks.processes import children_of, megabytes, processor_seconds
from benchmarks.report import Bar, Row, Section, step
from benchmarks.runner import Sections, command_line, run

N_STORES, N_DAYS = 40, 730
BYTES_PER_ROW = 34
MOST_OF_API, MOST_OF_CHILD, MOST_OF_POLARS = 100.0, 600.0, 2.0
"""Megabytes that the API may grow by, and that its child may take; how long it may take beside polars."""
FORM = {
    "kind": "series",
    "frequency": "D",
    "columns": {"unique_id": ["store", "product"], "ds": "date", "y": "units"},
}
_POLARS = (
    "import sys, time; import polars as pl; start = time.perf_counter(); "
    "pl.scan_csv(sys.argv[1]).sink_parquet(sys.argv[2]); "
    "print(time.perf_counter() - start, time.process_time())"
)
_SECONDS_BETWEEN_LOOKS = 0.05


def write_sales(path: Path, megabytes: float) -> int:
    """Write daily sales, by store, product and day, and return how many rows."""
    random = np.random.default_rng(0)
    n_products = max(1, round(megabytes * 1e6 / BYTES_PER_ROW / N_STORES / N_DAYS))
    n = n_products * N_DAYS
    days = [str(date(2023, 1, 1) + timedelta(day)) for day in range(N_DAYS)]
    with path.open("wb") as out:
        for store in range(N_STORES):
            rates, prices = random.gamma(1.0, 3.0, n_products), random.integers(99, 9999, n_products) / 100
            product = pl.Series(np.repeat(np.arange(n_products), N_DAYS)).cast(pl.String)
            frame = pl.DataFrame(
                {
                    "store": pl.repeat(f"S{store + 1:03d}", n, eager=True),
                    "product": product.str.zfill(7),
                    "date": pl.Series(days * n_products),
                    "units": random.poisson(np.repeat(rates, N_DAYS)),
                    "price": np.repeat(prices, N_DAYS).round(2),
                    "promotion": random.binomial(1, 0.05, n),
                }
            )
            frame.write_csv(out, include_header=store == 0)
    return n * N_STORES


@dataclass
class Watched:
    """The most resident memory of a process and of its largest child, in megabytes, and processor seconds."""

    process: float = 0.0
    child: float = 0.0
    child_itself: float = 0.0
    """Without the pages of files, which the system takes away when it needs room."""
    child_seconds: float = 0.0


@contextmanager
def watching(pid: int) -> Iterator[Watched]:
    """Watch a process and its children while the block runs."""
    seen, ended = Watched(), threading.Event()

    def look() -> None:
        while not ended.wait(_SECONDS_BETWEEN_LOOKS):
            seen.process = max(seen.process, megabytes(pid, "VmRSS"))
            for child in children_of(pid):
                with suppress(OSError):  # it has ended
                    seen.child = max(seen.child, megabytes(child, "VmHWM"))
                    seen.child_itself = max(seen.child_itself, megabytes(child, "RssAnon"))
                    seen.child_seconds = max(seen.child_seconds, processor_seconds(child))

    thread = threading.Thread(target=look)
    thread.start()
    try:
        yield seen
    finally:
        ended.set()
        thread.join()


def ask(port: int, method: str, path: str, body: Any = None, content_type: str = "application/json") -> Any:
    """Send a request, a file as it stands and anything else as JSON; return what JSON the answer holds."""
    connection = http.client.HTTPConnection(HOST, port, timeout=3600, blocksize=1 << 20)
    headers = {"Content-Type": content_type}
    if isinstance(body, Path):
        headers["Content-Length"] = str(body.stat().st_size)
        with body.open("rb") as file:
            connection.request(method, path, file, headers)
            answer = connection.getresponse()
    else:
        connection.request(method, path, None if body is None else json.dumps(body), headers)
        answer = connection.getresponse()
    told = answer.read()
    connection.close()
    if answer.status >= 300:
        raise SystemExit(f"{method} {path} was answered {answer.status}: {told.decode()[:2000]}")
    return json.loads(told) if told else None


@dataclass
class _Rounds:
    """What each round measured."""

    polars: list[float] = field(default_factory=list)
    polars_cpu: list[float] = field(default_factory=list)
    upload: list[float] = field(default_factory=list)
    watched: list[Watched] = field(default_factory=list)


def measure(chosen: argparse.Namespace) -> Section:
    """Return time and memory of uploads beside polars."""
    if sys.platform != "linux":
        return Section(skipped="it reads the memory of processes as Linux shows it")
    rounds = _Rounds()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        path = folder / "sales.csv"
        step(f"writing {chosen.megabytes:g} MB")
        n_rows = write_sales(path, chosen.megabytes)
        size = path.stat().st_size / 1e6
        with running_api(folder / "var") as (port, pid):
            ask(port, "GET", "/readyz")
            time.sleep(1)
            idle = megabytes(pid, "VmRSS")
            for n in range(chosen.rounds):
                step(f"round {n + 1} of {chosen.rounds}")
                _bare(path, folder / "sales.parquet", rounds)
                _uploaded(port, pid, path, n_rows, rounds)
    rows: list[Row] = [
        {
            "rows": n_rows,
            "MB": round(size),
            "polars, s": statistics.median(rounds.polars),
            "upload, s": statistics.median(rounds.upload),
            "polars, cpu s": statistics.median(rounds.polars_cpu),
            "child, cpu s": statistics.median([w.child_seconds for w in rounds.watched]),
            "API idle, MB": round(idle),
            "API at most, MB": round(max(w.process for w in rounds.watched)),
            "child at most, MB": round(max(w.child for w in rounds.watched)),
            "without files, MB": round(max(w.child_itself for w in rounds.watched)),
        }
    ]
    grown, child = rows[0]["API at most, MB"] - rows[0]["API idle, MB"], rows[0]["child at most, MB"]
    ratio = statistics.median([own / bare for own, bare in zip(rounds.upload, rounds.polars, strict=True)])
    bars = [
        Bar("MB that the API grows by", grown, MOST_OF_API),
        Bar("MB of the process that reads", child, MOST_OF_CHILD),
        Bar("seconds, of those of polars", ratio, MOST_OF_POLARS),
    ]
    return Section({f"{chosen.rounds} uploads of daily sales, in turn with polars": rows}, bars)


def _bare(path: Path, to: Path, rounds: _Rounds) -> None:
    command = [sys.executable, "-c", _POLARS, str(path), str(to)]
    told = subprocess.run(command, check=True, capture_output=True, text=True).stdout.split()
    rounds.polars.append(float(told[0]))
    rounds.polars_cpu.append(float(told[1]))
    to.unlink()


def _uploaded(port: int, pid: int, path: Path, n_rows: int, rounds: _Rounds) -> None:
    ask(port, "POST", "/v1/datasets", {"name": "sales", **FORM})
    with watching(pid) as watched:
        start = time.perf_counter()
        told = ask(port, "POST", "/v1/datasets/sales/versions", path, "text/csv")
        rounds.upload.append(time.perf_counter() - start)
    rounds.watched.append(watched)
    if told["report"]["version"]["values"] != n_rows:
        raise SystemExit(f"{told['report']['version']['values']} values of {n_rows} were stored")
    ask(port, "DELETE", "/v1/datasets/sales")


SECTIONS: Sections = {"upload": measure}

if __name__ == "__main__":
    parser = command_line("upload", __doc__, SECTIONS)
    parser.add_argument("--megabytes", type=float, default=1000, help="of the file")
    parser.add_argument("--rounds", type=int, default=3, help="how often the file is sent")
    sys.exit(run(SECTIONS, parser.parse_args()))

"""Measure how long the forecasts of all products take over HTTP, as lines of JSON and as an Arrow stream.

A forecaster of as many products as Ta-Feng has, with sparse values, is published into an empty SQLite
database; `ccmtl api` streams 28 days of each, with two ranges.
"""

from __future__ import annotations

import http.client
import json
import os
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

from app.http.names import ARROW_STREAM
from app.persistence.database import Database
from app.persistence.schema import prepare
from app.registry.forecasters import as_configuration
from app.registry.publication import TrainedModel
from app.settings import Settings
from benchmarks.predict import HOST, running_api
from benchmarks.report import Bar, Row, Section
from benchmarks.runner import Sections, command_line, run
from ccmtl_core import ModelChoices
from ccmtl_core.forecasting import ForecastModel, Frequency, RowFeatures, SeriesPanel, fit_forecaster
from tests.support.models import METRICS, REPORT, add_version

N_PRODUCTS, N_DAYS, H = 23_812, 120, 28
ROWS = RowFeatures(
    windows=(1, 7, 14, 28), smoothing=(0.1,), seasons=((7, 1), (7, 2)), calendar=("day_of_week",)
)
BAR = 5.0
KINDS = {"lines of JSON": "application/x-ndjson", "an Arrow stream": ARROW_STREAM}


def fitted() -> ForecastModel:
    """Return a forecaster of sparse series, at one strength."""
    rng = np.random.default_rng(0)
    values = rng.poisson(0.2 * rng.gamma(1.0, 1.0, (N_PRODUCTS, 1)), (N_PRODUCTS, N_DAYS)).astype(float)
    ids = tuple(f"{t:013d}" for t in range(N_PRODUCTS))
    offsets = np.arange(N_PRODUCTS + 1) * N_DAYS
    panel = SeriesPanel(
        ids, offsets, np.tile(np.arange(N_DAYS) + 11_000, N_PRODUCTS), values.ravel(), Frequency.DAY
    )
    choices = ModelChoices(metric="mahalanobis")
    return fit_forecaster(
        panel, H, rows=ROWS, choices=choices, fusion_strength=100.0, n_origins=12, n_blocks=2
    )


def publish(folder: Path) -> None:
    """Publish the forecaster as version 1 of `m`."""
    forecaster = fitted()
    database = Database(Settings(data_dir=folder))
    prepare(database)
    trained = TrainedModel(
        weights=forecaster.model.weights,
        intercept=forecaster.model.intercept,
        task_ids=forecaster.unique_ids,
        feature_names=forecaster.features.names,
        history=None,
        configuration={"kind": "series", **as_configuration(forecaster)},
        metrics=METRICS,
        report=REPORT,
        forecaster=forecaster,
    )
    add_version(database, trained, "m")
    database.dispose()


def processor_seconds(pid: int) -> float:
    """Return what a process has used of the processor so far."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def streamed(port: int, pid: int, kind: str) -> dict[str, Any]:
    """Return the seconds and bytes of a stream of all products."""
    used = processor_seconds(pid)
    connection = http.client.HTTPConnection(HOST, port, timeout=600)
    began = time.perf_counter()
    connection.request("GET", f"/v1/models/m/forecasts?h={H}&level=80&level=95", headers={"Accept": kind})
    answer = connection.getresponse()
    n_bytes, first = 0, 0.0
    while piece := answer.read(2**18):
        first = first or time.perf_counter() - began
        n_bytes += len(piece)
    seconds = time.perf_counter() - began
    if answer.status != 200:
        raise SystemExit(f"the API answered {answer.status}")
    used = processor_seconds(pid) - used
    return {
        "wall seconds": seconds,
        "seconds of the server": used,
        "seconds to the first byte": first,
        "MB": n_bytes / 1e6,
    }


def measure() -> Section:
    """Stream all products in either form; the first request loads the model and is not counted."""
    with tempfile.TemporaryDirectory() as folder:
        publish(Path(folder))
        with running_api(Path(folder)) as (port, pid):
            connection = http.client.HTTPConnection(HOST, port, timeout=600)
            connection.request("GET", f"/v1/models/m/forecast?unique_id={0:013d}")
            json.load(connection.getresponse())
            rows = [_best(port, pid, name, kind) for name, kind in KINDS.items()]
    bars = [Bar(f"seconds of the stream as {row['form']}", row["wall seconds"], BAR) for row in rows]
    return Section({f"{N_PRODUCTS:,} products, {H} days, two ranges; the best of three": rows}, bars)


def _best(port: int, pid: int, name: str, kind: str) -> Row:
    return {
        "form": name,
        **min((streamed(port, pid, kind) for _ in range(3)), key=lambda one: one["wall seconds"]),
    }


SECTIONS: Sections = {"stream": lambda _: measure()}

if __name__ == "__main__":
    sys.exit(run(SECTIONS, command_line("stream", __doc__, SECTIONS).parse_args()))

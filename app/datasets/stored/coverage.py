"""What is known of a version's rows without reading them: its coverage, stored with it at upload.

A training request needs how many values the series have and in which periods, an append needs this for each
series. The rows themselves can be thousands of times as much.
"""

from __future__ import annotations

import io
import zlib
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
import polars as pl
from numpy.typing import NDArray
from sqlalchemy import delete, insert, select
from sqlalchemy.orm import Session

from app.datasets.definition import Definition, Fill, SeriesDefinition
from app.persistence.models import CoveragePart, DatasetCoverage
from ccmtl_core import TaskDataset
from ccmtl_core.forecasting import SeriesPanel
from ccmtl_core.series.runs import runs_of

_OF_APPENDS = (CoveragePart.SERIES, CoveragePart.SAMPLES, CoveragePart.TIMES)
_N_COLUMNS = {CoveragePart.SIZES: 2, CoveragePart.RUNS: 3}
"""Columns of the tables that requests read, stored as compressed int64: reading them takes no polars."""


@dataclass(frozen=True, eq=False)
class Coverage:
    """How many rows a version has for whom, and of series in which periods, once they are filled."""

    sizes: NDArray[np.int64]  # (k, 2): a number of values of a series or task, and how many have it
    runs: NDArray[np.int64] | None = None  # (m, 3), of series: first period, length, how many such runs

    def rows_with(self, lags: int) -> tuple[int, int]:
        """Return how many training rows the series give with so many lags, and how many without gaps.

        The first values of a series have too little before them and make no row. Of a series that is too
        short for any row all values count as lost.
        """
        size, n_series = self.sizes.T
        possible = int((np.where(size > lags, size - lags, size) * n_series).sum())
        if self.runs is None:
            return possible, possible
        _, length, n_runs = self.runs.T
        return int((np.maximum(length - lags, 0) * n_runs).sum()), possible


class Summary(NamedTuple):
    """A version's rows by series or task, as an append needs them.

    ``series`` are the runs of series before filling (see :mod:`ccmtl_core.series.runs`), or the number of
    rows, ``length``, of each task of a regression; ``samples`` are those of a regression's segments.
    ``times`` has in ``ds`` the last times of series (see :mod:`ccmtl_core.inspection.parts.last_period`);
    None where the version was stored before there were any.
    """

    series: pl.DataFrame
    samples: pl.DataFrame | None = None
    times: pl.DataFrame | None = None


def coverage_of(data: SeriesPanel | TaskDataset) -> Coverage:
    """Return the coverage of rows that were loaded."""
    if isinstance(data, TaskDataset):
        return Coverage(np.stack(np.unique(data.n_samples, return_counts=True), axis=1))
    names = pl.Series(np.arange(data.n_series))
    return _of_runs(runs_of(names, data.series_index, data.period))


def save_summary(session: Session, version_id: str, summary: Summary, definition: Definition) -> None:
    """Store all parts of a new version's coverage."""
    if isinstance(definition, SeriesDefinition):
        coverage = _of_runs(_filled(summary.series, definition.fill))
    else:
        coverage = Coverage(_counted(summary.series, "length"))
    save_coverage(session, version_id, coverage)
    parts = {}
    for part, frame in zip(_OF_APPENDS, summary, strict=True):
        if frame is not None:
            file = io.BytesIO()
            frame.write_parquet(file, compression="zstd")
            parts[part] = file.getvalue()
    _save(session, version_id, parts)


def save_coverage(session: Session, version_id: str, coverage: Coverage) -> None:
    """Store what training requests read."""
    tables = {CoveragePart.SIZES: coverage.sizes}
    if coverage.runs is not None:
        tables[CoveragePart.RUNS] = coverage.runs
    _save(session, version_id, {part: zlib.compress(table.tobytes("F")) for part, table in tables.items()})


def drop_summary(session: Session, version_id: str) -> None:
    """Remove what only appends read: this version is the newest no longer."""
    parts = DatasetCoverage.part.in_(_OF_APPENDS)
    session.execute(delete(DatasetCoverage).where(DatasetCoverage.dataset_version_id == version_id, parts))


def find_coverage(session: Session, version_id: str) -> Coverage | None:
    """Return the coverage of a version, None where it was uploaded before there was any."""
    found = _find(session, version_id, _N_COLUMNS)
    tables = {
        part: np.frombuffer(zlib.decompress(data), np.int64).reshape(_N_COLUMNS[part], -1).T
        for part, data in found.items()
    }
    return Coverage(tables[CoveragePart.SIZES], tables.get(CoveragePart.RUNS)) if tables else None


def find_summary(session: Session, version_id: str) -> Summary | None:
    """Return the summary of the newest version, None where it was uploaded before there was any."""
    found = _find(session, version_id, _OF_APPENDS)
    frames = {part: pl.read_parquet(io.BytesIO(data)) for part, data in found.items()}
    if not frames:
        return None
    return Summary(frames[CoveragePart.SERIES], *(frames.get(part) for part in _OF_APPENDS[1:]))


def _of_runs(runs: pl.DataFrame) -> Coverage:
    values = runs.group_by("unique_id").agg(pl.col("length").sum())
    return Coverage(_counted(values, "length"), _counted(runs, "first", "length"))


def _counted(frame: pl.DataFrame, *columns: str) -> NDArray[np.int64]:
    """The different rows of these columns, in order, each followed by how often it is there."""
    counted = frame.group_by(columns).agg(pl.len().cast(pl.Int64).alias("n")).sort(columns)
    return counted.to_numpy().astype(np.int64, copy=False)


def _filled(runs: pl.DataFrame, fill: Fill | None) -> pl.DataFrame:
    if fill is None:
        return runs
    end = runs.select((pl.col("first") + pl.col("length")).max()).item()
    own = runs.group_by("unique_id").agg(pl.col("first").min())
    first = pl.col("first").min() if fill.start == "dataset" else pl.col("first")
    return own.with_columns(first).with_columns(length=end - pl.col("first"))


def _save(session: Session, version_id: str, parts: Mapping[CoveragePart, bytes]) -> None:
    rows = [{"dataset_version_id": version_id, "part": part, "data": data} for part, data in parts.items()]
    session.execute(insert(DatasetCoverage), rows)


def _find(session: Session, version_id: str, parts: Collection[CoveragePart]) -> dict[CoveragePart, bytes]:
    query = select(DatasetCoverage.part, DatasetCoverage.data)
    query = query.where(DatasetCoverage.dataset_version_id == version_id, DatasetCoverage.part.in_(parts))
    return {CoveragePart(part): data for part, data in session.execute(query)}

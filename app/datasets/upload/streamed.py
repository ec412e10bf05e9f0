"""Take a large text of series into a segment without ever holding all of its rows."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from app.datasets.definition import SeriesDefinition
from app.datasets.schemas import DroppedPeriod
from app.datasets.stored.period_values import segment_frame
from app.datasets.stored.segment_file import segment_writer
from app.datasets.upload.dropped import dropped_period
from app.datasets.upload.extent import Extent, extent_of_runs
from app.persistence.storage import Storage
from ccmtl_core.inspection import InspectionReport
from ccmtl_core.inspection.parts.in_pieces import examined_in_pieces
from ccmtl_core.tables import Dialect
from ccmtl_core.tables.csv_file import CsvText

STREAMED_FROM_BYTES = 8_000_000
"""Smaller files are read whole, which takes at most some hundred megabytes."""


class Taken(NamedTuple):
    """What became of a file that is accepted."""

    extent: Extent
    inspection: InspectionReport | None
    n_rows: int
    n_kept: int
    time_zone: str | None
    dialect: Dialect
    dropped: Sequence[DroppedPeriod] = ()


def streamed(text: CsvText, definition: SeriesDefinition, storage: Storage, path: Path) -> Taken | None:
    """Read a text into the segment at ``path``; None where it is to be read whole.

    ``storage`` has room for rows that are set aside.
    """
    columns, frequency, policies = definition.columns, definition.frequency, definition.policies
    is_long = text.options.periods is None and text.options.shape in (None, "auto", "long")
    if columns.beside or columns.attributes or not is_long or text.path.stat().st_size < STREAMED_FROM_BYTES:
        return None
    with segment_writer(path) as write:
        done = examined_in_pieces(
            text,
            columns.of_id,
            columns.ds,
            columns.y,
            frequency,
            policies,
            ds_format=definition.ds_format,
            files=storage.incoming,
            write=lambda ids, series, period, y, n: write(
                segment_frame(ids, series, period, y, n, frequency)
            ),
        )
    if done is None:
        return None
    cells, runs = done.understood.cells, done.examined.runs
    report = done.examined.report(done.understood.traits, cells.time_zone, with_data=False)
    extent = extent_of_runs(runs, runs, done.used, definition)
    own = dropped_period(report, cells.frame["ds"], frequency)
    dropped = [] if own is None else [own]
    return Taken(extent, report, done.n_rows, done.n_used, cells.time_zone, cells.dialect, dropped)

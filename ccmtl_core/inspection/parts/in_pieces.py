"""Examine a large text of series without ever holding all of its rows.

Its rows are read in one pass and set aside as numbers; then they are examined block by block of series, in
the order of their ids. A text in which anything is not plain, or is refused, is left to what reads whole
files, which names every fault.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import AbstractContextManager, ExitStack, closing
from dataclasses import dataclass
from datetime import date
from functools import partial
from pathlib import Path

import numpy as np
import polars as pl

from ccmtl_core.base.types import FloatArray, IntArray
from ccmtl_core.inspection.parts.aside import BATCH_ROWS, RowsAside, set_aside
from ccmtl_core.inspection.parts.examined import Examined, concluded
from ccmtl_core.inspection.parts.last_period import partial_period
from ccmtl_core.inspection.parts.part import Part, joined
from ccmtl_core.inspection.parts.series_text import SeriesText
from ccmtl_core.inspection.parts.spill import Spill, regroup
from ccmtl_core.inspection.period_checks import RowsAt
from ccmtl_core.inspection.policies import Policies
from ccmtl_core.inspection.reading import SeriesRows
from ccmtl_core.inspection.repairs import Rows, repaired
from ccmtl_core.kernels.csv_rows import NotPlain
from ccmtl_core.kernels.grouping import group_rows
from ccmtl_core.series.calendar import Frequency
from ccmtl_core.tables.csv_file import CsvText
from ccmtl_core.tables.faults import FaultList, TableError

BLOCK_ROWS = 2**17
"""Rows that are examined at a time, or all those of one series if they are more."""
THREADS = 2
"""That read a text, each a part of it, and then examine a block each."""
_READ = np.int32, np.int32, np.float64
"""What is set aside of each row: its series, its time and its value."""

Files = Callable[[], AbstractContextManager[Path]]
"""Makes an empty file, which is gone at the end of its context."""
_Written = tuple[pl.Series, IntArray, IntArray, FloatArray, IntArray]
Write = Callable[[pl.Series, IntArray, IntArray, FloatArray, IntArray], None]
"""Takes ids, and of values the place of their id, the period, the value and the number of rows."""


@dataclass(frozen=True, eq=False)
class InPieces:
    """What was found in a text that is accepted."""

    examined: Examined
    understood: SeriesRows
    """How it is read, with a row for each time."""
    used: RowsAt
    """The rows that make values."""
    n_rows: int
    n_used: int


def examined_in_pieces(
    text: CsvText,
    unique_id: Sequence[str],
    ds: str,
    y: str,
    frequency: Frequency,
    policies: Policies,
    *,
    ds_format: str | None,
    files: Files,
    write: Write,
) -> InPieces | None:
    """Examine a text, and write the values that the policies make of its rows as they come.

    Parameters
    ----------
    text : CsvText
        Opened.
    unique_id : sequence of str
        The columns that make the id.
    ds, y : str
        Those of the time and of the value.
    frequency : Frequency
        What a period is.
    policies : Policies
        The repairs.
    ds_format : str or None
        How times are written; None where the whole column decides.
    files : callable
        Makes files for rows that are set aside.
    write : callable
        Takes the values of some series after those of others, in the order of ids, before any is clipped.

    Returns
    -------
    InPieces or None
        None where the text is to be read whole; what was written of it is of no use then.
    """
    may_be_empty = policies.missing != "error"
    found = SeriesText.of(text, unique_id, ds, y, may_be_empty=may_be_empty)
    if found is None:
        return None
    try:
        with ExitStack() as opened:
            lane = _Lane(found, frequency, policies, files, opened)
            return lane.result(ds_format, write)
    except (NotPlain, TableError):
        return None


@dataclass(frozen=True, eq=False)
class _Block:
    """All rows of the series from ``first`` to before ``end``: places of series and times, and values."""

    first: int
    end: int
    series: IntArray
    time: IntArray
    y: FloatArray
    row: IntArray
    """From 0."""


class _Lane:
    """One text on its way."""

    def __init__(
        self, text: SeriesText, frequency: Frequency, policies: Policies, files: Files, opened: ExitStack
    ) -> None:
        self._text, self._frequency, self._policies = text, frequency, policies
        self._files, self._opened = files, opened
        self._today = date.today()

    def result(self, ds_format: str | None, write: Write) -> InPieces:
        """Read all rows, then examine them; raise NotPlain where they are to be read whole."""
        aside = set_aside(self._text, [self._spill(*_READ) for _ in range(THREADS)])
        understood = self._understood(aside.times, ds_format)
        read = RowsAt(understood.cells.frame["ds"], aside.count, aside.first + 1)
        period = self._frequency.to_period(read.times.to_numpy())
        last = partial_period(read.times.filter(aside.has_value), self._frequency)
        parts = []
        examine = partial(self._part, aside=aside, times=read.times, period=period, partial_period=last)
        for part, values in _some_at_a_time(examine, self._blocks(aside)):
            write(*values)
            parts.append(part)
        whole = joined(parts)
        examined = concluded(
            whole,
            aside.ids,
            read,
            self._frequency,
            self._policies,
            ds_format=understood.dates.format,
            today=self._today,
        )
        if not whole.n_values or any(one.severity == "error" for one in examined.findings):
            raise NotPlain
        n_used = whole.n_rows - sum(whole.dropped.values())
        return InPieces(examined, understood, whole.used or read, whole.n_rows, n_used)

    def _spill(self, *types: type[np.generic]) -> Spill:
        """A new file for rows, which is gone at the end."""
        return self._opened.enter_context(closing(Spill(self._opened.enter_context(self._files()), types)))

    def _understood(self, texts: pl.Series, ds_format: str | None) -> SeriesRows:
        """How times are read, all of which can be."""
        faults, missing = FaultList(), self._policies.missing
        found = self._text.understood(
            texts, faults, ds_format=ds_format, frequency=self._frequency, missing=missing
        )
        if faults or found.cells.frame.height < len(texts):
            raise NotPlain
        return found

    def _blocks(self, aside: RowsAside) -> Iterator[_Block]:
        """The rows of some series after those of others."""
        first, n_series = [0], len(aside.ids)
        while first[-1] < n_series:
            most = aside.ends[first[-1]] + BLOCK_ROWS
            first.append(max(first[-1] + 1, int(np.searchsorted(aside.ends, most, side="right")) - 1))
        ends = aside.ends[first]
        if not aside.are_in_order:
            grouped = self._spill(*_READ, np.int64)
            block_of = np.searchsorted(first, np.arange(n_series), side="right") - 1
            regroup(aside.read, grouped, block_of, np.diff(ends), BATCH_ROWS)
        for begin, end, at, stop in zip(first, first[1:], ends.tolist(), ends[1:].tolist(), strict=False):
            if aside.are_in_order:
                yield _Block(begin, end, *aside.read(at, stop), np.arange(at, stop))
                continue
            columns = grouped.read(at, stop)
            order, _ = group_rows(columns[0].astype(np.int64) - begin, end - begin)
            series, time, y, row = (column[order] for column in columns)
            yield _Block(begin, end, series.astype(np.int64), time.astype(np.int64), y, row)

    def _part(
        self,
        block: _Block,
        *,
        aside: RowsAside,
        times: pl.Series,
        period: IntArray,
        partial_period: int | None,
    ) -> tuple[Part, _Written]:
        """What is found in the rows of some series, and their values."""
        names = aside.ids[block.first : block.end]
        series, row = block.series - block.first, block.row + 1
        of = period[block.time]
        rows = Rows(row, names.to_list(), series, times, block.time, of, block.y, self._frequency)
        made = repaired(rows, self._policies, partial_period)
        if len(made.beyond) or (self._policies.duplicates == "error" and len(made.duplicate)):
            raise NotPlain
        values = made.values
        written = names.gather(values.place), values.series, values.period, made.merged, made.n_rows
        return Part.of(rows, made, self._policies, today=self._today).moved(block.first), written


def _some_at_a_time(
    examine: Callable[[_Block], tuple[Part, _Written]], blocks: Iterator[_Block]
) -> Iterator[tuple[Part, _Written]]:
    """What is found in each block, in their order; some threads examine a block each."""
    with ThreadPoolExecutor(THREADS) as threads:
        pending = deque[Future[tuple[Part, _Written]]]()
        for block in blocks:
            pending.append(threads.submit(examine, block))
            if len(pending) > THREADS:
                yield pending.popleft().result()
        while pending:
            yield pending.popleft().result()

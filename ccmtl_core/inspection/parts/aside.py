"""Read a text of series by some threads at a time, and set its rows aside as numbers."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np
import polars as pl

from ccmtl_core.base.id_codes import codes_of
from ccmtl_core.base.types import BoolArray, FloatArray, IntArray
from ccmtl_core.inspection.parts.series_text import SeriesText, Span
from ccmtl_core.inspection.parts.spill import Spill
from ccmtl_core.kernels.csv_rows import NotPlain
from ccmtl_core.kernels.csv_series import SeriesReader
from ccmtl_core.tables.cells import MAX_ID_BYTES

BATCH_ROWS = 2**18
MOST_TIMES = 2**20
"""Different times; of more, what is known of each takes as much room as the rows."""


@dataclass(frozen=True, eq=False)
class RowsAside:
    """The rows of a text: n of them, of T series at D times."""

    ids: pl.Series
    """In their order, (T,)."""
    ends: IntArray
    """The rows before each series, were they in this order, and all, (T + 1,)."""
    are_in_order: bool
    """Whether they are."""
    times: pl.Series
    """Texts, as they appear, (D,)."""
    count: IntArray
    """How many rows have each time, (D,)."""
    first: IntArray
    """The first of these rows, from 0, (D,)."""
    has_value: BoolArray
    """Whether one of these rows has a value, (D,)."""
    parts: Sequence[tuple[Spill, IntArray, IntArray]]
    """What one thread read after the other: rows, and the places of the ids and times that they name."""

    def read(self, begin: int, end: int) -> tuple[IntArray, IntArray, FloatArray]:
        """Return the places of the series and of the times, and the values, of some rows."""
        found, before = [], 0
        for spill, id_place, time_place in self.parts:
            first, stop = max(begin, before), min(end, before + spill.n_rows)
            if first < stop:
                ids, times, y = spill.read(first - before, stop - before)
                found.append((id_place[ids], time_place[times], y))
            before += spill.n_rows
        series, time, y = found[0] if len(found) == 1 else map(np.concatenate, zip(*found, strict=True))
        return series, time, y


def set_aside(text: SeriesText, spills: Sequence[Spill]) -> RowsAside:
    """Read all rows of a text, by a thread for each file that takes them.

    Raise NotPlain where the text is to be read whole.
    """
    spans = text.spans(len(spills))
    readers = [text.reader() for _ in spans]
    with ThreadPoolExecutor(len(spans)) as threads:
        valued = list(threads.map(_read, [text] * len(spans), spans, readers, spills))
    if not sum(reader.n_rows for reader in readers):
        raise NotPlain
    ids, times = [reader.ids() for reader in readers], [reader.times() for reader in readers]
    _check_ids([names for names, _, _ in ids])
    names, place = codes_of(pl.concat([names for names, _, _ in ids]), ordered=True)
    texts, of_time = codes_of(pl.concat([texts for texts, *_ in times]))
    before = np.cumsum([0, *(reader.n_rows for reader in readers)])[:-1]
    first = np.full(len(texts), np.iinfo(np.int64).max)
    rows = [one + n for (*_, one), n in zip(times, before, strict=True)]
    np.minimum.at(first, of_time, np.concatenate(rows))
    id_places = _split(place, [numbers for _, numbers, _ in ids])
    time_places = _split(of_time, [numbers for _, numbers, *_ in times])
    n_valued = [found[numbers] for found, (_, numbers, *_) in zip(valued, times, strict=True)]
    sizes = np.bincount(place, np.concatenate([n for *_, n in ids])).astype(np.int64)
    return RowsAside(
        ids=names,
        ends=np.concatenate([[0], np.cumsum(sizes)]),
        are_in_order=_are_in_order(readers, [len(names) for names, *_ in ids], place),
        times=texts,
        count=np.bincount(of_time, np.concatenate([n for _, _, n, _ in times])).astype(np.int64),
        first=first,
        has_value=np.bincount(of_time, np.concatenate(n_valued)) > 0,
        parts=list(zip(spills, id_places, time_places, strict=False)),
    )


def _read(text: SeriesText, span: Span, reader: SeriesReader, spill: Spill) -> IntArray:
    """Read some rows; return how many of each time have a value."""
    n_valued = np.zeros(1, dtype=np.int64)
    for ids, times, y in text.batches(reader, span, BATCH_ROWS):
        spill.append((ids, times, y))
        if reader.n_times > MOST_TIMES:
            raise NotPlain
        n_known = max(len(n_valued), int(times.max()) + 1)
        found = np.bincount(times[~np.isnan(y)], minlength=n_known)
        found[: len(n_valued)] += n_valued
        n_valued = found
    return n_valued


def _check_ids(parts: Sequence[pl.Series]) -> None:
    """Raise NotPlain where ids of several columns are one as text, or too long."""
    for ids in parts:
        if ids.n_unique() < len(ids) or (ids.str.len_bytes() > MAX_ID_BYTES).any():
            raise NotPlain


def _split(place: IntArray, numbers: Sequence[IntArray]) -> list[IntArray]:
    """Of each part, the place of what rows have a number for."""
    found, begin = [], 0
    for known in numbers:
        of_number = np.zeros(int(known.max(initial=0)) + 1, dtype=np.int64)
        of_number[known] = place[begin : begin + len(known)]
        found.append(of_number)
        begin += len(known)
    return found


def _are_in_order(readers: Sequence[SeriesReader], n_ids: Sequence[int], place: IntArray) -> bool:
    """Whether series stand one after the other; one may begin in a part and end in the next."""
    if any(reader.n_id_changes != n for reader, n in zip(readers, n_ids, strict=True)):
        return False
    steps = np.diff(place)
    joins = np.cumsum(n_ids)[:-1] - 1
    steps[joins] += steps[joins] == 0
    return bool((steps > 0).all())

"""An upload and the version before it in; how many of its rows may be there already, and which, out.

Rows of series are there already where their series has a value in their period. Rows of a regression have
no period: those are counted that equal one before in every column, as two observations may by chance. That a
file holds all rows of an earlier segment, each as often, is hardly chance.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl
from numpy.typing import NDArray

from app.datasets.reading.cells import ROW
from app.datasets.schemas import Aggregation, Warned
from app.datasets.stored.period_values import COUNT, PeriodValues, period_text
from app.http.errors import Conflict, Fault

_MERGED = {Aggregation.SUM: "added to the values there", Aggregation.MEAN: "averaged with the values there"}


@dataclass(frozen=True)
class Overlap:
    """Rows of an upload that may be there already.

    Parameters
    ----------
    n_rows : int
        How many.
    n_values : int
        Values that they do not add to the version, being merged with those before.
    is_doubtful : bool
        Whether they are refused unless the sender says that they are new.
    first : Fault
        Where the first of them is, and how many there are in words.
    effect : str
        What becomes of them when they are accepted.
    """

    n_rows: int
    n_values: int
    is_doubtful: bool
    first: Fault
    effect: str

    def warning(self) -> Warned:
        """Say what became of the rows."""
        message = f"{self.first.message}; they were {self.effect}."
        return Warned(code="overlapping_rows", message=message, count=self.n_rows)

    def refusal(self, name: str) -> Conflict:
        """Say what would become of them in the dataset ``name``, and what to do."""
        return Conflict(
            "overlapping_rows",
            f"The dataset {name!r} may have data of this file already: {self.first.message}; they would be "
            f"{self.effect}, and count twice if they were sent before. Nothing was stored. Append the new "
            "rows alone, or upload all data with `mode=full`; if all of these rows are new, append them with "
            "`overlap=accept`.",
            errors=[self.first],
            error_count=self.n_rows,
        )


def taken_periods(upload: PeriodValues, segment: pl.DataFrame, before: pl.DataFrame) -> pl.DataFrame:
    """Return (row, unique_id, period, n) of the values of ``upload`` whose series has their period before.

    Parameters
    ----------
    upload : PeriodValues
        What was sent.
    segment : DataFrame
        The same as a frame.
    before : DataFrame
        Segments before it, with rows in any order.
    """
    numbered = segment.with_columns(pl.Series(ROW, upload.row), pl.Series("period", upload.period))
    taken = numbered.join(before, on=["unique_id", "ds"], how="semi")
    return taken.select(ROW, "unique_id", "period", COUNT).sort(ROW)


def overlap_of_series(upload: PeriodValues, taken: pl.DataFrame, aggregation: Aggregation) -> Overlap | None:
    """Return the overlap that :func:`taken_periods` found, None where there is none."""
    if not taken.height:
        return None
    row, unique_id, period, _ = taken.row(0)
    n_rows = int(taken[COUNT].sum())
    found = (
        f"{n_rows} of {upload.count.sum()} rows fall into periods that their series has values in, the first "
        f"in row {row} (series {unique_id!r}, period {period_text(upload.frequency, period)})"
    )
    return Overlap(n_rows, taken.height, True, _first(found, row, unique_id), _MERGED[aggregation])


def overlap_of_rows(cells: pl.DataFrame, before: pl.DataFrame, heights: Sequence[int]) -> Overlap | None:
    """Return the overlap of the rows of a regression, None where there is none.

    Parameters
    ----------
    cells : DataFrame
        The rows sent, with their numbers.
    before : DataFrame
        The segments before them, one below the other.
    heights : sequence of int
        Rows of each segment.
    """
    sent = _Distinct(cells.select(before.columns))
    held = _Distinct(before)
    n_rows = int(np.minimum(sent.times_in(held), sent.times).sum())
    if not n_rows:
        return None
    row, unique_id = cells.select(ROW, "unique_id").row(int(sent.first[sent.times_in(held) > 0].min()))
    found = (
        f"{n_rows} of {cells.height} rows equal rows of earlier uploads in every column, the first in row "
        f"{row} (task {unique_id!r})"
    )
    ends = np.cumsum(heights)
    segments = (_Distinct(before[end - height : end]) for end, height in zip(ends, heights, strict=True))
    is_whole = any((segment.times_in(sent) >= segment.times).all() for segment in segments)
    return Overlap(n_rows, 0, is_whole, _first(found, row, unique_id), "counted beside those")


class _Distinct:
    """The different rows of a frame by their hashes: where each is first, and how often it is there."""

    def __init__(self, frame: pl.DataFrame) -> None:
        hashes = frame.hash_rows().to_numpy()
        self.hashes, self.first, self.times = np.unique(hashes, return_index=True, return_counts=True)

    def times_in(self, other: _Distinct) -> NDArray[np.int64]:
        """How often each is in another frame."""
        place = np.minimum(np.searchsorted(other.hashes, self.hashes), len(other.hashes) - 1)
        return np.where(other.hashes[place] == self.hashes, other.times[place], 0)


def _first(found: str, row: int, unique_id: str) -> Fault:
    return Fault(code="overlapping_rows", message=found, row=row, value=unique_id)

"""Find the rows of an upload that the version before it may have already.

A row of a series counts if its series has a value in that period. Rows of a regression have no period; they
count if they equal an earlier row in every column. Two such rows can be two real observations: the upload is
refused only if it holds every row of an earlier upload, each as often. Large uploads are compared by a
sample, and the count is then an estimate.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import polars as pl
from numpy.typing import NDArray

from app.datasets.definition import Aggregation
from app.datasets.schemas import Warned
from app.datasets.stored.period_values import PeriodValues
from app.datasets.stored.row_samples import row_hashes
from app.http.errors import Conflict, Fault
from ccmtl_core.tables.cells import ROW

_MERGED = {
    Aggregation.SUM: "added to the values there",
    Aggregation.MEAN: "averaged with the values there",
    Aggregation.LAST: "taken in place of the values there",
}


@dataclass(frozen=True)
class Overlap:
    """Rows of an upload that may be there already."""

    n_rows: int
    n_values: int  # that these rows do not add to the version, because they are merged with those before
    is_doubtful: bool  # refused unless the sender says that they are new
    first: Fault  # where the first of them is, and how many there are in words
    effect: str  # what becomes of them when they are accepted

    def warning(self) -> Warned:
        """Say what became of the rows."""
        message = f"{self.first.message}; they were {self.effect}."
        return Warned(code="overlapping_rows", message=message, count=self.n_rows)

    def refusal(self, name: str, report: dict[str, Any] | None) -> Conflict:
        """Say what would become of them in the dataset ``name``; ``report`` is that of the file."""
        return Conflict(
            "overlapping_rows",
            f"The dataset {name!r} may have data of this file already: {self.first.message}; they would be "
            f"{self.effect}, and count twice if they were sent before. Nothing was stored. Append the new "
            "rows alone, or upload all data with `mode=full`; if all of these rows are new, append them with "
            "`overlap=accept`.",
            errors=[self.first],
            error_count=self.n_rows,
            report=report,
        )


def overlap_of_series(
    upload: PeriodValues, taken: NDArray[np.bool_], aggregation: Aggregation
) -> Overlap | None:
    """Return the overlap of those values of ``upload`` that are ``taken``, None where there is none."""
    at = np.flatnonzero(taken)
    if not len(at):
        return None
    n_rows, first = int(upload.count[at].sum()), at[np.argmin(upload.row[at])]
    row, unique_id = int(upload.row[first]), upload.unique_id(first)
    found = (
        f"{n_rows} of {upload.count.sum()} rows fall into periods that their series has values in, the first "
        f"in row {row} (series {unique_id!r}, period {upload.period_text(first)})"
    )
    return Overlap(n_rows, len(at), True, _first(found, row, unique_id), _MERGED[aggregation])


def overlap_of_rows(cells: pl.DataFrame, samples: pl.DataFrame) -> Overlap | None:
    """Return the overlap of the rows of a regression, None where there is none.

    ``samples`` are those of the segments before (see :mod:`app.datasets.stored.row_samples`); the number of
    rows is exact where they hold all rows of their segments.
    """
    hashes, first, times = np.unique(row_hashes(cells.drop(ROW)), return_index=True, return_counts=True)
    sent = pl.DataFrame({"hash": hashes, "at": first, "sent": times})
    found = samples.join(sent, on="hash")
    if not found.height:
        return None
    by_row = found.group_by("hash").agg(
        pl.col("sent", "at").first(), pl.col("times").sum(), pl.col("rate").max()
    )
    estimate = by_row.select((pl.min_horizontal("sent", "times") / pl.col("rate")).sum()).item()
    n_rows = min(round(estimate), cells.height)
    row, unique_id = cells.select(ROW, "unique_id").row(int(by_row["at"].to_numpy().min()))
    about = "" if (samples["rate"] == 1.0).all() else "about "
    message = (
        f"{about}{n_rows} of {cells.height} rows equal rows of earlier uploads in every column, the first in "
        f"row {row} (task {unique_id!r})"
    )
    as_often = found.filter(pl.col("sent") >= pl.col("times")).group_by("segment").len()
    is_whole = samples.group_by("segment").len().join(as_often, on=["segment", "len"]).height > 0
    return Overlap(n_rows, 0, is_whole, _first(message, row, unique_id), "counted beside those")


def _first(found: str, row: int, unique_id: str) -> Fault:
    return Fault(code="overlapping_rows", message=found, row=row, value=unique_id)

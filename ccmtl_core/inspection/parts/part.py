"""What was found in the rows of some series of a table: numbers that add up to those of the whole table."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date
from functools import reduce

import polars as pl

from ccmtl_core.inspection.parts.totals import Totals
from ccmtl_core.inspection.period_checks import RowsAt
from ccmtl_core.inspection.policies import Policies
from ccmtl_core.inspection.repairs import Repaired, Rows
from ccmtl_core.inspection.report import Seen
from ccmtl_core.inspection.row_checks import rows_seen
from ccmtl_core.inspection.series_checks import series_seen
from ccmtl_core.series.runs import runs_of


@dataclass(frozen=True, eq=False)
class Part:
    """Rows of some series, all rows of each, and what the policies make of them."""

    n_rows: int
    n_values: int
    n_merged: int
    """Rows that were put together with one before."""
    n_clipped: int
    dropped: Mapping[str, int]
    """Rows that are not used, by the code of the finding that tells why."""
    seen: Mapping[str, Seen]
    """Places, by the code of the finding that tells of them."""
    runs: pl.DataFrame
    """In which periods series have values, with places of series in ``unique_id``."""
    used: RowsAt | None
    """The rows that make values; None where all rows do."""
    totals: Totals | None
    """By which a series of sums is told; None where it cannot be."""

    @classmethod
    def of(cls, rows: Rows, made: Repaired, policies: Policies, *, today: date) -> Part:
        """Return the part of rows of which the policies made something.

        Parameters
        ----------
        rows : Rows
            All rows of some series.
        made : Repaired
            What was made of them.
        policies : Policies
            The repairs.
        today : date
            Times after it are told.

        Returns
        -------
        Part
        """
        dropped = {"empty_number": int(rows.is_missing.sum())}
        if policies.partial_last == "drop":
            dropped["partial_last"] = len(made.partial)
        if policies.leading_zeros == "drop":
            dropped["leading_zeros"] = len(made.leading)
        is_refused = policies.duplicates == "error"
        if is_refused:
            dropped["duplicate_period"] = len(made.duplicate)
        values = made.values
        used = None
        if may_drop(policies) or not made.kept.all():
            used = RowsAt.of(rows.times, rows.time[made.kept], rows.row[made.kept])
        return cls(
            n_rows=len(rows.row),
            n_values=len(values.value),
            n_merged=0 if is_refused else len(made.duplicate),
            n_clipped=made.n_clipped,
            dropped=dropped,
            seen=rows_seen(rows, made, today=today) | series_seen(values, rows.row[made.first]),
            runs=runs_of(pl.Series(values.place), values.series, values.period),
            used=used,
            totals=Totals.of(values),
        )

    def moved(self, n_series: int) -> Part:
        """Return the part with so many series before its own."""
        return replace(self, runs=self.runs.with_columns(pl.col("unique_id") + n_series))


def may_drop(policies: Policies) -> bool:
    """Return whether rows may be left out of the values without being refused."""
    return "drop" in (policies.partial_last, policies.leading_zeros) or policies.missing == "absent"


def joined(parts: Sequence[Part]) -> Part:
    """Return the part of all rows together.

    Parameters
    ----------
    parts : sequence of Part
        In the order of their series, each of others; one at least.

    Returns
    -------
    Part
    """
    dropped = Counter[str]()
    for part in parts:
        dropped.update(part.dropped)
    codes = list(dict.fromkeys(code for part in parts for code in part.seen))
    used = [part.used for part in parts if part.used is not None]
    totals = [part.totals for part in parts if part.n_values]
    return Part(
        n_rows=sum(part.n_rows for part in parts),
        n_values=sum(part.n_values for part in parts),
        n_merged=sum(part.n_merged for part in parts),
        n_clipped=sum(part.n_clipped for part in parts),
        dropped=dropped,
        seen={code: Seen.joined(part.seen.get(code, Seen()) for part in parts) for code in codes},
        runs=pl.concat([part.runs for part in parts]),
        used=reduce(RowsAt.joined, used) if used else None,
        totals=reduce(_joined, totals) if totals else None,
    )


def _joined(some: Totals | None, others: Totals | None) -> Totals | None:
    return None if some is None or others is None else some.joined(others)

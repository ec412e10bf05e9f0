"""Examine rows: apply the policies to them, and say what was found."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from types import MappingProxyType

import numpy as np
import polars as pl

from ccmtl_core.base.display import counted
from ccmtl_core.inspection.parts.last_period import partial_period
from ccmtl_core.inspection.parts.part import Part, may_drop
from ccmtl_core.inspection.period_checks import RowsAt, period_findings
from ccmtl_core.inspection.policies import Policies
from ccmtl_core.inspection.repairs import Repaired, Rows, repaired
from ccmtl_core.inspection.report import (
    MAX_SAMPLES,
    Accounts,
    Finding,
    InspectionReport,
    Sample,
    Trait,
    ordered,
)
from ccmtl_core.inspection.row_checks import id_findings, row_findings
from ccmtl_core.inspection.series_checks import series_findings
from ccmtl_core.series.calendar import Frequency
from ccmtl_core.series.panel import MAX_DENSE_ROWS
from ccmtl_core.series.runs import n_missing
from ccmtl_core.tables.cell_hints import spreadsheet_ids, spreadsheet_warning

NONE_UNREAD: Mapping[str, int] = MappingProxyType({})


@dataclass(frozen=True, eq=False)
class Examined:
    """Rows that were read, what the policies make of them, and what was found."""

    runs: pl.DataFrame
    """In which periods the series have values."""
    accounts: Accounts
    findings: tuple[Finding, ...]
    policies: Policies
    frequency: Frequency
    made: Repaired | None = None
    """Of rows that were examined all at once."""

    def report(
        self, traits: dict[str, Trait], time_zone: str | None, *, with_data: bool = True
    ) -> InspectionReport:
        """Return the report of a table.

        Parameters
        ----------
        traits : dict of Trait
            How it was understood.
        time_zone : str or None
            What its times with a zone are now.
        with_data : bool
            Whether the report has the panel, filled, which may be large.

        Returns
        -------
        InspectionReport
        """
        runs, frequency = self.runs, self.frequency
        first, last = pl.col("first").min(), (pl.col("first") + pl.col("length") - 1).max().alias("last")
        ends = runs.select(first, last).row(0) if runs.height else ()
        is_usable = bool(ends) and all(finding.severity != "error" for finding in self.findings)
        data = None
        if is_usable and with_data and self.made is not None:
            fill, start = self.policies.fill, self.policies.fill_start
            data = self.made.values.panel()
            data = data if fill == "none" else data.filled(fill, start)[0]
        return InspectionReport(
            traits=traits,
            accounts=self.accounts,
            findings=self.findings,
            policies=self.policies.to_dict(),
            series=runs["unique_id"].n_unique(),
            values=int(runs["length"].sum()) + self.accounts.values_added.get("fill", 0),
            periods=ends[1] - ends[0] + 1 if ends else 0,
            first=frequency.text(ends[0]) if ends else None,
            last=frequency.text(ends[1]) if ends else None,
            time_zone=time_zone,
            panel=data,
        )


def examine(
    frame: pl.DataFrame,
    frequency: Frequency,
    policies: Policies,
    *,
    unread: Mapping[str, int] = NONE_UNREAD,
    ds_format: str | None = None,
    today: date | None = None,
    begun: Collection[str] = (),
    stored_times: pl.Series | None = None,
    found: Sequence[Finding] = (),
) -> Examined:
    """Apply the policies to rows, and say what was found in them.

    Parameters
    ----------
    frame : DataFrame
        ``row``, ``unique_id``, ``ds`` (Datetime) and ``y``, null or NaN where there is no value.
    frequency : Frequency
        What a period is.
    policies : Policies
        The repairs.
    unread : mapping of int
        Rows that were not read, by the code that accounts for them.
    ds_format : str, optional
        How the times were written.
    today : date, optional
        Times after it are told.
    begun : collection of str
        Series whose first values are known already: their zeros are not leading ones.
    stored_times : polars Series of Datetime, optional
        The last times of the data that the rows are appended to, which tell whether the last period is whole.
    found : sequence of Finding
        What was found before.

    Returns
    -------
    Examined
    """
    today = today or date.today()
    rows = Rows.from_frame(frame, frequency)
    times = rows.times
    if (is_missing := rows.is_missing).any():
        times = times.gather(np.unique(rows.time[~is_missing]))
    made = repaired(rows, policies, partial_period(times, frequency, stored_times), begun)
    part = Part.of(rows, made, policies, today=today)
    ids = pl.Series(rows.unique_ids, dtype=pl.String)
    read = RowsAt.of(rows.times, rows.time, rows.row)
    return concluded(
        part,
        ids,
        read,
        frequency,
        policies,
        unread=unread,
        ds_format=ds_format,
        today=today,
        found=found,
        made=made,
    )


def concluded(
    part: Part,
    unique_ids: pl.Series,
    read: RowsAt,
    frequency: Frequency,
    policies: Policies,
    *,
    unread: Mapping[str, int] = NONE_UNREAD,
    ds_format: str | None,
    today: date,
    found: Sequence[Finding] = (),
    made: Repaired | None = None,
) -> Examined:
    """Say what was found in all rows, which were examined at once or part by part.

    Parameters
    ----------
    part : Part
        All parts together.
    unique_ids : polars Series of str
        The distinct ids, in the order of the places that ``part`` names.
    read : RowsAt
        All rows.
    frequency, policies, unread, ds_format, today, found
        See :func:`examine`.
    made : Repaired, optional
        What was made of the rows, where all were examined at once.

    Returns
    -------
    Examined
    """
    runs = part.runs.with_columns(unique_ids.gather(part.runs["unique_id"]).alias("unique_id"))
    n_added = n_missing(runs, policies.fill_start) if policies.fill != "none" and runs.height else 0
    accounts = Accounts(
        rows_read=part.n_rows + sum(unread.values()),
        rows_used=part.n_values,
        rows_merged=part.n_merged,
        rows_dropped={code: n for code, n in {**unread, **part.dropped}.items() if n},
        values_changed={"negatives": part.n_clipped} if part.n_clipped else {},
        values_added={"fill": n_added} if n_added else {},
    )
    all_found = [
        *found,
        *row_findings(
            part.seen, part.n_rows, read.times, frequency, policies, today=today, ds_format=ds_format
        ),
        *id_findings(unique_ids, None if part.totals is None else part.totals.series()),
        *_of_whole(part, unique_ids, n_added, policies),
    ]
    if runs.height:
        all_found += period_findings(
            read,
            part.used or read,
            runs,
            frequency,
            n_filled=n_added,
            is_filled=policies.fill != "none",
            is_merged=policies.duplicates != "error",
        )
        all_found += series_findings(part.seen, runs["unique_id"].n_unique(), part.n_values, frequency)
    return Examined(runs, accounts, ordered(all_found), policies, frequency, made)


def _of_whole(part: Part, unique_ids: pl.Series, n_added: int, policies: Policies) -> Iterator[Finding]:
    """Series without a value, damaged ids, sums beyond a float64, and more values than can be filled."""
    if may_drop(policies) and part.n_values:
        has_value = np.zeros(len(unique_ids), dtype=np.bool_)
        has_value[part.runs["unique_id"].to_numpy()] = True
        empty = unique_ids.filter(pl.Series(~has_value))
        message = f"{len(empty):,} of {len(unique_ids):,} series have no value and are left out."
        samples = tuple(Sample(unique_id=one) for one in empty.head(MAX_SAMPLES))
        yield Finding("empty_series", "warning", len(empty), "series", message, samples)
    if damaged := spreadsheet_ids(unique_ids):
        samples = tuple(Sample(unique_id=one) for one in damaged[:5])
        message = spreadsheet_warning(damaged)
        yield Finding("spreadsheet_ids", "warning", len(damaged), "ids", message, samples)
    if (beyond := part.seen["overflow"]).count:
        message = f"the values of {counted(beyond.count, 'period')} add up beyond what a float64 holds."
        yield Finding("overflow", "error", beyond.count, "periods", message, beyond.samples)
    n_dense = part.n_values + n_added
    if n_dense > MAX_DENSE_ROWS:
        message = (
            f"filling makes {n_dense:,} values, more than {MAX_DENSE_ROWS:,}: is one of the times mistyped?"
        )
        yield Finding("too_many_filled_periods", "error", n_dense, "values", message, (), "fill")

"""What is said of series that an append goes on with: of their whole time, and not of the file alone."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np
import polars as pl

from ccmtl_core.inspection import Finding, InspectionReport
from ccmtl_core.inspection.repairs import Values
from ccmtl_core.inspection.report import ordered
from ccmtl_core.inspection.row_checks import id_findings, plain_ids
from ccmtl_core.inspection.series_checks import series_findings, series_seen, short_series

OF_PERIODS = {"isolated_period", "absent_periods", "series_ended"}
"""What the extent of the version tells in place of the file."""
_OF_SERIES = {"all_zero", "constant_series", "mixed_frequencies", "short_series"}
_OF_IDS = "similar_ids"


def without_whole_series(
    findings: Sequence[Finding], values: Values, stored: pl.DataFrame
) -> tuple[Finding, ...]:
    """Return what was found in a file without what it tells of the whole time of its series.

    Parameters
    ----------
    findings : sequence of Finding
        Of the file alone.
    values : Values
        Its values.
    stored : DataFrame
        The runs of the series of the version before. Of those that are new in the file, it tells everything.

    Returns
    -------
    tuple of Finding
    """
    left_out = OF_PERIODS | _OF_SERIES | {_OF_IDS}
    kept = [finding for finding in findings if finding.code not in left_out]
    known = set(stored["unique_id"].unique())
    new = np.array([i for i, one in enumerate(values.unique_ids) if one not in known], dtype=np.int64)
    of_new = values.take(new)
    seen = series_seen(of_new, np.zeros_like(of_new.period))
    told = series_findings(seen, len(new), len(of_new.value), values.frequency)
    kept += (one for one in told if one.code in _OF_SERIES - {"short_series"})
    return ordered([*kept, *_similar(values.unique_ids, stored)])


def _similar(sent: Sequence[str], stored: pl.DataFrame) -> Iterator[Finding]:
    """The finding on ids that differ hardly, those of the version before included."""
    ids, others = pl.Series(sent, dtype=pl.String), stored["unique_id"].unique()
    alike = others.filter(plain_ids(others).is_in(plain_ids(ids).unique().to_list()))
    every = pl.concat([ids, alike]).unique().sort()
    yield from (finding for finding in id_findings(every) if finding.code == _OF_IDS)


def with_version(
    report: InspectionReport,
    of_version: Sequence[Finding],
    whole: pl.DataFrame,
    sent: Sequence[str],
    n_filled: int,
) -> InspectionReport:
    """Return the report of an append with what the version that it makes tells.

    Parameters
    ----------
    report : InspectionReport
        Of the file, :func:`without_whole_series`.
    of_version : sequence of Finding
        What the periods of the version tell.
    whole : DataFrame
        The runs of its series.
    sent : sequence of str
        The series of the file.
    n_filled : int
        Values that filling adds to the version.

    Returns
    -------
    InspectionReport
    """
    accounts = replace(report.accounts, values_added={"fill": n_filled} if n_filled else {})
    n_values = accounts.rows_used + n_filled
    lengths = whole.filter(pl.col("unique_id").is_in(list(sent)))
    lengths = lengths.group_by("unique_id").agg(pl.col("length").sum()).sort("unique_id")
    frequency = report.traits["frequency"].value
    short = short_series(lengths["unique_id"].to_list(), lengths["length"].to_numpy(), str(frequency))
    periods = [finding for finding in of_version if finding.code in OF_PERIODS]
    found = ordered([*report.findings, *periods, short])
    return replace(report, accounts=accounts, values=n_values, findings=found)

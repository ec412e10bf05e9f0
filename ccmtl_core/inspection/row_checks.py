"""What single rows tell: repeated periods, missing and negative values, order, dates that cannot be meant."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import date

import numpy as np
import polars as pl

from ccmtl_core.base.display import counted
from ccmtl_core.base.types import BoolArray, IntArray
from ccmtl_core.inspection.policies import Policies
from ccmtl_core.inspection.repairs import Repaired, Rows
from ccmtl_core.inspection.report import Finding, Sample, Severity, rows_as_samples
from ccmtl_core.series.calendar import Frequency
from ccmtl_core.tables.dates.inference import CENTURY_RULE

_SUMS = (
    "total",
    "grand total",
    "subtotal",
    "sum",
    "summe",
    "gesamt",
    "gesamtsumme",
    "gesamtergebnis",
    "totale",
)
"""Ids of rows that add up others, as exports have at their end."""
_VERBS = (
    {"have": "have", "were": "were", "are": "are", "fall": "fall", "hold": "hold"},
    {"have": "has", "were": "was", "are": "is", "fall": "falls", "hold": "holds"},
)
"""Of several rows, and of one."""


def row_findings(
    rows: Rows, made: Repaired, policies: Policies, *, today: date, ds_format: str | None
) -> Iterator[Finding]:
    """Yield what was found in the rows and what the policies made of it."""
    yield _of_policy(
        rows, np.flatnonzero(rows.is_missing), "empty_number", "missing", policies.missing,
        {"error": "{have} no value: write one, or choose `missing='absent'`, by which the period counts as "
                  "one without a row",
         "absent": "without a value {were} left out: their periods count as absent"},
    )  # fmt: skip
    yield _of_policy(
        rows, made.duplicate, "duplicate_period", "duplicates", policies.duplicates,
        {"error": "{fall} into a period that has a row of their series already: choose `duplicates='sum'`, "
                  "`duplicates='mean'` or `duplicates='last'`",
         "sum": "{were} added to an earlier row of their series and period",
         "mean": "{were} averaged with an earlier row of their series and period",
         "last": "took the place of an earlier row of their series and period"},
    )  # fmt: skip
    with np.errstate(invalid="ignore"):
        negative = np.flatnonzero(rows.y < 0)
    yield _of_policy(
        rows, negative, "negative_values", "negatives", policies.negatives,
        {"keep": "{have} a value below zero, as returns have, and {are} kept; choose `negatives='clip'` to "
                 "take periods below zero as 0, or `negatives='error'`",
         "clip": "{have} a value below zero; periods that stay below zero once their rows are put together "
                 "became 0",
         "error": "{have} a value below zero, which `negatives='error'` refuses"},
    )  # fmt: skip
    yield _of_policy(
        rows, made.leading, "leading_zeros", "leading_zeros", policies.leading_zeros,
        {"keep": "{hold} zeros before the first other value of their series, as of products that were not "
                 "sold yet: choose `leading_zeros='drop'` to let each series begin when it is first sold",
         "drop": "with zeros before the first other value of their series {were} dropped"},
    )  # fmt: skip
    ends = rows.frequency.text(int(rows.period.max())) if len(rows.period) else ""
    yield _of_policy(
        rows, made.partial, "partial_last", "partial_last", policies.partial_last,
        {"keep": f"{{are}} in the last period, {ends}, which ends after the file: it counts as a whole one; "
                 "choose `partial_last='drop'` to leave it out",
         "drop": f"of the last period, {ends}, which ends after the file, {{were}} dropped"},
    )  # fmt: skip
    yield _unsorted(rows)
    yield _closed_days(rows)
    yield from _beyond_today(rows, today, ds_format)


def _of_policy(
    rows: Rows, at: IntArray, code: str, policy: str, chosen: str, sentences: dict[str, str]
) -> Finding:
    severity: Severity = "error" if chosen == "error" else "warning" if chosen == "keep" else "note"
    n, of = len(at), counted(len(rows.row), "row")
    message = f"{n:,} of {of} {sentences[chosen].format_map(_VERBS[n == 1])}."
    return Finding(code, severity, len(at), "rows", message, rows_as_samples(rows.samples(at)), policy)


def _unsorted(rows: Rows) -> Finding:
    latest = pl.DataFrame({"series": rows.series, "period": rows.period}).select(
        pl.col("period").cum_max().over("series")
    )
    back = np.flatnonzero(rows.period < latest.to_series().to_numpy())
    message = f"{counted(len(back), 'row')} after a later one of the series: all are put in order of time."
    return Finding("unsorted_rows", "note", len(back), "rows", message, rows_as_samples(rows.samples(back)))


def _closed_days(rows: Rows) -> Finding:
    """Rows on days that the frequency says are closed, which count for the open day before."""
    at = np.empty(0, dtype=np.int64)
    if rows.frequency.value[0] in "BD" and rows.frequency is not Frequency.DAY:
        days = rows.ds.dt.date().to_numpy().astype("datetime64[D]")
        at = np.flatnonzero(days != rows.frequency.to_datetime(rows.period).astype("datetime64[D]"))
    message = (
        f"{counted(len(at), 'row')} on days that the frequency {rows.frequency.value} has not: they count "
        "for the open day before. If these days are open, state `frequency='D'`."
    )
    return Finding(
        "closed_day_rows", "warning", len(at), "rows", message, rows_as_samples(rows.samples(at)), "frequency"
    )


def _beyond_today(rows: Rows, today: date, ds_format: str | None) -> Iterator[Finding]:
    if rows.frequency is Frequency.INTEGER:
        return
    is_future: BoolArray = (rows.ds.dt.date() > today).to_numpy()
    at = np.flatnonzero(is_future)
    samples = rows_as_samples(rows.samples(at))
    if ds_format and "%y" in ds_format:
        yield Finding(
            "two_digit_years", "note", len(rows.row), "rows", f"Of dates, {CENTURY_RULE}.", (), "ds_format"
        )
        message = (
            f"{counted(len(at), 'row')} with a two-digit year that reads as one after today, {today}, as "
            f"{CENTURY_RULE}: write years with four digits."
        )
        yield Finding("future_century", "error", len(at), "rows", message, samples, "ds_format")
        return
    message = f"{counted(len(at), 'row')} dated after today, {today}: are these plans, or mistyped?"
    yield Finding("future_dates", "warning", len(at), "rows", message, samples)


def plain_ids(unique_ids: pl.Series) -> pl.Series:
    """Return the ids without what similar ones differ by: capitals, spaces and leading zeros."""
    return unique_ids.str.replace_all(r"\s+", "").str.to_lowercase().str.replace("^0+(.)", "$1")


def id_findings(unique_ids: pl.Series) -> Iterator[Finding]:
    """Yield what ids tell that differ hardly, or that a spreadsheet shortened.

    Parameters
    ----------
    unique_ids : polars Series of str
        The distinct ids.

    Yields
    ------
    Finding
    """
    alike = (
        pl.DataFrame({"id": unique_ids, "plain": plain_ids(unique_ids)})
        .group_by("plain", maintain_order=True)
        .agg("id")
    )
    alike = alike.filter(pl.col("id").list.len() > 1)
    groups = alike["id"].to_list()
    first = ", ".join(" and ".join(map(repr, sorted(group)[:3])) for group in groups[:2])
    n_ids = sum(map(len, groups))
    message = (
        f"{n_ids:,} ids differ only by capitals, spaces or leading zeros ({first}): they are different "
        "series. If they are the same product, write its id in one way."
    )
    samples = tuple(Sample(unique_id=one) for group in groups for one in sorted(group))[:6]
    yield Finding("similar_ids", "warning", n_ids, "ids", message, samples)
    sums = unique_ids.filter(unique_ids.str.strip_chars().str.to_lowercase().is_in(_SUMS)).to_list()
    message = (
        f"{counted(len(sums), 'id')} may be of a row that adds up others ({', '.join(map(repr, sums))}): a "
        "series of sums beside those it sums counts them twice. If it is one, take its rows out of the file."
    )
    yield Finding("total_rows", "warning", len(sums), "ids", message, tuple(map(_of_id, sums[:5])))


def _of_id(unique_id: str) -> Sample:
    return Sample(unique_id=unique_id)

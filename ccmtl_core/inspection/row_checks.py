"""What single rows tell: repeated periods, missing and negative values, order, dates that cannot be meant."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from datetime import date

import numpy as np
import polars as pl

from ccmtl_core.base.display import counted
from ccmtl_core.base.types import BoolArray, IntArray
from ccmtl_core.inspection.policies import Policies
from ccmtl_core.inspection.repairs import Repaired, Rows
from ccmtl_core.inspection.report import Finding, Sample, Seen, Severity
from ccmtl_core.series.calendar import Frequency
from ccmtl_core.tables.dates.inference import CENTURY_RULE

_SUM_WORDS = (
    "(?:grand |sub|sub-|sous-|sous )?total(?:[ :].*)?|(?:sub)?totals|total[ei](?: .*)?",
    "(?:eind|sub)?totaal(?: .*)?|totalsumma|delsumma|hovedtotal|i alt|som|soma|gesamt|insgesamt",
    "(?:gesamt|zwischen|end)?(?:summe|ergebnis)|suma(?: końcowa| częściowa)?|razem|ogółem|łącznie",
    "celkem|(?:celkový )?(?:součet|súčet)|mezisoučet|medzisúčet|spolu|összesen|(?:vég|rész)?összeg",
    "(?:genel |ara )?toplam|итого|всего|(?:общий |промежуточный )?итог|сумма|сума|разом|всього",
    "(?:загальний |проміжний )?підсумок|(?:sve)?ukupno|skupaj|yhteensä|(?:kokonais|loppu|väli)summa",
    "(?:γενικό )?σύνολο|합계|총합계|총계|소계|合計|合计|总计|總計|総計|小計|小计|المجموع|الإجمالي",
    'סה"כ|tổng cộng|jumlah|ผลรวมทั้งหมด|[σ∑]|sum|all|all products|all items',
)
_SUMS = f"(?i)^(?:{'|'.join(_SUM_WORDS)}) *:?$"
"""Ids of rows that add up others, as exports have at their end."""
_FIRST_YEAR = 1900
"""Before which no sales of a file are."""
_VERBS = (
    {"have": "have", "were": "were", "are": "are", "fall": "fall", "hold": "hold"},
    {"have": "has", "were": "was", "are": "is", "fall": "falls", "hold": "holds"},
)
"""Of several rows, and of one."""
_POLICIES = (
    ("empty_number", "missing",
     {"error": "{have} no value: write one, or choose `missing='absent'`, by which the period counts as "
               "one without a row",
      "absent": "without a value {were} left out: their periods count as absent"}),
    ("duplicate_period", "duplicates",
     {"error": "{fall} into a period that has a row of their series already: choose `duplicates='sum'`, "
               "`duplicates='mean'` or `duplicates='last'`",
      "sum": "{were} added to an earlier row of their series and period",
      "mean": "{were} averaged with an earlier row of their series and period",
      "last": "took the place of an earlier row of their series and period"}),
    ("negative_values", "negatives",
     {"keep": "{have} a value below zero, as returns have, and {are} kept; choose `negatives='clip'` to "
              "take periods below zero as 0, or `negatives='error'`",
      "clip": "{have} a value below zero; periods that stay below zero once their rows are put together "
              "became 0",
      "error": "{have} a value below zero, which `negatives='error'` refuses"}),
    ("leading_zeros", "leading_zeros",
     {"keep": "{hold} zeros before the first other value of their series, as of products that were not "
              "sold yet: choose `leading_zeros='drop'` to let each series begin when it is first sold",
      "drop": "with zeros before the first other value of their series {were} dropped"}),
    ("partial_last", "partial_last",
     {"keep": "{are} in the last period, LAST, which ends after the file: it counts as a whole one; "
              "choose `partial_last='drop'` to leave it out",
      "drop": "of the last period, LAST, which ends after the file, {were} dropped"}),
)  # fmt: skip
"""Findings that a policy decides, with what each choice makes of the rows."""


def rows_seen(rows: Rows, made: Repaired, *, today: date) -> dict[str, Seen]:
    """Return the rows of each kind that is told, all of them or those of some series.

    Parameters
    ----------
    rows : Rows
        What was read.
    made : Repaired
        What the policies make of it.
    today : date
        Times after it are told.

    Returns
    -------
    dict of Seen
        By the code of the finding.
    """
    with np.errstate(invalid="ignore"):
        negative = np.flatnonzero(rows.y < 0)
    is_closed = _is_closed(rows.times, rows.frequency)
    is_past, is_future = _far_from_now(rows, today)
    at = {
        "empty_number": np.flatnonzero(rows.is_missing),
        "duplicate_period": made.duplicate,
        "negative_values": negative,
        "leading_zeros": made.leading,
        "partial_last": made.partial,
        "unsorted_rows": _unsorted(rows),
        "closed_day_rows": _at_times(rows, is_closed),
        "past_dates": _at_times(rows, is_past),
        "future_dates": _at_times(rows, is_future),
        "overflow": made.beyond,
    }
    return {code: rows.seen(places) for code, places in at.items()}


def _at_times(rows: Rows, of_times: BoolArray) -> IntArray:
    return np.flatnonzero(of_times[rows.time]) if of_times.any() else np.empty(0, dtype=np.int64)


def _unsorted(rows: Rows) -> IntArray:
    """Rows after a later one of their series."""
    if rows.are_ordered:
        return np.empty(0, dtype=np.int64)
    low = rows.period.min()
    key = rows.series * (rows.period.max() - low + 1) + (rows.period - low)
    order = np.argsort(rows.series, kind="stable")
    key = key[order]
    return np.sort(order[key < np.maximum.accumulate(key)])


def _is_closed(times: pl.Series, frequency: Frequency) -> BoolArray:
    """Whether times are on days that the frequency says are closed, which count for the open day before."""
    if frequency.value[0] not in "BD" or frequency is Frequency.DAY:
        return np.zeros(len(times), dtype=np.bool_)
    days = times.dt.date().to_numpy().astype("datetime64[D]")
    is_closed: BoolArray = days != frequency.to_datetime(frequency.to_period(days)).astype("datetime64[D]")
    return is_closed


def _far_from_now(rows: Rows, today: date) -> tuple[BoolArray, BoolArray]:
    """Whether times are before the years that files are of, and whether they are after today."""
    if rows.frequency is Frequency.INTEGER:
        none = np.zeros(len(rows.times), dtype=np.bool_)
        return none, none
    days = rows.times.dt.date()
    return (days < date(_FIRST_YEAR, 1, 1)).to_numpy(), (days > today).to_numpy()


def row_findings(
    seen: Mapping[str, Seen],
    n_rows: int,
    times: pl.Series,
    frequency: Frequency,
    policies: Policies,
    *,
    today: date,
    ds_format: str | None,
) -> Iterator[Finding]:
    """Yield what was found in the rows and what the policies made of it.

    Parameters
    ----------
    seen : mapping of Seen
        See :func:`rows_seen`, of all rows.
    n_rows : int
        How many there are.
    times : polars Series of Datetime
        The distinct times.
    frequency : Frequency
        What a period is.
    policies : Policies
        The repairs.
    today : date
        Times after it are told.
    ds_format : str or None
        How the times were written.

    Yields
    ------
    Finding
    """
    last = frequency.text(int(frequency.to_period(times.to_numpy()).max())) if len(times) else ""
    for code, policy, sentences in _POLICIES:
        told = {choice: sentence.replace("LAST", last) for choice, sentence in sentences.items()}
        yield _of_policy(seen[code], n_rows, code, policy, getattr(policies, policy), told)
    back, closed = seen["unsorted_rows"], seen["closed_day_rows"]
    message = f"{counted(back.count, 'row')} after a later one of the series: all are put in order of time."
    yield Finding("unsorted_rows", "note", back.count, "rows", message, back.samples)
    message = (
        f"{counted(closed.count, 'row')} on days that the frequency {frequency.value} has not: they count "
        "for the open day before. If these days are open, state `frequency='D'`."
    )
    yield Finding("closed_day_rows", "warning", closed.count, "rows", message, closed.samples, "frequency")
    past = seen["past_dates"]
    n_past = counted(past.count, "row")
    message = f"{n_past} dated before {_FIRST_YEAR}: is the year of another calendar, or mistyped?"
    yield Finding("past_dates", "warning", past.count, "rows", message, past.samples)
    if frequency is not Frequency.INTEGER:
        yield from _beyond_today(seen["future_dates"], n_rows, today, ds_format)


def _of_policy(
    seen: Seen, n_rows: int, code: str, policy: str, chosen: str, sentences: dict[str, str]
) -> Finding:
    severity: Severity = "error" if chosen == "error" else "warning" if chosen == "keep" else "note"
    n, of = seen.count, counted(n_rows, "row")
    message = f"{n:,} of {of} {sentences[chosen].format_map(_VERBS[n == 1])}."
    return Finding(code, severity, n, "rows", message, seen.samples, policy)


def _beyond_today(seen: Seen, n_rows: int, today: date, ds_format: str | None) -> Iterator[Finding]:
    n = seen.count
    if ds_format and ("%y" in ds_format or "%g" in ds_format):
        yield Finding(
            "two_digit_years", "note", n_rows, "rows", f"Of dates, {CENTURY_RULE}.", (), "ds_format"
        )
        message = (
            f"{counted(n, 'row')} with a two-digit year that reads as one after today, {today}, as "
            f"{CENTURY_RULE}: write years with four digits."
        )
        yield Finding("future_century", "error", n, "rows", message, seen.samples, "ds_format")
        return
    message = f"{counted(n, 'row')} dated after today, {today}: are these plans, or mistyped?"
    yield Finding("future_dates", "warning", n, "rows", message, seen.samples)


def plain_ids(unique_ids: pl.Series) -> pl.Series:
    """Return the ids without what similar ones differ by: capitals, spaces, leading zeros, ways to write a
    character, and characters that are not seen."""
    plain = unique_ids.str.normalize("NFKC").str.replace_all(r"[\s\p{Cf}]+", "")
    return plain.str.to_lowercase().str.replace("^0+(.)", "$1")


def id_findings(unique_ids: pl.Series, total: str | None = None) -> Iterator[Finding]:
    """Yield what ids tell that differ hardly, or that a spreadsheet shortened.

    Parameters
    ----------
    unique_ids : polars Series of str
        The distinct ids.
    total : str, optional
        That of a series that adds up all others, whatever it is called.

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
        f"{n_ids:,} ids differ only by capitals, spaces, leading zeros or characters that look alike "
        f"({first}): they are different series. If they are the same product, write its id in one way."
    )
    samples = tuple(Sample(unique_id=one) for group in groups for one in sorted(group))[:6]
    yield Finding("similar_ids", "warning", n_ids, "ids", message, samples)
    sums = unique_ids.filter(unique_ids.str.strip_chars().str.contains(_SUMS)).to_list()
    of_others = ""
    if total is not None:
        of_others = f" {total!r} is the sum of all others in nearly every period."
        sums = list(dict.fromkeys([*sums, total]))
    message = (
        f"{counted(len(sums), 'id')} may be of a row that adds up others ({', '.join(map(repr, sums))}): a "
        f"series of sums beside those it sums counts them twice.{of_others} If it is one, take its rows out "
        "of the file."
    )
    yield Finding("total_rows", "warning", len(sums), "ids", message, tuple(map(_of_id, sums[:5])))


def _of_id(unique_id: str) -> Sample:
    return Sample(unique_id=unique_id)

"""Warn of periods that may not be meant: far from all others, without a value, or not where they begin."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import polars as pl

from ccmtl_core.base.display import counted, option, quoted
from ccmtl_core.base.id_codes import codes_of
from ccmtl_core.base.types import IntArray
from ccmtl_core.inspection.parts.last_period import last_times
from ccmtl_core.inspection.report import MAX_SAMPLES, Finding, Sample
from ccmtl_core.series.calendar import Frequency
from ccmtl_core.series.runs import blocks

FEWEST = 30
"""Periods; a shorter gap between dates is not worth a warning."""
USUAL_STEPS = 10

_DAYS = ("Thursday", "Friday", "Saturday", "Sunday", "Monday", "Tuesday", "Wednesday")
_MONTHS = "January February March April May June July August September October November December"
_CYCLES = {
    Frequency.HOUR: [f"at {hour:02d}:00" for hour in range(24)],
    Frequency.DAY: [f"on {day}s" for day in _DAYS],
    Frequency.MONTH: [f"in {month}" for month in _MONTHS.split()],
}
"""Names of the hours of a day, the days of a week and the months; period 0, of 1970-01-01, has the first."""

_LONGER = {Frequency.HOUR: "D", Frequency.DAY: "W"}
_FEWEST_CYCLES = 2
_MAX_SEARCHED = 1_000_000


@dataclass(frozen=True, eq=False)
class RowsAt:
    """The rows in which the distinct times of a table stand."""

    times: pl.Series
    """Of Datetime, (D,)."""
    count: IntArray
    """How many rows have each time, (D,)."""
    first: IntArray
    """The first of them, (D,); any number where there are none."""

    @classmethod
    def of(cls, times: pl.Series, time: IntArray, row: IntArray) -> RowsAt:
        """Return those of rows of these numbers, whose times are told by their places in ``times``."""
        first = np.full(len(times), np.iinfo(np.int64).max)
        np.minimum.at(first, time, row)
        return cls(times, np.bincount(time, minlength=len(times)), first)

    @classmethod
    def of_frame(cls, frame: pl.DataFrame) -> RowsAt:
        """Return those of a table with the columns ``row`` and ``ds``."""
        times, time = codes_of(frame["ds"])
        return cls.of(times, time, frame["row"].to_numpy().astype(np.int64))

    def joined(self, other: RowsAt) -> RowsAt:
        """Return those of the rows of both, which have the same times."""
        return RowsAt(self.times, self.count + other.count, np.minimum(self.first, other.first))

    def last_times(self, frequency: Frequency, before: pl.Series | None = None) -> pl.Series:
        """Return what tells later how whole periods end, of the rows and of the data before them."""
        times = self.times.filter(pl.Series(self.count > 0))
        return last_times(times if before is None else pl.concat([before, times]), frequency)


def period_findings(
    read: RowsAt,
    used: RowsAt,
    runs: pl.DataFrame,
    frequency: Frequency,
    *,
    n_filled: int,
    is_filled: bool,
    is_merged: bool,
) -> Iterator[Finding]:
    """Warn of the periods of series.

    Parameters
    ----------
    read, used : RowsAt
        All rows, and those that make values.
    runs : DataFrame
        In which periods the series have values, those that were there before the rows included.
    frequency : Frequency
        What a period is.
    n_filled : int
        Values that filling adds.
    is_filled, is_merged : bool
        Whether absent periods are filled, and several rows of a period become one value.

    Yields
    ------
    Finding
    """
    if not is_merged and frequency is not Frequency.INTEGER:
        yield from _moved(read, frequency)
    yield from _isolated(runs, used, n_filled, frequency)
    if not is_filled:
        yield from _absent(runs, frequency)
        yield from _ended(runs, frequency)


def filled_beside(n: int, columns: Sequence[str]) -> Finding:
    """Return the finding on filled periods that lack the columns which stand beside the values.

    Parameters
    ----------
    n : int
        How many there are.
    columns : sequence of str
        Those beside the values.

    Returns
    -------
    Finding
    """
    what = ", ".join(map(quoted, columns))
    return _warning(
        code="filled_without_columns",
        message=f"{counted(n, 'period')} without a row {'is' if n == 1 else 'are'} filled, without {what}: a "
        "forecast learns nothing from them, and products that are no longer sold are forecast as if they "
        f"were. Write rows of these periods with the value, such as 0, and {what}.",
        count=n,
        unit="periods",
        policy="fill",
    )


def _warning(
    code: str,
    message: str,
    count: int,
    unit: str,
    policy: str | None = None,
    samples: tuple[Sample, ...] = (),
) -> Finding:
    return Finding(code, "warning", count, unit, message, samples, policy)


def _moved(read: RowsAt, frequency: Frequency) -> Iterator[Finding]:
    """Say which times are not where their periods begin, and that forecasts carry the beginnings."""
    begins = pl.Series(frequency.to_datetime(frequency.to_period(read.times.to_numpy())))
    moved = np.flatnonzero((read.times != begins).to_numpy() & (read.count > 0))
    if len(moved):
        at = int(moved[np.argmin(read.first[moved])])
        ds, begin, row = read.times[at], begins[at], int(read.first[at])
        verb, nouns = ("begins", "beginnings") if frequency is frequency.kin else ("ends", "last days")
        given, start_text = (f"{moment}".removesuffix(" 00:00:00") for moment in (ds, begin))
        yield _warning(
            code="moved_to_period_start",
            message=f"Times inside a period count for the whole period: {given} (row {row:,}) for the one "
            f"that {verb} on {begin:%A}, {start_text}. Forecasts carry the {nouns} of periods.",
            count=int(read.count[moved].sum()),
            unit="rows",
        )


def _ended(runs: pl.DataFrame, frequency: Frequency) -> Iterator[Finding]:
    """Warn of series that end before the others by more than a season and a tenth of the whole time."""
    last = (pl.col("first") + pl.col("length") - 1).max().alias("last")
    ends = runs.group_by("unique_id").agg(last).sort("last", "unique_id")
    end = int(ends["last"][-1])
    limit = max(frequency.season, (end + 1 - int(runs["first"].to_numpy().min())) // 10)
    over = ends.filter(pl.col("last") < end - limit)
    if over.height:
        example, when = over.row(0)
        yield _warning(
            code="series_ended",
            message=f"{over.height:,} of {ends.height:,} series end more than {limit} periods before the "
            f"dataset, which ends with {frequency.text(end)}; the first is {example!r}, which ends "
            f"with {frequency.text(when)}. Each is forecast from its own end on. Leave out what is "
            "no longer sold; if nothing was sold since, choose `fill='zero'` or, where columns such as a "
            "price stand beside the values, write rows with 0 and the price.",
            count=over.height,
            unit="series",
            policy="fill",
            samples=tuple(
                Sample(None, one, frequency.text(last)) for one, last in over.head(MAX_SAMPLES).rows()
            ),
        )


def _isolated(runs: pl.DataFrame, used: RowsAt, n_filled: int, frequency: Frequency) -> Iterator[Finding]:
    """Warn of the first and of the last gap such as a mistyped year makes.

    No series has a value in it, it is longer than all periods that have one taken together, and more than ten
    times as long as the usual step from one of these to the next: rows of the first of each month make none.
    """
    starts, ends = blocks(runs["first"].to_numpy(), runs["length"].to_numpy())
    if len(starts) < 2:
        return
    n_occupied = int((ends - starts).sum())
    steps = starts[1:] - ends[:-1] + 1  # from one block to the next; inside a block each step is one
    n_single, middle = n_occupied - len(starts), (n_occupied - 2) // 2
    usual = 1 if middle < n_single else np.sort(steps)[middle - n_single]
    gaps = np.flatnonzero((steps - 1 > max(FEWEST, n_occupied)) & (steps > USUAL_STEPS * usual))
    for i in sorted({*gaps[:1].tolist(), *gaps[-1:].tolist()}):
        yield _far_away(int(ends[i]) - 1, int(starts[i + 1]), runs, used, n_filled, frequency)


def _far_away(
    before: int,
    after: int,
    runs: pl.DataFrame,
    used: RowsAt,
    n_filled: int,
    frequency: Frequency,
) -> Finding:
    n_values = int(runs["length"].sum())
    n_after = int(runs.filter(pl.col("first") >= after)["length"].sum())
    n_before = n_values - n_after
    is_late = n_after <= n_before
    period = frequency.to_period(used.times.to_numpy())
    rows = used.first[(period >= after if is_late else period <= before) & (used.count > 0)]
    first, last = (frequency.text(one) for one in (before, after))
    count, place = (n_after, f"from {last} on") if is_late else (n_before, f"up to {first}")
    known = f" (the first in row {rows.min()})" if len(rows) else ""
    filled = f" Filling in adds {n_filled:,} values." if n_filled else ""
    return _warning(
        code="isolated_period",
        message=f"No series has a value in the {after - before - 1:,} periods between {first} and {last}; "
        f"values {place}: {count:,} of {n_values:,}{known}; is a date mistyped?{filled}",
        count=count,
        unit="values",
    )


def _absent(runs: pl.DataFrame, frequency: Frequency) -> Iterator[Finding]:
    """Say how many periods the series lack inside their own time, and which no series has."""
    first, end = pl.col("first").min(), (pl.col("first") + pl.col("length")).max()
    spans = int(runs.group_by("unique_id").agg((end - first).alias("n"))["n"].sum())
    n_absent = spans - int(runs["length"].sum())
    if n_absent:
        period = _LONGER.get(frequency)
        longer = f", or {option('frequency', period)}" if period else ""
        yield _warning(
            code="absent_periods",
            message=f"{n_absent:,} of the {spans:,} periods between the first and the last value of their "
            "series have no value, and nothing fills them: a model of lags leaves out every row with one of "
            f"them among its lags.{_of_no_series(runs, frequency)} If nothing happened in these periods, "
            "choose `fill='zero'`. If they do not count, as days on which a shop is closed do not, take few "
            f"lags{longer}.",
            count=n_absent,
            unit="periods",
            policy="fill",
            samples=_gaps(runs, frequency),
        )


def _gaps(runs: pl.DataFrame, frequency: Frequency) -> tuple[Sample, ...]:
    """The first absent periods of the first series that have some."""
    next_first = pl.col("first").shift(-1).over("unique_id")
    gaps = runs.with_columns(end=pl.col("first") + pl.col("length"), next=next_first)
    gaps = gaps.filter(pl.col("next").is_not_null()).head(MAX_SAMPLES)
    return tuple(
        Sample(None, one, frequency.text(end)) for one, end in gaps.select("unique_id", "end").rows()
    )


def _of_no_series(runs: pl.DataFrame, frequency: Frequency) -> str:
    """Name the periods that no series has a value in: what recurs, such as a weekday, and the first other."""
    starts, ends = blocks(runs["first"].to_numpy(), runs["length"].to_numpy())
    lengths, low, high = ends - starts, int(starts[0]), int(ends[-1])
    occupied = np.arange(lengths.sum()) + np.repeat(starts - (np.cumsum(lengths) - lengths), lengths)
    absent = np.setdiff1d(np.arange(low, min(high, low + _MAX_SEARCHED)), occupied, assume_unique=True)
    names, told = _CYCLES.get(frequency.kin, []), []
    if names and high - low >= _FEWEST_CYCLES * len(names):
        missing = np.setdiff1d(np.arange(len(names)), occupied % len(names))
        absent = absent[~np.isin(absent % len(names), missing)]
        told = [names[place] for place in missing]
    if len(absent):
        other = " other" if told else ""
        plural = "s" if len(absent) > 1 else ""
        told.append(f"in {len(absent)}{other} period{plural}, first {frequency.text(int(absent[0]))}")
    share = f" ({high - low - len(occupied)} of {high - low} periods)"
    return f" No series has a value {', '.join(told)}{share}." if told else ""

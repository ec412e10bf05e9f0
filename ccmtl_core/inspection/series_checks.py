"""What whole series tell: constant, zero, short or ended ones, outliers, another frequency than the rest."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from ccmtl_core.base.types import BoolArray, IntArray
from ccmtl_core.inspection.repairs import Values
from ccmtl_core.inspection.report import MAX_SAMPLES, Finding, Sample, Seen
from ccmtl_core.kernels.series.outliers import far_from_median
from ccmtl_core.series.calendar import Frequency

FEWEST_FOR_OUTLIERS = 8
OUTLIER_SPREADS = 10.0
"""Spreads, as of a normal distribution, that an outlier is away from the median of its series."""
FEWEST_VALUES, FEWEST_REGULAR = 3, 5
"""Values that a series needs at least, and steps of one length that tell of another frequency."""
_LONGEST_SHORT = 13


def series_seen(values: Values, row: IntArray) -> dict[str, Seen]:
    """Return the series and values of each kind that is told, of all series or of some.

    Parameters
    ----------
    values : Values
        Before they are filled.
    row : (m,) int64
        The row of the file that each value begins with.

    Returns
    -------
    dict of Seen
        By the code of the finding; ``every_period`` are series with a value in each period.
    """
    if not len(values.value):
        return {}
    begins, sizes = values.offsets[:-1], np.diff(values.offsets)
    low, high = (reduce.reduceat(values.value, begins) for reduce in (np.minimum, np.maximum))
    is_zero = (low == 0) & (high == 0)
    least, most = _steps(values)
    is_regular = (sizes > FEWEST_REGULAR) & (least == most)
    return {
        "all_zero": _series(values, is_zero),
        "constant_series": _series(values, (low == high) & ~is_zero & (sizes > 1)),
        "short_series": _series(values, sizes < _needed(values.frequency)),
        "every_period": Seen(int((is_regular & (least == 1)).sum())),
        "mixed_frequencies": _series(values, is_regular & (least > 1), least),
        "outliers": _outliers(values, row),
    }


def _needed(frequency: Frequency) -> int:
    """Values that a series should have at least."""
    return max(min(frequency.season, _LONGEST_SHORT - 1) + 1, FEWEST_VALUES)


def _steps(values: Values) -> tuple[IntArray, IntArray]:
    """The shortest and the longest step from a period with a value to the next, of each series."""
    steps = np.diff(values.period, prepend=0)
    begins, sizes = values.offsets[:-1], np.diff(values.offsets)
    steps[begins] = np.iinfo(np.int64).max
    least = np.minimum.reduceat(steps, begins)
    steps[begins] = 0
    return np.where(sizes > 1, least, 0), np.maximum.reduceat(steps, begins)


def _series(values: Values, found: BoolArray, steps: IntArray | None = None) -> Seen:
    """The series that were found, each shown with its step or its first value."""
    at = np.flatnonzero(found)
    samples = (
        Sample(
            unique_id=values.unique_ids[s],
            value=f"{values.value[values.offsets[s]]:g}" if steps is None else f"every {steps[s]} periods",
        )
        for s in at[:MAX_SAMPLES].tolist()
    )
    return Seen(len(at), tuple(samples))


def _outliers(values: Values, row: IntArray) -> Seen:
    """Values far from the median of the values of their series that are not zero."""
    is_far = far_from_median(values.value, values.offsets, FEWEST_FOR_OUTLIERS, OUTLIER_SPREADS)
    at = np.flatnonzero(is_far)
    samples = tuple(
        Sample(
            int(row[i]),
            values.unique_ids[values.series[i]],
            values.frequency.text(int(values.period[i])),
            f"{values.value[i]:g}",
        )
        for i in at[np.argsort(row[at], kind="stable")][:MAX_SAMPLES].tolist()
    )
    return Seen(len(at), samples)


def series_findings(
    seen: Mapping[str, Seen], n_series: int, n_values: int, frequency: Frequency
) -> Iterator[Finding]:
    """Yield what was found in series.

    Parameters
    ----------
    seen : mapping of Seen
        See :func:`series_seen`, of all series.
    n_series, n_values : int
        How many there are.
    frequency : Frequency
        What a period is.

    Yields
    ------
    Finding
    """
    if not seen:
        return
    single, mixed = seen["every_period"].count, seen["mixed_frequencies"]
    words = {
        "all_zero": "hold zeros alone: nothing can be learned of them",
        "constant_series": "never change their value, which is what they are forecast",
        "short_series": _few(frequency),
    }
    for code, told in words.items():
        yield _of_series(code, seen[code], n_series, f"{told}.")
    told = (
        f"have a value every second, third, … period, where {single:,} have one in each: are they of another "
        "frequency?"
    )
    found = Seen() if mixed.count > single else mixed
    yield _of_series("mixed_frequencies", found, n_series, told, "frequency")
    outliers = seen["outliers"]
    message = (
        f"{outliers.count:,} of {n_values:,} values are more than {OUTLIER_SPREADS:g} spreads away from "
        "the median of their series: are they mistyped, or of another unit?"
    )
    yield Finding("outliers", "warning", outliers.count, "values", message, outliers.samples)


def short_series(unique_ids: Sequence[str], sizes: IntArray, frequency: Frequency | str) -> Finding:
    """Return the finding on series with few values.

    Parameters
    ----------
    unique_ids : sequence of str
        All series.
    sizes : (T,) int64
        How many values each has.
    frequency : Frequency or str
        What a period is.

    Returns
    -------
    Finding
    """
    at = np.flatnonzero(sizes < _needed(Frequency(frequency)))
    samples = tuple(Sample(unique_id=unique_ids[s]) for s in at[:MAX_SAMPLES].tolist())
    words = f"{_few(Frequency(frequency))}."
    return _of_series("short_series", Seen(len(at), samples), len(unique_ids), words)


def _few(frequency: Frequency) -> str:
    return (
        f"have fewer than {_needed(frequency)} values: forecasts of them rest on what the others have in "
        "common"
    )


def _of_series(code: str, seen: Seen, n_series: int, words: str, policy: str | None = None) -> Finding:
    message = f"{seen.count:,} of {n_series:,} series {words}"
    return Finding(code, "warning", seen.count, "series", message, seen.samples, policy)

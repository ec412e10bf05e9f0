"""What whole series tell: constant, zero, short or ended ones, outliers, another frequency than the rest."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import polars as pl

from ccmtl_core.base.types import BoolArray, FloatArray, IntArray
from ccmtl_core.inspection.report import MAX_SAMPLES, Finding, Sample
from ccmtl_core.series.calendar import Frequency
from ccmtl_core.series.panel import SeriesPanel

FEWEST_FOR_OUTLIERS = 8
OUTLIER_SPREADS = 10.0
"""Spreads, as of a normal distribution, that an outlier is away from the median of its series."""
FEWEST_VALUES, FEWEST_REGULAR = 3, 5
"""Values that a series needs at least, and steps of one length that tell of another frequency."""
_LONGEST_SHORT = 13


def series_findings(panel: SeriesPanel, first_row: IntArray) -> Iterator[Finding]:
    """Yield what was found in the series of a panel; each of its values begins with a row of the file.

    Parameters
    ----------
    panel : SeriesPanel
        Before it is filled.
    first_row : (m,) int64
        The row that each value begins with.

    Yields
    ------
    Finding
    """
    if not len(panel.values):
        return
    begins, sizes = panel.offsets[:-1], np.diff(panel.offsets)
    low, high = (reduce.reduceat(panel.values, begins) for reduce in (np.minimum, np.maximum))
    is_zero = (low == 0) & (high == 0)
    yield _of_series(panel, is_zero, "all_zero", "hold zeros alone: nothing can be learned of them")
    is_constant = (low == high) & ~is_zero & (sizes > 1)
    yield _of_series(
        panel, is_constant, "constant_series", "never change their value, which is what they are forecast"
    )
    yield short_series(panel.unique_ids, sizes, panel.frequency, panel.values[begins])
    yield _mixed(panel)
    yield _outliers(panel, first_row)


def short_series(
    unique_ids: Sequence[str],
    sizes: IntArray,
    frequency: Frequency | str,
    first: FloatArray | None = None,
) -> Finding:
    """Return the finding on series with few values.

    Parameters
    ----------
    unique_ids : sequence of str
        All series.
    sizes : (T,) int64
        How many values each has.
    frequency : Frequency or str
        What a period is.
    first : (T,) float64, optional
        The first value of each.

    Returns
    -------
    Finding
    """
    needed = max(min(Frequency(frequency).season, _LONGEST_SHORT - 1) + 1, FEWEST_VALUES)
    at = np.flatnonzero(sizes < needed).tolist()
    samples = tuple(
        Sample(unique_id=unique_ids[s], value=None if first is None else f"{first[s]:g}")
        for s in at[:MAX_SAMPLES]
    )
    message = (
        f"{len(at):,} of {len(unique_ids):,} series have fewer than {needed} values: forecasts of them rest "
        "on what the others have in common."
    )
    return Finding("short_series", "warning", len(at), "series", message, samples)


def _of_series(panel: SeriesPanel, found: BoolArray, code: str, words: str) -> Finding:
    at = np.flatnonzero(found)
    samples = tuple(
        Sample(unique_id=panel.unique_ids[s], value=f"{panel.values[panel.offsets[s]]:g}")
        for s in at[:MAX_SAMPLES].tolist()
    )
    return Finding(
        code, "warning", len(at), "series", f"{len(at):,} of {panel.n_series:,} series {words}.", samples
    )


def _mixed(panel: SeriesPanel) -> Finding:
    """Series with a regular step of more than one period, where most series have one."""
    same = np.diff(panel.series_index) == 0
    steps, of = np.diff(panel.period)[same], panel.series_index[1:][same]
    n_steps = np.bincount(of, minlength=panel.n_series)
    far = np.iinfo(np.int64).max
    least, most = np.full(panel.n_series, far), np.zeros(panel.n_series, dtype=np.int64)
    np.minimum.at(least, of, steps)
    np.maximum.at(most, of, steps)
    every = (n_steps >= FEWEST_REGULAR) & (least == most)
    is_single = every & (least == 1)
    found = every & (least > 1)
    if found.sum() > is_single.sum():
        found &= False
    words = (
        f"have a value every second, third, … period, where {int(is_single.sum()):,} have one in each: are "
        "they of another "
        "frequency?"
    )
    finding = _of_series(panel, found, "mixed_frequencies", words.removesuffix("."))
    return Finding(
        finding.code,
        finding.severity,
        finding.count,
        finding.unit,
        finding.message.removesuffix("."),
        tuple(
            Sample(unique_id=panel.unique_ids[s], value=f"every {least[s]} periods")
            for s in np.flatnonzero(found)[:MAX_SAMPLES].tolist()
        ),
        "frequency",
    )


def _outliers(panel: SeriesPanel, first_row: IntArray) -> Finding:
    """Values far from the median of the values of their series that are not zero."""
    used = np.flatnonzero(panel.values != 0)
    series = panel.series_index[used]
    values = panel.values[used]
    many = np.bincount(series, minlength=panel.n_series) >= FEWEST_FOR_OUTLIERS
    with np.errstate(over="ignore", invalid="ignore"):  # of values at the end of what a float64 holds
        middle = _medians(values, series, panel.n_series)
        away = np.abs(values - middle[series])
        spread = 1.4826 * _medians(away, series, panel.n_series)
        is_far = many[series] & (spread[series] > 0) & (away > OUTLIER_SPREADS * spread[series])
        is_far &= away > np.abs(middle[series])
    at = used[is_far]
    samples = tuple(
        Sample(
            int(first_row[i]),
            panel.unique_ids[panel.series_index[i]],
            panel.frequency.text(int(panel.period[i])),
            f"{panel.values[i]:g}",
        )
        for i in at[np.argsort(first_row[at], kind="stable")][:MAX_SAMPLES].tolist()
    )
    message = (
        f"{len(at):,} of {len(panel.values):,} values are more than {OUTLIER_SPREADS:g} spreads away from "
        "the median of "
        "their series: are they mistyped, or of another unit?"
    )
    return Finding("outliers", "warning", len(at), "values", message, samples)


def _medians(values: FloatArray, series: IntArray, n_series: int) -> FloatArray:
    """The median of the values of each series, which stand in their order; NaN of those without."""
    by_series = pl.DataFrame({"series": pl.Series(series).set_sorted(), "value": values})
    found = by_series.group_by("series").agg(pl.col("value").median())
    result = np.full(n_series, np.nan)
    result[found["series"].to_numpy()] = found["value"].to_numpy()
    return result

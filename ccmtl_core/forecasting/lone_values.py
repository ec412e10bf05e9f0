"""Cut values that stand alone far above all others of their series, as mistyped ones do."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import polars as pl

from ccmtl_core.forecasting.row_maker import check_panel
from ccmtl_core.series.panel import SeriesPanel

ENOUGH, NOT_ZERO = 8, 3
"""Values that a series must have, and how many of them other than zero."""
TIMES = 10.0
"""How many times as large as all others of its series a value is that is cut."""
SHARED, SHARE = 3, 0.01
"""Series, at least, and share of all, whose lone values lie in one period: then it was a special one."""
MOST_TOLD = 100
"""Cut values that a report lists."""


class LoneValues(NamedTuple):
    """A panel without lone values, and what they were.

    Parameters
    ----------
    panel : SeriesPanel
        With these values cut; the one that was given, where there are none.
    cut : DataFrame
        A row for each value that was cut: ``unique_id``, ``ds``, ``y`` (the value) and ``counted_as``.
    """

    panel: SeriesPanel
    cut: pl.DataFrame

    def report(self) -> dict[str, Any]:
        """Return what a report says of them, as JSON can hold it: how many there are, and the first."""
        first, frequency = self.cut.head(MOST_TOLD), self.panel.frequency
        texts = [frequency.text(period) for period in frequency.to_period(first["ds"]).tolist()]
        return {
            "n_cut": self.cut.height,
            "cut": first.with_columns(ds=pl.Series(texts, dtype=pl.String)).to_dicts(),
        }


def without_lone_values(panel: SeriesPanel) -> LoneValues:
    """Cut the one value of a series that is more than ten times as large as all its others, as if mistyped.

    It then counts as the largest of the others, with its own sign. A second one as large makes both count.
    Series of fewer than eight values, or three that are not zero, stay as they are. So do values of one
    period in three series or more, and at least one in a hundred: so looks Christmas before a
    second year is known. One large order where demand is rare is cut as well, as it hardly tells of the next.

    Parameters
    ----------
    panel : SeriesPanel
        T series.

    Returns
    -------
    LoneValues
        The panel that was given stays as it was.

    Raises
    ------
    ParameterError
        No panel.

    Examples
    --------
    >>> panel = SeriesPanel(("a",), [0, 8], list(range(8)), [5.0, 6.0, 4.0, 5.0, 5e5, 5.0, 6.0, 4.0], "D")
    >>> found = without_lone_values(panel)
    >>> found.panel.values, found.cut.rows()
    (array([5., 6., 4., 5., 6., 5., 6., 4.]), [('a', datetime.date(1970, 1, 5), 500000.0, 6.0)])
    """
    own, size, T = check_panel(panel).series_index, np.abs(panel.values), panel.n_series
    some = np.diff(panel.offsets) > 0
    starts = panel.offsets[:-1][some]
    first, second = np.zeros(T), np.zeros(T)
    if len(starts):
        first[some] = np.maximum.reduceat(size, starts)
        second[some] = np.maximum.reduceat(np.where(size == first[own], 0.0, size), starts)
    largest = size == first[own]
    alone = np.bincount(own[largest], minlength=T) == 1
    n_not_zero = np.bincount(own[size > 0.0], minlength=T)
    enough = (np.diff(panel.offsets) >= ENOUGH) & (n_not_zero >= NOT_ZERO)
    entry = np.flatnonzero(largest & (alone & enough & (first / TIMES > second))[own])
    _, place, count = np.unique(panel.period[entry], return_inverse=True, return_counts=True)
    entry = entry[(count < max(SHARED, SHARE * T))[place]]
    values = panel.values.copy()
    values[entry] = np.copysign(second[own[entry]], values[entry])
    cut = pl.DataFrame(
        {
            "unique_id": pl.Series(panel.unique_ids, dtype=pl.String)[own[entry]],
            "ds": panel.frequency.dated(panel.period[entry]),
            "y": panel.values[entry],
            "counted_as": values[entry],
        }
    )
    if not len(entry):
        return LoneValues(panel, cut)
    ids, frequency = panel.unique_ids, panel.frequency
    return LoneValues(SeriesPanel(ids, panel.offsets, panel.period, values, frequency), cut)

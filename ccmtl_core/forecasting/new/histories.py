"""The newest values of the products of a forecaster and of new ones, side by side."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from ccmtl_core.base.display import quoted
from ccmtl_core.base.exceptions import DataError
from ccmtl_core.base.types import BoolArray, FloatArray, IntArray
from ccmtl_core.forecasting.fitted.forecast_model import ForecastModel
from ccmtl_core.forecasting.fitted.latest_rows import dated, latest_tails
from ccmtl_core.forecasting.lone_values import without_lone_values
from ccmtl_core.forecasting.row_maker import check_panel
from ccmtl_core.series.calendar import Frequency
from ccmtl_core.series.panel import SeriesPanel

MOST_TARGETS = 256
"""Newest values of a new product that its weights are found from."""


class Histories(NamedTuple):
    """The newest values of S products, the T of a forecaster first.

    Parameters
    ----------
    ids : tuple of S str
        Of the products.
    tail : (S, R) float64
        Values up to ``origin``; NaN where not known.
    origin : int
        The newest period of all.
    new : (S,) bool
        Products that the forecaster does not have, or hardly any value of.
    like : (S,) bool
        Products that others can be like: with a history up to a horizon ago.
    """

    ids: tuple[str, ...]
    tail: FloatArray
    origin: int
    new: BoolArray
    like: BoolArray

    @property
    def n_values(self) -> IntArray:
        """How many values of each product are known, (S,)."""
        count: IntArray = (~np.isnan(self.tail)).sum(axis=1)
        return count


def histories(forecaster: ForecastModel, ids: Sequence[str], panel: SeriesPanel | None) -> Histories:
    """Return the newest values of a forecaster's products, and of those listed or in the panel.

    Raises
    ------
    DataError
        A panel of another frequency, no product that is new, or none that others could be like.
    """
    T, reach = len(forecaster.unique_ids), forecaster.features.reach
    R = reach if panel is None else reach + MOST_TARGETS
    in_panel = () if panel is None else check_panel(panel).unique_ids
    every = tuple(dict.fromkeys([*forecaster.unique_ids, *ids, *in_panel]))
    tail, last = np.full((len(every), R), np.nan), np.full(len(every), np.iinfo(np.int64).min // 2)
    tail[:T, R - forecaster.tail.shape[1] :] = forecaster.tail
    last[:T] = forecaster.last_period
    if panel is not None:
        if panel.frequency is not forecaster.frequency:
            theirs, ours = panel.frequency.value, forecaster.frequency.value
            raise DataError(f"the panel's frequency is {theirs!r}, the forecaster's {ours!r}")
        place_of = {name: place for place, name in enumerate(every)}
        newer, newest = latest_tails(without_lone_values(panel).panel, R)
        some = np.diff(panel.offsets) > 0
        place = np.array([place_of[name] for name in in_panel], dtype=np.int64)[some]
        tail[place], last[place] = np.nan, newest[some]
        tail[place, R - newer.shape[1] :] = newer[some]
    n_values = (~np.isnan(tail)).sum(axis=1)  # up to the end of each, so that none is new that ended
    has_values = n_values > 0
    if not has_values.any():
        raise DataError("no product has a value")
    origin = int(last[has_values].max())
    column = np.arange(R) + np.minimum(origin - last, R)[:, None]
    tail = np.where(column < R, np.take_along_axis(tail, np.minimum(column, R - 1), axis=1), np.nan)
    new = (np.arange(len(every)) >= T) | (n_values < _least_values(forecaster))
    if not new.any():
        raise DataError("no product is new: the forecaster has all of them, with histories")
    like = ~new & ~np.isnan(tail).all(axis=1)
    if not like.any():
        raise _none_alike(forecaster, every, last)
    on_sale = like & (origin - last < forecaster.horizon)
    return Histories(every, tail, origin, new, on_sale if on_sale.any() else like)


def _none_alike(forecaster: ForecastModel, ids: Sequence[str], last: IntArray) -> DataError:
    """The error where no product of the forecaster has values in the periods that are looked at."""
    newest = int(np.argmax(last))
    day, others = dated(
        np.array([last[newest], last[: len(forecaster.unique_ids)].max()]), forecaster.frequency
    )
    if day <= others:
        return DataError("no product of the forecaster has a history that a new one could be like")
    return DataError(
        f"the values of {quoted(ids[newest])} go to {day}, long after those of all products that it could "
        f"be like, which end by {others}: correct its dates, or bring the others up to date"
    )


def are_thin(forecaster: ForecastModel) -> BoolArray:
    """Return which products of a forecaster have too few values to be forecast by their own, (T,)."""
    thin: BoolArray = (~np.isnan(forecaster.tail)).sum(axis=1) < _least_values(forecaster)
    return thin


def _least_values(forecaster: ForecastModel) -> int:
    """Values from which on a product is forecast by its own history."""
    return min(forecaster.horizon + 1, forecaster.features.reach)


def panel_of(values: FloatArray, origin: int, ids: Sequence[str], frequency: Frequency) -> SeriesPanel:
    """Return rows of values (n, R) that end with the origin, NaN where not known, as a panel."""
    there = ~np.isnan(values)
    offsets = np.concatenate([[0], np.cumsum(there.sum(axis=1))])
    period = np.nonzero(there)[1] + (origin + 1 - values.shape[1])
    return SeriesPanel(tuple(ids), offsets, period, values[there], frequency)


def means(values: FloatArray) -> FloatArray:
    """Return the mean of what is known in each row, (n,); NaN where nothing is.

    Examples
    --------
    >>> means(np.array([[1.0, np.nan, 3.0], [np.nan, np.nan, np.nan]]))
    array([ 2., nan])
    """
    known = ~np.isnan(values)
    n = known.sum(axis=1)
    sums = np.where(known, values, 0.0).sum(axis=1)
    mean: FloatArray = np.divide(sums, n, out=np.full(len(n), np.nan), where=n > 0)
    return mean

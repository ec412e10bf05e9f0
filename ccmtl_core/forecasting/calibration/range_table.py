"""Tables of quantiles, which say how far from its forecast a value may be.

Most series have quantiles of the error: a table for each group of series and step, and for each series what
it is multiplied by. A series that is often zero has quantiles of the value itself, for each height of the
forecast and step: beside a forecast of 0.2 pieces a day no error is likely, but zero, one or two pieces are.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import ndtri

from ccmtl_core.base.arguments import check_integer
from ccmtl_core.base.arrays import as_float64, as_shape, checked_index, frozen
from ccmtl_core.base.display import counted, shown
from ccmtl_core.base.exceptions import DataError, ParameterError
from ccmtl_core.base.frozen_value import FrozenValue
from ccmtl_core.base.types import BoolArray, FloatArray, IntArray
from ccmtl_core.forecasting.row_maker import MAX_HORIZON

PROBABILITIES = (0.005, 0.01, 0.025, *(i / 20 for i in range(1, 20)), 0.975, 0.99, 0.995)
"""Quantiles that are kept; between them is interpolated."""
OUTER = 0.1 + 1e-9
"""Quantiles up to this, and from 1 less this, end ranges that hold their forecast."""
HEIGHTS: FloatArray = frozen(0.01 * 2.0 ** (np.arange(28) / 3.0))
"""Forecasts, in units of a series' mean value where it is not zero, that values are told for."""


@dataclass(frozen=True, eq=False)
class RangeTable(FrozenValue):
    """Quantiles around forecasts of T series at the steps 1 to h.

    Parameters
    ----------
    quantiles : (G, h, 25) float64
        Of the error, value less forecast, of each group and step at the probabilities ``PROBABILITIES``, for
        a series of spread 1.
    group : (T,) int64
        The group of each series.
    spread : (T,) float64
        What its quantiles are multiplied by to be in the unit of a series.
    values : (28, h, 25) float64, optional
        Of the value for each of ``HEIGHTS`` of the forecast, both in units of ``size``: how likely zero is,
        and quantiles of the values above zero at ``PROBABILITIES[1:]``.
    size : (T,) float64, optional
        The mean value that is not zero of a series whose quantiles are those of ``values``; NaN for others.
    grid : (T,) float64, optional
        What all values of a series are multiples of, as 1 for pieces or 6 for packs; 0 for any number.

    Raises
    ------
    DataError
        Shapes that do not fit, quantiles that fall, or numbers that are not finite.
    """

    quantiles: FloatArray
    group: IntArray
    spread: FloatArray
    values: FloatArray | None = None
    size: FloatArray | None = None
    grid: FloatArray | None = None

    def __post_init__(self) -> None:
        G, h = (*np.shape(self.quantiles), 0, 0)[:2]
        T = len(self.spread)
        n_heights = 0 if self.values is None else len(self.values)
        nothing = np.empty((0, h, len(PROBABILITIES)))
        checked: dict[str, FloatArray | IntArray] = {
            "quantiles": as_shape(self.quantiles, (G, h, len(PROBABILITIES)), "quantiles"),
            "group": frozen(checked_index(self.group, G, "group")),
            "spread": as_shape(self.spread, (T,), "spread"),
            "values": as_shape(
                nothing if self.values is None else self.values, (n_heights, *nothing.shape[1:]), "values"
            ),
            "size": as_shape(np.full(T, np.nan) if self.size is None else self.size, (T,), "size"),
            "grid": as_shape(np.zeros(T) if self.grid is None else self.grid, (T,), "grid"),
        }
        for name, own in (("quantiles", checked["quantiles"]), ("values", checked["values"][:, :, 1:])):
            if not (np.isfinite(own).all() and (np.diff(own) >= 0.0).all()):
                raise DataError(f"{name} must be finite and must not fall")
        zero = checked["values"][:, :, 0]
        if not ((zero >= 0.0) & (zero <= 1.0)).all():
            raise DataError("values must begin with a probability")
        for name in ("spread", "grid"):
            if not (np.isfinite(checked[name]).all() and (checked[name] >= 0.0).all()):
                raise DataError(f"{name} must be finite and not negative")
        if checked["group"].shape != (T,):
            raise DataError(f"group must be ({T},); got {checked['group'].shape}")
        known = ~np.isnan(checked["size"])
        if not (checked["size"][known] > 0.0).all():
            raise DataError("size must be positive, or NaN")
        if n_heights != (len(HEIGHTS) if known.any() else 0):
            raise DataError(
                f"values must be of {len(HEIGHTS)} heights where a series has a size; else of none"
            )
        for name, value in checked.items():
            object.__setattr__(self, name, value)

    def __repr__(self) -> str:
        G, h, _ = self.quantiles.shape
        return shown(self, f"{len(self.group):,} series", counted(G, "group"), counted(h, "step"))

    @classmethod
    def from_parts(cls, tables: FloatArray, of_series: FloatArray) -> RangeTable:
        """Return the table whose :attr:`tables` and :attr:`of_series` these are."""
        group, spread, size, grid = of_series
        n_heights = 0 if np.isnan(size).all() else len(HEIGHTS)
        G = max(len(tables) - n_heights, 0)
        return cls(tables[:G], group.astype(np.int64), spread, tables[G:], size, grid)

    @property
    def tables(self) -> FloatArray:
        """Quantiles of the error by group, then of the values by height: (G or G + 28, h, 25)."""
        assert self.values is not None
        return np.concatenate([self.quantiles, self.values])

    @property
    def of_series(self) -> FloatArray:
        """Group, spread, size and grid of the series, (4, T)."""
        assert self.size is not None
        assert self.grid is not None
        return np.stack([self.group.astype(np.float64), self.spread, self.size, self.grid])

    def around(
        self,
        yhat: FloatArray,
        series: IntArray,
        unit: FloatArray,
        nonnegative: BoolArray,
        probabilities: ArrayLike,
    ) -> FloatArray:
        """Return quantiles of the values of some series.

        Parameters
        ----------
        yhat : (n, h)
            Forecasts.
        series : (n,) int64
            Places of the series.
        unit : (n,)
            The unit of each; 0 for one that never changes.
        nonnegative : (n,) bool
            Whether no value can be negative.
        probabilities : (q,)
            As in :meth:`errors`.

        Returns
        -------
        (n, h, q) float64
            Where all errors of a series were to one side of zero, the ends of ranges of 80 % or more are
            moved to hold the forecast. Quantiles of values are not: a mean of 0.1 pieces a day may lie
            beside a range from zero to zero.
        """
        found = self.errors(series, yhat.shape[1], probabilities)
        found *= unit[:, None, None]
        p = as_float64(probabilities, "probabilities")
        found[:, :, p <= OUTER] = np.minimum(found[:, :, p <= OUTER], 0.0)
        found[:, :, p >= 1.0 - OUTER] = np.maximum(found[:, :, p >= 1.0 - OUTER], 0.0)
        found += yhat[:, :, None]
        found[nonnegative] = np.maximum(found[nonnegative], 0.0)
        assert self.size is not None
        told = nonnegative & (unit > 0.0) & ~np.isnan(self.size[series])
        if told.any():
            found[told] = self._values_at(yhat[told], series[told], probabilities)
        return found

    def errors(self, series: IntArray, h: int, probabilities: ArrayLike) -> FloatArray:
        """Return quantiles of the error of some series, in the unit of each.

        Parameters
        ----------
        series : (n,) int64
            Places of the series.
        h : int
            Steps. Beyond those of the table the last one's errors grow with the square root of the step, as
            those of a random walk do.
        probabilities : (q,)
            From 0.005 to 0.995.

        Returns
        -------
        (n, h, q) float64

        Raises
        ------
        ParameterError
            A probability that the table cannot tell of.

        Examples
        --------
        >>> table = RangeTable(np.zeros((1, 1, 25)), np.array([0]), np.array([1.0]))
        >>> table.errors(np.array([0]), 2, [0.1, 0.9])
        array([[[0., 0.],
                [0., 0.]]])
        """
        check_integer(h, "h", 1, MAX_HORIZON)
        steps = self.quantiles.shape[1]
        table = _at(self.quantiles[:, : min(h, steps)], probabilities)
        if h > steps:
            growth = np.sqrt(np.arange(steps + 1, h + 1) / steps)[:, None]
            table = np.concatenate([table, table[:, -1:] * growth], axis=1)
        found: FloatArray = table[self.group[series]] * self.spread[series, None, None]
        return found

    def _values_at(self, yhat: FloatArray, series: IntArray, probabilities: ArrayLike) -> FloatArray:
        """Quantiles of values beside forecasts (n, h), of series that have a size."""
        assert self.values is not None
        assert self.size is not None
        assert self.grid is not None
        size, grid = self.size[series, None, None], self.grid[series, None, None]
        height = yhat[:, :, None] / size
        place = place_of(np.nan_to_num(height[:, :, 0]))
        left = np.minimum(place.astype(np.int64), len(HEIGHTS) - 2)[:, :, None]
        share = place[:, :, None] - left
        step = np.minimum(np.arange(yhat.shape[1]), self.values.shape[1] - 1)[:, None]

        def told(column: IntArray | int) -> FloatArray:
            assert self.values is not None
            found: FloatArray = self.values[left, step, column] * (1.0 - share)
            found += self.values[left + 1, step, column] * share
            return found

        zero, p = told(0), as_float64(probabilities, "probabilities")
        above = np.clip((p - zero) / np.maximum(1.0 - zero, 1e-9), PROBABILITIES[1], PROBABILITIES[-1])
        right = np.clip(np.searchsorted(PROBABILITIES, above), 2, len(PROBABILITIES) - 1)
        edges = np.array(PROBABILITIES)
        part = (above - edges[right - 1]) / (edges[right] - edges[right - 1])
        found = ((1.0 - part) * told(right - 1) + part * told(right)) * size
        found *= np.maximum(height / HEIGHTS[-1], 1.0)
        whole = np.maximum(np.round(found / np.where(grid > 0.0, grid, 1.0)), 1.0) * grid
        found = np.where(p > zero, np.where(grid > 0.0, whole, found), 0.0)
        found[np.isnan(yhat)] = np.nan
        return found


def place_of(height: FloatArray) -> FloatArray:
    """Return where heights lie among ``HEIGHTS``, 0 at the first; between them by their logarithm."""
    step = np.log(HEIGHTS[1] / HEIGHTS[0])
    place: FloatArray = np.log(np.clip(height, HEIGHTS[0], HEIGHTS[-1]) / HEIGHTS[0]) / step
    return place


def _at(table: FloatArray, probabilities: ArrayLike) -> FloatArray:
    """Interpolate a table (G, h, 25) at probabilities (q,), by their normal scores: (G, h, q)."""
    wanted = as_float64(probabilities, "probabilities")
    if not ((wanted >= PROBABILITIES[0]) & (wanted <= PROBABILITIES[-1])).all():
        raise ParameterError("quantiles must lie from 0.005 to 0.995, and levels from 1 to 99")
    scores, at = ndtri(PROBABILITIES), ndtri(wanted)
    right = np.clip(np.searchsorted(scores, at), 1, len(PROBABILITIES) - 1)
    share = (at - scores[right - 1]) / (scores[right] - scores[right - 1])
    found: FloatArray = (1.0 - share) * table[:, :, right - 1] + share * table[:, :, right]
    return found

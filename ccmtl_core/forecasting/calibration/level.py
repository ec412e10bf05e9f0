"""One factor for all forecasts, so that their sum is right where forecasts of products are too low.

Where most values are zero, the forecast with the least mean error over products is low: a product that sells
nothing in a window, as most do, costs least when it is forecast as nothing. Sums are then better told by a
simple rival, such as the mean of the last values, which has no reason to be low.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Literal, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ccmtl_core.base.exceptions import ParameterError
from ccmtl_core.base.types import FloatArray
from ccmtl_core.forecasting.calibration.held_out import Sums, mean_of_roots, rival_features
from ccmtl_core.forecasting.fitted.forecast_model import ForecastModel
from ccmtl_core.forecasting.fitted.latest_rows import latest_rows, latest_tails
from ccmtl_core.series.panel import SeriesPanel

Aim = Literal["products", "totals"]
AIMS: tuple[Aim, ...] = ("products", "totals")
SYSTEMATIC = 0.5
"""Share of the error of the sums that must be bias: sums that are as often too high as too low stay."""
WORTH = 0.5
"""Of the bias: what it must fall to for the sums of forecasts to be those of a rival."""
MOST_WORSE = 1.1
"""The error of the rival's sums, at most, over that of the forecasts'."""
MOST = 4.0
"""The largest factor, and its inverse the smallest."""
_ANCHORS = ("window_average", "seasonal_naive")


class Level(NamedTuple):
    """Whose sums the forecasts take.

    Parameters
    ----------
    anchor : str or None
        The rival; None: their sums stay.
    by_origin : (N + h - 1,) float64
        The factor of the forecasts from each origin.
    """

    anchor: str | None
    by_origin: FloatArray

    def corrected(
        self, residuals: NDArray[np.float32], y: FloatArray, scale: FloatArray
    ) -> NDArray[np.float32]:
        """Return the errors (T, N, h) of corrected forecasts of the values y (T, N), in units ``scale``."""
        if self.anchor is None:
            return residuals
        _, N, h = residuals.shape
        found, values = np.empty_like(residuals), (y / scale[:, None]).astype(residuals.dtype)
        for k in range(h):
            factor = self.by_origin[np.arange(N) - k + h - 1].astype(residuals.dtype)
            found[:, :, k] = values - factor * (values - residuals[:, :, k])
        return found

    def report(
        self, sums: Sums, residuals: NDArray[np.float32], corrected: NDArray[np.float32], units: FloatArray
    ) -> dict[str, Any]:
        """Return errors of products and of sums on rolling origins, and bias, for both aims.

        ``units`` are the :func:`early_units` of the series, in which errors of products are told.
        """
        both = {
            "products": (residuals, sums["ccmtl"]),
            "totals": (corrected, sums["ccmtl"] * self.by_origin),
        }
        return {
            "anchor": self.anchor,
            "errors": {aim: _error(own, units) for aim, (own, _) in both.items()},
            "bias": {aim: _bias(own, sums) for aim, (_, own) in both.items()},
            "errors_of_totals": {aim: _error_of_sums(own, sums) for aim, (_, own) in both.items()},
        }

    def applied(self, forecaster: ForecastModel, panel: SeriesPanel, aim: Aim) -> ForecastModel:
        """Return the forecaster with its factor in the report and, for totals, in its weights."""
        factor = self._newest(forecaster, panel)
        told = {**forecaster.report["level"], "aim": aim, "factor": factor}
        model = forecaster.model
        if aim == "totals" and factor != 1.0:
            model = replace(model, weights=model.weights * factor, intercept=model.intercept * factor)
        return replace(forecaster, model=model, report={**forecaster.report, "level": told})

    def _newest(self, forecaster: ForecastModel, panel: SeriesPanel) -> float:
        """The factor of forecasts from the newest values."""
        if self.anchor is None:
            return 1.0
        if forecaster.features.past or forecaster.features.future:
            return float(self.by_origin[-forecaster.horizon])  # forecasts need columns not known yet
        features = rival_features(panel, int(panel.period.max()) + 1)
        tail, last = latest_tails(panel, features.reach)
        steps = range(1, forecaster.horizon + 1)
        X, known = latest_rows(tail, features, forecaster.scale, steps, last, forecaster.frequency)
        changing = known & np.isnan(forecaster.constant)
        rival = X[:, :, _ANCHORS.index(self.anchor)] * forecaster.scale[:, None]
        both = {"ccmtl": forecaster.point_forecasts(), self.anchor: rival}
        sums = {name: forecasts[changing].sum(keepdims=True).ravel() for name, forecasts in both.items()}
        return float(_factors(sums, self.anchor)[0])


def check_aim(aim: str) -> None:
    """Raise a ParameterError unless it is one of ``AIMS``."""
    if aim not in AIMS:
        raise ParameterError(f"aim must be one of {', '.join(map(repr, AIMS))}, not {aim!r}")


def level_of(sums: Sums) -> Level:
    """Return whose sums had little bias on rolling origins, if those of the forecasts had much.

    Parameters
    ----------
    sums : dict of str to (O,) float64
        Sums of forecasts from each origin by method, and as ``"y"`` of the values.

    Returns
    -------
    Level

    Examples
    --------
    >>> low, right = np.array([2.0, 2.0, 1.0]), np.array([4.0, 4.0, 2.0])
    >>> level_of({"ccmtl": low, "window_average": right, "y": right}).by_origin
    array([2., 2., 2.])
    """
    bias = {name: abs(_bias(sums[name], sums)) for name in ("ccmtl", *_ANCHORS) if name in sums}
    error = {name: _error_of_sums(sums[name], sums) for name in bias}
    sane = [name for name in bias if error[name] <= MOST_WORSE * error["ccmtl"]]
    best = min(sane, key=lambda name: bias[name])
    if bias["ccmtl"] >= SYSTEMATIC * error["ccmtl"] and bias[best] < WORTH * bias["ccmtl"]:
        return Level(best, _factors(sums, best))
    return Level(None, np.ones(len(sums["y"])))


def _factors(sums: Sums, anchor: str) -> FloatArray:
    """Factors that give forecasts the sums of the anchor, within bounds."""
    both = (sums["ccmtl"] > 0.0) & (sums[anchor] > 0.0)
    found = np.divide(sums[anchor], sums["ccmtl"], out=np.ones(len(both)), where=both)
    return np.clip(found, 1.0 / MOST, MOST)


def _error(residuals: NDArray[np.float32], units: FloatArray) -> float:
    """Mean over series of the root mean squared error; NaN where none has a unit."""
    known = ~np.isnan(residuals) & (units > 0.0)[:, None, None]
    squares = (np.where(known, residuals, 0.0) ** 2).sum(axis=(1, 2), dtype=np.float64) * units**2
    return float(mean_of_roots(squares[None], known.sum(axis=(1, 2)))[0])


def _bias(own: FloatArray, sums: Sums) -> float:
    """Sum of all errors, forecast less value, as a share of the sum of the values."""
    size = np.abs(sums["y"]).sum()
    return float((own - sums["y"]).sum() / size) if size > 0.0 else 0.0


def _error_of_sums(own: FloatArray, sums: Sums) -> float:
    """Sum over origins of absolute errors of the sums, as a share of what the values sum up to."""
    size = np.abs(sums["y"]).sum()
    return float(np.abs(own - sums["y"]).sum() / size) if size > 0.0 else 0.0

"""How wrong forecasts of past blocks of time were, and those of simple rivals on the same rows."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from ccmtl_core.base.types import FloatArray
from ccmtl_core.forecasting.features import RowFeatures
from ccmtl_core.forecasting.row_maker import RowMaker, constant_values, series_scale
from ccmtl_core.series.panel import SeriesPanel

WINDOW = 8
"""Values whose mean is the forecast of the rival "window_average"."""
Sums = dict[str, FloatArray]


def rival_features(panel: SeriesPanel, first: int) -> RowFeatures:
    """Return features that are forecasts themselves, as far as the history before ``first`` can tell them."""
    season = panel.frequency.season
    seasons = ((season, 1),) if first - int(panel.period.min()) > season else ()
    return RowFeatures(windows=(WINDOW,), seasons=seasons)


def held_out_errors(
    maker: RowMaker, panel: SeriesPanel, scale: FloatArray, residuals: NDArray[np.float32], first: int
) -> tuple[dict[str, Any], Sums]:
    """Return what the report says of errors on rolling origins, of the model and of simple rivals.

    Each error is the mean over series of the root mean squared error in units of what the series changed by
    before the first of these periods, so that no value which is forecast is in its own unit. Series that had
    not changed by then have no such unit, and no error. The bias is what all forecasts together are too
    large, as a share of what the values are together.

    Parameters
    ----------
    maker : RowMaker
        Makes rows of :func:`rival_features`.
    panel, scale
        T series, and the unit of each.
    residuals : (T, N, h) float32
        Errors of the model in these units, by target period and step.
    first : int
        The first of the N periods.

    Returns
    -------
    report : dict
        ``errors`` and ``errors_by_step`` are NaN where no series has such a unit.
    sums : dict of str to (N + h - 1,) float64
        Sum of all forecasts from each origin, in order of time, by method; ``"y"``: of the values.
    """
    T, _, h = residuals.shape
    names = ["ccmtl", "zero", "window_average", "seasonal_naive"]
    squares, n = np.zeros((len(names), T, h)), np.zeros((T, h))
    sums, size = np.zeros((len(names) + 1, residuals.shape[1] + h - 1)), 0.0
    for piece in maker.pieces(range(T), (first, maker.high)):
        made = maker.made(piece)
        step = made.rows.step - 1
        own = residuals[made.task, made.rows.period - first, step]
        both = ~np.isnan(own)
        y, task = made.rows.y[both], made.task[both]
        errors = [own[both], y, *(y - forecast for forecast in made.rows.X[both].T)]
        part = slice(piece.start, piece.stop)
        cell, n_cells = (task - piece.start) * h + step[both], (piece.stop - piece.start) * h
        n[part] += np.bincount(cell, minlength=n_cells).reshape(-1, h)
        size += float(np.abs(y) @ scale[task])
        origin, unit = (made.rows.period - first - step)[both] + h - 1, scale[task]
        sums[-1] += np.bincount(origin, y * unit, sums.shape[1])
        for r, error in enumerate(errors):
            squares[r, part] += np.bincount(cell, error**2, n_cells).reshape(-1, h)
            sums[r] += np.bincount(origin, (y - error) * unit, sums.shape[1])
    names = names[: 2 + made.rows.X.shape[1]]
    squares *= (in_early_units := early_units(panel, scale, first))[:, None] ** 2
    n[in_early_units == 0.0] = 0.0
    excess = (sums[:-1] - sums[-1]).sum(axis=1)
    overall = mean_of_roots(squares.sum(axis=2), n.sum(axis=1))
    by_step = [mean_of_roots(squares[:, :, k], n[:, k]) for k in range(h)]
    times = [panel.frequency.text(period, "s") for period in (first, maker.high)]
    told = {
        "first": times[0],
        "last": times[1],
        "n_rows": int(n.sum()),
        "n_series": int((n.sum(axis=1) > 0).sum()),
        "errors": {name: float(overall[r]) for r, name in enumerate(names)},
        "errors_by_step": {name: [float(e[r]) for e in by_step] for r, name in enumerate(names)},
        "bias": {name: float(excess[r] / size) if size else None for r, name in enumerate(names)},
    }
    return told, {**dict(zip(names, sums, strict=False)), "y": sums[-1]}


def early_units(panel: SeriesPanel, scale: FloatArray, first: int) -> FloatArray:
    """Return how many units of what a series changed by before the period ``first`` are one of ``scale``.

    (T,); 0 for series that had not changed by then, which have no such unit.
    """
    before = panel.until(first - 1)
    changed = np.isnan(constant_values(before)) & (np.diff(before.offsets) > 0)
    return np.where(changed, scale / series_scale(before), 0.0)


def mean_of_roots(squares: FloatArray, n: FloatArray) -> FloatArray:
    """Return the mean over series of root mean squares, (R,), from sums (R, T) of n (T,) squares."""
    some = n > 0
    if not some.any():
        return np.full(len(squares), np.nan)
    mean: FloatArray = np.sqrt(squares[:, some] / n[some]).mean(axis=1)
    return mean

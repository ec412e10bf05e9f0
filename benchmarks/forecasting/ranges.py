"""How honest ranges are: coverage, randomised PIT and Winkler score, over all and by decile of volume."""

from __future__ import annotations

import numpy as np

from benchmarks.forecasting.sets import ForecastSet
from benchmarks.report import Bar, Row
from ccmtl_core.base.types import FloatArray
from ccmtl_core.forecasting import ForecastModel, RowFeatures
from ccmtl_core.forecasting.backtesting.windows import PIT_QUANTILES, of_one_feature
from ccmtl_core.forecasting.metrics import changes, coverage, randomised_pit, winkler

LEVELS = (80, 95)
OVERALL, IN_A_DECILE = 0.03, 0.08
"""How far coverage may lie below the level, and the share of the PIT from it."""
_SERIES = 2000


def ranges(data: ForecastSet, forecaster: ForecastModel) -> tuple[list[Row], list[Bar]]:
    """Score the ranges of a forecaster beside those of the seasonal naive forecast, calibrated alike."""
    seasonal = RowFeatures(seasons=((data.season, 1),))
    naive = of_one_feature(data.panel, forecaster, seasonal)
    rows, bars = [], []
    methods = {"ccmtl": forecaster, "seasonal naive": naive}
    pits = {name: _pit(data, model) for name, model in methods.items()}
    for level in LEVELS:
        of_level = [_row(data, model, pits[name], name, level) for name, model in methods.items()]
        rows += of_level
        ours, theirs = of_level
        at = f"{level} % ranges"
        least = level / 100
        bars += [
            Bar(f"{at}: coverage", ours["coverage"], least - OVERALL, at_least=True),
            Bar(f"{at}: coverage of a decile", ours["least of a decile"], least - IN_A_DECILE, at_least=True),
            Bar(f"{at}: PIT from level", abs(ours["PIT"] - least), OVERALL),
            Bar(f"{at}: PIT of a decile from level", ours["PIT, farthest decile"], IN_A_DECILE),
            Bar(f"{at}: Winkler score, seasonal naive", ours["Winkler"], theirs["Winkler"]),
        ]
    return rows, bars


def _row(data: ForecastSet, model: ForecastModel, pit: FloatArray, name: str, level: int) -> Row:
    """Numbers of one method at one level."""
    y = data.held_out
    lower, upper = np.moveaxis(model.quantile_forecasts([0.5 - level / 200, 0.5 + level / 200]), 2, 0)
    unit = changes(data.panel)[1][:, None]
    unit = np.where(unit > 0.0, unit, np.nan)
    inside = np.abs(pit - 0.5) <= level / 200
    covered = coverage(y, lower, upper, "series")
    volume = np.abs(data.history).mean(axis=1)
    deciles = np.array_split(np.argsort(volume, kind="stable"), 10)
    return {
        "ranges": f"{name}, {level} %",
        "coverage": float(covered.mean()),
        "least of a decile": min(float(covered[part].mean()) for part in deciles),
        "PIT": float(inside.mean()),
        "PIT, farthest decile": max(abs(float(inside[part].mean()) - level / 100) for part in deciles),
        "Winkler": float(winkler(y / unit, lower / unit, upper / unit, level)),
    }


def _pit(data: ForecastSet, model: ForecastModel) -> FloatArray:
    """The randomised PIT of what was held out, for some series at a time."""
    ids, y = model.unique_ids, data.held_out
    parts = [
        randomised_pit(
            y[start : start + _SERIES],
            model.quantile_forecasts(PIT_QUANTILES, unique_ids=ids[start : start + _SERIES]),
            PIT_QUANTILES,
            seed=start,
        )
        for start in range(0, len(ids), _SERIES)
    ]
    return np.concatenate(parts)

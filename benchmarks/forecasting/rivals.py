"""The rivals of forecasts by name; those of other libraries are loaded when they are asked for."""

from __future__ import annotations

import importlib
import tomllib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.forecasting.sets import ForecastSet
from benchmarks.stopwatch import Seconds, Stopwatch
from ccmtl_core.base.types import FloatArray, IntArray
from ccmtl_core.forecasting import ForecastModel

SETTINGS: Mapping[str, Any] = tomllib.loads(Path(__file__).with_name("rivals.toml").read_text())
HOW_TO_INSTALL = (
    "{} is missing: the rivals' libraries are for this benchmark alone. Give it an environment of its own:\n"
    "  python3 -m venv .venv-rivals\n"
    "  .venv-rivals/bin/pip install -r requirements/runtime.txt -r benchmarks/forecasting/requirements.txt\n"
    "  .venv-rivals/bin/python -m benchmarks.forecasting"
)


@dataclass(frozen=True, eq=False)
class Case:
    """What a rival is given: the set with its name, and the forecaster whose rows LightGBM takes too.

    ``on_all_series`` is whether slow rivals forecast all series, not a sample of them.
    """

    name: str
    data: ForecastSet
    forecaster: ForecastModel
    on_all_series: bool = False


@dataclass(frozen=True, eq=False)
class Attempt:
    """Forecasts (n, h), the time that all of it took and that of the fit, and the series (n,) if not all."""

    yhat: FloatArray
    seconds: Seconds
    fit_seconds: Seconds | None = None
    series: IntArray | None = None


Rival = Callable[[Case], Attempt]


def zero(case: Case) -> Attempt:
    """Nothing is ever sold."""
    return _timed(lambda: np.zeros_like(case.data.held_out))


def seasonal_naive(case: Case) -> Attempt:
    """The value of the last same season."""
    data = case.data
    ahead = np.arange(data.horizon) % data.season - data.season
    return _timed(lambda: data.history[:, ahead])


def window_average(case: Case) -> Attempt:
    """The mean of the newest values."""
    newest = SETTINGS["window_average"]["window"]
    data = case.data
    return _timed(lambda: np.repeat(data.history[:, -newest:].mean(axis=1)[:, None], data.horizon, axis=1))


OF_LIBRARIES = ("croston_sba", "auto_ets", "lightgbm_lags", "lightgbm_rows")
RIVALS: Mapping[str, Rival] = {
    "zero": zero,
    "seasonal_naive": seasonal_naive,
    "window_average": window_average,
}
NAMES = (*RIVALS, *OF_LIBRARIES)
USUAL = tuple(name for name in NAMES if name != "auto_ets")


def rival(name: str) -> Rival:
    """Return the rival of this name; end the program with what to install where its library is missing."""
    if name in RIVALS:
        return RIVALS[name]
    try:
        module = importlib.import_module("benchmarks.forecasting.library_rivals")
    except ModuleNotFoundError as error:
        raise SystemExit(HOW_TO_INSTALL.format(error.name)) from None
    found: Rival = getattr(module, name)
    return found


def _timed(forecast: Callable[[], FloatArray]) -> Attempt:
    watch = Stopwatch()
    with watch.running():
        yhat = forecast()
    return Attempt(yhat, watch.seconds)

"""Forecast the last windows of a history from what lay before, beside simple rivals, and say who wins."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import polars as pl

from ccmtl_core.base.arguments import check_callback, check_integer
from ccmtl_core.base.arrays import as_sequence
from ccmtl_core.base.display import counted, shown
from ccmtl_core.base.exceptions import DataError, ParameterError
from ccmtl_core.base.types import FloatArray
from ccmtl_core.choices.model_choices import ModelChoices
from ccmtl_core.fitting.rivals import SAME_CHOICES, rival_models
from ccmtl_core.forecasting import metrics
from ccmtl_core.forecasting.direct_rows import direct_statistics, rolling_origins
from ccmtl_core.forecasting.features import RowFeatures
from ccmtl_core.forecasting.fitted.forecast_model import ForecastModel
from ccmtl_core.forecasting.fitted.forecast_request import range_columns
from ccmtl_core.forecasting.fitted.latest_rows import latest_tails
from ccmtl_core.forecasting.forecaster import SEASON, WINDOW, fit_forecaster
from ccmtl_core.forecasting.ranges import PROBABILITIES, mean_size, range_table, rolling_residuals
from ccmtl_core.forecasting.row_maker import RowMaker, check_panel, panel_ends
from ccmtl_core.model.ccmtl_model import CCMTLModel
from ccmtl_core.series.panel import SeriesPanel

OURS = "ccmtl"
NAIVE = ("zero", "seasonal_naive", "window_average")
SAME_ROWS = ("pooled", "single_task", "shrunk")
RIVALS = NAIVE + SAME_ROWS
"""Always zero, the value one season before, the mean of the last values; then on the rows of the model one
model for all series, each series alone, and each shrunk to the one."""
WITH_RANGES = (OURS, "seasonal_naive")
_NUMBERS = 2**22


@dataclass(frozen=True, eq=False)
class Backtest:
    """Errors of forecasts of windows that they did not see.

    Each table has a row for each ``method``, with ``wape``, ``mase``, ``rmsse`` and ``bias`` as
    :mod:`ccmtl_core.forecasting.metrics` defines them, scaled by changes before each window; and for each
    level ``coverage-80``, ``pit-80`` (share of the randomised PIT in the middle 80 %) and ``winkler-80``,
    with ``pinball`` the mean over the ends of all ranges; these two in units of each series' changes. Only
    the model and the seasonal naive forecast, calibrated alike, have ranges.

    Parameters
    ----------
    overall : DataFrame
        Over all values; with ``wape_of_totals``, the error of the sum of all series in each period.
    by_decile : DataFrame
        By ``decile`` of volume: 1 holds the series that are smallest in the mean before the last window.
    by_step : DataFrame
        By ``step`` from the origin.
    per_series : DataFrame
        By ``unique_id``; a number that a series does not tell, as a share of nothing, is null.
    verdict : str
        Who wins, in plain words.
    report : dict
        ``horizon``, ``origins`` (the last period before each window), ``level``, ``rows``, and for each
        window the ``choices`` and the ``fusion_strength``; ``n_without`` series, which had no value before
        any window, are not scored.
    """

    overall: pl.DataFrame
    by_decile: pl.DataFrame
    by_step: pl.DataFrame
    per_series: pl.DataFrame
    verdict: str
    report: dict[str, Any]

    def __repr__(self) -> str:
        windows = f"{counted(len(self.report['origins']), 'window')} of {self.report['horizon']}"
        n_series = self.per_series["unique_id"].n_unique()
        return shown(self, f"{n_series:,} series", windows, self.verdict)

    def to_dict(self) -> dict[str, Any]:
        """Return what JSON can hold: the tables as lists of rows, null for what is not known."""
        tables = {name: getattr(self, name).to_dicts() for name in _TABLES}
        return {"verdict": self.verdict, **self.report, **tables}


_TABLES = ("overall", "by_decile", "by_step", "per_series")


def backtest(
    panel: SeriesPanel,
    horizon: int,
    *,
    n_origins: int = 3,
    level: Sequence[float] = (80, 95),
    rivals: Sequence[str] = RIVALS,
    rows: RowFeatures | None = None,
    choices: ModelChoices | None = None,
    fusion_strength: float | str = "auto",
    n_jobs: int = 1,
    on_phase: Callable[[str], None] | None = None,
) -> Backtest:
    """Forecast each of the last windows by a fit to what lay before it, and score it beside rivals.

    Rows are chosen once, on what lay before the first window; choices and strength before each window anew.

    Parameters
    ----------
    panel : SeriesPanel
        T series. A period without a value is not scored: ``panel.filled("zero")`` where nothing was sold.
    horizon : int
        Periods of a window.
    n_origins : int
        Windows, next to each other up to the last period.
    level : sequence of float
        Of the ranges, from 1 to 99.
    rivals : sequence of str
        Some of ``RIVALS``.
    rows, choices, fusion_strength, n_jobs
        As in :func:`fit_forecaster`.
    on_phase : callable, optional
        Is called with the window and the phase of its fit, such as "window 1 of 3: selection".

    Returns
    -------
    Backtest

    Raises
    ------
    ParameterError
        Arguments out of their range.
    DataError
        A history that is too short for so many windows.

    Examples
    --------
    >>> values = np.tile([1.0, 3.0, 2.0, 8.0], 10) + 0.1 * np.random.default_rng(0).normal(size=40)
    >>> panel = SeriesPanel(("a", "b"), [0, 20, 40], [*range(20)] * 2, values, "D")
    >>> result = backtest(panel, 2, n_origins=1, rows=RowFeatures(seasons=((4, 1),)))
    >>> result.overall["method"].to_list()[:4]
    ['ccmtl', 'zero', 'seasonal_naive', 'window_average']
    """
    first, last = panel_ends(check_panel(panel))
    check_integer(horizon, "horizon", least=1)
    check_integer(n_origins, "n_origins", least=1)
    check_callback(on_phase, "on_phase")
    wanted, names = range_columns(level), [OURS, *as_sequence(rivals, "rivals")]
    if unknown := [name for name in names[1:] if name not in RIVALS]:
        raise ParameterError(f"there is no rival {unknown[0]!r}; there are {', '.join(RIVALS)}")
    if last - n_origins * horizon <= first:
        raise DataError(
            f"{counted(n_origins, 'window')} of {counted(horizon, 'period')} leave fewer than two of the "
            f"{last - first + 1} periods to learn from: ask for fewer or shorter windows"
        )
    windows, report = [], []
    for w in range(n_origins):
        origin = last - (n_origins - w) * horizon
        before = _until(panel, origin)
        tell = on_phase or (lambda phase: None)

        def of_window(phase: str, w: int = w, tell: Callable[[str], None] = tell) -> None:
            tell(f"window {w + 1} of {n_origins}: {phase}")

        began = time.perf_counter()
        forecaster = fit_forecaster(
            before, horizon, rows=rows, choices=choices, fusion_strength=fusion_strength,
            n_jobs=n_jobs, on_phase=of_window,
        )  # fmt: skip
        rows = forecaster.features
        told = {name: forecaster.report.get(name) for name in ("choices", "fusion_strength")}
        report.append({**told, "seconds": round(time.perf_counter() - began, 3)})
        of_window("rivals")
        windows.append(_Window(panel, before, origin, forecaster, names, wanted))
    scored = _Scored(windows, names, wanted)
    ends = panel.frequency.to_datetime([w.origin for w in windows]).astype("datetime64[s]")
    told = {
        "horizon": horizon,
        "frequency": panel.frequency.value,
        "origins": [str(end) for end in ends],
        "level": [float(one) for one in level],
        "rows": windows[0].rows.to_dict(),
        "windows": report,
        "n_without": int((~scored.counts).sum()),
    }
    tables = scored.tables(panel.unique_ids)
    return Backtest(*tables, _verdict(tables[0], tables[3]), told)


def _until(panel: SeriesPanel, origin: int) -> SeriesPanel:
    """The panel up to a period; all series stay."""
    kept = panel.period <= origin
    counts = np.bincount(panel.series_index[kept], minlength=panel.n_series)
    offsets = np.concatenate([[0], np.cumsum(counts)])
    return SeriesPanel(panel.unique_ids, offsets, panel.period[kept], panel.values[kept], panel.frequency)


class _Window:
    """Values of one window (T, h), forecasts and ranges of each method, and the units of each series."""

    def __init__(
        self,
        panel: SeriesPanel,
        before: SeriesPanel,
        origin: int,
        forecaster: ForecastModel,
        names: Sequence[str],
        wanted: Mapping[str, float],
    ) -> None:
        self.origin, self.rows, T, h = origin, forecaster.features, panel.n_series, forecaster.horizon
        self.y = np.full((T, h), np.nan)
        inside = (panel.period > origin) & (panel.period <= origin + h)
        self.y[panel.series_index[inside], panel.period[inside] - origin - 1] = panel.values[inside]
        self.units = [np.repeat(unit[:, None], h, axis=1) for unit in metrics.changes(before)]
        n = np.maximum(np.diff(before.offsets), 1)
        self.volume = np.bincount(before.series_index, np.abs(before.values), T) / n
        known = ~np.isnan(forecaster.tail)
        mean = np.where(known, forecaster.tail, 0.0).sum(axis=1) / np.maximum(known.sum(axis=1), 1)
        mean[~known.any(axis=1)] = np.nan
        models = {OURS: forecaster, **_rival_forecasters(before, forecaster, names)}
        self.yhat: dict[str, FloatArray] = {}
        self.ends: dict[str, FloatArray] = {}
        self.pit: dict[str, FloatArray] = {}
        for name in names:
            if name == "zero":
                self.yhat[name] = np.where(np.isnan(mean)[:, None], np.nan, np.zeros((T, h)))
                continue
            model = _from_origin(models[name], origin)
            found = model.point_forecasts()
            # A series whose last value is older than its features reach is forecast by its mean.
            self.yhat[name] = np.where(np.isnan(found), mean[:, None], found)
            if name in WITH_RANGES and wanted:
                self.ends[name] = model.quantile_forecasts(list(wanted.values()))
                self.pit[name] = self._pit(model)

    def _pit(self, model: ForecastModel) -> FloatArray:
        """The randomised PIT of the values, (T, h), for some series at a time."""
        T, h = self.y.shape
        n = max(1, _NUMBERS // (h * len(PROBABILITIES)))
        parts = [
            metrics.randomised_pit(
                self.y[start : start + n],
                model.quantile_forecasts(PROBABILITIES, unique_ids=model.unique_ids[start : start + n]),
                PROBABILITIES,
                seed=start,
            )
            for start in range(0, T, n)
        ]
        return np.concatenate(parts)


def _from_origin(model: ForecastModel, origin: int) -> ForecastModel:
    """The model with all series forecast from one period on; NaN at the end of tails that stop before."""
    R = model.tail.shape[1]
    place = np.arange(R) + (origin - model.last_period)[:, None]
    moved = np.take_along_axis(model.tail, np.minimum(place, R - 1), axis=1)
    return replace(
        model, tail=np.where(place < R, moved, np.nan), last_period=np.full(len(model.tail), origin)
    )


def _rival_forecasters(
    before: SeriesPanel, forecaster: ForecastModel, names: Sequence[str]
) -> dict[str, ForecastModel]:
    """The rivals that have a model: weight 1 for one feature, or fitted to the rows of the forecaster."""
    rivals = {}
    season = SEASON[forecaster.frequency]
    single = {
        "seasonal_naive": RowFeatures(seasons=((season, 1),)),
        "window_average": RowFeatures(windows=(WINDOW,)),
    }
    for name, features in single.items():
        if name in names:
            rivals[name] = _of_one_feature(before, forecaster, features)
    if not set(names) & set(SAME_ROWS):
        return rivals
    report = forecaster.report
    if "choices" not in report:  # no series ever changed: each method forecasts its constant
        return rivals | dict.fromkeys(SAME_ROWS, forecaster)
    n_origins = report["n_origins"]
    total = direct_statistics(
        before, forecaster.features, forecaster.horizon, n_blocks=1, n_origins=n_origins
    )
    choices = ModelChoices(**report["choices"])
    tried = [one["shrinkages"] for one in report["tried"] if one["choices"] == report["choices"]]
    shrinkages = tried[0] if tried else {"shrunk": 1.0, f"shrunk{SAME_CHOICES}": 1.0}
    models = rival_models(total[0], choices, shrinkages)
    return rivals | {name: replace(forecaster, model=models[name + SAME_CHOICES]) for name in SAME_ROWS}


def _of_one_feature(before: SeriesPanel, forecaster: ForecastModel, features: RowFeatures) -> ForecastModel:
    """A forecaster whose forecast is its only feature, with ranges calibrated as those of all."""
    T, h = before.n_series, forecaster.horizon
    model = CCMTLModel(np.ones((T, 1)), before.unique_ids, features.names)
    origins = rolling_origins(before, features, h, forecaster.report["n_origins"])
    maker = RowMaker(before, features, h, origins, forecaster.scale, forecaster.constant, n_blocks=2)
    residuals, _ = rolling_residuals(maker, T, len(maker.bounds), lambda block: model)
    ranges = range_table(residuals, mean_size(before, forecaster.scale), np.zeros(T))
    tail, last = latest_tails(before, features.reach)
    return replace(forecaster, model=model, features=features, tail=tail, last_period=last, ranges=ranges)


class _Scored:
    """All windows side by side, and the tables of their errors."""

    def __init__(self, windows: Sequence[_Window], names: Sequence[str], wanted: Mapping[str, float]) -> None:
        def beside(parts: Sequence[FloatArray]) -> FloatArray:
            return np.concatenate(parts, axis=1)

        self.names, self.wanted, self.h = names, wanted, windows[0].y.shape[1]
        self.yhat = {name: beside([w.yhat[name] for w in windows]) for name in names}
        known = ~np.isnan(self.yhat[OURS])
        self.counts = np.asarray(known.any(axis=1))
        self.y = np.where(known, beside([w.y for w in windows]), np.nan)
        self.absolute, self.root = (beside([w.units[i] for w in windows]) for i in (0, 1))
        ranged = [name for name in WITH_RANGES if name in windows[0].ends]
        self.ends = {name: beside([w.ends[name] for w in windows]) for name in ranged}
        self.pit = {name: beside([w.pit[name] for w in windows]) for name in ranged}
        self.volume = windows[-1].volume

    def tables(self, ids: Sequence[str]) -> tuple[pl.DataFrame, pl.DataFrame, pl.DataFrame, pl.DataFrame]:
        """Overall, by decile, by step and by series."""
        every, columns = slice(None), np.arange(self.y.shape[1])
        overall = self._frame({}, every, every, "all", totals=True)
        members = np.flatnonzero(self.counts)
        order = members[np.argsort(self.volume[members], kind="stable")]
        deciles = [
            self._frame({"decile": d + 1, "n_series": len(part)}, np.sort(part), every, "all")
            for d, part in enumerate(np.array_split(order, min(10, max(len(order), 1))))
        ]
        steps = [self._frame({"step": k + 1}, every, columns % self.h == k, "all") for k in range(self.h)]
        series = self._frame({}, members, every, "series")
        named = np.array(ids, dtype=object)[members].tolist()
        column = pl.Series("unique_id", named * len(self.names), dtype=pl.String)
        return overall, pl.concat(deciles), pl.concat(steps), series.insert_column(0, column)

    def _frame(
        self, keys: Mapping[str, int], series: Any, columns: Any, by: metrics.By, *, totals: bool = False
    ) -> pl.DataFrame:
        """The numbers of each method for some series and columns."""
        frames = []
        for name in self.names:
            numbers = self._numbers(name, series, columns, by)
            if totals:
                known = ~np.isnan(self.y)
                y, yhat = (np.where(known, v, 0.0).sum(axis=0) for v in (self.y, self.yhat[name]))
                numbers["wape_of_totals"] = metrics.wape(y[None], yhat[None])
            values = {key: np.atleast_1d(number) for key, number in numbers.items()}
            n = len(values["wape"])
            head = {**{key: [value] * n for key, value in keys.items()}, "method": [name] * n}
            frames.append(pl.DataFrame(head | values).with_columns(pl.col(list(values)).fill_nan(None)))
        return pl.concat(frames)

    def _numbers(self, name: str, series: Any, columns: Any, by: metrics.By) -> dict[str, FloatArray]:
        def part(values: FloatArray) -> FloatArray:
            return np.asarray(values[series][:, columns])

        y, yhat = part(self.y), part(self.yhat[name])
        numbers = {
            "wape": metrics.wape(y, yhat, by),
            "mase": metrics.mase(y, yhat, part(self.absolute), by),
            "rmsse": metrics.rmsse(y, yhat, part(self.root), by),
            "bias": metrics.bias(y, yhat, by),
        }
        if not self.wanted:
            return numbers
        nothing = np.full(numbers["wape"].shape, np.nan)
        unit = np.where(part(self.root) > 0.0, part(self.root), np.nan)
        losses = []
        probabilities = list(self.wanted.values())
        for q in range(0, len(probabilities), 2):
            label = list(self.wanted)[q].removeprefix("yhat-lo-")
            keys = f"coverage-{label}", f"pit-{label}", f"winkler-{label}"
            if name not in self.ends:
                numbers |= dict.fromkeys(keys, nothing)
                continue
            low, high = (part(self.ends[name][:, :, q + i]) for i in (0, 1))
            pit = part(self.pit[name])
            middle = np.where(np.isnan(pit), np.nan, np.abs(pit - 0.5))
            scaled = y / unit, low / unit, high / unit
            half = np.full(pit.shape, 0.5 - probabilities[q])
            inside = metrics.coverage(middle, np.zeros(pit.shape), half, by)
            numbers |= dict(
                zip(
                    keys,
                    (metrics.coverage(y, low, high, by), inside, metrics.winkler(*scaled, float(label), by)),
                    strict=True,
                )
            )
            losses += [metrics.pinball(scaled[0], scaled[1 + i], probabilities[q + i], by) for i in (0, 1)]
        numbers["pinball"] = np.asarray(np.mean(losses, axis=0)) if losses else nothing
        return numbers


def _verdict(overall: pl.DataFrame, per_series: pl.DataFrame) -> str:
    """Who wins, in sentences."""
    score, named = "rmsse", "mean RMSSE"
    if overall.filter(method=OURS)["rmsse"].item() is None:
        score, named = "wape", "WAPE"
    errors = dict(zip(overall["method"], overall[score], strict=True))
    ours = errors.pop(OURS)
    known = {name: error for name, error in errors.items() if error is not None}
    if ours is None or not known:
        return "Nothing can be compared: no series changed before a window, or there is no rival."
    naive = {name: error for name, error in known.items() if name in NAIVE}
    said = []
    if naive:
        best = min(naive, key=lambda name: naive[name])
        both = f"{named} {naive[best]:.3g} against {ours:.3g} of {OURS}"
        if naive[best] < ours:
            said.append(f"A naive forecast wins: {best}, {both}.")
            if best == "zero":
                said.append(
                    "Zero is right so often that this error rewards it, though it plans for no sales at all."
                )
        elif naive[best] == ours:
            said.append(f"No better than a naive forecast: {best}, {both}.")
        else:
            share = _share_better(per_series, best, score)
            gain = f"{OURS} wins over the naive forecasts: {named} {ours:.3g}, the best of them is {best} "
            said.append(f"{gain}with {naive[best]:.3g}; it is the better one for {share:.0%} of the series.")
    if alike := {name: error for name, error in known.items() if name in SAME_ROWS}:
        best = min(alike, key=lambda name: alike[name])
        relation = "less error than" if ours < alike[best] else "more error than"
        gap = abs(1.0 - ours / alike[best]) if alike[best] else math.inf * (ours > 0) if ours else 0.0
        said.append(
            f"On the same rows it has {gap:.1%} {relation} {best} ({alike[best]:.3g})."
            if gap >= 5e-4
            else f"On the same rows it is as good as {best} ({alike[best]:.3g})."
        )
    return " ".join(said)


def _share_better(per_series: pl.DataFrame, rival: str, score: str) -> float:
    """Share of the series for which the model has the smaller error."""
    ours, theirs = (per_series.filter(method=name)[score] for name in (OURS, rival))
    return float(np.mean((ours < theirs).fill_null(False).to_numpy()))

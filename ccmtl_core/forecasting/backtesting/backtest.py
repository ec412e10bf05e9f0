"""Forecast the last windows of a history from what lay before, beside simple rivals, and say who wins."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import compress
from typing import Any

import polars as pl

from ccmtl_core.base.arguments import check_callback, check_integer, check_kind
from ccmtl_core.base.arrays import as_sequence
from ccmtl_core.base.display import counted, shown
from ccmtl_core.base.exceptions import DataError, ParameterError
from ccmtl_core.choices.model_choices import ModelChoices
from ccmtl_core.forecasting.backtesting.scores import Scores, verdict_on
from ccmtl_core.forecasting.backtesting.windows import OURS, RIVALS, Window
from ccmtl_core.forecasting.calibration.level import Aim
from ccmtl_core.forecasting.features import RowFeatures
from ccmtl_core.forecasting.fitted.forecast_request import range_columns
from ccmtl_core.forecasting.forecaster import fit_forecaster
from ccmtl_core.forecasting.row_maker import check_panel, panel_ends
from ccmtl_core.series.columns import SeriesColumns
from ccmtl_core.series.panel import SeriesPanel


@dataclass(frozen=True, eq=False)
class Backtest:
    """Errors of forecasts of windows that they did not see.

    Each table has a row for each ``method``, with ``wape``, ``mase``, ``rmsse`` and ``bias`` as
    :mod:`ccmtl_core.forecasting.metrics` defines them, scaled by changes before each window; and for each
    level ``coverage-80``, ``pit-80`` (share of the randomised PIT in the middle 80 %) and ``winkler-80``,
    with ``pinball`` the mean over the ends of all ranges and all quantiles; these two in units of the changes
    of each series. Only the model and the seasonal naive forecast, calibrated alike, have ranges.

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
    by_quantile : DataFrame
        A row for each method with ranges and each ``quantile`` that was asked for: ``pinball`` as above,
        ``coverage`` (share of values at or below it) and ``pit`` (the same, where of several equal quantiles,
        such as zeros, one is drawn): both are near the quantile where it is right, but the coverage of
        quantiles that equal many values must lie above.
    verdict : str
        Who wins, in plain words.
    report : dict
        ``horizon``, ``origins`` (the last period before each window), ``level``, ``quantiles``, ``rows``,
        and for each of the ``windows`` the ``choices``, the ``fusion_strength``, the ``level`` (errors on
        earlier origins for either aim), and ``n_cut`` and ``cut``, lone values before it that were cut for
        all methods (values that are scored stay as they are); ``n_without`` series, which had no value before
        any window, are not scored.
    """

    overall: pl.DataFrame
    by_decile: pl.DataFrame
    by_step: pl.DataFrame
    per_series: pl.DataFrame
    by_quantile: pl.DataFrame
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


_OF_FIT = ("choices", "fusion_strength", "level", "n_cut", "cut")
_TABLES = ("overall", "by_decile", "by_step", "per_series", "by_quantile")


def backtest(
    panel: SeriesPanel,
    horizon: int,
    *,
    n_origins: int = 3,
    level: Sequence[float] = (80, 95),
    quantiles: Sequence[float] = (),
    rivals: Sequence[str] = RIVALS,
    rows: RowFeatures | None = None,
    choices: ModelChoices | None = None,
    fusion_strength: float | str = "auto",
    aim: Aim = "products",
    columns: SeriesColumns | None = None,
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
    quantiles : sequence of float
        From 0.005 to 0.995, such as 0.01 to 0.99; each is scored by itself, in ``by_quantile``.
    rivals : sequence of str
        Some of ``RIVALS``.
    rows, choices, fusion_strength, aim, n_jobs
        As in :func:`fit_forecaster`.
    columns : SeriesColumns, optional
        As in :func:`fit_forecaster`; a window is forecast with what those known ahead say of its periods.
        They need not be known where a series has no value to score, as of a discontinued product.
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
    >>> import numpy as np
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
    wanted, asked = range_columns(level), list(dict.fromkeys(range_columns((), quantiles).values()))
    names = [OURS, *as_sequence(rivals, "rivals")]
    if unknown := [name for name in names[1:] if name not in RIVALS]:
        raise ParameterError(f"there is no rival {unknown[0]!r}; there are {', '.join(RIVALS)}")
    if last - n_origins * horizon <= first:
        raise DataError(
            f"{counted(n_origins, 'window')} of {counted(horizon, 'period')} leave fewer than two of the "
            f"{last - first + 1} periods to learn from: ask for fewer or shorter windows"
        )
    if columns is not None:
        check_kind(columns, "columns", SeriesColumns)
        columns = replace(columns, ahead=tuple(compress(columns.names, columns.known_ahead(last))))
    windows, report = [], []
    for w in range(n_origins):
        origin = last - (n_origins - w) * horizon
        before = panel.until(origin)
        tell = on_phase or (lambda phase: None)

        def of_window(phase: str, w: int = w, tell: Callable[[str], None] = tell) -> None:
            tell(f"window {w + 1} of {n_origins}: {phase}")

        began = time.perf_counter()
        forecaster = fit_forecaster(
            before, horizon, rows=rows, choices=choices, fusion_strength=fusion_strength, aim=aim,
            columns=columns, n_jobs=n_jobs, on_phase=of_window,
        )  # fmt: skip
        rows = forecaster.features
        told = {name: forecaster.report.get(name) for name in _OF_FIT}
        report.append({**told, "seconds": round(time.perf_counter() - began, 3)})
        of_window("rivals")
        windows.append(Window(panel, before, origin, forecaster, names, wanted, asked, columns))
    scored = Scores(windows, names, wanted, asked)
    n_without = int((~scored.counts).sum())
    told = {
        "horizon": horizon,
        "frequency": panel.frequency.value,
        "origins": [panel.frequency.text(w.origin, "s") for w in windows],
        "level": [float(one) for one in level],
        "quantiles": asked,
        "rows": windows[0].rows.to_dict(),
        "windows": report,
        "n_without": n_without,
    }
    tables = scored.tables(panel.unique_ids)
    return Backtest(*tables, scored.by_quantile(), verdict_on(tables[0], tables[3], n_without), told)

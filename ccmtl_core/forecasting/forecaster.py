"""Fit a forecaster: rows, their statistics by block of time, choices and strength by rolling origins."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, replace
from itertools import accumulate
from operator import add
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ccmtl_core.base.arguments import check_callback, check_integer, check_kind
from ccmtl_core.base.exceptions import ParameterError
from ccmtl_core.base.threads import one_blas_thread
from ccmtl_core.base.types import BoolArray, IntArray
from ccmtl_core.choices.model_choices import ModelChoices
from ccmtl_core.fitting.fit import FitResult, fit
from ccmtl_core.fitting.fold_paths import SelectionProgress
from ccmtl_core.fitting.rivals import RivalErrors, errors_of_choices, promising
from ccmtl_core.fitting.scoring import mean_of_task_rmse
from ccmtl_core.fitting.selection import Selection, select
from ccmtl_core.fitting.strength import strength_grid
from ccmtl_core.forecasting.calibration.error_ranges import range_table
from ccmtl_core.forecasting.calibration.held_out import early_units, held_out_errors, rival_features
from ccmtl_core.forecasting.calibration.level import Aim, check_aim, level_of
from ccmtl_core.forecasting.calibration.residuals import dense_values, rolling_residuals
from ccmtl_core.forecasting.calibration.value_ranges import ranges_of
from ccmtl_core.forecasting.features import RowFeatures
from ccmtl_core.forecasting.fitted.forecast_model import ForecastModel
from ccmtl_core.forecasting.fitted.latest_rows import latest_tails
from ccmtl_core.forecasting.lone_values import without_lone_values
from ccmtl_core.forecasting.new.short_series import with_short_series
from ccmtl_core.forecasting.row_choice import choose_rows
from ccmtl_core.forecasting.row_maker import (
    MAX_HORIZON,
    RowMaker,
    constant_values,
    never_negative,
    panel_ends,
    series_scale,
)
from ccmtl_core.forecasting.series_rows import block_statistics, rolling_origins
from ccmtl_core.model.ccmtl_model import CCMTLModel
from ccmtl_core.series.columns import SeriesColumns
from ccmtl_core.series.panel import SeriesPanel
from ccmtl_core.solver.clusters import Clusters
from ccmtl_core.statistics.sufficient_statistics import SufficientStatistics

MOST_PRODUCTS = 2e10
"""Products of two features that are added up at most: of more origins, those at equal distances are taken."""
OF_TIME = ModelChoices(metric="mahalanobis")
"""What is fitted unless a caller chooses, with and without an intercept."""


@one_blas_thread()
def fit_forecaster(
    panel: SeriesPanel,
    horizon: int,
    *,
    rows: RowFeatures | None = None,
    choices: ModelChoices | Sequence[ModelChoices] | None = None,
    fusion_strength: float | str = "auto",
    n_blocks: int = 6,
    n_origins: int | None = None,
    columns: SeriesColumns | None = None,
    aim: Aim = "products",
    tolerance: float = 1e-4,
    n_jobs: int = 1,
    on_progress: Callable[[SelectionProgress], None] | None = None,
    on_phase: Callable[[str], None] | None = None,
) -> ForecastModel:
    """Fit one model of all series for the steps 1 to ``horizon``.

    Parameters
    ----------
    panel : SeriesPanel
        T series, with or without gaps. One value alone that is more than ten times as large as all others of
        its series is cut first, as :func:`without_lone_values` does; ``report["cut"]`` lists such values.
    horizon : int
        Periods ahead.
    rows : RowFeatures, optional
        Features of the rows; by default :func:`choose_rows` finds them.
    choices : ModelChoices or sequence of ModelChoices, optional
        What is fitted, of several the least wrong on rolling origins; by default the metric is "mahalanobis",
        with and without an intercept. Where a strength is to be found too, choices under which pooled and
        shrunk models are clearly more wrong than under others are left out.
    fusion_strength : float or "auto"
        λ; "auto" tries :func:`ccmtl_core.strength_grid` on rolling origins.
    n_blocks : int
        Blocks of time, of which each but the first is forecast from those before it.
    n_origins : int, optional
        As in :func:`direct_statistics`; by default as many as a few seconds allow.
    columns : SeriesColumns, optional
        What the ``past`` and ``future`` features name; ``forecast`` needs them for the periods ahead. Without
        ``rows``, those that help are among the features.
    aim : {"products", "totals"}
        What shall be right: each product's forecast, or their sum. Where most values are zero, the least
        wrong forecasts of products are too low in sum. With "totals", if sums were too low or too high on
        rolling origins and those of a simple rival were better, one factor gives all forecasts its sum.
    tolerance : float
        Certified gap of the final fit.
    n_jobs, on_progress
        As in :func:`ccmtl_core.select`, which runs once for each of the choices that are not left out.
    on_phase : callable, optional
        Is called with the name of each phase when it begins: "rows" (sets of features are compared),
        "statistics", "selection" (with the fit), "residuals".

    Returns
    -------
    ForecastModel
        Its report lists what was tried. Where a history is too short to hold any of it out, all series share
        one model, without an intercept: as far as choices and strength are not given.

    Raises
    ------
    ParameterError
        Arguments out of their range.
    DataError
        A panel that no row can be made of.

    Examples
    --------
    >>> panel = SeriesPanel(("a", "b"), [0, 8, 16], [*range(8)] * 2, [1.0, 3.0] * 4 + [2.0, 8.0] * 4, "D")
    >>> forecaster = fit_forecaster(panel, 2, rows=RowFeatures(seasons=((2, 1),)))
    >>> forecaster.forecast().get_column("yhat").round(3).to_list()
    [1.0, 3.0, 2.0, 8.0]
    """
    began = time.perf_counter()
    check_integer(n_blocks, "n_blocks", least=2)
    if isinstance(fusion_strength, str) and fusion_strength != "auto":
        raise ParameterError(f'fusion_strength must be a number or "auto", not {fusion_strength!r}')
    check_aim(aim)
    check_callback(on_progress, "on_progress")
    check_callback(on_phase, "on_phase")
    tell = on_phase or (lambda phase: None)
    tried = _candidates(choices)
    lone = without_lone_values(panel)
    panel = lone.panel
    panel_ends(panel)
    constant, scale = constant_values(panel), series_scale(panel)
    check_integer(horizon, "horizon", 1, MAX_HORIZON)
    varies = np.isnan(constant) & (np.diff(panel.offsets) > 0)
    found = None
    if rows is None and not varies.any():
        rows = RowFeatures(windows=(1,))
    if rows is None:
        tell("rows")
        found = choose_rows(panel, horizon, scale=scale, n_blocks=n_blocks, columns=columns)
        rows = found.features
    check_kind(rows, "rows", RowFeatures)
    if n_origins is None:
        n_origins = max(n_blocks, int(MOST_PRODUCTS / (panel.n_series * horizon * len(rows.names) ** 2)))
    tell("statistics")
    origins = rolling_origins(panel, rows, horizon, n_origins)
    maker = RowMaker(panel, rows, horizon, origins, scale, constant, n_blocks, columns)
    graph, level = None, None
    ranges = range_table(np.empty((panel.n_series, 0, horizon)), scale, np.zeros(panel.n_series))
    report: dict[str, Any] = {
        "rows": rows.to_dict(),
        "n_series": panel.n_series,
        "n_constant": int((~np.isnan(constant)).sum()),
        "n_origins": len(origins),
        **lone.report(),
    }
    if not varies.any():
        model = CCMTLModel(np.zeros((panel.n_series, len(rows.names))), panel.unique_ids, rows.names)
    else:
        blocks = block_statistics(maker, panel, rows)
        tell("selection")
        fitted = _fitted(blocks, tried, fusion_strength, tolerance, n_jobs, on_progress)
        model, graph = fitted.result.model, fitted.result.graph
        n_rows = int(sum(block.n_samples.sum() for block in blocks))
        n_left_out = _n_pairs(panel, varies, origins, int(horizon)) - n_rows
        report |= {"n_rows": n_rows, "n_left_out": n_left_out, **fitted.report}
        report["fit"] = _plain(asdict(fitted.result.report))
        if len(blocks) > 1:
            tell("residuals")
            residuals, first = _residuals(maker, panel, blocks, fitted)
            simple = rival_features(panel, first)
            rivals = RowMaker(panel, simple, horizon, origins, scale, constant)
            held_out, sums = held_out_errors(rivals, panel, scale, residuals, first)
            if held_out["n_series"]:
                report["held_out"] = _plain(held_out)
            level = level_of(sums)
            corrected = level.corrected(residuals, dense_values(panel, first, residuals.shape[1]), scale)
            units = early_units(panel, scale, first)
            report["level"] = _plain(level.report(sums, residuals, corrected, units))
            if aim == "totals":
                residuals = corrected
            cluster = Clusters.of_equal(graph, model.weights).label
            ranges = ranges_of(panel, scale, residuals, first, cluster)
    if found is not None:
        report["rows_tried"] = [one.to_dict() for one in found.tried]
    report["seconds"] = round(time.perf_counter() - began, 3)
    of_series = scale, never_negative(panel), constant, *latest_tails(panel, rows.reach), ranges
    forecaster = ForecastModel(model, rows, int(horizon), panel.frequency, *of_series, report, graph)
    forecaster = with_short_series(forecaster, panel, columns)
    if level is None:
        return forecaster
    applied = level.applied(forecaster, panel, aim)
    # The factor is on the weights that short series begin from; their own rows must move these, not others.
    return applied if applied.model is forecaster.model else with_short_series(applied, panel, columns)


class _Fitted(NamedTuple):
    """The fit to all rows, the choices that it was made with, and what was tried."""

    result: FitResult
    choices: ModelChoices
    report: dict[str, Any]


def _candidates(choices: ModelChoices | Sequence[ModelChoices] | None) -> list[ModelChoices]:
    """What validation decides among."""
    if choices is None:
        return [OF_TIME, replace(OF_TIME, fit_intercept=True)]
    tried: list[Any] = list(choices) if isinstance(choices, list | tuple) else [choices]
    if not tried:
        raise ParameterError("choices must hold at least one ModelChoices")
    for one in tried:
        check_kind(one, "choices", ModelChoices)
    return tried


def _n_pairs(panel: SeriesPanel, varies: BoolArray, origins: IntArray, horizon: int) -> int:
    """Pairs of an origin and a known target up to ``horizon`` periods after it."""
    targets = panel.period[varies[panel.series_index]]
    return int((np.searchsorted(origins, targets) - np.searchsorted(origins, targets - horizon)).sum())


def _fitted(
    blocks: Sequence[SufficientStatistics],
    tried: Sequence[ModelChoices],
    fusion_strength: float | str,
    tolerance: float,
    n_jobs: int,
    on_progress: Callable[[SelectionProgress], None] | None,
) -> _Fitted:
    """Fit all rows with the choices and the strength that are given or least wrong on rolling origins."""
    strengths = None if isinstance(fusion_strength, str) else [fusion_strength]
    if len(blocks) < 2:
        first = tried[0]
        prepared = first.prepare(blocks[0])
        strength = (strengths or strength_grid(prepared.statistics, first.graph(prepared)))[-1]
        result = fit(blocks[0], strength, choices=first, tolerance=tolerance)
        told = {"choices": asdict(first), "fusion_strength": result.fusion_strength, "tried": []}
        return _Fitted(result, first, told)
    simple: list[RivalErrors] = []
    if strengths is None and len(tried) > 1:
        simple = errors_of_choices(blocks, tried, mean_of_task_rmse)
    selections = {
        place: select(
            blocks, strengths, folds="rolling", choices=each, tolerance=tolerance, n_jobs=n_jobs,
            on_progress=on_progress,
        )
        for place, each in enumerate(tried)
        if not simple or promising(simple)[place]
    }  # fmt: skip
    best = min(selections, key=lambda place: float(selections[place].errors[selections[place].chosen]))
    chosen = selections[best]
    report = {
        "choices": asdict(tried[best]),
        "fusion_strength": chosen.fusion_strength,
        "error": float(chosen.errors[chosen.chosen]),
        "fold_errors": chosen.fold_errors[:, chosen.chosen].tolist(),
        "tried": [
            _tried(each, selections[place]) if place in selections else _left_out(each, simple[place])
            for place, each in enumerate(tried)
        ],
    }
    return _Fitted(chosen.fit, tried[best], report)


def _tried(choices: ModelChoices, selection: Selection) -> dict[str, Any]:
    """What the report says of a selection."""
    strengths, errors = selection.fusion_strengths.tolist(), selection.errors.tolist()
    simple = _left_out(choices, RivalErrors(selection.rivals, selection.shrinkages))
    return simple | {"fusion_strengths": strengths, "errors": errors}


def _left_out(choices: ModelChoices, simple: RivalErrors) -> dict[str, Any]:
    """What it says of choices that simple models left too far behind for a strength to be tried."""
    return {
        "choices": asdict(choices),
        "fusion_strengths": [],
        "errors": [],
        "rivals": {name: float(errors.mean()) for name, errors in simple.errors.items()},
        "shrinkages": simple.shrinkages,
    }


def _residuals(
    maker: RowMaker, panel: SeriesPanel, blocks: Sequence[SufficientStatistics], fitted: _Fitted
) -> tuple[NDArray[np.float32], int]:
    """Errors of each block but the first, forecast by fits to blocks before; and the first period of them."""
    training = list(accumulate(blocks[:-1], add))

    def model_before(block: int) -> CCMTLModel:
        strength = fitted.result.fusion_strength
        return fit(training[block - 1], strength, choices=fitted.choices, tolerance=1e-3).model

    return rolling_residuals(maker, panel.n_series, len(blocks), model_before)


def _plain(value: Any) -> Any:
    """As JSON holds it: null for numbers that are not finite."""
    if isinstance(value, dict):
        return {name: _plain(part) for name, part in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(part) for part in value]
    return None if isinstance(value, float) and not math.isfinite(value) else value

"""A set in, a table of errors and seconds and the bars out; the last window is scored once."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.forecasting.ranges import ranges
from benchmarks.forecasting.rivals import Attempt, Case, rival
from benchmarks.forecasting.scores import Scores, score
from benchmarks.forecasting.sets import FILES, SETS, ForecastSet
from benchmarks.report import Bar, Row, Section, step
from benchmarks.stopwatch import Seconds, Stopwatch
from ccmtl_core import ModelChoices, fit, pooled_weights
from ccmtl_core.forecasting import (
    ForecastModel,
    Frequency,
    RowFeatures,
    SeriesPanel,
    direct_statistics,
    fit_forecaster,
    latest_tails,
)
from examples.ta_feng import NotToBeHad

OURS, FOR_TOTALS = "ccmtl", "ccmtl, aim totals"
MOST_RMSSE = {"walmart": 0.59, "carparts": 0.562, "ta-feng": 0.52}
SHARE_OF_TREES, SHARE_OF_AUTO_ETS = 0.1, 0.2
BEYOND_THE_BEST = 1.01
NOTES = (
    "RMSSE is the mean over series; one whose history never changes has none and is left out. Bias is the "
    "sum of forecasts less values over the sum of absolute values; totals are those of a store or category "
    "and a week.",
    "Rivals are set to what benchmarks/forecasting/rivals.toml says.",
)


def measure(
    name: str, folder: Path, rivals: Sequence[str], candidates: bool, on_all_series: bool = False
) -> Section:
    """Forecast the last window of a set with ours and the rivals, or say why the data could not be had."""
    if name in FILES and not (folder / FILES[name]).exists():
        return Section(skipped=f"{FILES[name]} is not there; --help says where it comes from")
    try:
        data = SETS[name](folder)
    except NotToBeHad as reason:
        return Section(skipped=str(reason))
    return compare(name, data, rivals, candidates, on_all_series)


def compare(
    name: str, data: ForecastSet, rivals: Sequence[str], candidates: bool, on_all_series: bool = False
) -> Section:
    """Score ours and the rivals on what a set holds out."""
    fit_forecaster(_small_panel(), 2)  # loads what is compiled
    step("  ours")
    watch = Stopwatch()
    with watch.running():
        forecaster = fit_forecaster(data.panel, data.horizon)
        yhat = forecaster.point_forecasts()
    ours = Attempt(yhat, watch.seconds, _one_fit(data, forecaster))
    attempts, scores = {OURS: ours}, {OURS: score(data, yhat)}
    for_totals = yhat * forecaster.report.get("level", {}).get("factor", 1.0)
    attempts[FOR_TOTALS], scores[FOR_TOTALS] = Attempt(for_totals, watch.seconds), score(data, for_totals)
    bars = _bars_of_ours(name, scores[OURS])
    for each in rivals:
        step(f"  {each}")
        attempt = rival(each)(Case(name, data, forecaster, on_all_series))
        part = data if attempt.series is None else data.take(attempt.series)
        attempts[each], scores[each] = attempt, score(part, attempt.yhat)
        if attempt.series is not None:
            same = f"{OURS}, the {len(attempt.series)} series of {each}"
            attempts[same] = Attempt(yhat[attempt.series], ours.seconds, series=attempt.series)
            scores[same] = score(part, attempts[same].yhat)
    tables: dict[str, Sequence[Row]] = {
        f"{data.panel.n_series:,} series, {data.horizon} periods held out": [
            _row(each, scores[each], attempts[each]) for each in attempts
        ],
        "Chosen": [_chosen(forecaster)],
    }
    step("  ranges")
    tables["Ranges"], of_ranges = ranges(data, forecaster)
    bars += of_ranges
    if candidates:
        tables["Rows that were tried, as one model of all series"] = tried = _tried(data, forecaster)
        best = min(row["RMSSE"] for row in tried)
        bars.append(
            Bar("RMSSE of chosen rows over the best tried", tried[0]["RMSSE"] / best, BEYOND_THE_BEST)
        )
    return Section(tables, [*bars, *_bars_beside_rivals(attempts, scores)], NOTES)


def _one_fit(data: ForecastSet, forecaster: ForecastModel) -> Seconds | None:
    """Time a fit to the rows chosen with the choices and the strength chosen, the rows' making included."""
    if "fusion_strength" not in forecaster.report:
        return None
    step("  one fit")
    features, n_origins = forecaster.features, int(forecaster.report["n_origins"])
    choices = ModelChoices(**forecaster.report["choices"])
    watch = Stopwatch()
    with watch.running():
        (rows,) = direct_statistics(
            data.panel, features, data.horizon, n_blocks=1, n_origins=n_origins, scale=forecaster.scale
        )
        fit(rows, forecaster.report["fusion_strength"], choices=choices)
    return watch.seconds


def _tried(data: ForecastSet, forecaster: ForecastModel) -> list[Row]:
    """Validated and held-out error of each set of rows that was tried, the chosen one first."""
    found: list[Row] = []
    step("  rows that were tried")
    for tried in forecaster.report.get("rows_tried", ()):
        features = RowFeatures.from_dict(tried["rows"])
        n_origins = int(forecaster.report["n_origins"])
        (rows,) = direct_statistics(
            data.panel, features, data.horizon, n_blocks=1, n_origins=n_origins, scale=forecaster.scale
        )
        prepared = ModelChoices(fit_intercept=tried["fit_intercept"]).prepare(rows)
        model = prepared.model(pooled_weights(prepared.statistics))
        tail, last = latest_tails(data.panel, features.reach)
        shared = replace(forecaster, model=model, features=features, tail=tail, last_period=last)
        errors = score(data, shared.point_forecasts())
        found.append(
            {
                "features": len(features.names),
                "intercept": str(tried["fit_intercept"]),
                "validated": tried["shared_model_error"],
                "RMSSE": errors.rmsse,
                "WAPE": errors.wape,
                "bias": errors.bias,
                "rows": ", ".join(f"{kind} {_short(values)}" for kind, values in tried["rows"].items()),
            }
        )
    return found


def _short(values: Sequence[Any]) -> str:
    """The values of a kind of features, in few letters."""
    return " ".join("/".join(map(str, v)) if isinstance(v, list | tuple) else str(v) for v in values)


def _row(name: str, errors: Scores, attempt: Attempt) -> Row:
    """One line of the table of errors."""
    fit_seconds = attempt.fit_seconds
    return {
        "forecast": name.replace("_", " "),
        "series": len(attempt.yhat),
        "RMSSE": errors.rmsse,
        "WAPE": errors.wape,
        "bias": errors.bias,
        "WAPE of totals": errors.wape_of_totals,
        "seconds": attempt.seconds.cpu,
        "wall seconds": attempt.seconds.wall,
        "one fit": None if fit_seconds is None else fit_seconds.cpu,
    }


def _chosen(forecaster: ForecastModel) -> Row:
    report = forecaster.report
    strength = report.get("fusion_strength")
    return {
        "rows": "; ".join(f"{kind} {_short(values)}" for kind, values in report["rows"].items()),
        "features": len(forecaster.features.names),
        "origins": report["n_origins"],
        "intercept": str(report.get("choices", {}).get("fit_intercept")),
        "strength": "-" if strength is None else f"{strength:.4g}",
        "validated": report.get("error"),
    }


def _bars_of_ours(name: str, ours: Scores) -> list[Bar]:
    return [Bar("RMSSE", ours.rmsse, MOST_RMSSE[name])] if name in MOST_RMSSE else []


def _bars_beside_rivals(attempts: dict[str, Attempt], scores: dict[str, Scores]) -> list[Bar]:
    """Errors at most those of the best rival, and seconds at most a share of theirs."""
    ours, seconds = scores[OURS], attempts[OURS].seconds.cpu
    on_all = [n for n, attempt in attempts.items() if n not in (OURS, FOR_TOTALS) and attempt.series is None]
    whole = {name: scores[name] for name in on_all}
    trees = [name for name in on_all if name.startswith("lightgbm")]
    bars = [Bar(f"RMSSE, {name}", ours.rmsse, whole[name].rmsse) for name in trees]
    if whole:
        best = min(whole, key=lambda name: whole[name].rmsse)
        bars.append(Bar(f"RMSSE, best rival ({best})", ours.rmsse, whole[best].rmsse))
        best = min(whole, key=lambda name: abs(whole[name].bias))
        bars.append(Bar(f"size of bias, best rival ({best})", abs(ours.bias), abs(whole[best].bias)))
        of_totals = abs(scores[FOR_TOTALS].bias)
        bars.append(Bar(f"the same with aim totals ({best})", of_totals, abs(whole[best].bias)))
    totals = {name: e.wape_of_totals for name, e in whole.items() if e.wape_of_totals is not None}
    if totals and ours.wape_of_totals is not None:
        best = min(totals, key=lambda name: totals[name])
        bars.append(Bar(f"WAPE of totals, best rival ({best})", ours.wape_of_totals, totals[best]))
    one, of_rows = attempts[OURS].fit_seconds, attempts.get("lightgbm_rows")
    if one is not None and of_rows is not None and of_rows.fit_seconds is not None:
        limit = SHARE_OF_TREES * of_rows.fit_seconds.cpu
        bars.append(Bar("seconds of one fit, a tenth of lightgbm_rows", one.cpu, limit))
    if "auto_ets" in attempts:
        ets = attempts["auto_ets"]
        bars.append(Bar("seconds, a fifth of auto_ets", seconds, SHARE_OF_AUTO_ETS * ets.seconds.cpu))
        sample = next((name for name in scores if name.endswith("auto_ets") and name != "auto_ets"), OURS)
        bars.append(Bar("RMSSE, auto_ets on its series", scores[sample].rmsse, scores["auto_ets"].rmsse))
    return bars


def _small_panel() -> SeriesPanel:
    rng = np.random.default_rng(0)
    T, n = 12, 60
    ids, period = tuple(map(str, range(T))), np.tile(np.arange(n), T)
    return SeriesPanel(ids, np.arange(T + 1) * n, period, rng.normal(size=T * n), Frequency.DAY)

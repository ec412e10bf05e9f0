"""Four real sets in, the errors of models and of their simple rivals on held-out rows out.

Every choice, strength, shrinkage and which parts to use, is made by validation on the rows for training;
the held-out rows are looked at once for each model. Errors are means over tasks of the task's own RMSE, on
Walmart of its RMSSE; on School, as in the paper, the RMSE over all rows.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from benchmarks.report import Bar, Row, Section
from benchmarks.selection import data
from benchmarks.selection.data import Split
from benchmarks.ta_feng import FILE as TA_FENG
from ccmtl_core import (
    ModelChoices,
    SufficientStatistics,
    fit,
    fit_path,
    nearest_neighbour_graph,
    pooled_weights,
    random_coefficients,
    select,
    shrunk_weights,
    single_task_weights,
    strength_grid,
    training_statistics,
)
from ccmtl_core.fitting.scoring import Score, mean_of_task_rmse, rmse_over_rows
from examples.ta_feng import NotToBeHad

PLAIN = "CCMTL of the paper"
WEIGHED = "period weights"
METRIC = ModelChoices(metric="mahalanobis")
RESIDUAL_METRIC = ModelChoices(loss_scaling="residual", metric="mahalanobis")
PARTS: Mapping[str, ModelChoices] = {
    PLAIN: ModelChoices(),
    "+ intercept": ModelChoices(fit_intercept=True),
    "+ spread": ModelChoices(loss_scaling="spread"),
    "+ start": ModelChoices(start="shrunk"),
    "+ metric": METRIC,
    "+ intercept, spread, start": ModelChoices(True, "spread", "shrunk"),
    "+ residual, metric": RESIDUAL_METRIC,
    f"+ {WEIGHED}": ModelChoices(),
    f"+ metric, {WEIGHED}": METRIC,
    f"+ residual, metric, {WEIGHED}": RESIDUAL_METRIC,
}
"""Those with period weights only on sets whose periods mean the same to all tasks."""
EXPECTED = "random coefficients"
SHRINKAGES = tuple(10.0 ** (power / 2) for power in range(-6, 7))
N_STRENGTHS = 7
N_JOBS = 2
PATH_TOLERANCE = 1e-3  # that of select
Weights = NDArray[np.float64]
LEAST_GAIN = 0.02  # of plain CCMTL's error, below each rival
GAINING = ("Sales", "Ta-Feng", "Walmart")


@dataclass(frozen=True)
class Tried:
    """One model of one split."""

    validated: float
    held_out: float
    chosen: str


@dataclass(frozen=True, eq=False)
class Trained:
    """What models are fitted to: with each fold left out, and with none."""

    folds: Sequence[SufficientStatistics]
    whole: SufficientStatistics


def measure(folder: Path) -> Section:
    """Compare on each set whose file is in the folder."""
    sets: dict[str, tuple[Path, Score, list[Callable[[], Split]]]] = {
        "Sales": (data.SALES, mean_of_task_rmse, [partial(data.sales, folder, seed) for seed in range(3)]),
        "Ta-Feng": (TA_FENG, mean_of_task_rmse, [partial(data.ta_feng, folder, 0)]),
        "Walmart": (data.WALMART, mean_of_task_rmse, [partial(data.walmart, folder)]),
        "School": (
            data.SCHOOL,
            rmse_over_rows,
            [partial(data.school, folder, 0.2, seed) for seed in range(2)],
        ),
    }
    tables: dict[str, Sequence[Row]] = {}
    bars: list[Bar] = []
    missing = []
    for name, (file, score, splits) in sets.items():
        if file != TA_FENG and not (folder / file).exists():
            missing.append(f"{folder / file} is not there; --help says where it comes from")
            continue
        try:
            models = [compare(read(), score) for read in splits]
        except NotToBeHad as reason:  # Ta-Feng, which pip fetches
            missing.append(str(reason))
            continue
        tables[f"{name}: error on held-out rows, {len(splits)} split(s)"] = rows_of(models)
        bars += bars_of(name, models)
    if not tables:
        return Section(skipped="; ".join(missing))
    notes = [
        "Chosen: the strength, or the shrinkage of the shrunk rival, in the first split; all by validation.",
        "Better: of CCMTL and the rows with a +, the one with the least validated error in each split.",
        "Period weights: made anew of the rows that train; errors are not weighed.",
        *missing,
    ]
    return Section(tables, bars, notes)


def compare(split: Split, score: Score) -> dict[str, Tried]:
    """Errors of rivals and models; "better" is the one of ``PARTS`` with the least validated error."""
    folds = Trained(training_statistics(split.folds), split.training)
    shrunk = [(f"{s:.3g}", partial(shrunk_weights, shrinkage=s)) for s in SHRINKAGES]
    tried = {
        "pooled": _rival(split, score, folds, [("", pooled_weights)]),
        "single task": _rival(split, score, folds, [("", single_task_weights)]),
        "shrunk": _rival(split, score, folds, shrunk),
        EXPECTED: _rival(split, score, folds, [("", expected_weights)]),
    }
    parts = [name for name in PARTS if split.rows is not None or not name.endswith(WEIGHED)]
    if split.rows is not None:
        weighed = Trained(
            [split.rows.weighed(without=fold) for fold in range(len(split.folds))], split.rows.weighed()
        )
        tried[f"{EXPECTED}, {WEIGHED}"] = _rival(split, score, weighed, [("", expected_weights)])
    for name in parts:
        if name.endswith(WEIGHED):
            tried[name] = _fused_by_path(split, score, weighed, PARTS[name])
        else:
            tried[name] = _fused(split, score, PARTS[name])
    best = min(parts, key=lambda name: tried[name].validated)
    return tried | {"better": Tried(tried[best].validated, tried[best].held_out, best)}


def expected_weights(statistics: SufficientStatistics) -> Weights:
    """Posterior means of random coefficients: what the metric is made of, without fusion."""
    return random_coefficients(statistics).expected_weights(statistics)


def _rival(
    split: Split,
    score: Score,
    trained: Trained,
    fits: Sequence[tuple[str, Callable[[SufficientStatistics], Weights]]],
) -> Tried:
    """The weights with the least validated error."""
    validated = [
        np.mean(
            [
                score(part.squared_error(weights(rest)), part.n_samples)
                for part, rest in zip(split.folds, trained.folds, strict=True)
            ]
        )
        for _, weights in fits
    ]
    best = int(np.argmin(validated))
    name, weights = fits[best]
    error = split.held_out.squared_error(weights(trained.whole))
    return Tried(float(validated[best]), score(error, split.held_out.n_samples), name)


def _fused(split: Split, score: Score, choices: ModelChoices) -> Tried:
    """CCMTL with these choices, at the strength with the least validated error."""
    strengths = _strengths(split.training, choices)
    selection = select(split.folds, strengths, score=score, n_jobs=N_JOBS, **choices.as_dict())
    model = selection.fit.model
    error = split.held_out.squared_error(model.weights, model.intercept)
    validated = float(selection.errors.min())
    return Tried(validated, score(error, split.held_out.n_samples), f"{selection.fusion_strength:.3g}")


def _fused_by_path(split: Split, score: Score, trained: Trained, choices: ModelChoices) -> Tried:
    """The same, with other statistics for training than those that are held out in turn."""
    strengths, options = _strengths(trained.whole, choices), choices.as_dict()

    def errors(training: SufficientStatistics, held_out: SufficientStatistics) -> list[float]:
        path = fit_path(training, strengths, tolerance=PATH_TOLERANCE, **options)
        models = map(path.model, range(len(strengths)))
        return [score(held_out.squared_error(m.weights, m.intercept), held_out.n_samples) for m in models]

    validated = np.mean(list(map(errors, trained.folds, split.folds)), axis=0)
    best = int(np.argmin(validated))
    model = fit(trained.whole, fusion_strength=float(strengths[best]), **options).model
    error = split.held_out.squared_error(model.weights, model.intercept)
    return Tried(float(validated[best]), score(error, split.held_out.n_samples), f"{strengths[best]:.3g}")


def _strengths(training: SufficientStatistics, choices: ModelChoices) -> Weights:
    prepared = choices.prepare(training)
    return strength_grid(prepared.statistics, nearest_neighbour_graph(prepared.start), N_STRENGTHS)


def rows_of(models: Sequence[Mapping[str, Tried]]) -> list[Row]:
    """One row for each model, with means over the splits."""
    plain = np.mean([tried[PLAIN].held_out for tried in models])
    rows: list[Row] = []
    for name, first in models[0].items():
        held_out = float(np.mean([tried[name].held_out for tried in models]))
        rows.append(
            {
                "model": name,
                "validated": f"{np.mean([tried[name].validated for tried in models]):.4f}",
                "held out": f"{held_out:.4f}",
                "of plain CCMTL": f"{100 * (held_out / plain - 1):+.2f} %",
                "chosen": first.chosen,
            }
        )
    return rows


def bars_of(name: str, models: Sequence[Mapping[str, Tried]]) -> list[Bar]:
    """How far the better model is below each rival, in shares of plain CCMTL; on School, how far above."""
    error = {key: float(np.mean([tried[key].held_out for tried in models])) for key in models[0]}
    rivals = ("pooled", "single task", "shrunk", PLAIN)
    gains = {rival: (error[rival] - error["better"]) / error[PLAIN] for rival in rivals}
    if name in GAINING:
        nearest = min(gains, key=lambda rival: gains[rival])
        return [Bar(f"{name}: least gain, over {nearest}", gains[nearest], LEAST_GAIN, at_least=True)]
    noise = float(np.std([t["better"].held_out - t[PLAIN].held_out for t in models])) / error[PLAIN]
    return [Bar(f"{name}: loss beside plain CCMTL", -gains[PLAIN], max(noise, 1e-3))]

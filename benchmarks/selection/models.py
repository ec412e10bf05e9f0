"""Compares models and their simple rivals on held-out rows of four real sets.

Every choice, strength, shrinkage and which parts to use, is made by validation on the rows for training;
the held-out rows are looked at once for each model. Errors are means over tasks of the task's own RMSE, on
Walmart of its RMSSE; on School, as in the paper, the RMSE over all rows. Rivals are fitted plain, and with
the same choices as the best of the fused models.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from benchmarks.report import Bar, Row, Section, step
from benchmarks.selection import data
from benchmarks.selection.data import Split
from benchmarks.ta_feng import FILE as TA_FENG
from ccmtl_core import (
    ModelChoices,
    SufficientStatistics,
    fit,
    fit_path,
    pooled_weights,
    random_coefficients,
    select,
    shrunk_weights,
    single_task_weights,
    strength_grid,
    training_statistics,
)
from ccmtl_core.choices.model_choices import SolverInput
from ccmtl_core.fitting.scoring import Score, mean_of_task_rmse, rmse_over_rows
from ccmtl_core.statistics.inputs import Statistics
from examples.ta_feng import NotToBeHad

PLAIN = "CCMTL of the paper"
WEIGHED = "period factors"
SAME = "same choices"
METRIC = ModelChoices(metric="mahalanobis")
SPREAD_METRIC = ModelChoices(loss_scaling="spread", metric="mahalanobis")
PARTS: Mapping[str, ModelChoices] = {
    PLAIN: ModelChoices(),
    "+ intercept": ModelChoices(fit_intercept=True),
    "+ spread": ModelChoices(loss_scaling="spread"),
    "+ metric": METRIC,
    "+ intercept, spread": ModelChoices(fit_intercept=True, loss_scaling="spread"),
    "+ spread, metric": SPREAD_METRIC,
    f"+ {WEIGHED}": ModelChoices(),
    f"+ metric, {WEIGHED}": METRIC,
    f"+ spread, metric, {WEIGHED}": SPREAD_METRIC,
}
"""Those with period factors only on sets whose periods mean the same to all tasks."""
EXPECTED = "random coefficients"
SHRINKAGES = tuple(10.0 ** (power / 2) for power in range(-6, 7))
N_STRENGTHS = 7
N_JOBS = 2
PATH_TOLERANCE = 1e-3  # that of select
Weights = NDArray[np.float64]
Weigh = Callable[[Statistics], Weights]
Fit = tuple[str, Weigh]
"""A name, and how weights are made of statistics."""
RIVALS: Mapping[str, Sequence[Fit]] = {
    "pooled": [("", pooled_weights)],
    "single task": [("", single_task_weights)],
    "shrunk": [(f"{s:.3g}", partial(shrunk_weights, shrinkage=s)) for s in SHRINKAGES],
}
NO_LOSS = -1e-3  # of plain CCMTL's error, beside rivals of the same choices; smaller ones are rounding
FAIR = tuple(f"{rival}, {SAME}" for rival in RIVALS)
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

    def rivals(
        self, split: Split, score: Score, choices: ModelChoices, fits: Mapping[str, Sequence[Fit]]
    ) -> dict[str, Tried]:
        """Fit rivals with these choices; of several by one name, the one with the least validated error."""
        folds = [choices.prepare(part) for part in self.folds]
        whole = choices.prepare(self.whole)

        def error(weights: Weigh, fitted: SolverInput, held_out: SufficientStatistics) -> float:
            squared = fitted.squared_error(weights(fitted.statistics), held_out)
            return score(squared, held_out.n_samples)

        tried = {}
        for rival, several in fits.items():
            validated = [np.mean([*map(partial(error, w), folds, split.folds)]) for _, w in several]
            best = int(np.argmin(validated))
            name, weights = several[best]
            tried[rival] = Tried(float(validated[best]), error(weights, whole, split.held_out), name)
        return tried


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
        step(f"  {name}: {len(splits)} splits of its rows")
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
        "Period factors: made anew of the rows that train; errors are not weighed.",
        "Same choices: rivals with the intercept, scaling, metric and factors of the better model.",
        *missing,
    ]
    return Section(tables, bars, notes)


def compare(split: Split, score: Score) -> dict[str, Tried]:
    """Errors of rivals and models; "better" is the one of ``PARTS`` with the least validated error."""
    folds = Trained(training_statistics(split.folds), split.training)
    tried = folds.rivals(split, score, ModelChoices(), {**RIVALS, EXPECTED: [("", expected_weights)]})
    parts = [name for name in PARTS if split.rows is not None or not name.endswith(WEIGHED)]
    weighed = folds
    if split.rows is not None:
        weighed = Trained(
            [split.rows.weighed(without=fold) for fold in range(len(split.folds))], split.rows.weighed()
        )
        expected = {f"{EXPECTED}, {WEIGHED}": [("", expected_weights)]}
        tried |= weighed.rivals(split, score, ModelChoices(), expected)
    for name in parts:
        step(f"  {name}")
        if name.endswith(WEIGHED):
            tried[name] = _fused_by_path(split, score, weighed, PARTS[name])
        else:
            tried[name] = _fused(split, score, PARTS[name])
    best = min(parts, key=lambda name: tried[name].validated)
    alike = weighed if best.endswith(WEIGHED) else folds
    tried |= alike.rivals(split, score, PARTS[best], dict(zip(FAIR, RIVALS.values(), strict=True)))
    return tried | {"better": Tried(tried[best].validated, tried[best].held_out, best)}


def expected_weights(statistics: Statistics) -> Weights:
    """Posterior means of random coefficients: what the metric is made of, without fusion."""
    return random_coefficients(statistics).expected_weights(statistics)


def _fused(split: Split, score: Score, choices: ModelChoices) -> Tried:
    """CCMTL with these choices, at the strength with the least validated error."""
    strengths = _strengths(split.training, choices)
    selection = select(split.folds, strengths, score=score, n_jobs=N_JOBS, choices=choices)
    model = selection.fit.model
    error = split.held_out.squared_error(model.weights, model.intercept)
    validated = float(selection.errors.min())
    return Tried(validated, score(error, split.held_out.n_samples), f"{selection.fusion_strength:.3g}")


def _fused_by_path(split: Split, score: Score, trained: Trained, choices: ModelChoices) -> Tried:
    """The same, with other statistics for training than those that are held out in turn."""
    strengths = _strengths(trained.whole, choices)

    def errors(training: SufficientStatistics, held_out: SufficientStatistics) -> list[float]:
        path = fit_path(training, strengths, tolerance=PATH_TOLERANCE, choices=choices)
        models = map(path.model, range(len(strengths)))
        return [score(held_out.squared_error(m.weights, m.intercept), held_out.n_samples) for m in models]

    validated = np.mean(list(map(errors, trained.folds, split.folds)), axis=0)
    best = int(np.argmin(validated))
    model = fit(trained.whole, float(strengths[best]), choices=choices).model
    error = split.held_out.squared_error(model.weights, model.intercept)
    return Tried(float(validated[best]), score(error, split.held_out.n_samples), f"{strengths[best]:.3g}")


def _strengths(training: SufficientStatistics, choices: ModelChoices) -> Weights:
    prepared = choices.prepare(training)
    return strength_grid(prepared.statistics, choices.graph(prepared), N_STRENGTHS)


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
    gains = {rival: (error[rival] - error["better"]) / error[PLAIN] for rival in (*RIVALS, PLAIN)}
    if name in GAINING:
        nearest = min(gains, key=lambda rival: gains[rival])
        fair = {rival: (error[rival] - error["better"]) / error[PLAIN] for rival in FAIR}
        alike = min(fair, key=lambda rival: fair[rival])
        return [
            Bar(f"{name}: least gain, over {nearest}", gains[nearest], LEAST_GAIN, at_least=True),
            Bar(f"{name}: least gain, over {alike}", fair[alike], NO_LOSS, at_least=True),
        ]
    noise = float(np.std([t["better"].held_out - t[PLAIN].held_out for t in models])) / error[PLAIN]
    return [Bar(f"{name}: loss beside plain CCMTL", -gains[PLAIN], max(noise, 1e-3))]

"""Fit the simple models that fusing must beat: one for all tasks, each task alone, each shrunk to the one.

Each is fitted twice, plain and with the same choices (intercept, scaling, metric) as the fused model, since
what a choice gains is no gain of fusing.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

import numpy as np
from joblib import Parallel, delayed

from ccmtl_core.base.threads import one_blas_thread
from ccmtl_core.base.types import BoolArray, FloatArray
from ccmtl_core.choices.model_choices import ModelChoices, SolverInput
from ccmtl_core.choices.single_task import pooled_weights, shrunk_weights, single_task_weights
from ccmtl_core.data.task_dataset import TaskDataset
from ccmtl_core.fitting.scoring import Score, standard_error
from ccmtl_core.model.ccmtl_model import CCMTLModel
from ccmtl_core.statistics.folds import training_statistics
from ccmtl_core.statistics.inputs import Statistics, statistics_of
from ccmtl_core.statistics.sufficient_statistics import SufficientStatistics

SAME_CHOICES = "_same_choices"
"""Ends the names of rivals that are fitted with the choices of the fused model."""
SHRINKAGES = tuple(10.0**power for power in range(-3, 4))
"""Tried for the rivals that are shrunk to the pooled weights."""
_Weights = Callable[[Statistics], FloatArray]
_Errors = dict[str | float, float]  # by name, and by shrinkage
_WITHOUT_SHRINKAGE: Mapping[str, _Weights] = {"pooled": pooled_weights, "single_task": single_task_weights}


class RivalErrors(NamedTuple):
    """Errors (K,) of the rivals by fold, and their shrinkages, chosen on these folds, which favours them."""

    errors: dict[str, FloatArray]
    shrinkages: dict[str, float]


@one_blas_thread()
def rival_models(
    data: TaskDataset | Statistics,
    choices: ModelChoices | None = None,
    shrinkages: Mapping[str, float] | None = None,
) -> dict[str, CCMTLModel]:
    """Fit the rivals of a fused model, plain and with its choices.

    Parameters
    ----------
    data : TaskDataset or statistics
        T tasks with P features.
    choices : ModelChoices, optional
        Those of the fused model.
    shrinkages : mapping of str to float, optional
        Those of a :class:`ccmtl_core.Selection`; without them there are no shrunk rivals.

    Returns
    -------
    dict of str to CCMTLModel
        ``pooled``, ``single_task`` and ``shrunk``; the same with ``_same_choices`` after the name.

    Examples
    --------
    >>> data = TaskDataset.from_arrays([[[0.0], [1.0]]] * 2, [[0.0, 1.0], [8.0, 9.0]])
    >>> models = rival_models(data, ModelChoices(fit_intercept=True))
    >>> models["pooled"].weights.ravel(), models["pooled_same_choices"].weights.ravel()
    (array([5., 5.]), array([1., 1.]))
    >>> models["pooled_same_choices"].intercept
    array([0., 8.])
    """
    statistics = statistics_of(data)
    models: dict[str, CCMTLModel] = {}
    for suffix, of_rivals in (("", ModelChoices()), (SAME_CHOICES, choices or ModelChoices())):
        prepared = of_rivals.prepare(statistics)
        found = {name: weights(prepared.statistics) for name, weights in _WITHOUT_SHRINKAGE.items()}
        if shrinkages is not None:
            found["shrunk"] = shrunk_weights(prepared.statistics, shrinkages[f"shrunk{suffix}"])
        models |= {name + suffix: prepared.model(weights) for name, weights in found.items()}
    return models


def rival_errors(
    training: Sequence[Statistics],
    held_out: Sequence[Statistics],
    score: Score,
    choices: ModelChoices,
    fitted: Sequence[SolverInput],
    n_jobs: int = 1,
) -> RivalErrors:
    """Score the rivals on each fold; ``fitted`` is what the choices make of the training parts."""
    is_plain = choices == ModelChoices(n_neighbors=choices.n_neighbors)
    work = (
        delayed(_errors_of_fold)(score, is_plain, parts)
        for parts in zip(training, fitted, held_out, strict=True)
    )
    by_fold = Parallel(n_jobs=n_jobs, prefer="threads")(work)
    plain, alike = (_best_shrunk(errors) for errors in zip(*by_fold, strict=True))
    named = {name + SAME_CHOICES: errors for name, errors in alike.errors.items()}
    shrinkage = {"shrunk": plain.shrinkages["shrunk"], f"shrunk{SAME_CHOICES}": alike.shrinkages["shrunk"]}
    return RivalErrors(plain.errors | named, shrinkage)


@one_blas_thread()
def errors_of_choices(
    parts: Sequence[SufficientStatistics], tried: Sequence[ModelChoices], score: Score
) -> list[RivalErrors]:
    """Score the rivals under each of several choices, each block of time forecast from those before it.

    Parameters
    ----------
    parts : sequence of K + 1 SufficientStatistics
        Blocks of time, the oldest first.
    tried : sequence of ModelChoices
        What the rivals are fitted with.
    score : callable
        As in :func:`ccmtl_core.select`.

    Returns
    -------
    list of RivalErrors
        One for each of the choices.
    """
    training, found = training_statistics(parts, rolling=True), []
    for choices in tried:
        fitted = [choices.prepare(part) for part in training]
        found.append(rival_errors(training, parts[1:], score, choices, fitted))
    return found


def promising(simple: Sequence[RivalErrors]) -> BoolArray:
    """Which of several choices may be the best for a fused model too, by the errors of rivals under each.

    Of a choice counts the better of its pooled and its shrunk rival, between which fused models lie. It may
    be the best unless it is behind the least wrong one by more than a standard error of their difference.

    Examples
    --------
    >>> near, far = np.array([1.0, 2.0, 3.0]), np.array([1.3, 2.2, 3.3])
    >>> named = [{"pooled_same_choices": e, "shrunk_same_choices": e + 1.0} for e in (near, far)]
    >>> promising([RivalErrors(errors, {}) for errors in named])
    array([ True, False])
    """
    pairs = ((of.errors[f"pooled{SAME_CHOICES}"], of.errors[f"shrunk{SAME_CHOICES}"]) for of in simple)
    errors = np.stack([min(pair, key=lambda each: float(each.mean())) for pair in pairs], axis=1)
    behind = errors - errors[:, [int(errors.mean(axis=0).argmin())]]
    may_win: BoolArray = ~(behind.mean(axis=0) > standard_error(behind))  # NaN of one fold: all may
    return may_win


@one_blas_thread()
def _errors_of_fold(
    score: Score, is_plain: bool, parts: tuple[Statistics, SolverInput, Statistics]
) -> tuple[_Errors, _Errors]:
    """Errors on one fold of rivals that are fitted plainly, and of those with the choices."""
    training, fitted, held_out = parts
    plain = _errors(ModelChoices().prepare(training), held_out, score)
    return plain, plain if is_plain else _errors(fitted, held_out, score)


def _errors(fitted: SolverInput, held_out: Statistics, score: Score) -> _Errors:
    def error(weights: FloatArray) -> float:
        return score(fitted.squared_error(weights, held_out), held_out.n_samples)

    shrunk: _Errors = {
        value: error(shrunk_weights(fitted.statistics, shrinkage=value)) for value in SHRINKAGES
    }
    return shrunk | {name: error(weights(fitted.statistics)) for name, weights in _WITHOUT_SHRINKAGE.items()}


def _best_shrunk(by_fold: Sequence[_Errors]) -> RivalErrors:
    """Errors by fold, of the shrunk rivals those of the least wrong shrinkage."""
    errors = {key: np.array([of_fold[key] for of_fold in by_fold]) for key in by_fold[0]}
    best = min(SHRINKAGES, key=lambda value: float(errors[value].mean()))
    others = {name: errors[name] for name in _WITHOUT_SHRINKAGE}
    return RivalErrors({**others, "shrunk": errors[best]}, {"shrunk": best})

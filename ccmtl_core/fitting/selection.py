"""Choose the strength that forecasts unseen rows best, and fit all rows with it.

The statistics of the training rows are sums over folds, and errors are computed from the statistics of the
held-out rows, so that no row is read again.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Literal, Unpack, cast, get_args

import numpy as np
from numpy.typing import ArrayLike

from ccmtl_core.base.arguments import check_callback, check_kind
from ccmtl_core.base.display import counted, named, shown
from ccmtl_core.base.exceptions import DataError, ParameterError
from ccmtl_core.base.threads import check_workers, one_blas_thread
from ccmtl_core.base.types import FloatArray, IntArray
from ccmtl_core.choices.model_choices import ChoiceKeywords, ModelChoices, chosen
from ccmtl_core.data.task_dataset import TaskDataset
from ccmtl_core.fitting.fit import Clock, FitResult, fit_prepared
from ccmtl_core.fitting.fold_paths import FoldPaths, SelectionProgress, made_ready
from ccmtl_core.fitting.path import checked_strengths
from ccmtl_core.fitting.rivals import rival_errors
from ccmtl_core.fitting.scoring import (
    Rule,
    Score,
    check_rule,
    choose,
    finite_score,
    mean_of_task_rmse,
    standard_error,
)
from ccmtl_core.fitting.strength import strength_grid
from ccmtl_core.solver.fusion_solver import check_solver
from ccmtl_core.statistics.folds import check_number, contiguous_folds, random_folds, training_statistics
from ccmtl_core.statistics.inputs import Statistics, check_folds
from ccmtl_core.statistics.sufficient_statistics import SufficientStatistics

Folds = Literal["random", "contiguous", "rolling"]
FOLDS: tuple[str, ...] = get_args(Folds)
DEFAULT_FOLDS = 5


@dataclass(frozen=True, eq=False)
class Selection:
    """What was tried, what was chosen, and the model fitted to all rows with it.

    Parameters
    ----------
    fusion_strengths : (L,) float64
        λ that were tried, rising.
    fold_errors, gaps : (K, L) float64
        Error on what was held out, and certified gap, by fold and strength.
    n_groups : (K, L) int64
        Groups of tasks that share one model exactly.
    rivals : dict of str to (K,) float64
        Errors of the simple models on the same folds: ``pooled``, ``single_task`` and ``shrunk``, plain, and
        with ``_same_choices`` after the name fitted with the choices of the fused model.
    shrinkages : dict of str to float
        The shrinkage of each shrunk rival: the best on these folds.
    folds : {"random", "contiguous", "rolling", "given"}
        How the rows were parted; "given" by the caller.
    order : {"time", "rows", "statistics"} or None
        By what contiguous and rolling folds are ordered: the times given, the place of each row in its
        task, or the place of the statistics in their sequence. None for other folds.
    rule : {"best", "one_standard_error"}
        How the strength was chosen by the errors.
    chosen : int
        Place of the chosen strength in ``fusion_strengths``.
    fit : FitResult
        Fitted to all rows at that strength.
    """

    fusion_strengths: FloatArray
    fold_errors: FloatArray
    gaps: FloatArray
    n_groups: IntArray
    rivals: dict[str, FloatArray]
    shrinkages: dict[str, float]
    folds: str
    order: str | None
    rule: str
    chosen: int
    fit: FitResult

    def __repr__(self) -> str:
        rival = min(self.rivals, key=lambda name: float(self.rivals[name].mean()))
        by = f" by {self.order}" if self.order else ""
        model, n_folds = self.fit.model, len(self.fold_errors)
        return shown(
            self,
            counted(len(model.task_ids), "task"),
            named(model.feature_names, "feature"),
            f"fusion_strength {self.fusion_strength:.4g} of {len(self.fusion_strengths)}",
            f"error {self.errors[self.chosen]:.4g} on {counted(n_folds, f'{self.folds} fold')}{by}",
            f"best rival {rival} {self.rivals[rival].mean():.4g}",
        )

    @property
    def fusion_strength(self) -> float:
        """The chosen λ."""
        return float(self.fusion_strengths[self.chosen])

    @property
    def errors(self) -> FloatArray:
        """(L,) Mean error over the folds."""
        return np.asarray(self.fold_errors.mean(axis=0))

    @property
    def standard_errors(self) -> FloatArray:
        """(L,) Standard error of that mean; NaN where one part alone was held out."""
        return standard_error(self.fold_errors)


@one_blas_thread()
def select(
    data: TaskDataset | Sequence[Statistics],
    fusion_strengths: ArrayLike | None = None,
    *,
    folds: Folds | ArrayLike = "random",
    n_folds: int | None = None,
    time: ArrayLike | None = None,
    rng: np.random.Generator | None = None,
    sample_weight: ArrayLike | None = None,
    score: Score = mean_of_task_rmse,
    rule: Rule = "best",
    choices: ModelChoices | None = None,
    path_tolerance: float = 1e-3,
    tolerance: float = 1e-4,
    solver: str = "auto",
    n_jobs: int = 1,
    on_progress: Callable[[SelectionProgress], None] | None = None,
    **keywords: Unpack[ChoiceKeywords],
) -> Selection:
    """Choose the strength by cross-validation, and fit all rows with it.

    Parameters
    ----------
    data : TaskDataset, or sequence of K statistics
        Rows; or the statistics of the folds, the oldest first for rolling origins.
    fusion_strengths : array-like of float, optional
        λ to try, all of them. By default :func:`ccmtl_core.strength_grid` of all rows, the largest first, for
        as long as weaker ones may be better: see :func:`ccmtl_core.fitting.fold_paths.weaker_is_worse`.
    folds : str or (n,) integers
        "random", "contiguous", "rolling" (each block of time is forecast from those before it), or the fold
        of each row. For statistics only "rolling" makes a difference.
    n_folds : int
        How many parts of a dataset are held out, if ``folds`` is a word; 5 by default. Rolling origins take
        one block more, the first, which is never held out.
    time : (n,) array of numbers, dates or datetimes, optional
        When each row of a dataset was, in the order of its ``X``, for contiguous folds and rolling origins.
        Without it they go by the order of each task's rows; ``Selection.order`` says which it was.
    rng : numpy.random.Generator, optional
        Draws random folds; by default one with seed 0.
    sample_weight : (n,) array of numbers, optional
        The weight of each row of a dataset in training, in the order of its ``X``; a held-out row counts 1.
        Statistics contain the weights that their rows were summed with, also when they are held out.
    score : callable
        From squared errors (T,) and numbers of rows (T,) to the error of a fold; the smaller, the better.
    rule : str
        "best" or "one_standard_error"; see :func:`ccmtl_core.fitting.scoring.choose`.
    choices, solver, **keywords
        As in :func:`ccmtl_core.fit`.
    path_tolerance, tolerance : float
        Certified gap on the folds, and of the final fit.
    n_jobs : int
        Workers, as in joblib; threads unless a ``joblib.parallel_config`` says otherwise. The result does not
        depend on it.
    on_progress : callable, optional
        Called in this thread as fits are done; what it raises ends the selection.

    Returns
    -------
    Selection

    Raises
    ------
    ParameterError
        A choice that does not exist; an argument that these folds leave without effect; a strength that is
        named twice; one standard error with a single held-out part; a score that is no finite number.
    DataError
        Data that the folds cannot be made of.

    Examples
    --------
    >>> from ccmtl_core.data.synthetic import syn
    >>> data = syn(np.random.default_rng(0), n_tasks=12, n_features=2, n_samples=20).dataset
    >>> selection = select(data, [0.0, 1.0, 1e4], n_folds=3, n_neighbors=3)
    >>> selection.fusion_strength, selection.fold_errors.shape
    (1.0, (3, 3))
    """
    check_solver(solver, path_tolerance)
    check_solver(solver, tolerance)
    choices = chosen(choices, keywords)
    check_workers(n_jobs)
    check_rule(rule)
    if not callable(score):
        raise ParameterError(f"score must be a function, not {score!r}")
    check_callback(on_progress, "on_progress")
    if rng is not None:
        check_kind(rng, "rng", np.random.Generator)
    score = partial(finite_score, score)
    how, order = _described(data, folds, n_folds, time, rng)
    n_folds = DEFAULT_FOLDS if n_folds is None else n_folds
    parts, unweighted = _fold_statistics(data, folds, n_folds, time, rng, sample_weight)
    parts = cast("Sequence[SufficientStatistics]", parts)  # for mypy; all may be TriangularStatistics
    training = training_statistics(parts, rolling=how == "rolling")
    held_out = list(unweighted[1:] if how == "rolling" else unweighted)
    check_rule(rule, len(held_out))
    everything = training[-1] + parts[-1]
    (prepared, graph), *ready = made_ready([everything, *training], choices, n_jobs)
    searches = fusion_strengths is None
    if fusion_strengths is None:
        fusion_strengths = strength_grid(prepared.statistics, graph)
    strengths = np.sort(checked_strengths(fusion_strengths, distinct=True))
    paths = FoldPaths(strengths, path_tolerance, solver, score)
    table = paths.walked(ready, held_out, n_jobs, on_progress, searches=searches)
    strengths = table.strengths
    best = choose(strengths, table.errors, rule)
    fitted = [of_fold for of_fold, _ in ready]
    rivals = rival_errors(training, held_out, score, choices, fitted, n_jobs)
    strength = float(strengths[best])
    final = fit_prepared(prepared, graph, strength, prepared.start, tolerance, solver, Clock())
    table.tell(1)
    return Selection(
        strengths, table.errors, table.gaps, table.n_groups, rivals.errors, rivals.shrinkages,
        how, order, rule, best, final,
    )  # fmt: skip


def _described(
    data: TaskDataset | Sequence[Statistics],
    folds: str | ArrayLike,
    n_folds: int | None,
    time: ArrayLike | None,
    rng: np.random.Generator | None,
) -> tuple[str, str | None]:
    """Return how the rows are parted, and by what order; arguments without effect are refused."""
    if isinstance(folds, str) and folds not in FOLDS:
        raise ParameterError(
            f"folds must be one of {', '.join(FOLDS)}, or the fold of each row; not {folds!r}"
        )
    how = folds if isinstance(folds, str) else "given"
    used = {"random": ("n_folds", "rng"), "contiguous": ("n_folds", "time"), "rolling": ("n_folds", "time")}
    with_effect, what = used.get(how, ()), "the fold of each row" if how == "given" else f"{how} folds"
    if not isinstance(data, TaskDataset):
        with_effect, what = (), "statistics, which are folds already"
    for name, value in (("n_folds", n_folds), ("time", time), ("rng", rng)):
        if value is not None and name not in with_effect:
            raise ParameterError(f"{name} has no effect with {what}; leave it out")
    if how not in ("contiguous", "rolling"):
        return how, None
    if not isinstance(data, TaskDataset):
        return how, "statistics"
    return how, "rows" if time is None else "time"


def _fold_statistics(
    data: TaskDataset | Sequence[Statistics],
    folds: str | ArrayLike,
    n_folds: int,
    time: ArrayLike | None,
    rng: np.random.Generator | None,
    sample_weight: ArrayLike | None,
) -> tuple[Sequence[Statistics], Sequence[Statistics]]:
    """Return the statistics of the folds or blocks, as they train and as they are scored."""
    if not isinstance(data, TaskDataset):
        if sample_weight is not None:
            raise ParameterError("sample_weight is for the rows of a dataset; statistics have no rows")
        check_folds(data)
        if len(kinds := sorted({type(part).__name__ for part in data})) > 1:
            raise ParameterError(f"the folds must be statistics of one kind, not {' and '.join(kinds)}")
        return data, data
    if not isinstance(folds, str):
        fold, n_folds = _given_folds(folds)
    elif folds == "random":
        fold = random_folds(data, n_folds, np.random.default_rng(0) if rng is None else rng)
    else:
        check_number(n_folds, least=1 if folds == "rolling" else 2)
        n_folds += folds == "rolling"
        fold = contiguous_folds(data, n_folds, time)
    if isinstance(folds, str) and (n_empty := n_folds - len(np.unique(fold))):
        raise DataError(
            f"{len(data.y)} rows, at most {data.n_samples.max(initial=0)} of a task, cannot make {n_folds} "
            f"folds: {n_empty} would be empty; take a smaller n_folds"
        )
    parts = SufficientStatistics.by_fold(data, fold, n_folds)
    if sample_weight is None:
        return parts, parts
    return SufficientStatistics.by_fold(data, fold, n_folds, sample_weight), parts


def _given_folds(folds: ArrayLike) -> tuple[IntArray, int]:
    """Return the fold of each row, and how many there are."""
    try:
        fold = np.asarray(folds)
    except ValueError as error:
        raise DataError(f"folds is not the fold of each row: {error}") from error
    if fold.ndim == 0:
        raise ParameterError(
            f"folds must be one of {', '.join(FOLDS)}, or the fold of each row; not {folds!r}"
        )
    if fold.size and fold.dtype.kind not in "biu":
        raise DataError(f"folds must hold integers, not {fold.dtype}")
    n_folds, n_used = int(fold.max(initial=0)) + 1, len(np.unique(fold))
    if n_folds > 2 * max(n_used, 1):
        raise DataError(
            f"folds holds {n_used} different numbers up to {n_folds - 1}: most folds would be empty; "
            "number them from 0"
        )
    return fold, n_folds

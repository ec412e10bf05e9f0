"""Statistics of folds in, the strength that forecasts unseen rows best, and its model, out.

Training parts are sums of folds, errors come from the statistics of what is held out, and rows are never
looked at again. Each fold is a path over the strengths. The work is cut into the same pieces, stretches of
the path of one fold, whatever the number of workers: what comes out does not depend on it.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import cast

import numpy as np
from joblib import Parallel, delayed
from numpy.typing import ArrayLike
from threadpoolctl import threadpool_limits

from ccmtl_core._types import FloatArray, IntArray
from ccmtl_core.exceptions import DataError, ParameterError
from ccmtl_core.fit import FitResult, fit
from ccmtl_core.folds import contiguous_folds, random_folds, rolling_origins, training_folds
from ccmtl_core.fusion_solver import check_solver
from ccmtl_core.knn_graph import check_neighbors, nearest_neighbour_graph
from ccmtl_core.model_choices import ModelChoices
from ccmtl_core.path import checked_strengths, walk
from ccmtl_core.rivals import rival_errors
from ccmtl_core.scoring import RULES, Score, choose, mean_of_task_rmse, standard_error
from ccmtl_core.single_task import Statistics
from ccmtl_core.statistics import SufficientStatistics
from ccmtl_core.strength import strength_grid
from ccmtl_core.task_dataset import TaskDataset
from ccmtl_core.threads import check_workers

FOLDS = ("random", "contiguous", "rolling")
_STRETCH = 7  # strengths that one piece of work walks


@dataclass(frozen=True)
class SelectionProgress:
    """What a running selection tells its caller.

    Parameters
    ----------
    done, total : int
        Fits done, and how many there are: folds times strengths, and the final one.
    fusion_strengths, errors : tuple of float
        Strengths that all folds have been fitted at, with their mean errors so far.
    """

    done: int
    total: int
    fusion_strengths: tuple[float, ...]
    errors: tuple[float, ...]


@dataclass(frozen=True, eq=False)
class Selection:
    """What was tried, what was chosen, and the model fitted to all rows with it.

    Parameters
    ----------
    fusion_strengths : (L,) float64
        λ, rising.
    fold_errors, gaps : (K, L) float64
        Error on what was held out, and certified gap, by fold and strength.
    n_groups : (K, L) int64
        Groups of tasks that share one model exactly.
    rivals : dict of str to (K,) float64
        Errors of the simple models on the same folds.
    chosen : int
        Place of the chosen strength.
    fit : FitResult
        Fitted to all rows at that strength.
    """

    fusion_strengths: FloatArray
    fold_errors: FloatArray
    gaps: FloatArray
    n_groups: IntArray
    rivals: dict[str, FloatArray]
    chosen: int
    fit: FitResult

    @property
    def fusion_strength(self) -> float:
        """The chosen λ."""
        return float(self.fusion_strengths[self.chosen])

    @property
    def errors(self) -> FloatArray:
        """(L,) Mean error over the folds."""
        mean: FloatArray = self.fold_errors.mean(axis=0)
        return mean

    @property
    def standard_errors(self) -> FloatArray:
        """(L,) Standard error of that mean."""
        return standard_error(self.fold_errors)


def select(
    data: TaskDataset | Sequence[Statistics],
    fusion_strengths: ArrayLike | None = None,
    *,
    folds: str | ArrayLike = "random",
    n_folds: int = 5,
    time: ArrayLike | None = None,
    rng: np.random.Generator | None = None,
    sample_weight: ArrayLike | None = None,
    score: Score = mean_of_task_rmse,
    rule: str = "best",
    n_neighbors: int = 10,
    path_tolerance: float = 1e-3,
    tolerance: float = 1e-4,
    solver: str = "auto",
    fit_intercept: bool = False,
    loss_scaling: str = "none",
    start: str = "least_squares",
    metric: str = "euclidean",
    n_jobs: int = 1,
    on_progress: Callable[[SelectionProgress], None] | None = None,
) -> Selection:
    """Choose the strength by cross-validation, and fit all rows with it.

    Parameters
    ----------
    data : TaskDataset, or sequence of K statistics
        Rows; or the statistics of the folds, the oldest first for rolling origins.
    fusion_strengths : array-like of float, optional
        λ to try; by default :func:`ccmtl_core.strength_grid` of all rows.
    folds : str or (n,) integers
        "random", "contiguous", "rolling" (each block of time is forecast from those before it), or the fold
        of each row. Of statistics only "rolling" differs from the others.
    n_folds : int
        Of a dataset, where ``folds`` is a word: parts that are held out. Rolling origins take one block more,
        the first, which is never held out.
    time : (n,) array of numbers, optional
        When each row of a dataset was, for contiguous folds and rolling origins; by default the order of each
        task's rows.
    rng : numpy.random.Generator, optional
        Draws random folds; by default one with seed 0.
    sample_weight : (n,) array of numbers, optional
        What each row of a dataset counts in training; held out, all count 1. Statistics bring their own
        weights, in training and held out.
    score : callable
        From squared errors (T,) and numbers of rows (T,) to the error of a fold; the smaller, the better.
    rule : str
        "best" or "one_standard_error"; see :func:`ccmtl_core.scoring.choose`.
    n_neighbors, solver, fit_intercept, loss_scaling, start, metric
        As in :func:`ccmtl_core.fit`.
    path_tolerance, tolerance : float
        Certified gap on the folds, and of the final fit.
    n_jobs : int
        Workers, as in joblib; threads unless a ``joblib.parallel_config`` says otherwise. The result does not
        depend on it.
    on_progress : callable, optional
        Called in this thread as pieces of work are done; what it raises ends the selection.

    Returns
    -------
    Selection

    Raises
    ------
    ParameterError
        A choice that does not exist.
    DataError
        Data that the folds cannot be made of.

    Examples
    --------
    >>> from ccmtl_core.synthetic import syn
    >>> data = syn(np.random.default_rng(0), n_tasks=12, n_features=2, n_samples=20).dataset
    >>> selection = select(data, [0.0, 1.0, 1e4], n_folds=3, n_neighbors=3)
    >>> selection.fusion_strength, selection.fold_errors.shape
    (1.0, (3, 3))
    """
    check_solver(solver, path_tolerance)
    check_solver(solver, tolerance)
    check_neighbors(n_neighbors)
    check_workers(n_jobs)
    if rule not in RULES:
        raise ParameterError(f"rule must be one of {', '.join(RULES)}; not {rule!r}")
    choices = ModelChoices(fit_intercept, loss_scaling, start, metric)
    parts, unweighted = _fold_statistics(data, folds, n_folds, time, rng, sample_weight)
    parts = cast("Sequence[SufficientStatistics]", parts)  # or all triangular, which offer the same
    is_rolling = isinstance(folds, str) and folds == "rolling"
    training = rolling_origins(parts) if is_rolling else training_folds(parts)
    held_out = list(unweighted[1:] if is_rolling else unweighted)
    everything = training[-1] + parts[-1]
    if fusion_strengths is None:
        prepared = choices.prepare(everything)
        graph = nearest_neighbour_graph(prepared.start, n_neighbors)
        fusion_strengths = strength_grid(prepared.statistics, graph)
    strengths = np.unique(checked_strengths(fusion_strengths))
    table = _Table(strengths, len(training), on_progress)
    with threadpool_limits(limits=1, user_api="blas"):
        walks = _Walk(strengths, choices, n_neighbors, path_tolerance, solver, score)
        with _abandoned_at_the_end(walks.pieces(training, held_out, n_jobs)) as pieces:
            for piece in pieces:
                table.enter(piece)
    chosen = choose(strengths, table.errors, rule)
    rivals = rival_errors(training, held_out, score)
    final = fit(
        everything,
        fusion_strength=float(strengths[chosen]),
        n_neighbors=n_neighbors,
        tolerance=tolerance,
        solver=solver,
        **choices.as_dict(),
    )
    table.tell(1)
    return Selection(strengths, table.errors, table.gaps, table.n_groups, rivals, chosen, final)


def _fold_statistics(
    data: TaskDataset | Sequence[Statistics],
    folds: str | ArrayLike,
    n_folds: int,
    time: ArrayLike | None,
    rng: np.random.Generator | None,
    sample_weight: ArrayLike | None,
) -> tuple[Sequence[Statistics], Sequence[Statistics]]:
    """The statistics of the folds or blocks, as they train and as they are scored."""
    if isinstance(folds, str) and folds not in FOLDS:
        raise ParameterError(
            f"folds must be one of {', '.join(FOLDS)}, or the fold of each row; not {folds!r}"
        )
    if not isinstance(data, TaskDataset):
        if sample_weight is not None:
            raise ParameterError("sample_weight is for the rows of a dataset; statistics have no rows")
        return data, data
    if not isinstance(folds, str):
        fold = np.asarray(folds)
        n_folds = int(fold.max(initial=0)) + 1
    elif folds == "random":
        fold = random_folds(data, n_folds, np.random.default_rng(0) if rng is None else rng)
    else:
        n_folds += folds == "rolling"
        fold = contiguous_folds(data, n_folds, time)
    if isinstance(folds, str):
        _refuse_empty(fold, n_folds, data)
    parts = SufficientStatistics.by_fold(data, fold, n_folds)
    if sample_weight is None:
        return parts, parts
    return SufficientStatistics.by_fold(data, fold, n_folds, sample_weight), parts


def _refuse_empty(fold: IntArray, n_folds: int, data: TaskDataset) -> None:
    n_empty = n_folds - len(np.unique(fold))
    if n_empty:
        raise DataError(
            f"{len(data.y)} rows, at most {data.n_samples.max(initial=0)} of a task, cannot make {n_folds} "
            f"folds: {n_empty} would be empty; take a smaller n_folds"
        )


@dataclass(frozen=True, eq=False)
class _Piece:
    """Errors, gaps and groups (each of length L') of one fold from one strength on."""

    fold: int
    first: int
    errors: list[float]
    gaps: list[float]
    n_groups: list[int]


class _Table:
    """Pieces in, tables by fold and strength out, and word of how far they are."""

    def __init__(
        self, strengths: FloatArray, n_folds: int, on_progress: Callable[[SelectionProgress], None] | None
    ) -> None:
        shape = n_folds, len(strengths)
        self._strengths, self._on_progress, self._done = strengths, on_progress, 0
        self.errors, self.gaps = np.full(shape, np.nan), np.full(shape, np.nan)
        self.n_groups = np.zeros(shape, dtype=np.int64)

    def enter(self, piece: _Piece) -> None:
        place = piece.fold, slice(piece.first, piece.first + len(piece.errors))
        self.errors[place], self.gaps[place] = piece.errors, piece.gaps
        self.n_groups[place] = piece.n_groups
        self.tell(len(piece.errors))

    def tell(self, done: int) -> None:
        self._done += done
        if self._on_progress is not None:
            known = ~np.isnan(self.errors).any(axis=0)
            strengths, errors = self._strengths[known], self.errors[:, known].mean(axis=0)
            self._on_progress(
                SelectionProgress(self._done, self.errors.size + 1, tuple(strengths), tuple(errors))
            )


@dataclass(frozen=True, eq=False)
class _Walk:
    """How to walk the path of any fold, and how to cut it into pieces of work."""

    strengths: FloatArray
    choices: ModelChoices
    n_neighbors: int
    tolerance: float
    solver: str
    score: Score

    def pieces(
        self, training: Sequence[Statistics], held_out: Sequence[Statistics], n_jobs: int
    ) -> Generator[_Piece, None, None]:
        """All pieces, as they are done; all folds of a stretch of strengths before the next stretch."""
        # As a pair they travel with their work. Dask would lay them on one worker, and lose them with it.
        work = (
            delayed(self.piece)(fold, first, (training[fold], held_out[fold]))
            for first in range(0, len(self.strengths), _STRETCH)
            for fold in range(len(training))
        )
        workers = Parallel(n_jobs=n_jobs, prefer="threads", return_as="generator_unordered")
        pieces: Generator[_Piece, None, None] = workers(work)
        return pieces

    def piece(self, fold: int, first: int, parts: tuple[Statistics, Statistics]) -> _Piece:
        """One stretch of the path of one fold, from the statistics of what trains and of what is held out."""
        training, held_out = parts
        prepared = self.choices.prepare(training)
        graph = nearest_neighbour_graph(prepared.start, self.n_neighbors)
        strengths = self.strengths[first : first + _STRETCH]
        piece = _Piece(fold, first, [], [], [])
        fitted, start = prepared.statistics, prepared.start
        path = walk(fitted, graph, start, strengths, tolerance=self.tolerance, solver=self.solver)
        for point in path:
            weights = prepared.weights(point.weights)
            intercept = prepared.intercept(weights) if self.choices.fit_intercept else None
            error = held_out.squared_error(weights, intercept)
            piece.errors.append(self.score(error, held_out.n_samples))
            piece.gaps.append(point.gap)
            piece.n_groups.append(point.n_groups)
        return piece


@contextmanager
def _abandoned_at_the_end(pieces: Generator[_Piece, None, None]) -> Iterator[Generator[_Piece, None, None]]:
    """Give up what is left of the work when the block ends early; joblib would warn of just that."""
    try:
        yield pieces
    finally:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)
            pieces.close()

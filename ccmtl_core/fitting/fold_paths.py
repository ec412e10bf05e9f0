"""Fit a path over the strengths on each fold, and collect errors, gaps and numbers of groups.

What the strengths of a fold share is prepared once. The path is cut into stretches, which workers share; they
are the same for any number of workers, and so are the results. A search takes the stretch of the largest
strengths first, on all folds, and the next only as long as weaker fusion may be less wrong.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from joblib import Parallel, delayed

from ccmtl_core.base.threads import one_blas_thread
from ccmtl_core.base.types import FloatArray
from ccmtl_core.choices.model_choices import ModelChoices, SolverInput
from ccmtl_core.choices.single_task import single_task_weights
from ccmtl_core.fitting.path import walk
from ccmtl_core.fitting.scoring import Score, standard_error
from ccmtl_core.graph.knn_graph import TaskGraph
from ccmtl_core.statistics.inputs import Statistics

_STRETCH = 7  # strengths that one piece of work walks


@dataclass(frozen=True)
class SelectionProgress:
    """What a running selection tells its caller.

    Parameters
    ----------
    done, total : int
        Fits done, and how many there are at most: folds times strengths, and the final one.
    fusion_strengths, errors : tuple of float
        Strengths that all folds have been fitted at, with their mean errors so far.
    """

    done: int
    total: int
    fusion_strengths: tuple[float, ...]
    errors: tuple[float, ...]


class _Piece(NamedTuple):
    """Errors, gaps and numbers of groups of one fold, from one strength on."""

    fold: int
    first: int
    errors: list[float]
    gaps: list[float]
    n_groups: list[int]


class FoldTable:
    """Errors, gaps and numbers of groups by fold and strength, (K, L), as they come in."""

    def __init__(
        self, strengths: FloatArray, n_folds: int, on_progress: Callable[[SelectionProgress], None] | None
    ) -> None:
        shape = n_folds, len(strengths)
        self.strengths, self._on_progress, self._done = strengths, on_progress, 0
        self.errors, self.gaps = np.full(shape, np.nan), np.full(shape, np.nan)
        self.n_groups = np.zeros(shape, dtype=np.int64)

    def enter(self, piece: _Piece) -> None:
        """Take the numbers of a piece, and tell the caller."""
        place = piece.fold, slice(piece.first, piece.first + len(piece.errors))
        self.errors[place], self.gaps[place] = piece.errors, piece.gaps
        self.n_groups[place] = piece.n_groups
        self.tell(len(piece.errors))

    def drop(self, n_left: int) -> None:
        """Leave out the least strengths, which were not tried."""
        self.strengths, self.errors = self.strengths[n_left:], self.errors[:, n_left:]
        self.gaps, self.n_groups = self.gaps[:, n_left:], self.n_groups[:, n_left:]

    def tell(self, done: int) -> None:
        """Tell the caller that so many more fits are done."""
        self._done += done
        if self._on_progress is not None:
            known = ~np.isnan(self.errors).any(axis=0)
            found = tuple(self.strengths[known]), tuple(self.errors[:, known].mean(axis=0))
            self._on_progress(SelectionProgress(self._done, self.errors.size + 1, *found))


@dataclass(frozen=True, eq=False)
class FoldPaths:
    """How to walk the path of any fold, and how to cut it into pieces of work."""

    strengths: FloatArray
    tolerance: float
    solver: str
    score: Score

    def walked(
        self,
        ready: Sequence[tuple[SolverInput, TaskGraph]],
        held_out: Sequence[Statistics],
        n_jobs: int,
        on_progress: Callable[[SelectionProgress], None] | None,
        *,
        searches: bool = False,
    ) -> FoldTable:
        """Walk the paths of all folds, which are made ready, all folds of a stretch before the next stretch.

        A search ends once weaker fusion is seen to be more wrong; strengths it did not come to are left out.
        """
        table = FoldTable(self.strengths, len(ready), on_progress)
        firsts = list(range(0, len(self.strengths), _STRETCH))
        rounds = [[first] for first in reversed(firsts)] if searches else [firsts]
        alone = self._errors_alone(ready, held_out, n_jobs) if searches else np.empty(0)
        for stretches in rounds:
            work = (
                delayed(self.piece)(fold, first, (*ready[fold], held_out[fold]))
                for first in stretches
                for fold in range(len(ready))
            )
            _enter(table, Parallel(n_jobs=n_jobs, prefer="threads", return_as="generator_unordered")(work))
            if searches and weaker_is_worse(table.errors[:, stretches[0] :], alone):
                table.drop(stretches[0])
                break
        return table

    def _errors_alone(
        self, ready: Sequence[tuple[SolverInput, TaskGraph]], held_out: Sequence[Statistics], n_jobs: int
    ) -> FloatArray:
        """(K,) Errors of each task alone, which is what the weakest fusion leads to."""
        pairs = zip((prepared for prepared, _ in ready), held_out, strict=True)
        workers = Parallel(n_jobs=n_jobs, prefer="threads")
        return np.array(workers(delayed(self.alone)(pair) for pair in pairs))

    @one_blas_thread()
    def alone(self, parts: tuple[SolverInput, Statistics]) -> float:
        """Return the error of each task alone on the held-out rows of one fold."""
        prepared, held_out = parts
        weights = single_task_weights(prepared.statistics)
        return self.score(prepared.squared_error(weights, held_out), held_out.n_samples)

    @one_blas_thread()
    def piece(self, fold: int, first: int, parts: tuple[SolverInput, TaskGraph, Statistics]) -> _Piece:
        """Walk one stretch of the path of one fold, and score it by the statistics of its held-out rows."""
        prepared, graph, held_out = parts
        piece = _Piece(fold, first, [], [], [])
        fitted, start = prepared.statistics, prepared.start
        strengths = self.strengths[first : first + _STRETCH]
        for point in walk(fitted, graph, start, strengths, tolerance=self.tolerance, solver=self.solver):
            error = prepared.squared_error(point.weights, held_out)
            piece.errors.append(self.score(error, held_out.n_samples))
            piece.gaps.append(point.gap)
            piece.n_groups.append(point.n_groups)
        return piece


def made_ready(
    training: Sequence[Statistics], choices: ModelChoices, n_jobs: int
) -> list[tuple[SolverInput, TaskGraph]]:
    """Return what paths begin from, made of the statistics of their training rows."""
    # In a tuple they travel with their work. Dask would put them on one worker, and lose them with it.
    work = (delayed(_ready)(choices, (statistics,)) for statistics in training)
    ready: list[tuple[SolverInput, TaskGraph]] = Parallel(n_jobs=n_jobs, prefer="threads")(work)
    return ready


@one_blas_thread()
def _ready(choices: ModelChoices, training: tuple[Statistics]) -> tuple[SolverInput, TaskGraph]:
    prepared = choices.prepare(*training)
    return prepared, choices.graph(prepared)


def weaker_is_worse(errors: FloatArray, alone: FloatArray) -> bool:
    """Whether errors (K, L) of rising strengths say that a weaker one than these is not worth a try.

    So it is where errors have risen for two strengths in a row towards the least of them, by more than the
    standard error of that rise over the folds, and each task alone (K,) is more wrong still.

    Examples
    --------
    >>> errors = np.array([[3.0, 2.0, 1.1, 1.0], [2.8, 1.9, 1.0, 1.1]])
    >>> weaker_is_worse(errors, np.array([4.0, 4.0])), weaker_is_worse(errors, np.array([0.5, 0.5]))
    (True, False)
    """
    if errors.shape[1] < 3:
        return False
    mean = errors.mean(axis=0)
    rise = errors[:, :1] - errors[:, [int(np.argmin(mean))]]
    sure = bool(rise.mean() > standard_error(rise)[0])  # of a single fold it is NaN: nothing is sure
    return sure and bool(mean[0] > mean[1] > mean[2]) and bool(alone.mean() > mean[0])


def _enter(table: FoldTable, pieces: Generator[_Piece, None, None]) -> None:
    """Enter the pieces as they are done."""
    try:
        for piece in pieces:
            table.enter(piece)
    finally:  # gives up what is left where this ends early, of which joblib would warn
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)
            pieces.close()

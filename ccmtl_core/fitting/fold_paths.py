"""Fit a path over the strengths on each fold, and collect errors, gaps and numbers of groups.

What the strengths of a fold share is prepared once. The path is cut into stretches, which workers share; they
are the same for any number of workers, and so are the results.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from joblib import Parallel, delayed

from ccmtl_core.base.types import FloatArray
from ccmtl_core.choices.model_choices import ModelChoices, SolverInput
from ccmtl_core.fitting.path import walk
from ccmtl_core.fitting.scoring import Score
from ccmtl_core.graph.knn_graph import TaskGraph
from ccmtl_core.statistics.inputs import Statistics

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
        self._strengths, self._on_progress, self._done = strengths, on_progress, 0
        self.errors, self.gaps = np.full(shape, np.nan), np.full(shape, np.nan)
        self.n_groups = np.zeros(shape, dtype=np.int64)

    def enter(self, piece: _Piece) -> None:
        """Take the numbers of a piece, and tell the caller."""
        place = piece.fold, slice(piece.first, piece.first + len(piece.errors))
        self.errors[place], self.gaps[place] = piece.errors, piece.gaps
        self.n_groups[place] = piece.n_groups
        self.tell(len(piece.errors))

    def tell(self, done: int) -> None:
        """Tell the caller that so many more fits are done."""
        self._done += done
        if self._on_progress is not None:
            known = ~np.isnan(self.errors).any(axis=0)
            found = tuple(self._strengths[known]), tuple(self.errors[:, known].mean(axis=0))
            self._on_progress(SelectionProgress(self._done, self.errors.size + 1, *found))


@dataclass(frozen=True, eq=False)
class FoldPaths:
    """How to walk the path of any fold, and how to cut it into pieces of work."""

    strengths: FloatArray
    choices: ModelChoices
    tolerance: float
    solver: str
    score: Score

    def walked(
        self,
        training: Sequence[Statistics],
        held_out: Sequence[Statistics],
        n_jobs: int,
        on_progress: Callable[[SelectionProgress], None] | None,
    ) -> tuple[FoldTable, list[SolverInput]]:
        """Walk all paths, all folds of a stretch before the next stretch; return what each began from too."""
        table = FoldTable(self.strengths, len(training), on_progress)
        workers = Parallel(n_jobs=n_jobs, prefer="threads")
        # In a tuple they travel with their work. Dask would put them on one worker, and lose them with it.
        ready = workers(delayed(self.ready)((statistics,)) for statistics in training)
        work = (
            delayed(self.piece)(fold, first, (*ready[fold], held_out[fold]))
            for first in range(0, len(self.strengths), _STRETCH)
            for fold in range(len(training))
        )
        workers = Parallel(n_jobs=n_jobs, prefer="threads", return_as="generator_unordered")
        pieces = workers(work)
        try:
            for piece in pieces:
                table.enter(piece)
        finally:  # gives up what is left where this ends early, of which joblib would warn
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", UserWarning)
                pieces.close()
        return table, [prepared for prepared, _ in ready]

    def ready(self, training: tuple[Statistics]) -> tuple[SolverInput, TaskGraph]:
        """Return what the path of a fold begins from, made of the statistics of its training rows."""
        prepared = self.choices.prepare(*training)
        return prepared, self.choices.graph(prepared)

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

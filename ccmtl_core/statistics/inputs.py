"""Accept a dataset or statistics wherever data is wanted, or say how to make them."""

from __future__ import annotations

from collections.abc import Sequence

from ccmtl_core.base.arguments import check_kind
from ccmtl_core.base.exceptions import ParameterError
from ccmtl_core.data.task_dataset import TaskDataset
from ccmtl_core.statistics.sufficient_statistics import SufficientStatistics
from ccmtl_core.statistics.triangular_statistics import TriangularStatistics

Statistics = SufficientStatistics | TriangularStatistics

_HOW = (
    "make one of a table with TaskDataset.from_long(table[features], table[target], table[task]), "
    "or statistics of files with statistics_from_files"
)


def statistics_of(data: TaskDataset | Statistics) -> Statistics:
    """Return the statistics of a dataset, or statistics as they are; all else is a ParameterError."""
    check_data(data, TaskDataset, SufficientStatistics, TriangularStatistics)
    return SufficientStatistics.from_dataset(data) if isinstance(data, TaskDataset) else data


def check_data(data: object, *kinds: type) -> None:
    """Refuse data of other kinds than these, and say how to make them."""
    check_kind(data, "data", *kinds, hint=_HOW)


def check_folds(parts: object) -> None:
    """Refuse what is no sequence of statistics, one for each fold of a selection."""
    if isinstance(parts, Statistics):
        raise ParameterError(
            "the statistics of all rows cannot be parted again: give select a TaskDataset, or the statistics "
            "of each fold, as SufficientStatistics.by_fold and read_statistics_folds return them"
        )
    if not isinstance(parts, Sequence) or not all(isinstance(part, Statistics) for part in parts):
        raise ParameterError(
            f"data must be TaskDataset, or a list with the statistics of each fold, not "
            f"{type(parts).__name__}: {_HOW}"
        )

"""Convex clustering multi-task regression: the names that users import."""

from ccmtl_core.exceptions import (
    CCMTLError,
    ConvergenceError,
    DataError,
    ModelFileError,
    ParameterError,
    UnknownTaskError,
)
from ccmtl_core.folds import training_folds
from ccmtl_core.model import CCMTLModel
from ccmtl_core.statistics import SufficientStatistics
from ccmtl_core.task_dataset import TaskDataset
from ccmtl_core.triangular_statistics import TriangularStatistics

__all__ = [
    "CCMTLError",
    "CCMTLModel",
    "ConvergenceError",
    "DataError",
    "ModelFileError",
    "ParameterError",
    "SufficientStatistics",
    "TaskDataset",
    "TriangularStatistics",
    "UnknownTaskError",
    "training_folds",
]

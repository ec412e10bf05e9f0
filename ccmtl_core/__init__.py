"""Convex clustering multi-task regression: the names that users import."""

from ccmtl_core.exceptions import (
    CCMTLError,
    ConvergenceError,
    DataError,
    ModelFileError,
    ParameterError,
    UnknownTaskError,
)
from ccmtl_core.model import CCMTLModel
from ccmtl_core.statistics import SufficientStatistics, training_folds
from ccmtl_core.task_dataset import TaskDataset

__all__ = [
    "CCMTLError",
    "CCMTLModel",
    "ConvergenceError",
    "DataError",
    "ModelFileError",
    "ParameterError",
    "SufficientStatistics",
    "TaskDataset",
    "UnknownTaskError",
    "training_folds",
]

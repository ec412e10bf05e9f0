from ccmtl_core.base.exceptions import (
    CCMTLError,
    ConvergenceError,
    DataError,
    ModelFileError,
    ParameterError,
    UnknownTaskError,
)
from ccmtl_core.choices.model_choices import ModelChoices
from ccmtl_core.choices.period_factors import period_factors
from ccmtl_core.choices.random_coefficients import RandomCoefficients, random_coefficients
from ccmtl_core.choices.single_task import pooled_weights, shrunk_weights, single_task_weights
from ccmtl_core.data.task_dataset import TaskDataset
from ccmtl_core.fitting.fit import FitResult, fit
from ccmtl_core.fitting.fold_paths import SelectionProgress
from ccmtl_core.fitting.path import FusionPath, PathPoint, fit_path
from ccmtl_core.fitting.rivals import rival_models
from ccmtl_core.fitting.selection import Selection, select
from ccmtl_core.fitting.strength import FusionThreshold, fused_weights, fusion_threshold, strength_grid
from ccmtl_core.graph.knn_graph import TaskGraph, nearest_neighbour_graph
from ccmtl_core.model.ccmtl_model import CCMTLModel
from ccmtl_core.solver.report import Progress, SolveReport, SolveStatus
from ccmtl_core.statistics.folds import contiguous_folds, random_folds, training_statistics
from ccmtl_core.statistics.merging import append_statistics, merge_statistics
from ccmtl_core.statistics.sufficient_statistics import SufficientStatistics
from ccmtl_core.statistics.triangular_statistics import TriangularStatistics
from ccmtl_core.tables.sample_files import statistics_from_files
from ccmtl_core.tables.statistics_table import read_statistics, read_statistics_folds, statistics_frame

__all__ = [
    "CCMTLError",
    "CCMTLModel",
    "ConvergenceError",
    "DataError",
    "FitResult",
    "FusionPath",
    "FusionThreshold",
    "ModelChoices",
    "ModelFileError",
    "ParameterError",
    "PathPoint",
    "Progress",
    "RandomCoefficients",
    "Selection",
    "SelectionProgress",
    "SolveReport",
    "SolveStatus",
    "SufficientStatistics",
    "TaskDataset",
    "TaskGraph",
    "TriangularStatistics",
    "UnknownTaskError",
    "append_statistics",
    "contiguous_folds",
    "fit",
    "fit_path",
    "fused_weights",
    "fusion_threshold",
    "merge_statistics",
    "nearest_neighbour_graph",
    "period_factors",
    "pooled_weights",
    "random_coefficients",
    "random_folds",
    "read_statistics",
    "read_statistics_folds",
    "rival_models",
    "select",
    "shrunk_weights",
    "single_task_weights",
    "statistics_frame",
    "statistics_from_files",
    "strength_grid",
    "training_statistics",
]

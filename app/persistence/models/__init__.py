"""The tables, one file for each thing that is stored."""

from app.persistence.models.base import Base, UtcDateTime, new_id, utc_now
from app.persistence.models.dataset import CoveragePart, Dataset, DatasetCoverage, DatasetVersion, Segment
from app.persistence.models.model_version import Model, ModelVersion
from app.persistence.models.training_job import JobState, TrainingJob
from app.persistence.models.weights import MatrixChunk, MatrixName, TaskRow

__all__ = [
    "Base",
    "CoveragePart",
    "Dataset",
    "DatasetCoverage",
    "DatasetVersion",
    "JobState",
    "MatrixChunk",
    "MatrixName",
    "Model",
    "ModelVersion",
    "Segment",
    "TaskRow",
    "TrainingJob",
    "UtcDateTime",
    "new_id",
    "utc_now",
]

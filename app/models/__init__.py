"""The tables, one file for each thing that is stored."""

from app.models.base import Base, UtcDateTime, new_id, utc_now
from app.models.dataset import Dataset, DatasetVersion, Segment
from app.models.model_version import Model, ModelVersion
from app.models.training_job import JobState, TrainingJob
from app.models.weights import MatrixChunk, MatrixName, TaskRow

__all__ = [
    "Base",
    "Dataset",
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

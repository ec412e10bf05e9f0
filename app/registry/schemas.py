"""What the registry puts on the wire: models, their versions and how each was made."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from pydantic import BaseModel, ConfigDict, Field


class Wire(BaseModel):
    """Frozen, and built by name."""

    model_config = ConfigDict(frozen=True)


class DataUsed(Wire):
    """The dataset version that a model version was trained on."""

    dataset: str
    version: int
    id: str


class ModelSummary(Wire):
    """A model: a name under which versions are published."""

    name: str
    n_versions: int
    newest_version: int
    created_at: datetime


class ModelPage(Wire):
    """A page of models in the order of their names."""

    items: list[ModelSummary]
    next_cursor: str | None = Field(description="Pass as `cursor` for the next page; null on the last.")


class ModelVersionDetail(Wire):
    """What was trained, on what, with which configuration, and how well it did on held-out rows."""

    model: str
    version: int
    id: str
    created_at: datetime
    training_job: str
    data: DataUsed
    feature_names: list[str]
    n_tasks: int
    configuration: dict[str, Any] = Field(description="The training request with all defaults filled in.")
    metrics: dict[str, Any] = Field(
        description="`rmse_mean_of_tasks` on held-out rows for `ccmtl`, `pooled`, `single_task` and `zero`, "
        "with the counts behind it; empty when nothing was held out."
    )
    report: dict[str, Any] = Field(
        description="How the solver ended: status, objective, gap, seconds, and `advice` about the solve "
        "alone. `notes` say, among other things, where a simple rival has a smaller error than the model. "
        "`rows` says how many of the values could be trained on, `not_forecast` of series for how many "
        "products there is no forecast, with the first of them. "
        "Where a strength was chosen, `selection` says how."
    )


class ModelDetail(ModelSummary):
    """A model with its newest version in full."""

    newest: ModelVersionDetail


class ModelVersionPage(Wire):
    """A page of a model's versions, newest first."""

    items: list[ModelVersionDetail]
    next_cursor: str | None = Field(description="Pass as `cursor` for the next page; null on the last.")

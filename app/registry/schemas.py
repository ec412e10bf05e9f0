"""What the API answers about models: versions, how each was made, and how well it did."""

from __future__ import annotations

from datetime import datetime
from typing import Any

from pydantic import BaseModel, ConfigDict, Field

from app.http.parameters import Page


class DataUsed(BaseModel):
    """The dataset version that a model version was trained on."""

    dataset: str
    version: int
    id: str


class Stored(BaseModel):
    """A part of what a version was stored with.

    Fields added later need a default, since older versions lack them; unknown stored fields are passed on.
    """

    model_config = ConfigDict(frozen=True, extra="allow")


class Metrics(Stored):
    """Errors on held-out rows by method, and the counts behind them.

    The methods are the model itself (``ccmtl``), one model for all tasks (``pooled``), each task alone
    (``single_task``), where a strength was chosen each shrunk to the pooled model (``shrunk``), and always
    zero (``zero``); the rivals also with the model's own choices, as in ``pooled_same_choices``.
    """

    rmse_mean_of_tasks: dict[str, float] = Field(description="Mean of the tasks' root mean squared errors.")
    rmse_over_rows: dict[str, float] = Field(description="Root mean squared error over all rows together.")
    n_tasks_scored: int = Field(description="Tasks with held-out rows.")
    n_tasks_without_training_rows: int = Field(description="Of these, tasks of which nothing was trained on.")
    n_train_rows: int
    n_test_rows: int
    n_rows: int
    n_periods_filled: int | None = Field(None, description="Of series: absent periods that count as zero.")
    n_periods_without_all_lags: int | None = Field(
        None, description="Of series: values that became no row, because a value before them is missing."
    )
    first_held_out: str | None = Field(None, description="Of series: the first period that was held out.")


class ForecastMetrics(Stored):
    """Errors of direct forecasts on rolling origins, by method, on the same rows for all.

    The methods are the model (``ccmtl``), always zero (``zero``), the mean of the last eight values
    (``window_average``) and the value one season before (``seasonal_naive``; absent where the history is no
    longer than a season). An error is the mean over products of the root mean squared error in units of each
    product: the root mean square of its changes from period to period.
    """

    errors: dict[str, float | None] = Field(description="Of all steps together.")
    errors_by_step: dict[str, list[float | None]] = Field(
        description="Of forecasts 1 to `horizon` periods ahead; null where nothing was held out."
    )
    bias: dict[str, float | None] = Field(
        description="What all forecasts together are too large, as a share of what the values are together."
    )
    first: str = Field(description="The first period that was held out.")
    last: str = Field(description="The last one.")
    n_rows: int = Field(description="Forecasts that were compared with what happened.")
    n_series: int = Field(description="Products that these are of.")
    n_periods_filled: int = Field(description="Absent periods that count as zero.")


class SolverRound(Stored):
    """One round of the solver."""

    smoothing: float | None
    objective: float | None
    gap: float | None
    cg_iterations: int
    seconds: float


class StrengthSelection(Stored):
    """How the strength was chosen; errors are means over the folds."""

    folds: str
    order: str | None = Field(
        None, description="What the folds went by: `time` of series; null of random ones."
    )
    n_folds: int
    rule: str
    score: str
    fusion_strengths: list[float] = Field(description="Strengths that were tried, rising.")
    errors: list[float | None]
    standard_errors: list[float | None]
    n_groups: list[float] = Field(
        description="Groups of tasks that share one model exactly, a mean over the folds."
    )
    largest_gap: float | None
    chosen: int = Field(description="Place of the chosen strength in `fusion_strengths`, from 0.")
    rivals: dict[str, float | None] = Field(
        description="Errors of simple models on the same folds, named as in `metrics`."
    )


class RowsUsed(Stored):
    """How many of the values could be trained on."""

    values: int
    used: int
    share: float


class NotForecast(Stored):
    """Products for which there is no forecast, because their newest values are missing."""

    count: int
    examples: list[str] = Field(description="The first of them.")


class TriedRows(Stored):
    """A set of features that was compared with others."""

    rows: dict[str, Any] = Field(description="The features, as in `configuration`.")
    fit_intercept: bool
    shared_model_error: float = Field(description="Error on rolling origins of one model for all products.")
    shared_model_error_over_all: float | None = Field(
        None, description="The same over all values together, not the mean over products."
    )


class TriedChoices(Stored):
    """Choices of the model that were tried, at each strength; errors are means over blocks of time."""

    choices: dict[str, Any]
    fusion_strengths: list[float]
    errors: list[float]
    rivals: dict[str, float] = Field(description="Errors of simple models of the same rows.")
    shrinkages: dict[str, float] = Field({}, description="How much the shrunk of these are shrunk.")


class CutValue(Stored):
    """A value far above all others of its product, which counted as the largest of these."""

    unique_id: str
    ds: str
    y: float = Field(description="The value as it is stored.")
    counted_as: float


class ForecasterReport(Stored):
    """How a forecaster with a horizon was chosen; errors are in units of each product."""

    n_series: int
    n_constant: int = Field(description="Products that never changed: each is forecast by its constant.")
    n_origins: int = Field(description="Periods that the rows for training start from.")
    n_cut: int = Field(
        0,
        description="Products with one value far above all others, as if mistyped, which counted as the "
        "largest of these; the data stay as they are.",
    )
    cut: list[CutValue] = Field([], description="The first 100 of these values.")
    n_short: int = Field(
        0,
        description="Products with so few values that they have the mean weights of the others.",
    )
    error: float | None = Field(None, description="Error of the choice; null where nothing was held out.")
    fold_errors: list[float] = Field([], description="The same by block of time.")
    level: dict[str, Any] | None = Field(
        None,
        description="On rolling origins with either `aim`, `products` or `totals`: `errors` of products, "
        "`bias` and `errors_of_totals`; the `anchor`, the rival whose sums the forecasts take for totals, "
        "and the `factor` that does it.",
    )
    tried: list[TriedChoices] = []
    rows_tried: list[TriedRows] = Field([], description="The best first.")
    seconds: float


class Report(Stored):
    """How the solver ended."""

    status: str
    advice: str = Field(description="What the status means and what to try; about the solve alone.")
    solver: str
    objective: float | None
    gap: float | None = Field(description="Proved relative distance to the best possible objective.")
    tolerance: float
    rounds: int
    cg_iterations: int
    seconds: dict[str, float]
    history: list[SolverRound]
    notes: list[str] = Field(
        description="What limits the answer; also where a simple rival has a smaller error than the model."
    )
    fusion_strength: float
    rows: RowsUsed | None = Field(None, description="Null of versions from before it was counted.")
    not_forecast: NotForecast | None = Field(None, description="Null of regression data.")
    selection: StrengthSelection | None = Field(None, description="Null where no strength was chosen.")
    forecaster: ForecasterReport | None = Field(None, description="Null unless a `horizon` was asked for.")


class ModelSummary(BaseModel):
    """A model: a name under which versions are published."""

    name: str
    n_versions: int
    newest_version: int
    created_at: datetime


class ModelPage(Page[ModelSummary]):
    """A page of models in the order of their names."""


class ModelVersionDetail(BaseModel):
    """What was trained, on what, by what, with which configuration, and how well it did on held-out rows."""

    model: str
    version: int
    id: str
    created_at: datetime
    aliases: list[str] = Field(description="Aliases that name this version.")
    training_job: str
    code_version: str | None = Field(
        description="Version of the program that trained it, and a digest of its source. Null of versions "
        "from before it was kept."
    )
    data: DataUsed
    feature_names: list[str]
    n_tasks: int
    configuration: dict[str, Any] = Field(description="The training request with all defaults filled in.")
    metrics: Metrics | ForecastMetrics | None = Field(description="Null where nothing was held out.")
    report: Report


class ModelDetail(ModelSummary):
    """A model with its newest version in full."""

    newest: ModelVersionDetail


class ModelVersionPage(Page[ModelVersionDetail]):
    """A page of a model's versions, newest first."""


class VersionRef(BaseModel):
    """The version that an answer is of."""

    name: str
    version: int


class AliasRequest(BaseModel):
    """The version that an alias shall name."""

    model_config = ConfigDict(extra="forbid", strict=True)

    version: int = Field(ge=1, le=2**31 - 1, examples=[1])


class AliasDetail(BaseModel):
    """A name for one version of a model."""

    model: str
    alias: str
    version: int = Field(description="The version that it names.")
    previous_version: int | None = Field(
        description="The version that it named before, which a rollback returns to; null if there was none, "
        "after a rollback, or if it was deleted."
    )
    changed_at: datetime


class AliasList(BaseModel):
    """All aliases of a model, by name."""

    items: list[AliasDetail]


class Cluster(BaseModel):
    """A group of tasks that share their weights exactly."""

    cluster: int = Field(description="Its number, from 0 for the largest.")
    n_tasks: int
    unique_ids: list[str] = Field(description="The first hundred; `/products?cluster=0` lists all.")


class ClusterPage(Page[Cluster]):
    """A page of groups, the largest first."""

    model: VersionRef
    n_tasks: int = Field(description="Tasks of the version.")
    n_clusters: int = Field(description="Groups of two tasks or more.")
    n_alone: int = Field(description="Tasks that share their weights with no other.")


class Neighbour(BaseModel):
    """A task that the graph of similar tasks joins to the one asked for."""

    unique_id: str
    mutual: bool = Field(description="Whether each of the two has the other among its nearest.")
    same_cluster: bool = Field(description="Whether the two share their weights exactly.")


class TaskDetail(BaseModel):
    """One task, or product, of a version."""

    model: VersionRef
    unique_id: str
    weights: dict[str, float] = Field(description="By feature.")
    intercept: float
    n_samples: int | None = Field(
        description="Rows of it that were trained on; of a model with a `horizon`, its known values. Null of "
        "versions from before it was kept."
    )
    cluster: int | None = Field(description="Number of its group; null if it is alone.")
    n_in_cluster: int
    n_neighbors: int | None
    neighbors: list[Neighbour] | None = Field(
        description="The first thousand. Null where the graph was not kept: of old versions."
    )


class ProductPage(Page[str]):
    """A page of the ids of a version's products, or of the tasks of regression data."""

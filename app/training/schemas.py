"""The JSON of training: what is asked for, and how far a job has come.

What can be chosen about the model, with defaults and explanations, is said once, in ``ModelChoices``.
"""

from __future__ import annotations

from datetime import datetime
from typing import Annotated, Any, ClassVar, Literal

from pydantic import (
    BaseModel,
    ConfigDict,
    Field,
    PlainSerializer,
    PlainValidator,
    WithJsonSchema,
    model_validator,
)
from pydantic_core import PydanticCustomError

from app.http.names import NAME, NO_NUL
from app.http.parameters import Page
from app.persistence.models import JobState
from app.registry.schemas import DataUsed
from ccmtl_core import ModelChoices, ParameterError
from ccmtl_core.choices.model_choices import LossScaling, Metric, choice_texts
from ccmtl_core.fitting.scoring import Rule
from ccmtl_core.fitting.selection import DEFAULT_FOLDS, Folds
from ccmtl_core.solver.objective import MAX_STRENGTH, STRENGTHS, check_strength

FINAL_STATES = frozenset({JobState.SUCCEEDED, JobState.FAILED, JobState.CANCELLED})
PRIORITIES = {"high": 1, "normal": 0, "low": -1}
"""What a priority is stored as."""
DEFAULT_LAGS = 5
MAX_LAGS = MAX_HORIZON = 366
MAX_STRENGTHS = 100
MIN_FOLDS = 2
SERIES_FOLDS: tuple[Folds, ...] = ("rolling", "contiguous")
ROW_FOLDS: tuple[Folds, ...] = ("random",)
"""Ways of folding series and regression data, the default first."""
_DEFAULT = ModelChoices()
_TEXTS = choice_texts()
_LEFT_TO_VALIDATION = {
    "fusion_strength": "auto",
    "n_neighbors": None,
    "fit_intercept": None,
    "metric": None,
    "holdout": None,
}
"""Defaults of a request with a horizon."""


def _strength(value: Any) -> Any:
    """Zero or a number from 1e-100 to 1e100, a list of 2 to 100 different ones, or "auto"."""
    if isinstance(value, list | tuple):
        if not 2 <= len(value) <= MAX_STRENGTHS or not all(map(_is_strength, value)):
            raise PydanticCustomError(
                "strengths", f"A list must hold 2 to {MAX_STRENGTHS} numbers, each {STRENGTHS}"
            )
        if len(set(value)) < len(value):
            raise PydanticCustomError("strengths", "A list must hold no number twice")
        return tuple(map(float, value))
    if value == "auto":
        return value
    if not _is_strength(value):
        raise PydanticCustomError(
            "strength", f'Input should be a number ({STRENGTHS}), a list of them, or "auto"'
        )
    return float(value)


def _is_strength(value: Any) -> bool:
    try:
        check_strength(value)
    except ParameterError:
        return False
    return True


_STRENGTH = {"type": "number", "minimum": 0, "maximum": MAX_STRENGTH}
FusionStrength = Annotated[
    float | tuple[float, ...] | Literal["auto"],
    PlainValidator(_strength),
    PlainSerializer(lambda value: list(value) if isinstance(value, tuple) else value, return_type=Any),
    WithJsonSchema(
        {
            "anyOf": [
                _STRENGTH,
                {"type": "array", "items": _STRENGTH, "minItems": 2, "maxItems": MAX_STRENGTHS},
                {"type": "string", "const": "auto"},
            ]
        }
    ),
]


def with_defaults(document: dict[str, Any]) -> dict[str, Any]:
    """Fill in what a request with a horizon leaves to validation."""
    return document if document.get("horizon") is None else {**_LEFT_TO_VALIDATION, **document}


class TrainingJobRequest(BaseModel):
    """What to train, on what, and under which name to publish it."""

    model_config = ConfigDict(
        extra="forbid",
        strict=True,
        frozen=True,
        allow_inf_nan=False,
        json_schema_extra=lambda schema: schema["required"].remove("fusion_strength"),
    )

    dataset: str = Field(max_length=200, pattern=NO_NUL, description="Name of the dataset.")
    version: int | None = Field(
        None, ge=1, le=2**31 - 1, description="Version of the dataset; null: the newest."
    )
    model: str = Field(pattern=NAME, description="Name under which the next version is published.")
    horizon: int | None = Field(
        None,
        ge=1,
        le=MAX_HORIZON,
        description="Of series: forecast 1 to so many periods ahead, each directly from features of the "
        "history. Forecasts of past blocks of time decide on the features, and on the strength and the "
        "choices that are not given. Goes without `lags`, `folds`, `n_folds`, `rule`, `holdout`, `refit`, "
        "`loss_scaling`, `accept_gaps` and a list of strengths.",
    )
    fusion_strength: FusionStrength = Field(
        examples=["auto"],
        description="Must be given, unless `horizon` is. λ ≥ 0: how strongly similar tasks are drawn "
        "together. A list: the one of these that forecasts best in cross-validation; "
        '"auto": the best of 21 from none to all fused. '
        'With a `horizon` a number or "auto", the default.',
    )
    folds: Folds | None = Field(
        None,
        description="How a strength is chosen among several. Of series: `rolling` (each block of time is "
        "forecast from those before it; the default) or `contiguous` (from all other blocks). Of "
        "regression data: `random`, within each task.",
    )
    n_folds: int = Field(
        DEFAULT_FOLDS,
        ge=MIN_FOLDS,
        le=20,
        description="Parts that are forecast from the others to choose a strength.",
    )
    rule: Rule = Field(
        "best",
        description="`best`: the strength of least error; `one_standard_error`: the largest within one "
        "standard error of it.",
    )
    n_neighbors: int | None = Field(_DEFAULT.n_neighbors, ge=1, le=1000, description=_TEXTS["n_neighbors"])
    fit_intercept: bool | None = Field(_DEFAULT.fit_intercept, description=_TEXTS["fit_intercept"])
    loss_scaling: LossScaling = Field(_DEFAULT.loss_scaling, description=_TEXTS["loss_scaling"])
    metric: Metric | None = Field(_DEFAULT.metric, description=_TEXTS["metric"])
    aim: Literal["products", "totals"] = Field(
        "products",
        description="With a `horizon`: what shall be right. `products`: each forecast; where most values "
        "are zero, the least wrong ones are too low in sum. `totals`: then one factor gives all forecasts "
        "the sum of a simple rival whose sums were not too low. `report.forecaster.level` has the errors of "
        "both.",
    )
    lags: int | None = Field(
        None,
        ge=1,
        le=MAX_LAGS,
        description=f"Preceding periods that are the features of a series; null: {DEFAULT_LAGS}. "
        "Regression data has its own features and takes no lags.",
    )
    accept_gaps: bool = Field(
        False,
        description="Train on series although more than half of the rows that they would have without "
        "gaps are left out, each for a period among its lags that has no value.",
    )
    holdout: float | None = Field(
        0.5,
        gt=0,
        lt=1,
        description="Fraction held out for the metrics: the last part of the time span of series, rows "
        "drawn at random from each task of regression data; null: nothing, and no metrics.",
    )
    tolerance: float = Field(1e-4, gt=0, lt=1, description="Relative accuracy at which the solver stops.")
    refit: bool = Field(
        True, description="Publish a model fitted to all rows; false: the one that the metrics are of."
    )

    priority: Literal["high", "normal", "low"] = Field(
        "normal",
        description="Workers take jobs of high priority first, those of low last, and of one priority the "
        "oldest.",
    )
    parallel: bool = Field(
        False,
        description="Start although another job of the same model runs; else it waits until that has ended.",
    )

    missing: ClassVar[dict[str, str]] = {
        "fusion_strength": "is missing; of series give a `horizon` instead, how many periods ahead to "
        'forecast, which lets it be chosen, for example 7; else a number or "auto"'
    }
    elsewhere: ClassVar[dict[str, str]] = {
        "start": "there is no such choice any more: it made no model better; leave it out"
    }

    @model_validator(mode="before")
    @classmethod
    def _with_defaults(cls, document: Any) -> Any:
        return with_defaults(document) if isinstance(document, dict) else document

    @property
    def choices(self) -> ModelChoices:
        """What is fitted, as the library takes it."""
        return ModelChoices(**self._given_choices())

    @property
    def candidates(self) -> list[ModelChoices]:
        """The choices that validation decides among where there is a horizon."""
        intercepts = [False, True] if self.fit_intercept is None else [self.fit_intercept]
        given = {"metric": "mahalanobis", **self._given_choices()}
        return [ModelChoices(**{**given, "fit_intercept": each}) for each in intercepts]

    def _given_choices(self) -> dict[str, Any]:
        return {name: value for name in _TEXTS if (value := getattr(self, name)) is not None}

    @property
    def chooses_strength(self) -> bool:
        """Whether cross-validation chooses the strength."""
        return not isinstance(self.fusion_strength, int | float)

    @property
    def n_lags(self) -> int:
        """Lags of a request that is about series."""
        return DEFAULT_LAGS if self.lags is None else self.lags

    def folds_of(self, *, of_series: bool) -> Folds:
        """Return the way of folding that is asked for, or the default."""
        return self.folds or (SERIES_FOLDS if of_series else ROW_FOLDS)[0]

    def n_parts(self, *, of_series: bool) -> int:
        """Return how many parts the rows are cut into; the first of rolling folds is never forecast."""
        return self.n_folds + (self.folds_of(of_series=of_series) == "rolling")


class SelectionSoFar(BaseModel):
    """How far the choice of the strength has come."""

    fits_done: int
    fits: int = Field(description="Folds times strengths, and one; with a `horizon` for each choice anew.")
    fusion_strengths: list[float] = Field(description="Strengths that all folds have been fitted at.")
    errors: list[float] = Field(description="Mean error of each on what the folds hold out.")


class JobProgress(BaseModel):
    """How far a running job has come."""

    phase: str = Field(
        description="What it does: `starting`, until its process is there; `compiling`, on a new machine, "
        "for up to half a minute; `selection`; `solve`; and others."
    )
    round: int = Field(description="Round of the solver, from 1; 0 before it.")
    objective: float | None
    gap: float | None = Field(description="Relative distance to the optimum that the solver can vouch for.")
    selection: SelectionSoFar | None = Field(default=None, description="Null where no strength is chosen.")
    elapsed_seconds: float = Field(description="Since its process began to read the data.")
    phases: dict[str, float] = Field(description="Seconds spent in each phase, in the order they began.")


class JobError(BaseModel):
    """Why a job failed."""

    code: str
    detail: str


class PublishedModel(BaseModel):
    """What a job published."""

    name: str
    version: int


class TrainingJobStatus(BaseModel):
    """Where a training job stands, and what came of it."""

    id: str
    state: JobState = Field(
        description="`queued` also once its worker was silent for longer than its lease: it waits again."
    )
    schedule: str | None = Field(description="Name of the schedule that has started it; null: a request.")
    cancel_requested: bool
    attempt: int = Field(description="Runs started so far; a run whose worker died is started again.")
    jobs_ahead: int | None = Field(
        description="Of a queued job: jobs of its workspace that run or come before it; null of any other."
    )
    progress: JobProgress | None
    error: JobError | None
    model: PublishedModel | None = Field(description="Null until it is published, and once it is deleted.")
    created_at: datetime
    started_at: datetime | None
    finished_at: datetime | None


class TrainingJobDetail(TrainingJobStatus):
    """A training job: where it stands, with the request and the data that it trains on."""

    request: TrainingJobRequest
    data: DataUsed


class TrainingJobPage(Page[TrainingJobDetail]):
    """A page of jobs, newest first."""

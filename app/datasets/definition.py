"""What a caller defines of a dataset: the columns of its files, how they are read, and what is repaired."""

from __future__ import annotations

from enum import StrEnum
from typing import Annotated, Any, ClassVar, Literal

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, field_validator, model_validator

from app.http.names import NO_NUL
from app.reading.stated import POLICIES, Duplicates, Keep, Missing, Negatives
from ccmtl_core.forecasting import MOST_ATTRIBUTES, Frequency
from ccmtl_core.inspection import Policies
from ccmtl_core.tables.dates.timestamps import time_format

MAX_FEATURES = 1000
MOST_ID_COLUMNS = 5
MAX_BESIDE = 100

ColumnName = Annotated[str, Field(min_length=1, max_length=255, pattern=NO_NUL)]
IdColumns = Annotated[list[ColumnName], Field(min_length=2, max_length=MOST_ID_COLUMNS)]


class Aggregation(StrEnum):
    """What several rows of one series in one period become."""

    SUM = "sum"
    MEAN = "mean"
    LAST = "last"


_OF_REGRESSION = (
    "features belong to the kind 'regression'; of series, `columns` names what is known of periods to come "
    "in `future`, and what is known up to the present in `past`"
)
_OF_SERIES = "belongs to the kind 'series'; rows of a regression have no times"


class Wire(BaseModel):
    """Frozen; unknown fields are refused, those of the other kind with the word for it in ``elsewhere``."""

    model_config = ConfigDict(extra="forbid", frozen=True)
    elsewhere: ClassVar[dict[str, str]] = {}


def _refuse_repeated(names: list[str]) -> None:
    repeated = sorted({name for name in names if names.count(name) > 1})
    if repeated:
        raise ValueError(f"used more than once: {', '.join(map(repr, repeated))}")


class SeriesColumns(Wire):
    """Names of the file's columns that hold the series, the time, the value and what stands beside it."""

    elsewhere = {"features": _OF_REGRESSION}

    unique_id: ColumnName | IdColumns = Field(
        "unique_id",
        description="A column, or several that make one id with dashes between them, such as `1-0042` of a "
        "store and an article.",
    )
    ds: ColumnName = "ds"
    y: ColumnName = "y"
    future: list[ColumnName] = Field(
        default_factory=list,
        max_length=MAX_BESIDE,
        description="Columns of numbers that will be known of periods to come, such as a price. Cells may be "
        "empty; of several rows in a period they become their mean.",
    )
    past: list[ColumnName] = Field(
        default_factory=list,
        max_length=MAX_BESIDE,
        description="Columns of numbers that are known up to the present alone, such as a stock.",
    )
    attributes: list[ColumnName] = Field(
        default_factory=list,
        max_length=MOST_ATTRIBUTES,
        description="Columns of text that are the same in all rows of a product, such as a category: "
        "products with hardly any history are forecast from those that share them.",
    )

    @model_validator(mode="after")
    def _distinct(self) -> SeriesColumns:
        if len({*self.of_id, self.ds, self.y}) < len(self.of_id) + 2:
            raise ValueError("unique_id, ds and y must be three different columns")
        names = [*self.of_id, self.ds, self.y, *self.future, *self.past, *self.attributes]
        _refuse_repeated(names)
        if reserved := {"unique_id", "ds", "y"} & {*self.future, *self.past, *self.attributes}:
            raise ValueError(f"a column beside the values cannot be called {min(reserved)!r}: rename it")
        return self

    @property
    def of_id(self) -> list[str]:
        """The columns that make the id."""
        return [self.unique_id] if isinstance(self.unique_id, str) else self.unique_id

    @property
    def beside(self) -> list[str]:
        """The columns of numbers beside the values, those of the future first."""
        return [*self.future, *self.past]


class RegressionColumns(Wire):
    """Names of the file's columns that hold the task, the target and the features."""

    elsewhere = {"ds": _OF_SERIES}

    unique_id: ColumnName = "unique_id"
    y: ColumnName = "y"
    features: list[ColumnName] = Field(min_length=1, max_length=MAX_FEATURES)

    @model_validator(mode="after")
    def _distinct(self) -> RegressionColumns:
        _refuse_repeated([self.unique_id, self.y, *self.features])
        return self


class Fill(Wire):
    """What a period without a row means."""

    model_config = ConfigDict(json_schema_extra={"examples": [{"method": "zero", "start": "dataset"}]})

    method: Literal["zero", "forward"] = Field(
        description="`zero`: nothing was sold, the value is 0; `forward`: the value before is repeated, "
        "with the start `series`."
    )
    start: Literal["dataset", "series"] = Field(
        "dataset", description="Fill from the dataset's first period, or from each series' own."
    )

    @model_validator(mode="after")
    def _has_values(self) -> Fill:
        if self.method == "forward" and self.start == "dataset":
            raise ValueError("`forward` has no value before the first of a series: take the start 'series'")
        return self


class SeriesDefinition(Wire):
    """Observations of many series over time."""

    elsewhere = {"features": _OF_REGRESSION}

    kind: Literal["series"]
    columns: SeriesColumns = Field(default_factory=SeriesColumns)
    ds_format: str | None = Field(
        None,
        min_length=2,
        max_length=100,
        pattern=NO_NUL,
        description="strptime pattern of `ds`, such as `%m/%d/%Y` (padding may be absent), also of `%G` and "
        "`%V` or `%q`; or `excel`, `epoch`, `epoch_ms`, `integer`. Null: the whole column decides, and two "
        "readings that fit alike are refused. Of times with a zone, hours are converted to UTC, and days, "
        "weeks and months are those of the local "
        "date; a column must not mix times with and without one.",
        examples=["%m/%d/%Y"],
    )
    frequency: Frequency = Field(
        examples=["D"],
        description="Length of a period: `h`, `D`, `W` (from Monday), `MS`, `QS`, `YS`, named by their first "
        "day; `W-FRI` (weeks that end so), `ME`, `QE`, `YE`, named by their last; `B` (Monday to Friday), "
        "`D-SUN` (all days but Sundays); `1` for whole numbers. Every `ds` counts for the period that it "
        "falls in.",
    )
    duplicates: Duplicates = Field("error", description=POLICIES["duplicates"].text)
    missing: Missing = Field("error", description=POLICIES["missing"].text)
    negatives: Negatives = Field("keep", description=POLICIES["negatives"].text)
    leading_zeros: Keep = Field("keep", description=POLICIES["leading_zeros"].text)
    partial_last: Keep = Field("keep", description=POLICIES["partial_last"].text)
    fill: Fill | None = Field(None, description="For periods without a row; null: they stay absent.")

    @model_validator(mode="before")
    @classmethod
    def _older_name(cls, fields: Any) -> Any:
        """Take ``aggregation``, as ``duplicates`` was called; definitions that are stored have it."""
        if isinstance(fields, dict) and "aggregation" in fields and "duplicates" not in fields:
            fields = dict(fields)
            fields["duplicates"] = fields.pop("aggregation") or "error"
        return fields

    @property
    def aggregation(self) -> Aggregation | None:
        """What several rows of a period become; None where they are refused."""
        return None if self.duplicates == "error" else Aggregation(self.duplicates)

    @property
    def policies(self) -> Policies:
        """The repairs, as the library names them."""
        names = ("duplicates", "missing", "negatives", "leading_zeros", "partial_last")
        chosen = {name: getattr(self, name) for name in names}
        if self.fill is not None:
            chosen |= {"fill": self.fill.method, "fill_start": self.fill.start}
        return Policies(**chosen)

    @field_validator("ds_format")
    @classmethod
    def _readable(cls, ds_format: str | None) -> str | None:
        time_format(ds_format)
        return ds_format


class RegressionDefinition(Wire):
    """Rows of features and a target for many tasks."""

    elsewhere = dict.fromkeys(
        ("ds_format", "frequency", "duplicates", "missing", "negatives", "leading_zeros", "partial_last",
         "fill", "aggregation"), _OF_SERIES
    )  # fmt: skip

    kind: Literal["regression"]
    columns: RegressionColumns


Definition = SeriesDefinition | RegressionDefinition
DEFINITION: TypeAdapter[Definition] = TypeAdapter(Annotated[Definition, Field(discriminator="kind")])

"""Datasets on the wire: what a caller defines, and what it is told about datasets, versions and uploads."""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum
from typing import Annotated, Any, ClassVar, Literal

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, field_validator, model_validator

from app.http.names import NAME, NO_NUL
from app.http.parameters import Page
from ccmtl_core.forecasting import MOST_ATTRIBUTES, Frequency
from ccmtl_core.inspection import Policies
from ccmtl_core.tables.timestamps import time_format

MAX_FEATURES = 1000
MOST_ID_COLUMNS = 5
MAX_BESIDE = 100

DatasetName = Annotated[
    str,
    Field(
        pattern=NAME,
        description="Up to 100 letters, digits, dots, dashes and underscores; first a letter or digit.",
        examples=["sales"],
    ),
]
ColumnName = Annotated[str, Field(min_length=1, max_length=255, pattern=NO_NUL)]
IdColumns = Annotated[list[ColumnName], Field(min_length=2, max_length=MOST_ID_COLUMNS)]


class FileType(StrEnum):
    """Media types of uploads. What a file is, its content tells."""

    CSV = "text/csv"
    PARQUET = "application/vnd.apache.parquet"
    ANY = "application/octet-stream"
    TSV = "text/tab-separated-values"
    JSON_LINES = "application/x-ndjson"
    ARROW = "application/vnd.apache.arrow.file"
    ARROW_STREAM = "application/vnd.apache.arrow.stream"
    XLSX = "application/vnd.openxmlformats-officedocument.spreadsheetml.sheet"
    XLS = "application/vnd.ms-excel"
    XLSB = "application/vnd.ms-excel.sheet.binary.macroenabled.12"
    ODS = "application/vnd.oasis.opendocument.spreadsheet"
    ZIP = "application/zip"
    GZIP = "application/gzip"
    ZSTD = "application/zstd"


class UploadMode(StrEnum):
    """What a new version is made of."""

    FULL = "full"
    APPEND = "append"


class OverlapPolicy(StrEnum):
    """What becomes of an append with rows that the dataset may have already."""

    REFUSE = "refuse"
    ACCEPT = "accept"


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
    duplicates: Literal["error", "sum", "mean", "last"] = Field(
        "error", description="For several rows of a series in one period; `error`: such rows are refused."
    )
    missing: Literal["error", "absent"] = Field(
        "error", description="For rows without a value; `absent`: their period counts as one without a row."
    )
    negatives: Literal["keep", "clip", "error"] = Field(
        "keep",
        description="For values below zero, once rows of a period are put together; `clip`: they are 0.",
    )
    leading_zeros: Literal["keep", "drop"] = Field(
        "keep", description="For zeros before the first other value of a series that is new to the dataset."
    )
    partial_last: Literal["keep", "drop"] = Field(
        "keep", description="For the rows of the last period of a file that ends within it."
    )
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


class SeriesForm(SeriesDefinition):
    """A new dataset of series."""

    name: DatasetName


class RegressionForm(RegressionDefinition):
    """A new dataset for regression."""

    name: DatasetName


DatasetForm = Annotated[SeriesForm | RegressionForm, Field(discriminator="kind")]


class DatasetState(BaseModel):
    """What is known of a dataset beyond its definition."""

    id: str
    created_at: datetime
    newest_version: int | None = Field(description="null before the first upload.")


class SeriesDataset(SeriesForm, DatasetState):
    """A dataset of series."""


class RegressionDataset(RegressionForm, DatasetState):
    """A dataset for regression."""


DatasetDetail = Annotated[SeriesDataset | RegressionDataset, Field(discriminator="kind")]


class DatasetPage(Page[DatasetDetail]):
    """A page of datasets in the order of their names."""


class Warned(BaseModel):
    """Something that was accepted, and that the sender may not have meant."""

    code: str
    message: str
    count: int


class Totals(BaseModel):
    """The extent of a set of values; `periods`, `first` and `last` are null for regression."""

    values: int = Field(description="Stored values: one per series and period; for regression one per row.")
    series: int = Field(description="Distinct `unique_id`s.")
    periods: int | None = Field(description="Periods from the first to the last, both included.")
    first: str | None = Field(description="Start of the first period.", examples=["2000-11-01"])
    last: str | None = Field(description="Start of the last period.", examples=["2001-02-28"])


class TraitFound(BaseModel):
    """One thing that is known of how a file is written."""

    value: str | int
    origin: Literal["stated", "guessed"]
    evidence: str = Field(description="What in the file says so.")


class UploadReport(BaseModel):
    """What was found in an upload, and what it makes of the dataset."""

    mode: UploadMode
    rows: int = Field(description="Rows in the file, the header excluded.")
    series: int = Field(description="Distinct `unique_id`s in the file.")
    periods: int | None = Field(
        description="Periods from the file's first to its last, both included; null for regression."
    )
    first: str | None = Field(description="Start of the file's first period; null for regression.")
    last: str | None = Field(description="Start of the file's last period; null for regression.")
    aggregated_rows: int = Field(
        description="Rows that were added to, or averaged with, an earlier row of their series and period, "
        "with `append` rows of earlier uploads included."
    )
    overlapping_rows: int | None = Field(
        None,
        description="Of series, rows in periods that their series had values in before this upload; for "
        "regression, rows equal in every column to one before. Null where it was not counted yet.",
    )
    filled_periods: int = Field(
        description="Values that the fill policy adds when the version is read: absent periods of its "
        "series, with `append` those of the whole version and not only of this file."
    )
    time_zone: str | None = Field(
        description="When the file's times name a zone: `UTC` for hours, which are converted, and `local` "
        "for days, weeks and months, which keep the local date. Else null."
    )
    ignored_columns: list[str] = Field(description="Columns of the file that the definition does not name.")
    warnings: list[Warned] = Field(description="Of the whole version.")
    dialect: dict[str, TraitFound] = Field(
        {},
        description="How the file is written, by name: format, encoding, delimiter, decimal sign, … What was "
        "guessed can be stated by the parameter of the same name. Empty for uploads before it was told.",
    )
    inspection: dict[str, Any] | None = Field(
        None,
        description="Of series, what `ccmtl inspect --json` says of the file: how it was read (`traits`), "
        "where each row went (`rows_read` = `rows_used` + `rows_merged` + all of `rows_dropped`), what "
        "policies changed, all `findings` with code, severity, count and sample rows, and what becomes of "
        "history: `history_changed`, `history_repeated`, `history_removed`.",
    )
    version: Totals = Field(description="The whole version: with `append`, the data before it included.")


class UploadOutcome(BaseModel):
    """An accepted upload; with `dry_run` nothing was stored and the version is null."""

    dataset: str
    version: int | None
    id: str | None
    created_at: datetime | None
    report: UploadReport


class VersionDetail(BaseModel):
    """A version of a dataset; it never changes."""

    dataset: str
    version: int
    id: str
    created_at: datetime
    bytes: int = Field(description="Size of its files on disk.")
    report: UploadReport


class VersionPage(Page[VersionDetail]):
    """A page of a dataset's versions, newest first."""

"""Datasets on the wire: what a caller is told about datasets, versions and uploads."""

from __future__ import annotations

from datetime import datetime
from enum import StrEnum
from typing import Annotated, Any, Literal

from pydantic import BaseModel, Field

from app.datasets.definition import RegressionDefinition, SeriesDefinition
from app.http.names import NAME
from app.http.parameters import Page

DatasetName = Annotated[
    str,
    Field(
        pattern=NAME,
        description="Up to 100 letters, digits, dots, dashes and underscores; first a letter or digit.",
        examples=["sales"],
    ),
]


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


class DroppedPeriod(BaseModel):
    """A period whose rows `partial_last` dropped, as the file ended within it."""

    period: str = Field(description="What names the period.")
    first: datetime = Field(description="The first time of its rows that were dropped.")
    last: datetime = Field(description="The last of these times.")
    rows: int = Field(description="How many of the rows that were dropped no later upload has sent again.")
    version: int | None = Field(None, description="The version whose upload dropped them; null: this one.")


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
    warnings: list[Warned] = Field(
        description="Of the whole version: what was done with rows that do not say it, and every finding of "
        "`inspection` whose severity is `warning`."
    )
    dropped_periods: list[DroppedPeriod] = Field(
        [],
        description="Periods of which `partial_last` dropped rows in this upload or in one before it. An "
        "append with rows of such a period must hold the whole period.",
    )
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
    idempotency_key: str | None = Field(None, description="Of the request, if it had one.")
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

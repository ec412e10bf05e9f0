"""Check that an uploaded file is of the type it was declared to be, and answer for its faults."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from enum import StrEnum
from pathlib import Path

from app.datasets.schemas import Definition, SeriesDefinition
from app.http.errors import Fault, InvalidContent
from ccmtl_core.base.display import counted
from ccmtl_core.tables.faults import FaultList, TableError
from ccmtl_core.tables.header import Kind, Role, sample_roles
from ccmtl_core.tables.table_file import WORDS, Format, format_of

logger = logging.getLogger(__name__)


class FileType(StrEnum):
    """Media types of uploads."""

    CSV = "text/csv"
    PARQUET = "application/vnd.apache.parquet"


_DECLARE = {
    Format.PARQUET: f"a Parquet file: send it as `Content-Type: {FileType.PARQUET}`",
    Format.ARROW: "an Arrow file: send it as CSV or Parquet",
    Format.GZIP: "gzip: name it in `Content-Encoding: gzip`",
    Format.ZSTD: "zstd: name it in `Content-Encoding: zstd`",
}


def refuse_undeclared(path: Path, file_type: FileType, faults: FaultList) -> None:
    """Refuse a file of another type than it was declared to be, and say how to declare what it is."""
    declared = Format[file_type.name]
    if (found := format_of(path, faults)) is not declared:
        words = (WORDS | _DECLARE).get(found)
        names = {Format.CSV: "CSV", Format.PARQUET: "Parquet"}
        message = f"the file is not {names[declared]}" + (f" but {words}" if words else "")
        raise faults.refusal_for(f"not_{file_type.name.lower()}", message)


def roles_of(definition: Definition) -> list[Role]:
    """Return the columns that a file for ``definition`` must have; features become ``x_0``, ``x_1``, …."""
    columns = definition.columns
    if isinstance(definition, SeriesDefinition):
        value = Role("y", columns.y, Kind.NUMBER)
        return [
            Role("unique_id", columns.unique_id, Kind.ID),
            value,
            Role("ds", definition.columns.ds, Kind.TIME),
        ]
    return sample_roles(columns.unique_id, columns.y, definition.columns.features)


@contextmanager
def answering() -> Iterator[None]:
    """Raise the library's refusal of a table as the service's."""
    try:
        yield
    except TableError as error:
        if error.__cause__ is not None:
            logger.warning("an upload was refused: %s", error.__cause__)
        kinds = ", ".join(f"{count} {code}" for code, count in error.counts.items())
        raise InvalidContent(
            "invalid_upload",
            f"The file has {counted(error.n_faults, 'fault')} ({kinds}); see `errors`. Nothing was stored.",
            errors=[
                Fault(code=f.code, message=f.message, row=f.row, column=f.column, value=f.value)
                for f in error.listed
            ],
            error_count=error.n_faults,
        ) from None

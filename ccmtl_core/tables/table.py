"""A table that was opened and not read yet, and how a failure to read its bytes becomes a fault of it."""

from __future__ import annotations

import errno
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import polars as pl

from ccmtl_core.base.system_errors import naming_system_errors
from ccmtl_core.tables.faults import FaultList


@dataclass(frozen=True)
class Table:
    """A table that was opened and not read yet."""

    columns: tuple[str, ...]
    """The header as it stands in the file, repetitions included."""
    names: tuple[str, ...]
    """What ``rows`` calls these columns."""
    rows: pl.LazyFrame | None
    """The data rows; None where the file's structure forbids to read them."""
    n_rows: int
    unreadable: tuple[str, str]
    """Code and message of the fault when reading fails."""
    malformed_rows: tuple[int, ...] = ()
    """Rows, from 1, that are known to be faulty and whose cells are not judged."""
    n_blank_at_end: int = 0
    """Blank lines below the last row."""

    @classmethod
    def of_frame(cls, frame: pl.DataFrame) -> Table:
        """Return a table that is in memory already."""
        names = tuple(frame.columns)
        return cls(names, names, frame.lazy(), frame.height, ("unreadable", "the table cannot be read"))


@contextmanager
def refusing_unreadable(unreadable: tuple[str, str], faults: FaultList) -> Iterator[None]:
    """Turn a reader's failure on a file's bytes into a refusal of the file."""
    try:
        with naming_system_errors():
            yield
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException, OSError) as error:
        if isinstance(error, OSError) and error.errno != errno.EINVAL:  # which damaged offsets lead to
            raise
        raise faults.refusal_for(*unreadable) from error

"""A table that was opened and not read yet, and what becomes of a reader's failure on its bytes."""

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
    """A table that was opened and not read yet.

    Parameters
    ----------
    columns : tuple of str
        The header as it stands in the file, repetitions included.
    names : tuple of str
        What ``rows`` calls these columns.
    rows : LazyFrame, optional
        The data rows; None where the file's structure forbids to read them.
    n_rows : int
        How many there are.
    unreadable : (code, message)
        What to say when reading fails.
    malformed_rows : tuple of int
        Rows, from 1, that were found faulty already and whose cells are not to be judged.
    n_blank_at_end : int
        Blank lines below the last row.
    """

    columns: tuple[str, ...]
    names: tuple[str, ...]
    rows: pl.LazyFrame | None
    n_rows: int
    unreadable: tuple[str, str]
    malformed_rows: tuple[int, ...] = ()
    n_blank_at_end: int = 0

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

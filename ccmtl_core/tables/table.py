"""A table that was opened and not read yet, and how a failure to read its bytes becomes a fault of it."""

from __future__ import annotations

import errno
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

import polars as pl

from ccmtl_core.base.system_errors import naming_system_errors
from ccmtl_core.base.types import IntArray
from ccmtl_core.tables.dialects.dialect import NOTHING_KNOWN, NOTHING_STATED, Dialect, ReadOptions
from ccmtl_core.tables.dialects.numbers import NumberStyle
from ccmtl_core.tables.faults import FaultList, Parts

UNCOMPUTED = "formulas_without_value"
"""The code of the note on cells of a workbook that are read as their formulas."""
REPEATED_HEADER = "repeated_header"
"""That of the note on rows that are the header once more."""


@dataclass(frozen=True)
class Note:
    """What of a file was not taken as it stands, so that nothing is left out in silence."""

    code: str
    """Stable name of its kind."""
    message: str
    count: int
    rows: tuple[int, ...] = ()
    """The first of the rows, from 1 below the header."""
    values: tuple[str, ...] = ()
    """What stands in these rows, where it is not read."""
    unit: str = "rows"
    """What is counted."""
    severity: Literal["note", "warning"] = "note"
    """Whether something may be wrong."""


@dataclass(frozen=True)
class CellKinds:
    """Which cells of a workbook, or of JSON, are numbers; these have a point, however texts are written."""

    fractions: frozenset[int] = frozenset()
    """The places of columns with numbers that are no whole ones."""
    like_numbers: Mapping[int, str] = field(default_factory=dict)
    """Of each column with texts that are written like numbers, the first of these."""

    def together(self, places: Collection[int], place: int) -> CellKinds:
        """Return those of a table in whose column ``place`` these columns stand one below another."""
        texts = [text for at, text in self.like_numbers.items() if at in places]
        has_fractions = not self.fractions.isdisjoint(places)
        return CellKinds(frozenset({place} if has_fractions else ()), {place: texts[0]} if texts else {})


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
    n_skipped: int = 0
    """How many of these are left out as the options say."""
    row_of: IntArray | None = None
    """The number in the file of each of the ``rows``, where they are not just counted from 1."""
    dialect: Dialect = NOTHING_KNOWN
    options: ReadOptions = NOTHING_STATED
    path: Path | None = None
    """Where the table lies unpacked, of files that are read by columns."""
    ds_format: str | None = None
    """How times are written, where the table's shape says so."""
    styles: Mapping[str, NumberStyle] = field(default_factory=dict)
    """How the numbers of columns are written, where not as programs write them."""
    kinds: CellKinds = field(default_factory=CellKinds)
    """Of a workbook, or of lines of JSON."""
    notes: tuple[Note, ...] = ()
    hint: str | None = None
    """Of a long table of series, how it would be read if it were stated to be wide, if it may be; None of any
    other table."""
    parts: Parts = ()
    """The files that were read one after another; empty for a single file."""

    @property
    def n_left_out(self) -> dict[str, int]:
        """How many rows are left out without a fault, by the code that accounts for them."""
        left_out = {"skipped_rows": self.n_skipped}
        left_out |= {note.code: note.count for note in self.notes if note.code == REPEATED_HEADER}
        return {code: count for code, count in left_out.items() if count}

    @property
    def has_point(self) -> bool:
        """Whether the decimal sign is a point unless another is stated: commas already separate columns."""
        return self.dialect.get("delimiter") == ","

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
        # Damaged offsets are an invalid argument, and a missing end has no number.
        if isinstance(error, OSError) and error.errno not in (None, errno.EINVAL):
            raise
        raise faults.refusal_for(*unreadable) from error

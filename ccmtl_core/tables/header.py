"""Compare the columns that a caller asks for with a table's header; missing ones are named with near matches.

A first line of another format is one fault of the whole table: faults of the rows below would not tell why.
"""

from __future__ import annotations

import difflib
import re
from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from enum import Enum, auto

from ccmtl_core.base.arguments import check_kind
from ccmtl_core.base.display import quoted
from ccmtl_core.base.exceptions import ParameterError
from ccmtl_core.kernels.csv_scan import MAX_ROW_BYTES
from ccmtl_core.tables.faults import FaultList

MAX_COLUMNS = 10_000
MAX_HINTS = 10
WIDE = 12
"""More columns than this, most with a digit in their names, look like a column for each period."""


_CELL = re.compile(r"\s*[-+(]?[0-9]")
"""What names of columns do not begin with, and numbers and dates do."""


class Kind(Enum):
    """What a column holds."""

    ID = auto()
    TIME = auto()
    NUMBER = auto()
    SUM = auto()
    """A number that was computed as float64: a whole one may be a rounded one."""
    OPTIONAL = auto()
    """A number, or an empty cell where none is known: NaN."""
    TEXT = auto()
    """Text such as a department, or an empty cell where it is not known: null."""


@dataclass(frozen=True)
class Role:
    """A column to read: ``name`` in what is read, ``column`` in the table."""

    name: str
    column: str
    kind: Kind
    if_empty: str = "write one, or leave the row out"
    """What to do where a number is empty."""


def sample_roles(task: str, target: str, features: Sequence[str]) -> list[Role]:
    """Return the columns of a table of samples; features become ``x_0``, ``x_1``, …."""
    if not features:
        raise ParameterError("at least one feature column is needed")
    for column in (used := [task, target, *features]):
        check_kind(column, "the name of a column", str)
    repeated = sorted(column for column, n in Counter(used).items() if n > 1)
    if repeated:
        raise ParameterError(f"column {repeated[0]!r} is used twice")
    numbers = [Role(f"x_{i}", column, Kind.NUMBER) for i, column in enumerate(features)]
    return [Role("unique_id", task, Kind.ID), Role("y", target, Kind.NUMBER), *numbers]


def check_header(
    columns: Sequence[str], wanted: Sequence[str], faults: FaultList, if_wide: str | None = None
) -> bool:
    """Note missing and repeated columns; return whether there are none.

    Of a table of series, those that are not read may repeat, and ``if_wide`` says how it would be read if it
    were wide; None of any other table.
    """
    counts = Counter(columns)
    repeated = sorted(name for name in (counts if if_wide is None else set(wanted)) if counts[name] > 1)
    for name in repeated:
        faults.add("repeated_column", f"the header names {name!r} {counts[name]} times", column=name)
    missing = sorted(name for name in wanted if name not in counts)
    listed = ""
    for i, name in enumerate(missing):
        hint = _near(name, columns) if i < MAX_HINTS and len(columns) > 1 else ""
        if not hint:
            hint = "see the columns above" if listed else (listed := _all(columns, if_wide))
        faults.add("missing_column", f"the column {name!r} is missing; {hint}", column=name)
    return not (repeated or missing)


def _near(column: str, columns: Sequence[str]) -> str:
    lowered = {name.strip().casefold(): name for name in columns}
    near = [lowered[name] for name in difflib.get_close_matches(column.strip().casefold(), lowered, n=3)]
    return f"did you mean {' or '.join(map(repr, near))}?" if near else ""


def _all(columns: Sequence[str], if_wide: str | None) -> str:
    if not columns:
        return "the file has no columns"
    if len(columns) == 1:
        return one_column(columns[0])
    shown = ", ".join(repr(name[:50]) for name in columns[:20])
    if if_wide is None:
        n_numbered = sum(any(map(str.isdigit, name)) for name in columns)
        is_wide = len(columns) > WIDE and 2 * n_numbered > len(columns)
        told = "; a table with a column for each period must be given one row for each value first"
        if_wide = told if is_wide else ""
    return f"there are {shown}" + (" and more" if len(columns) > 20 else "") + if_wide


def one_column(name: str) -> str:
    """Say of a table with one column what may part it into more."""
    return (
        f"there is one column, {quoted(name)}: if a mark in it parts the fields, state it as the `delimiter`"
    )


def refuse_too_many(columns: Sequence[str], faults: FaultList) -> None:
    """Refuse a table of more than ``MAX_COLUMNS`` columns."""
    if len(columns) > MAX_COLUMNS:
        message = f"the file has {len(columns)} columns, more than {MAX_COLUMNS}"
        raise faults.refusal_for("too_many_columns", message)


def refuse_other_formats(
    head: str, names: Sequence[str], wanted: Collection[str], n_bytes: int, faults: FaultList
) -> None:
    """Refuse a file of ``n_bytes`` whose beginning, ``head``, and columns are those of another format."""
    if wanted and set(wanted) <= set(names):
        return
    if not set(wanted) & set(names) and "".join(names[:1]).lstrip()[:1] in ("{", "[", "<"):
        what = "HTML or XML: save the table in it as CSV or as a workbook"
        if names[0].lstrip()[0] != "<":
            what = (
                "JSON, of which lines are read that hold an object each: `jq -c '.[]' FILE` writes such lines"
            )
        raise faults.refusal_for("not_csv", f"the file looks like {what}")
    if len(names) < 2 or any(map(_CELL.match, names)):
        refuse_without_line_breaks(head, n_bytes, faults)


def refuse_long_line(n_bytes: int, number: int, faults: FaultList) -> None:
    """Refuse the line of this number if no row of a table is so long."""
    if n_bytes > MAX_ROW_BYTES:
        message = (
            f"line {number:,} has {n_bytes:,} bytes, as none of a table has: is a line break missing there?"
        )
        raise faults.refusal_for("long_row", message)


def refuse_without_line_breaks(head: str, n_bytes: int, faults: FaultList) -> None:
    """Refuse a file of ``n_bytes`` that begins with ``head``, if there is text in it and no line break."""
    if head and "\n" not in head:
        raise faults.refusal_for(
            "no_line_breaks",
            f"the first {len(head.encode()):,} of the file's {n_bytes:,} bytes have no line break, and so no "
            "row below the header",
        )

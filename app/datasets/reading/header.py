"""Find a definition's columns in the header of a file; missing ones are named with similar names."""

from __future__ import annotations

import difflib
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum, auto

from app.datasets.reading.faults import FaultList, refuse
from app.datasets.reading.uploaded_table import UploadedTable
from app.datasets.schemas import Definition, SeriesDefinition

MAX_COLUMNS = 10_000
MAX_HINTS = 10


class Kind(Enum):
    """What a column holds."""

    ID = auto()
    TIME = auto()
    NUMBER = auto()


@dataclass(frozen=True)
class Role:
    """A column that a definition asks for: ``name`` here, ``column`` in the file."""

    name: str
    column: str
    kind: Kind


def roles_of(definition: Definition) -> list[Role]:
    """Return the columns that a file for ``definition`` must have; features become ``x_0``, ``x_1``, …."""
    columns = definition.columns
    roles = [Role("unique_id", columns.unique_id, Kind.ID), Role("y", columns.y, Kind.NUMBER)]
    if isinstance(definition, SeriesDefinition):
        return [*roles, Role("ds", definition.columns.ds, Kind.TIME)]
    features = definition.columns.features
    return [*roles, *(Role(f"x_{i}", column, Kind.NUMBER) for i, column in enumerate(features))]


def refuse_too_many(columns: Sequence[str]) -> None:
    """Refuse a file of more than ``MAX_COLUMNS`` columns."""
    if len(columns) > MAX_COLUMNS:
        raise refuse("too_many_columns", f"the file has {len(columns)} columns, more than {MAX_COLUMNS}")


def check_header(table: UploadedTable, roles: Sequence[Role], faults: FaultList) -> bool:
    """Note missing and repeated columns; return whether there are none."""
    counts = Counter(table.columns)
    repeated = sorted(name for name, count in counts.items() if count > 1)
    for name in repeated:
        faults.add("repeated_column", f"the header names {name!r} {counts[name]} times", column=name)
    missing = [role.column for role in roles if role.column not in counts]
    for i, column in enumerate(missing):
        hint = _alternatives(column, table.columns) if i < MAX_HINTS else "see the first of these faults"
        faults.add("missing_column", f"the column {column!r} is missing; {hint}", column=column)
    return not (repeated or missing)


def _alternatives(column: str, columns: Sequence[str]) -> str:
    if not columns:
        return "the file has no columns"
    lowered = {name.strip().casefold(): name for name in columns}
    near = [lowered[name] for name in difflib.get_close_matches(column.strip().casefold(), lowered, n=3)]
    if near:
        return f"did you mean {' or '.join(map(repr, near))}?"
    shown = ", ".join(repr(name[:50]) for name in columns[:20])
    return f"there are {shown}" + (" and more" if len(columns) > 20 else "")

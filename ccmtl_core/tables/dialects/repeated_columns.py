"""Columns of a table that have the same name."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

from ccmtl_core.base.display import counted, named
from ccmtl_core.tables.table import Note, Table


def noting_repetitions(table: Table) -> Table:
    """Return a long table of series with a note on columns of one name; one that is read is refused later."""
    repeated = [name for name, n in Counter(table.columns).items() if n > 1]
    n_later = len(table.columns) - len(set(table.columns))
    which = named(repeated, "name")
    message = f"columns have a name that another one has before them, and none of these is read ({which})"
    note = Note("repeated_columns", message, n_later, unit="columns")
    return replace(table, notes=(*table.notes, note) if repeated else table.notes, hint="")


def distinct(columns: Sequence[str]) -> tuple[list[str], list[Note]]:
    """Return the names with a number after those that were there before, and a note where there are any.

    Examples
    --------
    >>> distinct(["a", "b", "a"])[0]
    ['a', 'b', 'a (2)']
    """
    taken, seen, labels = set(columns), Counter[str](), []
    for name in columns:
        seen[name] += 1
        label = name
        while seen[name] > 1 and label in taken:
            label = f"{name} ({seen[name]})"
            seen[name] += label in taken
        taken.add(label)
        labels.append(label)
    repeated = [(name, label) for name, label in zip(columns, labels, strict=True) if name != label]
    if not repeated:
        return labels, []
    n_names = len({name for name, _ in repeated})
    name, label = repeated[0]
    message = (
        f"columns have a name that another one has before them ({counted(n_names, 'name')}), and were taken "
        f"for series of their own: the second {name!r} for {label!r}"
    )
    return labels, [Note("repeated_columns", message, len(repeated), unit="columns")]

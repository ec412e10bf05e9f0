"""Tell wide tables from long ones, and write wide ones with one value a row.

A wide table has a row for each series and a column for each period, or a column for each series and a row for
each period.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import replace

import polars as pl
from polars.selectors import by_name

from ccmtl_core.base.display import named, option, quoted
from ccmtl_core.tables.column_words import is_a_word
from ccmtl_core.tables.dialects.repeated_columns import distinct, noting_repetitions
from ccmtl_core.tables.faults import FaultList, TableError
from ccmtl_core.tables.table import Table, refusing_unreadable
from ccmtl_core.tables.wide.melting import melted
from ccmtl_core.tables.wide.recognition import BY_PERIODS, FEWEST_PERIODS, by_periods, by_series, hold_numbers

_SAMPLED = 200


def long_table(table: Table, stated: Mapping[str, str | None], faults: FaultList) -> Table:
    """Return a table of series with one value a row: the table itself, or what a wide one says.

    Parameters
    ----------
    table : Table
        Opened, not read.
    stated : mapping
        Names of the columns of ``unique_id``, ``ds`` and ``y``; None where they are not known.
    faults : FaultList
        Has the faults that were found before.

    Returns
    -------
    Table
        Of a wide one, three columns of these names, without the cells that are empty: notes count them.

    Raises
    ------
    TableError
        The options say that the table is wide, and it cannot be told how.
    """
    shape = table.options.shape or "auto"
    if table.rows is None or table.n_rows == 0 or not table.columns:
        return table
    names = {role: column or role for role, column in stated.items()}
    is_stated = shape == "wide" or table.options.periods is not None
    if shape == "long" or (not is_stated and {names["ds"], names["y"]} <= set(table.columns)):
        return noting_repetitions(table)
    with refusing_unreadable(table.unreadable, faults):
        head = table.rows.select(by_name(list(table.names))).head(_SAMPLED).collect()
        found = by_periods(table, names, head, faults) or by_series(table, names, stated["ds"], head)
        if found is not None:
            return melted(table, found, names, faults)
        if is_stated:
            raise faults.refusal_for("unknown_shape", _not_wide(table.columns, names))
        return replace(noting_repetitions(table), hint=_if_wide(table, names, head))


def _not_wide(columns: Sequence[str], names: Mapping[str, str]) -> str:
    """Say of a table that was stated to be wide why it is not read so."""
    told = "the table was stated to be wide, and "
    if long := [names[role] for role in ("y", "ds", "unique_id") if names[role] in columns]:
        told += f"has the {named(long, 'column')} of a long one: leave `shape` out, or "
    else:
        told += (
            "neither columns called by periods nor a column of times have mostly numbers beside them in the "
            "others: "
        )
    return told + (
        "state the columns that hold periods, as `periods='W*'`, or `unique_id` and `ds`, those of ids and "
        "times"
    )


def _if_wide(table: Table, names: Mapping[str, str], head: pl.DataFrame) -> str:
    """Say how the table would be read if it were stated to be wide; nothing where it would not."""
    as_wide = replace(table, options=replace(table.options, shape="wide"))
    found = None
    with suppress(TableError):
        found = by_periods(as_wide, names, head, FaultList()) or by_series(as_wide, names, None, head)
    if found is None:
        ids = [i for i, name in enumerate(table.columns) if is_a_word(name, "unique_id")]
        others = [head.to_series(i) for i in range(len(table.columns)) if i not in ids]
        if len(ids) != 1 or len(others) < FEWEST_PERIODS or not all(hold_numbers([one]) for one in others):
            return ""
        return f"; if the columns beside {quoted(table.columns[ids[0]])} are periods, name them as 2024-05"
    if len(found.values) < 2:
        one = quoted(table.columns[found.values[0]])
        return (
            f"; if {one} is the only series, state {option('shape', 'wide')}" if found.key is not None else ""
        )
    called = [table.columns[i] for i in found.values]
    state = f"state {option('shape', 'wide')}"
    if found.kind == BY_PERIODS:
        return f"; if the {named(called, 'column')} are periods, {state}"
    labels, notes = distinct(called)
    beside = "" if found.key is None else f" beside {quoted(table.columns[found.key])}"
    apart = f"; those of one name become {', '.join(map(repr, labels[:5]))}" if notes else ""
    return f"; if each column{beside} is a series, {state}{apart}"

"""Tell wide tables from long ones, and write wide ones with one value a row.

A wide table has a row for each series and a column for each period, or a column for each series and a row for
each period.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase

import numpy as np
import polars as pl
from polars.selectors import by_name

from ccmtl_core.base.display import counted, named, option, quoted
from ccmtl_core.base.types import BoolArray, IntArray
from ccmtl_core.tables.cell_hints import says_no_value
from ccmtl_core.tables.column_words import is_a_word
from ccmtl_core.tables.dates.inference import infer_dates
from ccmtl_core.tables.dialects.period_names import (
    form_of,
    periods_alone,
    refuse_counted_back,
    refuse_counted_twice,
    refuse_months_in_other_words,
    refuse_years_beside,
    with_years,
)
from ccmtl_core.tables.faults import MAX_LISTED, FaultList, Melted, TableError
from ccmtl_core.tables.header import WIDE
from ccmtl_core.tables.table import Note, Table, refusing_unreadable

BY_PERIODS, BY_SERIES = "a column for each period", "a column for each series"
FEWEST_PERIODS = 3
_SAMPLED = 200
_INTEGER = "integer"


@dataclass(frozen=True)
class _Wide:
    """How a wide table is meant: places of columns, and why."""

    kind: str
    key: int | None
    """The column with the ids, or with the times; None where rows are counted."""
    values: tuple[int, ...]
    evidence: str
    is_counted: bool = False
    """Whether periods are the numbers in their names."""
    labels: tuple[str, ...] | None = None
    """What columns are called instead, with the year that was stated."""


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
        found = _by_periods(table, names, head, faults) or _by_series(table, names, stated["ds"], head)
        if found is not None:
            return _melted(table, found, names, faults)
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
        found = _by_periods(as_wide, names, head, FaultList()) or _by_series(as_wide, names, None, head)
    if found is None:
        ids = [i for i, name in enumerate(table.columns) if is_a_word(name, "unique_id")]
        others = [head.to_series(i) for i in range(len(table.columns)) if i not in ids]
        if len(ids) != 1 or len(others) < FEWEST_PERIODS or not all(_hold_numbers([one]) for one in others):
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


def _by_periods(
    table: Table, names: Mapping[str, str], head: pl.DataFrame, faults: FaultList
) -> _Wide | None:
    """A row for each series: of all columns whose names count or are dates, the first group of the most."""
    columns = table.columns
    if names["y"] in columns or names["ds"] in columns:
        return None
    pattern = table.options.periods
    if pattern is not None:
        places = [i for i, name in enumerate(columns) if fnmatchcase(name, pattern)]
        evidence = "the stated pattern"
    else:
        groups: dict[str, list[int]] = {}
        for i, name in enumerate(columns):
            groups.setdefault(form_of(name), []).append(i)
        places = max(groups.values(), key=len)
        evidence = f"{len(places)} columns are called as periods are, from {columns[places[0]]!r} on"
    called = [columns[i] for i in places]
    others = [i for i in range(len(columns)) if i not in set(places)]
    fewest = 1 if pattern is not None or table.options.shape == "wide" else FEWEST_PERIODS
    if len(places) < fewest or not others or not _hold_numbers([head.to_series(i) for i in places]):
        return None
    if pattern is None:
        refuse_years_beside(called, [columns[i] for i in others], faults)
    bare = periods_alone(called)
    labels = with_years(bare, table.options.year, faults) or (None if bare == called else tuple(bare))
    if labels is None and not all(any(map(str.isdigit, name)) for name in called):
        return None
    dates = infer_dates(pl.Series(labels or called))
    are_dated = (dates.is_known and dates.format != _INTEGER) or bool(dates.readings)
    is_sure = are_dated or pattern is not None or table.options.shape == "wide"
    key = next((i for i in others if columns[i] == names["unique_id"]), None)
    called_ids = [i for i in others if is_a_word(columns[i], "unique_id") and _differ(head, i)]
    if key is None and len(called_ids) == 1 and _hold_numbers([head.to_series(called_ids[0])], 1.0):
        key = called_ids[0]  # whatever text stands beside the numbers of products
    if key is None:
        before = [i for i in others if i < places[0]] or others
        texts = (
            [i for i in before if not _hold_numbers([head.to_series(i)], 1.0)] if len(before) > 1 else before
        )
        if len(texts) == 1 and (not is_sure or len(before) == 1 or _differ(head, texts[0])):
            key = texts[0]
        elif not is_sure or any(_are_dates(head.to_series(i)) for i in texts):
            return None
        else:
            key = _key_of_series(table, head, before, evidence, faults)
    if pattern is None and (_are_dates(head.to_series(key)) or is_a_word(columns[key], "ds")):
        return None
    is_named = columns[key] == names["unique_id"] or not _hold_numbers([head.to_series(key)], 1.0)
    if len(set(called)) < len(called) and not (are_dated or is_named or pattern is not None):
        return None  # of columns of numbers alone, those of one name are series
    form = form_of(called[0])
    if pattern is None and are_dated:
        refuse_months_in_other_words(columns, places, faults)
    is_counted = form.count("#") == 1 and form != "#" and not are_dated
    if is_counted and len({re.sub("[^0-9]", "", text) for text in called}) < len(set(called)):
        return None
    if not are_dated and pattern is None:
        refuse_counted_twice(called, faults)
    if is_counted and pattern is None:
        refuse_counted_back(called, faults)
    if columns[key] != names["unique_id"]:
        evidence += f"; {columns[key]!r} names the series"
    return _Wide(BY_PERIODS, key, tuple(places), evidence, is_counted, labels)


def _differ(head: pl.DataFrame, place: int) -> bool:
    """Whether no cell of the column repeats."""
    return head.to_series(place).n_unique() == head.height


def _key_of_series(
    table: Table, head: pl.DataFrame, places: Sequence[int], evidence: str, faults: FaultList
) -> int:
    """The only one of the columns whose cells all differ; refuse the table if there is none, or more."""
    found = [i for i in places if _differ(head, i)]
    if all(_hold_numbers([head.to_series(i)], 1.0) for i in found):  # prices may differ, too
        found = [i for i in found if is_a_word(table.columns[i], "unique_id")] or found
    if len(found) == 1 and head.height > 1:
        return found[0]
    shown = ", ".join(repr(table.columns[i]) for i in (found or places)[:10])
    message = (
        f"the table is wide ({evidence}), and it cannot be told which column holds the series: "
        f"state `unique_id`; there are {shown}"
    )
    raise faults.refusal_for("unknown_column", message)


def _by_series(
    table: Table, names: Mapping[str, str], stated_ds: str | None, head: pl.DataFrame
) -> _Wide | None:
    """A column for each series: times in one column, or rows that count, and numbers in all others."""
    columns = table.columns
    if names["y"] in columns or names["unique_id"] in columns or table.options.periods is not None:
        return None
    key = next((i for i, name in enumerate(columns) if name == names["ds"]), None)
    evidence = "it has the column of times, and numbers in all others"
    if key is None:
        places = dict.fromkeys([*range(min(3, len(columns))), len(columns) - 1])  # an index of pandas is last
        key = next((i for i in places if _are_dates(head.to_series(i))), None)
        evidence = "one column holds dates, and all others numbers"
    if key is None:
        key = next((i for i, name in enumerate(columns[:3]) if is_a_word(name, "ds")), None)
        evidence = "one column is called by times, and all others hold numbers"
    values = tuple(i for i in range(len(columns)) if i != key)
    is_wide = table.options.shape == "wide" or stated_ds in columns
    if len(values) < (1 if is_wide else WIDE) or not all(_hold_numbers([head.to_series(i)]) for i in values):
        return None
    if any(is_a_word(columns[i], "unique_id") for i in values) or (
        key is None and not is_wide and _may_hold_ids(head)
    ):
        return None
    if key is None:
        evidence = f"all {len(values)} columns hold numbers: each is a series, and rows count the periods"
    return _Wide(BY_SERIES, key, values, evidence)


def _may_hold_ids(head: pl.DataFrame) -> bool:
    """Whether the first column may hold ids of rows: its cells all differ, and are whole numbers."""
    first = head.to_series(0).cast(pl.String)
    return head.height > 1 and _differ(head, 0) and bool(first.str.contains("^[0-9]+$").all())


def _hold_numbers(columns: Sequence[pl.Series], share: float = 0.5) -> bool:
    """Whether at least this share of all cells are numbers, without those that are empty or say so."""
    n_numbers = n_filled = 0
    for cells in columns:
        if cells.dtype == pl.String:
            filled = cells.filter(cells != "")
            is_number = filled.str.contains(r"^[^A-Za-z:/]*[0-9][^A-Za-z:/]*$")
            is_number &= ~filled.str.contains(r"^\d{4}-\d{2}")
            others = filled.filter(~is_number)
            n_numbers += len(filled) - len(others)
            n_filled += len(filled) - sum(map(says_no_value, others))
        else:
            n_filled += len(cells) - cells.null_count()
            n_numbers += len(cells) - cells.null_count() if cells.dtype.is_numeric() else 0
    return n_numbers >= share * n_filled


def _are_dates(cells: pl.Series) -> bool:
    if cells.dtype.is_temporal():
        return True
    if cells.dtype != pl.String:
        return False
    found = infer_dates(cells)
    return (found.is_known and found.format != _INTEGER) or bool(found.readings)


def _melted(table: Table, found: _Wide, names: Mapping[str, str], faults: FaultList) -> Table:
    assert table.rows is not None
    frame = table.rows.select(by_name(list(table.names))).collect()
    positions = np.arange(1, table.n_rows + 1)
    is_kept = ~np.isin(positions, table.malformed_rows)
    frame = frame.filter(is_kept)
    row_of = positions[is_kept] if table.row_of is None else table.row_of[positions[is_kept] - 1]
    values = [frame.to_series(i) for i in found.values]
    if len({series.dtype for series in values}) > 1:
        values = [series.cast(pl.String) for series in values]
    labels = [table.columns[i] for i in found.values]
    by_periods = found.kind == BY_PERIODS
    labels, notes = (labels, _repeated_periods(labels)) if by_periods else distinct(labels)
    n_rows, n_columns = frame.height, len(values)
    heads = pl.Series(found.labels or labels, dtype=pl.String)
    if found.is_counted:
        heads = heads.str.extract("([0-9]+)")
    of_heads = dict(zip(heads.fill_null(""), [table.columns[i] for i in found.values], strict=True))
    key_name = None if found.key is None else table.columns[found.key]
    faults.melted = Melted(dict(names), key_name, of_heads, by_periods)
    by_row = pl.Series(range(1, n_rows + 1), dtype=pl.Int64).cast(pl.String)
    key = by_row if found.key is None else frame.to_series(found.key)
    across = np.repeat(np.arange(n_columns), n_rows)
    down = np.tile(np.arange(n_rows), n_columns)
    keys, of_column = key.gather(down), heads.gather(across)
    y = pl.concat([series.alias("y") for series in values])
    melted = pl.DataFrame(
        {
            names["unique_id"]: keys if by_periods else of_column,
            names["ds"]: of_column if by_periods else keys,
            names["y"]: y,
        }
    )
    rows = row_of[down]
    says_nothing = y.is_null()
    if y.dtype == pl.String:
        says_nothing |= y.str.strip_chars().is_in(["", table.options.empty or ""])
    empty = says_nothing.to_numpy()
    notes += _notes(table, found, empty, rows)
    if by_periods:
        notes += _without_values(key, np.all(empty.reshape(n_columns, n_rows), axis=0))
    dialect = table.dialect
    if table.options.shape == "wide":
        dialect = dialect.stated("shape", found.kind)
    else:
        dialect = dialect.guessed("shape", found.kind, found.evidence)
    ds_format = _INTEGER if found.is_counted or found.key is None else None
    if by_periods and ds_format is None and not (dates := infer_dates(heads)).is_ambiguous:
        ds_format = dates.format
    made, left_out = Table.of_frame(melted.filter(~empty)), len(set(table.malformed_rows))
    return replace(
        made,
        n_rows=made.n_rows + left_out,
        malformed_rows=tuple(range(made.n_rows + 1, made.n_rows + left_out + 1)),
        n_skipped=table.n_skipped,
        parts=table.parts,
        unreadable=table.unreadable,
        row_of=rows[~empty],
        dialect=dialect,
        options=table.options,
        kinds=table.kinds.together(found.values, list(melted.columns).index(names["y"])),
        notes=(*table.notes, *notes),
        ds_format=ds_format,
    )


def _notes(table: Table, found: _Wide, empty: BoolArray, rows: IntArray) -> list[Note]:
    notes = []
    if n_empty := int(empty.sum()):
        message = f"cells of the wide table are empty, of {len(empty):,}: they are no values"
        first = tuple(dict.fromkeys(rows[empty][:MAX_LISTED].tolist()))
        notes.append(Note("missing_cells", message, n_empty, first, unit="cells"))
    used = {*found.values, found.key}
    left = [name for i, name in enumerate(table.columns) if i not in used]
    if left:
        message = f"{named(left, 'column')} beside the wide table's own were not read"
        notes.append(Note("ignored_columns", message, len(left), unit="columns"))
    return notes


def _without_values(key: pl.Series, is_empty: BoolArray) -> list[Note]:
    ids = key.cast(pl.String).filter(pl.Series(is_empty)).to_list()
    first = f"{', '.join(map(repr, ids[:MAX_LISTED]))}{', …' if len(ids) > MAX_LISTED else ''}"
    message = f"series of the wide table have no value and are left out ({first})"
    return [Note("empty_series", message, len(ids), unit="series", severity="warning")] if ids else []


def _repeated_periods(called: Sequence[str]) -> list[Note]:
    repeated = [name for i, name in enumerate(called) if name in called[:i]]
    message = (
        f"columns have the name of a period that another one has before them ({_some(repeated)}): the cells "
        "of both are values of that period, and `duplicates` says what becomes of them"
    )
    return [Note("repeated_columns", message, len(repeated), unit="columns")] if repeated else []


def noting_repetitions(table: Table) -> Table:
    """Return a long table of series with a note on columns of one name; one that is read is refused later."""
    repeated = [name for name, n in Counter(table.columns).items() if n > 1]
    n_later = len(table.columns) - len(set(table.columns))
    message = (
        f"columns have a name that another one has before them, and none of these is read ({_some(repeated)})"
    )
    note = Note("repeated_columns", message, n_later, unit="columns")
    return replace(table, notes=(*table.notes, note) if repeated else table.notes, hint="")


def _some(names: Sequence[str]) -> str:
    return named(list(dict.fromkeys(names)), "name")


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

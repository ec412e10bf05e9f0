"""Tell wide tables from long ones, and write wide ones with one value a row.

A wide table has a row for each series and a column for each period, or a column for each series and a row for
each period.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase

import numpy as np
import polars as pl
from polars.selectors import by_name

from ccmtl_core.base.display import counted, named
from ccmtl_core.base.types import BoolArray, IntArray
from ccmtl_core.tables.dates.inference import infer_dates, lack_year
from ccmtl_core.tables.dates.months import OTHER_WORDS
from ccmtl_core.tables.faults import MAX_LISTED, FaultList
from ccmtl_core.tables.header import WIDE
from ccmtl_core.tables.table import Note, Table, refusing_unreadable
from ccmtl_core.tables.timestamps import time_format

FEWEST_PERIODS = 3
_SAMPLED = 200
_MONTH = (
    r"(?i)\b(?:(?:jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)[a-z]*"
    rf"|(?:{OTHER_WORDS})(?![^\W\d_]))\.?"
)
_INTEGER = "integer"
_WEEK = re.compile(r"(?i)(?:kw|cw|wk|w|week|woche|sem|semaine|semana)[. ]?[0-9]{1,2}")
_SUMS = ("total", "sum", "gesamt", "ytd")
"""How names begin of columns that add up the periods before them."""


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
    if shape == "long" or table.rows is None or table.n_rows == 0:
        return table
    names = {role: column or role for role, column in stated.items()}
    if shape == "auto" and table.options.periods is None and {names["ds"], names["y"]} <= set(table.columns):
        return table
    with refusing_unreadable(table.unreadable, faults):
        head = table.rows.select(by_name(list(table.names))).head(_SAMPLED).collect()
        found = _by_periods(table, stated, head, faults) or _by_series(table, stated, head)
        if found is None:
            if shape == "wide" or table.options.periods is not None:
                message = (
                    "the table was stated to be wide, and neither its header nor a column holds periods: "
                    "state the columns that do, as `periods='W*'`, or `unique_id` and `ds`, those of ids and "
                    "times"
                )
                raise faults.refusal_for("unknown_shape", message)
            return table
        return _melted(table, found, names)


def _by_periods(
    table: Table, stated: Mapping[str, str | None], head: pl.DataFrame, faults: FaultList
) -> _Wide | None:
    """A row for each series: of all columns whose names count or are dates, the first group of the most."""
    columns = table.columns
    if stated["y"] in columns or stated["ds"] in columns:
        return None
    pattern = table.options.periods
    if pattern is not None:
        places = [i for i, name in enumerate(columns) if fnmatchcase(name, pattern)]
        evidence = "the stated pattern"
    else:
        groups: dict[str, list[int]] = {}
        for i, name in enumerate(columns):
            groups.setdefault(_form(name), []).append(i)
        places = max(groups.values(), key=len)
        evidence = f"{len(places)} columns are called as periods are, from {columns[places[0]]!r} on"
    names = [columns[i] for i in places]
    others = [i for i in range(len(columns)) if i not in set(places)]
    fewest = 1 if pattern is not None or table.options.shape == "wide" else FEWEST_PERIODS
    if len(places) < fewest or not others or len(set(names)) < len(names):
        return None
    if not _are_numbers(head, places):
        return None
    labels = _with_years(names, table.options.year, faults)
    if labels is None and not all(any(map(str.isdigit, name)) for name in names):
        return None
    dates = infer_dates(pl.Series(labels or names))
    are_dated = (dates.is_known and dates.format != _INTEGER) or bool(dates.readings)
    is_sure = are_dated or pattern is not None or table.options.shape == "wide"
    key = next((i for i in others if columns[i] == stated["unique_id"]), None)
    if key is None:
        before = [i for i in others if i < places[0]] or others
        texts = [i for i in before if not _are_numbers(head, [i])] if len(before) > 1 else before
        if len(texts) == 1 and (not is_sure or len(before) == 1 or _differ(head, texts[0])):
            key = texts[0]
        elif not is_sure or any(_are_dates(head.to_series(i)) for i in texts):
            return None
        else:
            key = _key_of_series(table, head, before, evidence, faults)
    if pattern is None and _are_dates(head.to_series(key)):
        return None
    form = _form(names[0])
    if pattern is None and are_dated:
        _refuse_months_in_other_words(columns, places, faults)
    is_counted = form.count("#") == 1 and form != "#" and not are_dated
    if is_counted and len({re.sub("[^0-9]", "", text) for text in names}) < len(names):
        return None
    if columns[key] != stated["unique_id"]:
        evidence += f"; {columns[key]!r} names the series"
    return _Wide("a column for each period", key, tuple(places), evidence, is_counted, labels)


def _with_years(names: Sequence[str], year: int | None, faults: FaultList) -> tuple[str, ...] | None:
    """Names of periods that lack one with a year, which goes on where they go back; None of any others.

    Months and days that lack the year, and weeks that go back, are refused where it is not stated.
    """
    texts = pl.Series("text", names)
    numbers = texts.str.extract("([0-9]+)").cast(pl.Int64, strict=False)
    goes_back = bool((numbers.diff() < 0).any())
    are_weeks = all(map(_WEEK.fullmatch, names)) and (goes_back or year is not None)
    if not (are_weeks or lack_year(texts)):
        return None
    if year is None:
        message = (
            f"the columns {names[0]!r} to {names[-1]!r} are called by periods without a year: state the "
            "`year` of the first, such as 2024; or write it in the names, as 2024-03 or 2024-W09"
        )
        raise faults.refusal_for("unknown_periods", message)
    dated = texts + f" {year}"
    found = infer_dates(dated)
    times = dated.to_frame().select(time_format(found.format).parse(pl.col("text"))).to_series()
    years = year + (times.diff().dt.total_days() < 0).fill_null(False).cast(pl.Int64).cum_sum()
    return tuple(f"{name} {of}" for name, of in zip(names, years, strict=True))


def _differ(head: pl.DataFrame, place: int) -> bool:
    """Whether no cell of the column repeats."""
    return head.to_series(place).n_unique() == head.height


def _key_of_series(
    table: Table, head: pl.DataFrame, places: Sequence[int], evidence: str, faults: FaultList
) -> int:
    """The only one of the columns whose cells all differ; refuse the table if there is none, or more."""
    found = [i for i in places if _differ(head, i)]
    if len(found) == 1 and head.height > 1:
        return found[0]
    shown = ", ".join(repr(table.columns[i]) for i in (found or places)[:10])
    message = (
        f"the table is wide ({evidence}), and it cannot be told which column holds the series: "
        f"state `unique_id`; there are {shown}"
    )
    raise faults.refusal_for("unknown_column", message)


def _refuse_months_in_other_words(columns: Sequence[str], places: Sequence[int], faults: FaultList) -> None:
    """Refuse a header with unread months between others, such as "Mai 24" after "Apr 24"."""
    form, of_periods = _any_word(columns[places[0]]), set(places)
    left = [columns[i] for i in range(places[0], places[-1]) if i not in of_periods]
    left = [name for name in left if _any_word(name) == form and not name.casefold().startswith(_SUMS)]
    if "@" in form and left:
        message = (
            f"the columns {', '.join(map(repr, left[:5]))} stand between periods such as "
            f"{columns[places[0]]!r} and are not read as one: name the months in English or as 2024-05"
        )
        raise faults.refusal_for("unknown_periods", message)


def _any_word(name: str) -> str:
    """The name with ``#`` for each number and ``@`` for each word."""
    return re.sub("[0-9]+", "#", re.sub(r"[^\W\d_]+", "@", name.strip()))


def _by_series(table: Table, stated: Mapping[str, str | None], head: pl.DataFrame) -> _Wide | None:
    """A column for each series: times in one column, or rows that count, and numbers in all others."""
    columns = table.columns
    if stated["y"] in columns or stated["unique_id"] in columns or table.options.periods is not None:
        return None
    key = next((i for i, name in enumerate(columns) if name == stated["ds"]), None)
    evidence = "it has the column of times, and numbers in all others"
    if key is None:
        key = next((i for i in range(min(3, len(columns))) if _are_dates(head.to_series(i))), None)
        evidence = "one column holds dates, and all others numbers"
    values = tuple(i for i in range(len(columns)) if i != key)
    is_wide = table.options.shape == "wide" or stated["ds"] in columns
    if len(values) < (1 if is_wide else WIDE) or not _are_numbers(head, values):
        return None
    if key is None:
        evidence = (
            f"all {len(values)} columns hold numbers alone: each is a series, and rows count the periods"
        )
    return _Wide("a column for each series", key, values, evidence)


def _form(name: str) -> str:
    """The name with ``#`` for each number and ``@`` for the name of a month."""
    return re.sub("[0-9]+", "#", re.sub(_MONTH, "@", name.strip()))


def _are_numbers(head: pl.DataFrame, places: Sequence[int]) -> bool:
    """Whether the cells of the columns are numbers in any style, or empty."""
    for i in places:
        cells = head.to_series(i)
        if cells.dtype == pl.String:
            filled = cells.filter(cells != "")
            if not filled.str.contains(r"^[^A-Za-z:/]*[0-9][^A-Za-z:/]*$").all():
                return False
            if filled.str.contains(r"^\d{4}-\d{2}").any():
                return False
        elif not (cells.dtype.is_numeric() or cells.dtype == pl.Null):
            return False
    return True


def _are_dates(cells: pl.Series) -> bool:
    if cells.dtype.is_temporal():
        return True
    if cells.dtype != pl.String:
        return False
    found = infer_dates(cells)
    return (found.is_known and found.format != _INTEGER) or bool(found.readings)


def _melted(table: Table, found: _Wide, names: Mapping[str, str]) -> Table:
    assert table.rows is not None
    frame = table.rows.select(by_name(list(table.names))).collect()
    positions = np.arange(1, table.n_rows + 1)
    is_kept = ~np.isin(positions, table.malformed_rows)
    frame = frame.filter(is_kept)
    row_of = positions[is_kept] if table.row_of is None else table.row_of[positions[is_kept] - 1]
    values = [frame.to_series(i) for i in found.values]
    if len({series.dtype for series in values}) > 1:
        values = [series.cast(pl.String) for series in values]
    labels, notes = distinct([table.columns[i] for i in found.values])
    n_rows, n_columns = frame.height, len(values)
    heads = pl.Series(found.labels or labels, dtype=pl.String)
    if found.is_counted:
        heads = heads.str.extract("([0-9]+)")
    by_row = pl.Series(range(1, n_rows + 1), dtype=pl.Int64).cast(pl.String)
    key = by_row if found.key is None else frame.to_series(found.key)
    across = np.repeat(np.arange(n_columns), n_rows)
    down = np.tile(np.arange(n_rows), n_columns)
    keys, of_column = key.gather(down), heads.gather(across)
    by_periods = found.kind == "a column for each period"
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
    dialect = table.dialect
    if table.options.shape == "wide":
        dialect = dialect.stated("shape", found.kind)
    else:
        dialect = dialect.guessed("shape", found.kind, found.evidence)
    ds_format = _INTEGER if found.is_counted or found.key is None else None
    if by_periods and ds_format is None and not (dates := infer_dates(heads)).is_ambiguous:
        ds_format = dates.format
    return replace(
        Table.of_frame(melted.filter(~empty)),
        unreadable=table.unreadable,
        row_of=rows[~empty],
        dialect=dialect,
        options=table.options,
        notes=(*table.notes, *notes),
        ds_format=ds_format,
    )


def _notes(table: Table, found: _Wide, empty: BoolArray, rows: IntArray) -> list[Note]:
    notes = []
    if n_empty := int(empty.sum()):
        message = f"cells of the wide table are empty, of {len(empty):,}: they are no values"
        first = tuple(dict.fromkeys(rows[empty][:MAX_LISTED].tolist()))
        notes.append(Note("missing_cells", message, n_empty, first))
    used = {*found.values, found.key}
    left = [name for i, name in enumerate(table.columns) if i not in used]
    if left:
        message = f"{named(left, 'column')} beside the wide table's own were not read"
        notes.append(Note("ignored_columns", message, len(left)))
    return notes


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
    return labels, [Note("repeated_columns", message, len(repeated))]

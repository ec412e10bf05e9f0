"""Recognise a wide table, by the names of its columns and what its first rows hold."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase

import polars as pl

from ccmtl_core.tables.cell_hints import says_no_value
from ccmtl_core.tables.column_words import is_a_word
from ccmtl_core.tables.dates.inference import infer_dates
from ccmtl_core.tables.faults import FaultList
from ccmtl_core.tables.header import WIDE
from ccmtl_core.tables.table import Table
from ccmtl_core.tables.wide.period_names import (
    form_of,
    periods_alone,
    refuse_counted_back,
    refuse_counted_twice,
    refuse_months_in_other_words,
    refuse_years_beside,
    with_years,
)

BY_PERIODS, BY_SERIES = "a column for each period", "a column for each series"
FEWEST_PERIODS = 3
INTEGER = "integer"


@dataclass(frozen=True)
class WideShape:
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


def by_periods(
    table: Table, names: Mapping[str, str], head: pl.DataFrame, faults: FaultList
) -> WideShape | None:
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
    if len(places) < fewest or not others or not hold_numbers([head.to_series(i) for i in places]):
        return None
    if pattern is None:
        refuse_years_beside(called, [columns[i] for i in others], faults)
    bare = periods_alone(called)
    labels = with_years(bare, table.options.year, faults) or (None if bare == called else tuple(bare))
    if labels is None and not all(any(map(str.isdigit, name)) for name in called):
        return None
    dates = infer_dates(pl.Series(labels or called))
    are_dated = (dates.is_known and dates.format != INTEGER) or bool(dates.readings)
    is_sure = are_dated or pattern is not None or table.options.shape == "wide"
    key = next((i for i in others if columns[i] == names["unique_id"]), None)
    called_ids = [i for i in others if is_a_word(columns[i], "unique_id") and _differ(head, i)]
    if key is None and len(called_ids) == 1 and hold_numbers([head.to_series(called_ids[0])], 1.0):
        key = called_ids[0]  # whatever text stands beside the numbers of products
    if key is None:
        before = [i for i in others if i < places[0]] or others
        texts = (
            [i for i in before if not hold_numbers([head.to_series(i)], 1.0)] if len(before) > 1 else before
        )
        if len(texts) == 1 and (not is_sure or len(before) == 1 or _differ(head, texts[0])):
            key = texts[0]
        elif not is_sure or any(_are_dates(head.to_series(i)) for i in texts):
            return None
        else:
            key = _key_of_series(table, head, before, evidence, faults)
    if pattern is None and (_are_dates(head.to_series(key)) or is_a_word(columns[key], "ds")):
        return None
    is_named = columns[key] == names["unique_id"] or not hold_numbers([head.to_series(key)], 1.0)
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
    return WideShape(BY_PERIODS, key, tuple(places), evidence, is_counted, labels)


def _differ(head: pl.DataFrame, place: int) -> bool:
    """Whether no cell of the column repeats."""
    return head.to_series(place).n_unique() == head.height


def _key_of_series(
    table: Table, head: pl.DataFrame, places: Sequence[int], evidence: str, faults: FaultList
) -> int:
    """The only one of the columns whose cells all differ; refuse the table if there is none, or more."""
    found = [i for i in places if _differ(head, i)]
    if all(hold_numbers([head.to_series(i)], 1.0) for i in found):  # prices may differ, too
        found = [i for i in found if is_a_word(table.columns[i], "unique_id")] or found
    if len(found) == 1 and head.height > 1:
        return found[0]
    shown = ", ".join(repr(table.columns[i]) for i in (found or places)[:10])
    message = (
        f"the table is wide ({evidence}), and it cannot be told which column holds the series: "
        f"state `unique_id`; there are {shown}"
    )
    raise faults.refusal_for("unknown_column", message)


def by_series(
    table: Table, names: Mapping[str, str], stated_ds: str | None, head: pl.DataFrame
) -> WideShape | None:
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
    if len(values) < (1 if is_wide else WIDE) or not all(hold_numbers([head.to_series(i)]) for i in values):
        return None
    if any(is_a_word(columns[i], "unique_id") for i in values) or (
        key is None and not is_wide and _may_hold_ids(head)
    ):
        return None
    if key is None:
        evidence = f"all {len(values)} columns hold numbers: each is a series, and rows count the periods"
    return WideShape(BY_SERIES, key, values, evidence)


def _may_hold_ids(head: pl.DataFrame) -> bool:
    """Whether the first column may hold ids of rows: its cells all differ, and are whole numbers."""
    first = head.to_series(0).cast(pl.String)
    return head.height > 1 and _differ(head, 0) and bool(first.str.contains("^[0-9]+$").all())


def hold_numbers(columns: Sequence[pl.Series], share: float = 0.5) -> bool:
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
    return (found.is_known and found.format != INTEGER) or bool(found.readings)

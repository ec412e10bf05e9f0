"""Find out which columns of a table hold the series, the time and the value, by their names and cells."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

import polars as pl

from ccmtl_core.base.display import counted, option
from ccmtl_core.inspection.id_columns import has_texts, may_be_id
from ccmtl_core.inspection.report import Trait
from ccmtl_core.tables.column_words import (
    WORDS,
    is_a_word,
    is_named_date,
    is_named_for_another,
    is_other,
    is_surer,
    is_time,
    rank,
)
from ccmtl_core.tables.dates.inference import infer_dates, lack_year
from ccmtl_core.tables.dates.timestamps import time_format
from ccmtl_core.tables.faults import FaultList
from ccmtl_core.tables.header import one_column
from ccmtl_core.tables.table import Table, refusing_unreadable

ROLES = ("unique_id", "ds", "y")
_SAMPLED = 1000


@dataclass(frozen=True)
class ColumnsFound:
    """The column of each role, with its origin; those that could not be told are absent."""

    traits: dict[str, Trait]

    def __getitem__(self, role: str) -> str:
        return str(self.traits[role].value)


def choose_columns(
    table: Table,
    stated: Mapping[str, str | None],
    faults: FaultList,
    others: Collection[str] = (),
    ds_format: str | None = None,
) -> ColumnsFound:
    """Find the columns of the roles that are not stated.

    Parameters
    ----------
    table : Table
        Opened.
    stated : mapping
        The name of the column of each of ``ROLES``, None where it is to be found.
    faults : FaultList
        Takes ``unknown_column`` for each role that no column, or more than one, may have.
    others : collection of str
        Columns that have another role already.
    ds_format : str, optional
        How times are written, where that is stated.

    Returns
    -------
    ColumnsFound
    """
    traits = {role: Trait(column, "stated") for role, column in stated.items() if column is not None}
    unknown = [role for role in ROLES if role not in traits]
    sample = _sample(table, faults) if unknown else {}
    for role in unknown:
        taken = {*others, *(trait.value for trait in traits.values())}
        left = [column for column in dict.fromkeys(table.columns) if column not in taken]
        if role in left:
            traits[role] = Trait(role, "guessed", "its name")
            continue
        currency = table.options.currency
        cells = {c: sample.get(c) for c in left if not (is_other(c, role) or is_named_for_another(c, role))}
        fitting = [c for c, those in cells.items() if _fits(role, c, those, ds_format, currency)]
        numbers = _numbers_of_rows(fitting, sample) if role == "unique_id" else set()
        fitting = [c for c in fitting if c not in numbers]
        if role == "ds" and not fitting:
            fitting = [column for column in left if _may_count_time(column, sample.get(column))]
        column, evidence = _best(role, fitting)
        called = [c for c in cells if is_a_word(c, role) or (role == "ds" and is_named_date(c))]
        called = [c for c in called if c not in numbers]
        if role == "ds" and fitting:
            called = [c for c in called if not _may_count_time(c, sample.get(c))]
        surest, _ = _best(role, called)
        if surest is not None and (column is None or is_surer(surest, column, role)):
            column, evidence = surest, "its name, though its cells do not look so"
        if table.n_rows == 0:
            column, evidence = None, "there are no rows below the header"
        if column is None:
            held = {"unique_id": "the series", "ds": "the time", "y": "the value"}[role]
            asked = f"which column holds {held}?"
            if len(table.columns) == 1:
                faults.add("unknown_column", f"{asked} {one_column(table.columns[0])}")
                continue
            shown = ", ".join(map(repr, (fitting or left)[:10])) or "no others"
            message = f"{asked} {evidence}: state {option(role)}; there are {shown}"
            faults.add("unknown_column", message + (_of_header(table.columns) or table.hint or ""))
        else:
            traits[role] = Trait(column, "guessed", evidence)
    return ColumnsFound(traits)


def _of_header(columns: Sequence[str]) -> str:
    """Say what to do where the names of columns look like the cells of a row."""
    is_row = any(re.fullmatch(r"-?[0-9]+([.,][0-9]+)?", name) for name in columns) and any(
        map(_is_date, columns)
    )
    names = len(columns) <= 20 and is_row
    return ". If these are no names but the first row, state `header_row=0`" if names else ""


def _is_date(text: str) -> bool:
    return not text.isdigit() and _are_dates(pl.Series([text]))


def _sample(table: Table, faults: FaultList) -> dict[str, pl.Series]:
    """The first cells of each column; of several with a name, those of the first."""
    if table.rows is None:
        return {}
    with refusing_unreadable(table.unreadable, faults):
        head = table.rows.head(_SAMPLED).collect()
    by_name = dict(zip(table.columns[::-1], table.names[::-1], strict=True))
    cells = {column: head[name] for column, name in by_name.items()}
    return {column: one for column, one in cells.items() if has_texts(one.dtype)}


def _fits(
    role: str, column: str, cells: pl.Series | None, ds_format: str | None, currency: str | None
) -> bool:
    if cells is None:
        return False
    is_time = cells.dtype.is_temporal()
    if role == "ds":
        return is_time or _are_dates(cells.cast(pl.String), ds_format)
    if role == "unique_id":
        return may_be_id(column, cells, currency)
    if is_time or cells.dtype == pl.Boolean:
        return False
    texts = cells.cast(pl.String).drop_nulls()
    texts = texts.filter(texts != "").str.replace_all(currency or "", "", literal=True)
    n_numbers = texts.str.contains(r"^[^A-Za-z]*[0-9][^A-Za-z/:]*$").sum()
    return bool(len(texts)) and 2 * n_numbers > len(texts)


def _are_dates(texts: pl.Series, ds_format: str | None = None) -> bool:
    if ds_format is not None:
        filled = texts.filter(texts != "").drop_nulls().alias("text").to_frame()
        times = filled.select(time_format(ds_format).parse(pl.col("text"))).to_series()
        return 2 * times.null_count() < len(times)
    found = infer_dates(texts.head(50))
    return (found.is_known and found.format != "integer") or len(found.readings) > 0 or lack_year(texts)


def _may_count_time(column: str, cells: pl.Series | None) -> bool:
    """Whether a column is called as times are and has whole numbers, also behind a word, that count them."""
    if cells is None or not is_time(column) or cells.dtype.is_float():
        return False
    texts = cells.cast(pl.String).drop_nulls()
    return bool(len(texts)) and bool(texts.str.contains("^([A-Za-z]+[. _]?)?[0-9]+$").all())


def _numbers_of_rows(columns: Sequence[str], sample: Mapping[str, pl.Series]) -> set[str]:
    """The columns whose cells all differ, as numbers of orders do, if one that is called by ids is left."""
    words = WORDS["unique_id"]
    repeats = {c for c in columns if sample[c].n_unique() < len(sample[c])}
    return set(columns) - repeats if any(rank(c, words) < 2 * len(words) for c in repeats) else set()


def _best(role: str, columns: Sequence[str]) -> tuple[str | None, str]:
    """The column with the surest word in its name; or the only one."""
    words = WORDS[role]
    ranks = {column: rank(column, words) for column in columns}
    named = [column for column in columns if ranks[column] < 2 * len(words)]
    if named:
        best = min(named, key=lambda column: ranks[column])
        if sum(ranks[column] == ranks[best] for column in named) == 1:
            others = len(columns) - 1
            as_well = f", as {counted(others, 'other column')} {'has' if others == 1 else 'have'}"
            return best, f"its name, and cells that fit{as_well if others else ''}"
        return None, "several are named alike"
    if len(columns) == 1:
        return columns[0], "no other column has cells that fit"
    return None, "no name tells" if columns else "no column has cells that fit"

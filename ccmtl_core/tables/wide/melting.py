"""Write a wide table with one value a row."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

import numpy as np
import polars as pl
from polars.selectors import by_name

from ccmtl_core.base.display import named
from ccmtl_core.base.types import BoolArray, IntArray
from ccmtl_core.tables.dates.inference import infer_dates
from ccmtl_core.tables.dialects.repeated_columns import distinct
from ccmtl_core.tables.faults import MAX_LISTED, FaultList, Melted
from ccmtl_core.tables.table import Note, Table
from ccmtl_core.tables.wide.recognition import BY_PERIODS, INTEGER, WideShape


def melted(table: Table, found: WideShape, names: Mapping[str, str], faults: FaultList) -> Table:
    """Return three columns called ``names``, a row for each value; notes count cells without one."""
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
    long = pl.DataFrame(
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
    ds_format = INTEGER if found.is_counted or found.key is None else None
    if by_periods and ds_format is None and not (dates := infer_dates(heads)).is_ambiguous:
        ds_format = dates.format
    made, left_out = Table.of_frame(long.filter(~empty)), len(set(table.malformed_rows))
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
        kinds=table.kinds.together(found.values, list(long.columns).index(names["y"])),
        notes=(*table.notes, *notes),
        ds_format=ds_format,
    )


def _notes(table: Table, found: WideShape, empty: BoolArray, rows: IntArray) -> list[Note]:
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
    which = named(list(dict.fromkeys(repeated)), "name")
    message = (
        f"columns have the name of a period that another one has before them ({which}): the cells of both "
        "are values of that period, and `duplicates` says what becomes of them"
    )
    return [Note("repeated_columns", message, len(repeated), unit="columns")] if repeated else []

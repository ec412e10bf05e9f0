"""Read the cells of a table as ids, times and finite numbers; every bad cell is named.

The table is read once; if a cell is bad, it is read again for the text of the bad cells.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from functools import partial
from typing import cast

import numpy as np
import polars as pl
from polars.selectors import by_name

from ccmtl_core.base.arrays import EXACT_BELOW
from ccmtl_core.tables.cell_hints import date_hint, number_hint
from ccmtl_core.tables.dates.timestamps import FIRST_YEAR, LAST_YEAR, TimeFormat, time_format
from ccmtl_core.tables.dialects.dialect import NOTHING_KNOWN, Dialect
from ccmtl_core.tables.dialects.number_choice import styled
from ccmtl_core.tables.dialects.numbers import NumberStyle
from ccmtl_core.tables.faults import MAX_LISTED, MAX_VALUE_CHARACTERS, NO_ROWS, Fault, FaultList, no_rows
from ccmtl_core.tables.header import Kind, Role, check_header
from ccmtl_core.tables.table import UNCOMPUTED, Table, refusing_unreadable

MAX_ID_BYTES = 512
ROW = "row"
REPORT_ROWS = 2**17

_TRUTH = {"true": 1.0, "false": 0.0}
_EMPTY_DATE = "the date is empty: write it, or state as `comment` what lines of totals begin with"
_NUMBERS = (Kind.NUMBER, Kind.SUM, Kind.OPTIONAL)
_FAULTY, _ZONE, _VALUE = "faulty", "zone", "value"
_WHOLE = re.compile("[+-]?[0-9]+")
_FIXED_OFFSET = re.compile(r"([+-])(\d\d):?(\d\d)")


@dataclass(frozen=True)
class Cells:
    """What was read of a table."""

    frame: pl.DataFrame
    """Columns ``row`` (in the file, from 1) and each role's name; rows with a bad cell are absent."""
    time_zone: str | None = None
    """How times with a zone were read: in "UTC", or in the "local" time of their zone; None without any."""
    dialect: Dialect = NOTHING_KNOWN
    """How the file is written, its numbers included."""


@dataclass(frozen=True)
class _Check:
    code: str
    role: Role
    is_bad: pl.Expr
    message: str
    hint: Callable[[str], str] = lambda text: ""


def read_cells(
    table: Table, roles: Sequence[Role], faults: FaultList, formats: TimeFormat | None = None
) -> Cells:
    """Read and check the columns of ``roles`` of an open table; refuse it if no row is good.

    ``faults`` takes the faults of cells, for the caller to raise with those that it finds itself; missing
    columns, columns of a wrong type and unreadable rows are raised here. Times are read as ``formats`` says,
    by default as ISO 8601 and those with a zone in UTC.
    """
    formats = formats or time_format(None)
    table = styled(table, numbers_of(roles), faults)
    checked = _CheckedTable(table, roles, faults, formats)
    with refusing_unreadable(table.unreadable, faults):
        frame = checked.rows.collect()
        checked.check_height(frame.height)
        if frame[_FAULTY].any():
            table, before = styled(table, numbers_of(roles), faults, whole=True), table
            if table.styles != before.styles:
                checked = _CheckedTable(table, roles, faults, formats)
                frame = checked.rows.collect()
            checked.report()
            frame = frame.filter(~pl.col(_FAULTY))
    has_zone = _one_kind_of_time(frame, roles, faults)
    if not frame.height:
        raise faults.refusal() if faults else faults.refusal_for(NO_ROWS, no_rows(table.n_left_out))
    zoned = "UTC" if checked.formats.in_utc else "local"
    return Cells(frame.drop(_FAULTY, _ZONE), zoned if has_zone else None, table.dialect)


def cell_batches(
    table: Table, roles: Sequence[Role], faults: FaultList, batch_rows: int
) -> Iterator[pl.DataFrame]:
    """Yield the frames of :func:`read_cells` in pieces of at most ``batch_rows`` rows, in their order.

    The table is a :func:`styled` one. The first piece with a bad cell raises a `TableError` for all bad cells
    of the table, or `OtherStyle` if all cells together show that its numbers are written in another way.
    """
    checked = _CheckedTable(table, roles, faults, time_format(None))
    n_rows = 0
    with refusing_unreadable(table.unreadable, faults):
        if faults:
            checked.report()
            raise faults.refusal()
        for batch in _batches(checked.rows, batch_rows):
            if batch[_FAULTY].any():
                again = styled(table, numbers_of(roles), faults, whole=True)
                if again.styles != table.styles:
                    raise OtherStyle(again)
                checked.report()
                raise faults.refusal()
            n_rows += batch.height
            yield from batch.drop(_FAULTY, _ZONE).iter_slices(batch_rows)
        checked.check_height(n_rows)


class OtherStyle(Exception):
    """The numbers of a table are written in another way than its first rows showed; it must be read again."""

    def __init__(self, table: Table) -> None:
        super().__init__()
        self.table = table


def numbers_of(roles: Sequence[Role]) -> list[str]:
    """Return the columns that hold numbers."""
    return [role.column for role in roles if role.kind in _NUMBERS]


def _batches(rows: pl.LazyFrame, batch_rows: int) -> Iterator[pl.DataFrame]:
    return rows.collect_batches(chunk_size=batch_rows, lazy=True, engine="streaming")


class _CheckedTable:
    """The ``rows`` of a table, not collected yet: what their cells mean, and whether a cell is bad."""

    def __init__(self, table: Table, roles: Sequence[Role], faults: FaultList, formats: TimeFormat) -> None:
        has_columns = check_header(table.columns, [role.column for role in roles], faults, table.hint)
        if not (faults or table.n_rows):
            faults.add(NO_ROWS, "the file names its columns and has no rows")
        if not (has_columns and table.n_rows) or table.rows is None:
            raise faults.refusal()
        self.formats = formats
        self._table, self._faults = table, faults
        name_of = dict(zip(table.columns, table.names, strict=True))
        # Not `pl.col`, which takes "*", and names between ^ and $, for patterns of names.
        raw = table.rows.select(by_name(name_of[role.column]).alias(_raw(role)) for role in roles)
        raw = raw.with_row_index(ROW, offset=1)
        if table.malformed_rows:
            raw = raw.filter(~pl.col(ROW).is_in(table.malformed_rows))
        if (row_of := table.row_of) is not None:

            def numbered(rows: pl.Series) -> pl.Series:
                return pl.Series(row_of[rows.to_numpy() - 1])

            raw = raw.with_columns(pl.col(ROW).map_batches(numbered, pl.Int64, is_elementwise=True))
        with refusing_unreadable(table.unreadable, faults):
            types = raw.collect_schema()
        if table.options.empty is not None:
            raw = raw.with_columns(
                _emptied(role, table.options.empty)
                for role in roles
                if role.kind in _NUMBERS and types[_raw(role)] == pl.String
            )
        fitting = [_check_type(role, types[_raw(role)], formats, faults) for role in roles]
        if not all(fitting):
            raise faults.refusal()
        parsed = raw.with_columns(_parse(role, types[_raw(role)], formats, table) for role in roles)
        self._checks = [check for role in roles for check in _checks(role, types[_raw(role)], formats)]
        if any(note.code == UNCOMPUTED for note in table.notes):
            self._checks += map(_uncomputed_id, (role for role in roles if role.kind is Kind.ID))
        self._with_raw = parsed.with_columns(
            pl.any_horizontal(check.is_bad for check in self._checks).alias(_FAULTY),
            _names_zone(roles, types, formats).alias(_ZONE),
        )
        self._id_and_time = {role.name: _raw(role) for role in roles if role.name in ("unique_id", "ds")}
        self.rows = self._with_raw.select(ROW, *(role.name for role in roles), _FAULTY, _ZONE)

    def check_height(self, n_rows: int) -> None:
        """Raise if polars read another number of rows than were counted when the table was opened."""
        n_expected = self._table.n_rows - len(set(self._table.malformed_rows))
        if n_rows != n_expected:
            raise pl.exceptions.ShapeError(f"{n_rows} rows were read, {n_expected} are in the file")

    def report(self) -> None:
        """Name the bad cells of the whole table."""
        for bad in _batches(self._with_raw.filter(_FAULTY), REPORT_ROWS):
            for check in self._checks:
                found = bad.filter(check.is_bad)
                if found.height:
                    samples = _samples(found, check, self._id_and_time)
                    self._faults.add_all(check.code, found.height, samples)


def _raw(role: Role) -> str:
    return f"raw_{role.name}"


def _emptied(role: Role, word: str) -> pl.Expr:
    """The column, in which cells with the word that is stated to mean no value are emptied."""
    raw = pl.col(_raw(role))
    return pl.when(raw.str.strip_chars() == word).then(pl.lit("")).otherwise(raw).alias(_raw(role))


def _is_text(dtype: pl.DataType) -> bool:
    return isinstance(dtype, pl.String | pl.Categorical | pl.Enum)


def _check_type(role: Role, dtype: pl.DataType, formats: TimeFormat, faults: FaultList) -> bool:
    """Return whether a column is of a right type; if not, add a fault."""
    is_number = dtype.is_numeric() or dtype == pl.Boolean
    is_whole = dtype.is_integer() or (isinstance(dtype, pl.Decimal) and dtype.scale == 0)
    fits, wanted = {
        Kind.ID: (is_whole, "text or whole numbers"),
        Kind.TIME: (isinstance(dtype, pl.Date | pl.Datetime), "times"),
        Kind.NUMBER: (is_number, "numbers"),
        Kind.SUM: (is_number, "numbers"),
        Kind.OPTIONAL: (is_number or dtype == pl.Null, "numbers"),
        Kind.TEXT: (is_whole or dtype in (pl.Null, pl.Boolean), "text or whole numbers"),
    }[role.kind]
    if not (fits or _is_text(dtype)):
        message = f"the column {role.column!r} is of type {dtype}; {wanted} are needed"
        faults.add("wrong_type", message, column=role.column)
        return False
    if role.kind is Kind.TIME and not (formats.in_utc or _is_known(_zone(dtype))):
        message = (
            f"the times of the column {role.column!r} are in the zone {_zone(dtype)!r}, which the IANA "
            "database does not have: convert them to one that it has, or to an offset such as +05:30"
        )
        faults.add("unknown_time_zone", message, column=role.column)
        return False
    return True


def _zone(dtype: pl.DataType) -> str | None:
    return dtype.time_zone if isinstance(dtype, pl.Datetime) else None


def _is_known(zone: str | None) -> bool:
    if zone is None or _FIXED_OFFSET.fullmatch(zone):
        return True
    try:
        pl.Series([datetime(2000, 1, 1)]).dt.replace_time_zone(zone)
    except pl.exceptions.ComputeError:
        return False
    return True


def _parse(role: Role, dtype: pl.DataType, formats: TimeFormat, table: Table) -> pl.Expr:
    raw = pl.col(_raw(role))
    if role.kind is Kind.ID:
        return raw.cast(pl.String).alias(role.name)
    if role.kind is Kind.TEXT:
        text = raw.cast(pl.String)
        return pl.when(text != "").then(text).alias(role.name)
    if role.kind in _NUMBERS:
        if not _is_text(dtype):
            return raw.cast(pl.Float64, strict=False).alias(role.name)
        style = table.styles.get(role.column, NumberStyle())
        numbers = partial(_numbers, style=style)
        return raw.cast(pl.String).map_batches(numbers, pl.Float64, is_elementwise=True).alias(role.name)
    if _is_text(dtype):
        moment = formats.parse(raw.cast(pl.String))
    elif (zone := _zone(dtype)) and not formats.in_utc:
        moment = _local_moment(raw, zone)
    else:
        moment = _moment(raw)
    in_range = moment.dt.year().is_between(FIRST_YEAR, LAST_YEAR)
    return pl.when(in_range).then(moment).alias(role.name)


def _numbers(texts: pl.Series, style: NumberStyle) -> pl.Series:
    """The numbers that texts stand for, "true" and "false" in any case for 1 and 0; null for other texts."""
    numbers = style.parse(texts)
    if numbers.null_count() == texts.null_count():  # as nearly always
        return numbers
    truth = texts.str.to_lowercase().replace_strict(_TRUTH, default=None, return_dtype=pl.Float64)
    return pl.select(pl.coalesce(numbers, truth)).to_series()


def _moment(raw: pl.Expr) -> pl.Expr:
    """Dates or times, those with a zone in UTC; null for those beyond the calendar."""
    return raw.cast(pl.Datetime("us"), strict=False)


def _local_moment(raw: pl.Expr, zone: str) -> pl.Expr:
    """What a clock in the zone shows; null for times far beyond the calendar, which polars cannot convert."""
    if offset := _FIXED_OFFSET.fullmatch(zone):
        minutes = int(offset[2]) * 60 + int(offset[3])
        return _moment(raw) + pl.duration(minutes=-minutes if offset[1] == "-" else minutes)
    has_clock = _moment(raw).dt.year().is_between(FIRST_YEAR - 1, LAST_YEAR + 1)
    return _moment(pl.when(has_clock).then(raw).dt.replace_time_zone(None))


def _checks(role: Role, dtype: pl.DataType, formats: TimeFormat) -> Iterator[_Check]:
    raw, parsed = pl.col(_raw(role)), pl.col(role.name)
    empty = raw.is_null() | (raw.cast(pl.String) == "") if _is_text(dtype) else raw.is_null()
    if role.kind is Kind.TEXT:
        too_long = parsed.str.len_bytes() > MAX_ID_BYTES
        yield _Check("text_too_long", role, too_long, f"the text is longer than {MAX_ID_BYTES} bytes")
        return
    if role.kind is Kind.ID:
        yield _Check("empty_id", role, empty, "the id is empty")
        yield _Check("id_has_nul", role, parsed.str.contains("\0", literal=True), "the id contains a NUL")
        too_long = parsed.str.len_bytes() > MAX_ID_BYTES
        yield _Check("id_too_long", role, too_long, f"the id is longer than {MAX_ID_BYTES} bytes")
        return
    unparsed = parsed.is_null() & ~empty
    if role.kind is Kind.TIME:
        yield _Check("empty_date", role, empty, _EMPTY_DATE)
        if _is_text(dtype):
            message = f"not a date in the format {formats.name} in the years {FIRST_YEAR} to {LAST_YEAR}"
            yield _Check("unparseable_date", role, unparsed, message, date_hint)
        else:
            message = f"the year is not in {FIRST_YEAR} to {LAST_YEAR}"
            yield _Check("unparseable_date", role, unparsed, message)
        return
    remedy = f": {role.if_empty}" if role.kind is Kind.NUMBER else ""
    if role.kind is not Kind.OPTIONAL:
        yield _Check("empty_number", role, empty, f"the number is empty{remedy}")
    message = "not a number such as -1234.5 or 1e-3"
    yield _Check("unparseable_number", role, unparsed, message, number_hint)
    yield _Check(
        "not_finite", role, parsed.is_not_null() & ~parsed.is_finite(), "not a finite number", number_hint
    )
    if role.kind is Kind.NUMBER and not dtype.is_float() and dtype != pl.Boolean:
        message = "a whole number beyond 2**53 that float64 cannot hold: round it, or subtract from all"
        changed = pl.map_batches([raw, parsed], _is_inexact, pl.Boolean, is_elementwise=True)
        yield _Check("inexact_number", role, changed, message)


def _uncomputed_id(role: Role) -> _Check:
    is_formula = pl.col(role.name).str.starts_with("=")
    return _Check("empty_id", role, is_formula, "the id is empty" + number_hint("="))


def _is_inexact(columns: Sequence[pl.Series]) -> pl.Series:
    """Whether each whole number of the first column was changed by becoming float64, in the second column."""
    raw, parsed = columns
    ends = cast("list[float]", [parsed.min() or 0.0, parsed.max() or 0.0])
    if max(map(abs, ends)) < EXACT_BELOW:  # as nearly always
        return pl.repeat(False, len(raw), eager=True)
    at = ((parsed.abs() >= EXACT_BELOW) & parsed.is_finite()).arg_true()
    texts = raw.gather(at).cast(pl.String).to_list()
    bad = np.zeros(len(raw), dtype=np.bool_)
    for i, text, number in zip(at.to_list(), texts, parsed.gather(at).to_list(), strict=True):
        bad[i] = bool(_WHOLE.fullmatch(text)) and int(text) != int(number)
    return pl.Series(bad)


def _samples(found: pl.DataFrame, check: _Check, id_and_time: Mapping[str, str]) -> Iterator[Fault]:
    """The first bad cells, each with the id and the time that stand in its row."""
    columns = {name: raw for name, raw in id_and_time.items() if name != check.role.name}
    columns[_VALUE] = _raw(check.role)
    shown = found.head(MAX_LISTED).select(ROW, *(_shown(found, raw, name) for name, raw in columns.items()))
    for cells in shown.iter_rows(named=True):
        row, cut = cells.pop(ROW), cells.pop(_VALUE)
        message = check.message + check.hint(cut or "")
        yield Fault(check.code, message, row, check.role.column, cut, **cells)


def _shown(found: pl.DataFrame, column: str, name: str) -> pl.Expr:
    """The cells of a column as shortened text, called ``name``."""
    raw, dtype = pl.col(column), found.schema[column]
    if dtype.is_temporal():  # polars cannot write times beyond the calendar, nor those with odd offsets
        moment = _moment(raw)
        raw = pl.when(moment.dt.year().is_not_null()).then(moment if _zone(dtype) else raw)
    return raw.cast(pl.String).str.head(MAX_VALUE_CHARACTERS).alias(name)


def _names_zone(roles: Sequence[Role], types: pl.Schema, formats: TimeFormat) -> pl.Expr:
    for role in roles:
        if role.kind is Kind.TIME:
            dtype, raw = types[_raw(role)], pl.col(_raw(role))
            if _is_text(dtype):
                return formats.has_zone(raw.cast(pl.String))
            return pl.lit(_zone(dtype) is not None)
    return pl.lit(False)


def _one_kind_of_time(frame: pl.DataFrame, roles: Sequence[Role], faults: FaultList) -> bool:
    n_zoned = int(frame[_ZONE].sum())
    n_local = frame.height - n_zoned
    if not (n_zoned and n_local):
        return n_zoned > 0
    rare_is_zoned = n_zoned <= n_local
    rare = frame.filter(pl.col(_ZONE) == rare_is_zoned)
    column = next(role.column for role in roles if role.kind is Kind.TIME)
    has, others = ("has a zone", "have none") if rare_is_zoned else ("has no zone", "have one")
    message = f"the time {has}, {max(n_zoned, n_local)} others {others}"
    samples = (
        Fault("mixed_time_zones", message, row, column) for row in rare[ROW].head(MAX_LISTED).to_list()
    )
    faults.add_all("mixed_time_zones", rare.height, samples)
    return True

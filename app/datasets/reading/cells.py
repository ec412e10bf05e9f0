"""Read the cells of an uploaded table as ids, times and finite numbers, and name every bad cell.

The happy path reads the file once. Only when a cell is bad the file is read again, for the offending text.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

import polars as pl

from app.datasets.reading.date_hint import date_hint
from app.datasets.reading.faults import MAX_VALUE_CHARACTERS, FaultList
from app.datasets.reading.header import Kind, Role
from app.datasets.reading.timestamps import FIRST_YEAR, LAST_YEAR, TimeFormat
from app.datasets.reading.uploaded_table import UploadedTable
from app.http.errors import MAX_ERRORS, Fault
from ccmtl_core.base.number_hint import number_hint

MAX_ID_BYTES = 512
ROW = "row"

_FAULTY, _ZONE = "faulty", "zone"


@dataclass(frozen=True)
class Cells:
    """What was read.

    Parameters
    ----------
    frame : DataFrame
        Columns ``row`` (in the file, from 1) and each role's name; rows with a bad cell are absent.
    time_zone : str, optional
        "UTC" where times with a zone were converted, "local" where they are what the local clock shows; None
        where they named no zone.
    """

    frame: pl.DataFrame
    time_zone: str | None = None


@dataclass(frozen=True)
class _Check:
    code: str
    role: Role
    is_bad: pl.Expr
    message: str
    hint: Callable[[str], str] = lambda text: ""


def read_cells(
    table: UploadedTable, rows: pl.LazyFrame, roles: Sequence[Role], formats: TimeFormat, faults: FaultList
) -> Cells:
    """Read and check the columns of ``roles``.

    Parameters
    ----------
    table : UploadedTable
        Where the columns are, by a header that was checked.
    rows : LazyFrame
        Its rows.
    roles : sequence of Role
        What to read.
    formats : TimeFormat
        How times are read: those that are text, and those with a zone.
    faults : FaultList
        Takes the faults.

    Returns
    -------
    Cells
        The columns read, as far as they could be.

    Raises
    ------
    PolarsError
        If the reader cannot make out the rows.
    """
    name_of = dict(zip(table.columns, table.names, strict=True))
    raw = rows.select(pl.col(name_of[role.column]).alias(_raw(role)) for role in roles)
    raw = raw.with_row_index(ROW, offset=1)
    if table.malformed_rows:
        raw = raw.filter(~pl.col(ROW).is_in(table.malformed_rows))
    types = raw.collect_schema()
    if not _check_types(roles, types, faults):
        return Cells(pl.DataFrame())
    parsed = raw.with_columns(_parse(role, types[_raw(role)], formats) for role in roles)
    checks = [check for role in roles for check in _checks(role, types[_raw(role)], formats)]
    judged = parsed.with_columns(
        pl.any_horizontal(check.is_bad for check in checks).alias(_FAULTY),
        _names_zone(roles, types, formats).alias(_ZONE),
    )
    frame = judged.select(ROW, *(role.name for role in roles), _FAULTY, _ZONE).collect()
    n_expected = table.n_rows - len(set(table.malformed_rows))
    if frame.height != n_expected:
        raise pl.exceptions.ShapeError(f"{frame.height} rows were read, {n_expected} are in the file")
    if frame[_FAULTY].any():
        _report(judged.filter(_FAULTY).collect(), checks, faults)
        frame = frame.filter(~pl.col(_FAULTY))
    zoned = "UTC" if formats.in_utc else "local"
    has_zone = _one_kind_of_time(frame, roles, faults)
    return Cells(frame.drop(_FAULTY, _ZONE), zoned if has_zone else None)


def _raw(role: Role) -> str:
    return f"raw_{role.name}"


def _is_text(dtype: pl.DataType) -> bool:
    return isinstance(dtype, pl.String | pl.Categorical | pl.Enum)


def _check_types(roles: Sequence[Role], types: pl.Schema, faults: FaultList) -> bool:
    fitting = True
    for role in roles:
        dtype = types[_raw(role)]
        fits, wanted = {
            Kind.ID: (dtype.is_integer(), "text or whole numbers"),
            Kind.TIME: (isinstance(dtype, pl.Date | pl.Datetime), "times"),
            Kind.NUMBER: (dtype.is_numeric(), "numbers"),
        }[role.kind]
        if not (fits or _is_text(dtype)):
            fitting = False
            message = f"the column is of type {dtype}; {wanted} are needed"
            faults.add("wrong_type", message, column=role.column)
    return fitting


def _parse(role: Role, dtype: pl.DataType, formats: TimeFormat) -> pl.Expr:
    raw = pl.col(_raw(role))
    if role.kind is Kind.ID:
        return raw.cast(pl.String).alias(role.name)
    if role.kind is Kind.NUMBER:
        number = raw.cast(pl.String) if _is_text(dtype) else raw
        return number.cast(pl.Float64, strict=False).alias(role.name)
    if _is_text(dtype):
        moment = formats.parse(raw.cast(pl.String))
    elif _has_zone(dtype) and not formats.in_utc:
        moment = _local_moment(raw)
    else:
        moment = _moment(raw)
    in_range = moment.dt.year().is_between(FIRST_YEAR, LAST_YEAR)
    return pl.when(in_range).then(moment).alias(role.name)


def _moment(raw: pl.Expr) -> pl.Expr:
    """Dates or times, those with a zone in UTC; null where they are beyond what has a calendar date."""
    return raw.cast(pl.Datetime("us"), strict=False)


def _local_moment(raw: pl.Expr) -> pl.Expr:
    """What the clock of the times' zone shows; null far beyond the calendar, where polars has no clock."""
    has_clock = _moment(raw).dt.year().is_between(FIRST_YEAR - 1, LAST_YEAR + 1)
    return _moment(pl.when(has_clock).then(raw).dt.replace_time_zone(None))


def _has_zone(dtype: pl.DataType) -> bool:
    return isinstance(dtype, pl.Datetime) and dtype.time_zone is not None


def _checks(role: Role, dtype: pl.DataType, formats: TimeFormat) -> Iterator[_Check]:
    raw, parsed = pl.col(_raw(role)), pl.col(role.name)
    empty = raw.is_null() | (raw.cast(pl.String) == "") if _is_text(dtype) else raw.is_null()
    if role.kind is Kind.ID:
        yield _Check("empty_id", role, empty, "the id is empty")
        yield _Check("id_has_nul", role, parsed.str.contains("\0", literal=True), "the id contains a NUL")
        too_long = parsed.str.len_bytes() > MAX_ID_BYTES
        yield _Check("id_too_long", role, too_long, f"the id is longer than {MAX_ID_BYTES} bytes")
        return
    unparsed = parsed.is_null() & ~empty
    if role.kind is Kind.TIME:
        yield _Check("empty_date", role, empty, "the date is empty")
        if _is_text(dtype):
            message = f"not a date in the format {formats.name} in the years {FIRST_YEAR} to {LAST_YEAR}"
            yield _Check("unparseable_date", role, unparsed, message, date_hint)
        else:
            message = f"the year is not in {FIRST_YEAR} to {LAST_YEAR}"
            yield _Check("unparseable_date", role, unparsed, message)
        return
    yield _Check("empty_number", role, empty, "the number is empty")
    message = "not a number such as -1234.5 or 1e-3"
    yield _Check("unparseable_number", role, unparsed, message, number_hint)
    yield _Check("not_finite", role, parsed.is_not_null() & ~parsed.is_finite(), "not a finite number")


def _report(bad: pl.DataFrame, checks: Sequence[_Check], faults: FaultList) -> None:
    for check in checks:
        found = bad.filter(check.is_bad)
        if found.height:
            faults.add_all(check.code, found.height, _samples(found, check))


def _samples(found: pl.DataFrame, check: _Check) -> Iterator[Fault]:
    raw = pl.col(_raw(check.role))
    if found.schema[_raw(check.role)].is_temporal():
        raw = pl.when(_moment(raw).dt.year().is_not_null()).then(raw)  # others have no text
    shown = found.head(MAX_ERRORS).select(ROW, raw.cast(pl.String))
    for row, value in shown.iter_rows():
        cut = None if value is None else value[:MAX_VALUE_CHARACTERS]
        message = check.message + check.hint(cut or "")
        yield Fault(code=check.code, message=message, row=row, column=check.role.column, value=cut)


def _names_zone(roles: Sequence[Role], types: pl.Schema, formats: TimeFormat) -> pl.Expr:
    for role in roles:
        if role.kind is Kind.TIME:
            dtype, raw = types[_raw(role)], pl.col(_raw(role))
            if _is_text(dtype):
                return formats.has_zone(raw.cast(pl.String))
            return pl.lit(_has_zone(dtype))
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
        Fault(code="mixed_time_zones", message=message, row=row, column=column)
        for row in rare[ROW].head(MAX_ERRORS)
    )
    faults.add_all("mixed_time_zones", rare.height, samples)
    return True

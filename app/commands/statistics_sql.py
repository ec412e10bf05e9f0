"""``ccmtl statistics-sql``: print the query that computes statistics where the rows are: one ``GROUP BY``.

The query's result is the table that :func:`ccmtl_core.read_statistics` reads. Numbers are cast to double
before they are multiplied, so that integers do not overflow. A row with NULL in a column that is used is
counted in ``n_null``, and refused when the result is read: the sums have skipped it here and there.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from datetime import date
from itertools import pairwise

import sqlglot
from sqlglot import exp
from sqlglot.errors import SqlglotError

from app.commands.lists import listed
from app.commands.options import Dialect
from app.commands.printing import messages_console, print_data
from app.commands.unusable import explaining
from ccmtl_core import ParameterError
from ccmtl_core.tables import statistics_table as layout

_SAMPLES, _Y = "samples", "y"
_NUMBER = re.compile(r"[+-]?\d+(\.\d+)?")


def print_sql(
    table: str,
    task: str,
    target: str,
    features: str,
    dialect: Dialect,
    where: str | None,
    time: str | None,
    folds: str,
) -> None:
    """Print the query, or say which argument cannot be used."""
    with explaining(messages_console()):
        query = statistics_sql(
            table=table,
            task=task,
            target=target,
            features=listed(features),
            dialect=dialect,
            where=where,
            time=time,
            cuts=listed(folds),
        )
    print_data(query)


def statistics_sql(
    *,
    table: str,
    task: str,
    target: str,
    features: Sequence[str],
    dialect: Dialect,
    where: str | None = None,
    time: str | None = None,
    cuts: Sequence[str] = (),
) -> str:
    """Write the query.

    ``table`` has dots between its parts, as in shop.sales. Names of tables and columns are taken as they are
    and quoted, so capitals count; Snowflake stores names in capitals unless they were quoted. K rising
    ``cuts`` of ``time`` make K + 1 folds, and the first row of a fold is at its cut.

    Raises
    ------
    ParameterError
        Columns used twice, cuts that do not rise or have no column, a condition that is not one.

    Examples
    --------
    >>> print(statistics_sql(table="sales", task="shop", target="sold", features=["price"],
    ...     dialect=Dialect.DUCKDB).splitlines()[-1])
    GROUP BY "task_id"
    """
    names = tuple(features)
    used = [task, target, *names, *([time] if time else [])]
    if not names or "" in used or len(set(used)) < len(used):
        raise ParameterError("name a task, a target and at least one feature, and no column twice")
    if bool(time) != bool(cuts):
        raise ParameterError("folds need both a time column and the values where it is cut")
    fold = [_fold(time, cuts).as_(layout.FOLD, quoted=True)] if time else []
    x = [f"x_{p + 1}" for p in range(len(names))]
    numbers = [
        exp.cast(_column(name), "double").as_(alias, quoted=True)
        for name, alias in zip((target, *names), (_Y, *x), strict=True)
    ]
    samples = exp.select(exp.cast(_column(task), "text").as_(layout.TASK, quoted=True), *fold, *numbers)
    samples = samples.from_(_table(table))
    if where:
        samples = samples.where(_condition(where, dialect), copy=False)
    groups = [layout.TASK, *([layout.FOLD] if time else [])]
    query = (
        exp.select(*map(_column, groups), *_sums(names, [*groups, _Y, *x], x))
        .from_(exp.to_identifier(_SAMPLES, quoted=True))
        .group_by(*map(_column, groups))
        .with_(exp.to_identifier(_SAMPLES, quoted=True), as_=samples)
    )
    return query.sql(dialect=dialect.value, pretty=True)


def _sums(names: tuple[str, ...], read: Sequence[str], x: Sequence[str]) -> Iterator[exp.Expr]:
    """The columns that are the same in a group or sums over it."""

    def total(*factors: str) -> exp.Sum:
        product: exp.Expr = _column(factors[0])
        for factor in factors[1:]:
            product = exp.Mul(this=product, expression=_column(factor))
        return exp.Sum(this=product)

    any_null = exp.or_(*(exp.Is(this=_column(name), expression=exp.Null()) for name in read))
    counted = exp.case().when(any_null, exp.Literal.number(1))
    yield exp.Literal.string(layout.features_value(names)).as_(layout.FEATURES, quoted=True)
    yield exp.Count(this=exp.Star()).as_(layout.N_SAMPLES, quoted=True)
    yield exp.Count(this=counted).as_(layout.N_NULL, quoted=True)
    for p, q in layout.triangle(len(x)):
        yield total(x[p], x[q]).as_(layout.gram_column(p, q), quoted=True)
    for p, name in enumerate(x):
        yield total(name, _Y).as_(layout.xty_column(p), quoted=True)
    yield total(_Y, _Y).as_(layout.YTY, quoted=True)
    for p, name in enumerate(x):
        yield total(name).as_(layout.x_sum_column(p), quoted=True)
    yield total(_Y).as_(layout.Y_SUM, quoted=True)


def _column(name: str) -> exp.Column:
    return exp.column(exp.to_identifier(name, quoted=True))


def _table(name: str) -> exp.Table:
    parts = [exp.to_identifier(part, quoted=True) for part in name.split(".")]
    if len(parts) > 3 or not all(part.name for part in parts):
        raise ParameterError(f"a table is named by one to three parts with dots between them, not {name!r}")
    catalog, schema, table = [None] * (3 - len(parts)) + parts
    return exp.Table(this=table, db=schema, catalog=catalog)


def _condition(where: str, dialect: Dialect) -> exp.Expr:
    try:
        parsed = sqlglot.parse(where, dialect=dialect.value)
    except SqlglotError as error:
        reason = str(error).splitlines()[0]
        raise ParameterError(f"the condition {where!r} cannot be read as SQL: {reason}") from error
    condition = parsed[0] if len(parsed) == 1 else None
    if not isinstance(condition, exp.Condition) or isinstance(condition, exp.Query):
        raise ParameterError(f"{where!r} is not a condition on rows")
    return condition


def _fold(time: str, cuts: Sequence[str]) -> exp.Case:
    """The number of cuts at or before the time; NULL where the time is."""
    if all(map(_NUMBER.fullmatch, cuts)):
        rises = all(float(a) < float(b) for a, b in pairwise(cuts))
        value: exp.Expr = _column(time)
        at: list[exp.Expr] = [exp.Literal.number(cut) for cut in cuts]
    else:
        days = [_day(cut) for cut in cuts]
        rises = days == sorted(set(days))
        value = exp.cast(_column(time), "date")
        at = [exp.cast(exp.Literal.string(day.isoformat()), "date") for day in days]
    if not rises:
        raise ParameterError(f"cuts must rise: {', '.join(cuts)}")
    case = exp.case()
    for fold, cut in enumerate(at):
        case = case.when(exp.LT(this=value.copy(), expression=cut), exp.Literal.number(fold))
    return case.when(exp.GTE(this=value.copy(), expression=at[-1].copy()), exp.Literal.number(len(at)))


def _day(cut: str) -> date:
    try:
        return date.fromisoformat(cut)
    except ValueError as error:
        raise ParameterError(f"cuts are all numbers or all dates like 2001-02-28; {cut!r} is not") from error

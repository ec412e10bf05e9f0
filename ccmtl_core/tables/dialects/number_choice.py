"""Decide from whole columns how their numbers are written, or say which option must decide."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace

import polars as pl
from polars.selectors import by_name

from ccmtl_core.base.display import counted, option, quoted
from ccmtl_core.tables.dialects.dialect import Dialect, ReadOptions
from ccmtl_core.tables.dialects.numbers import (
    APOSTROPHES,
    CURRENCIES,
    INDIAN,
    MINUS,
    SPACES,
    NumberStyle,
    unsigned,
)
from ccmtl_core.tables.faults import FaultList
from ccmtl_core.tables.table import Table, refusing_unreadable

SAMPLE_ROWS = 2000
_NAMES = {".": "point", ",": "comma"}


def _sure(decimal: str, other: str) -> str:
    """A pattern of numbers that can be read in one way alone, with this decimal sign."""
    d, o, group = rf"\{decimal}", rf"\{other}", f"(?:[{SPACES}{APOSTROPHES}][0-9]{{3}})"
    forms = [
        f"[0-9]*{d}(?:[0-9]{{1,2}}|[0-9]{{4,}})",
        f"(?:0[0-9]*|[0-9]{{4,}})?{d}[0-9]{{3}}",
        f"[0-9]+{d}",
        f"[0-9]{{1,3}}(?:{o}[0-9]{{3}})+{d}[0-9]*",
        f"[0-9]{{1,3}}(?:{o}[0-9]{{3}}){{2,}}",
        f"[0-9]{{1,3}}{group}+{d}[0-9]*",
        f"[0-9]*{d}[0-9]*[eE][+-]?[0-9]+",
    ]
    if other == ",":
        forms.append(f"{INDIAN}(?:{d}[0-9]*)?")
    return f"^[+-]?(?:{'|'.join(forms)})$"


_PATTERNS = {
    "point": _sure(".", ","),
    "comma": _sure(",", "."),
    "either_point": r"^[+-]?[1-9][0-9]{0,2}\.[0-9]{3}$",
    "either_comma": r"^[+-]?[1-9][0-9]{0,2},[0-9]{3}$",
    "grouped_point": r"^[+-]?[0-9]{1,3}(?:\.[0-9]{3})+(?:,[0-9]*)?$",
    "grouped_comma": rf"^[+-]?(?:[0-9]{{1,3}}(?:,[0-9]{{3}})+|{INDIAN})(?:\.[0-9]*)?$",
    "space": f"^[+-]?[0-9]{{1,3}}(?:[{SPACES}][0-9]{{3}})+(?:[.,][0-9]*)?$",
    "apostrophe": f"^[+-]?[0-9]{{1,3}}(?:[{APOSTROPHES}][0-9]{{3}})+(?:[.,][0-9]*)?$",
}


@dataclass(frozen=True)
class _Counts:
    """How many cells of a column fit each pattern, and the first that could be read in two ways."""

    of: Mapping[str, int]
    example: str | None

    def __getitem__(self, name: str) -> int:
        return self.of[name]

    @property
    def decimal(self) -> str | None:
        """The decimal sign that the cells prove; None where they prove none, or both."""
        if bool(self["point"]) == bool(self["comma"]):
            grouped = self["space"] + self["apostrophe"]
            if self["point"] or not grouped or not self.is_open:
                return None
            return "." if self["either_point"] else ","
        return "." if self["point"] else ","

    @property
    def is_open(self) -> bool:
        """Whether a mark before three digits could be either sign."""
        return bool(self["either_point"] + self["either_comma"])


def styled(table: Table, columns: Sequence[str], faults: FaultList, *, whole: bool = False) -> Table:
    """Return the table with the styles of its columns of numbers, and with what they show in its dialect.

    Parameters
    ----------
    table : Table
        Opened, not read.
    columns : sequence of str
        Those that hold numbers, by their names in the file.
    faults : FaultList
        Takes a fault for each column that could be read in two ways; the caller raises them.
    whole : bool
        Read all cells. By default the first rows decide where they can.

    Returns
    -------
    Table
        The same one where nothing but plain numbers was found.
    """
    options, names = table.options, dict(zip(table.columns, table.names, strict=True))
    if table.rows is None or table.n_rows == 0:
        return table
    with refusing_unreadable(table.unreadable, faults):
        schema = table.rows.collect_schema()
        texts = [name for name in columns if name in names and schema[names[name]] == pl.String]
        if not texts:
            return table
        head = (
            None if whole else table.rows.select(by_name([names[name] for name in texts])).head(SAMPLE_ROWS)
        )
        sample = None if head is None else head.collect()
        if sample is not None and _is_plain(sample, table, options):
            return _told(table, {}, "numbers are as programs write them")
        table = _with_currency(table, [names[name] for name in texts], sample)
        options, rows = table.options, table.rows
        assert rows is not None
        counts = {}
        if sample is not None:
            counts = _counts(sample.lazy(), [names[name] for name in texts], options)
        open_names = [names[name] for name in texts]
        if sample is not None:
            open_names = [name for name in open_names if counts[name].decimal is None]
            open_names = _with_marks(rows, open_names)
        if open_names:
            counts |= _counts(rows, open_names, options)
    found = {name: counts[names[name]] for name in texts}
    return _decided(table, found, faults)


def sampled_decimals(table: Table, columns: Sequence[str]) -> dict[str, str] | None:
    """Return the decimal sign of each column as its first rows prove it, "" where these are whole numbers.

    None where they prove none, or where numbers have more marks than that. Rows that keep to this are read by
    :func:`styled` in the same way, however many follow.
    """
    if table.rows is None:
        return None
    names = dict(zip(table.columns, table.names, strict=True))
    asked = [names[name] for name in columns]
    with suppress(pl.exceptions.PolarsError, pl.exceptions.PanicException, OSError):
        sample = table.rows.select(by_name(asked)).head(SAMPLE_ROWS).collect()
        if _is_plain(sample, table, table.options):
            return dict.fromkeys(columns, ".")
        counts = _counts(sample.lazy(), asked, table.options)
        is_open = [name for name in asked if counts[name].decimal is None]
        if _with_marks(sample.lazy(), is_open):
            return None
        styles = _decided(table, {name: counts[names[name]] for name in columns}, FaultList()).styles
        decimals = {name: styles.get(name, NumberStyle()).decimal for name in columns}
        if all(style == NumberStyle(style.decimal) for style in styles.values()):
            return decimals | {name: "" for name in columns if names[name] in is_open}
    return None


def _is_plain(sample: pl.DataFrame, table: Table, options: ReadOptions) -> bool:
    """Whether the first rows need no other reading than that of programs, and nothing else is stated."""
    if options.decimal == "," or options.currency or (options.thousands or "none") != "none":
        return False
    if not table.has_point and options.decimal is None:
        return False
    filled = sample.select(pl.all().cast(pl.Float64, strict=False).null_count() <= (pl.all() == "").sum())
    return bool(filled.select(pl.all_horizontal(pl.all())).item())


def _with_currency(table: Table, names: Sequence[str], sample: pl.DataFrame | None) -> Table:
    """The table with the sign of a currency, where all numbers of each column with one have the same."""
    if table.options.currency is not None or table.rows is None:
        return table
    cells = sample.lazy() if sample is not None else table.rows
    beside = (
        rf"^[-+({MINUS}]?([{CURRENCIES}])[{SPACES}]*[-+{MINUS}]?[0-9]|[0-9][{SPACES}]*([{CURRENCIES}])\)?-?$"
    )
    found = cells.select(by_name(list(names))).collect(engine="streaming")
    filled = [column.filter(column != "").drop_nulls() for column in found]
    signs = [
        pl.select(pl.coalesce(pl.lit(texts).str.extract(beside, i) for i in (1, 2))).to_series()
        for texts in filled
    ]
    signed = [column for column in signs if column.null_count() < len(column)]
    kinds = {sign for column in signed for sign in column.unique()}
    if len(kinds) != 1:
        return table
    sign = kinds.pop()
    evidence = f"{counted(sum(map(len, signed)), 'number')} have it beside them, all of each column with one"
    options = replace(table.options, currency=sign)
    return replace(table, options=options, dialect=table.dialect.guessed("currency", sign, evidence))


def _with_marks(rows: pl.LazyFrame, names: Sequence[str]) -> list[str]:
    """Those of the columns in which a cell is neither empty nor digits alone, in any row."""
    if not names:
        return []
    texts = rows.select(by_name(list(names)))
    others = texts.select((pl.all() != "") & pl.all().cast(pl.Int64, strict=False).is_null())
    found = others.select(pl.all().any()).collect(engine="streaming").row(0, named=True)
    return [name for name in names if found[name]]


def _counts(rows: pl.LazyFrame, names: Sequence[str], options: ReadOptions) -> dict[str, _Counts]:
    asked = []
    for i, name in enumerate(names):
        core, is_negative = unsigned(by_name(name).as_expr(), options.currency)
        asked += [core.str.contains(form).sum().alias(f"{i} {key}") for key, form in _PATTERNS.items()]
        either = core.str.contains(_PATTERNS["either_point"]) | core.str.contains(_PATTERNS["either_comma"])
        asked += [is_negative.sum().alias(f"{i} marked"), core.filter(either).first().alias(f"{i} example")]
    row = rows.select(asked).collect(engine="streaming").row(0, named=True)
    return {
        name: _Counts(
            {key: int(row[f"{i} {key}"] or 0) for key in [*_PATTERNS, "marked"]}, row[f"{i} example"]
        )
        for i, name in enumerate(names)
    }


def _decided(table: Table, found: Mapping[str, _Counts], faults: FaultList) -> Table:
    options = table.options
    proved = {counts.decimal for column, counts in found.items() if not _has_fractions(table, column)} - {
        None
    }
    common = proved.pop() if len(proved) == 1 else None
    styles, why = {}, []
    for column, counts in found.items():
        if _has_fractions(table, column):
            _refuse_texts_like_numbers(table, column, faults)
            why.append("numbers of the file are no text")
            continue
        decimal, reason = _decimal(table, column, counts, common, faults)
        thousands = options.thousands or _thousands(counts, decimal, is_sure=bool(reason))
        style = NumberStyle(decimal, thousands, counts["marked"] > 0, options.currency)
        if not style.is_plain:
            styles[column] = style
        if reason:
            why.append(reason)
    return _told(table, styles, why[0] if why else "numbers are as programs write them")


def _has_fractions(table: Table, column: str) -> bool:
    return table.columns.index(column) in table.kinds.fractions


def _refuse_texts_like_numbers(table: Table, column: str, faults: FaultList) -> None:
    """Refuse texts beside numbers in a column: nothing tells how they are written."""
    text = table.kinds.like_numbers.get(table.columns.index(column))
    if text is not None:
        message = (
            f"{faults.called(column)} has numbers, and cells of text that are written like numbers, such as "
            f"{quoted(text)}: turn these into numbers, as in a spreadsheet program"
        )
        faults.add("text_among_numbers", message, column=column)


def _decimal(
    table: Table, column: str, counts: _Counts, common: str | None, faults: FaultList
) -> tuple[str, str]:
    options = table.options
    if options.decimal is not None:
        return options.decimal, "the decimal sign is stated"
    if options.thousands in (",", "."):
        return ("," if options.thousands == "." else "."), "thousands have the other mark"
    decimal = counts.decimal
    if decimal == "," and table.has_point:
        return ".", ""  # commas separate columns here; its cells are refused with the option that reads them
    if decimal is not None:
        n_sure = counts[_NAMES[decimal]]
        of = counted(n_sure, "number")
        return decimal, f"{of} of the column {quoted(column)} can be read in no other way"
    if counts["point"]:  # and as many commas: no reading fits all
        return ".", ""
    if common is not None and not (common == "," and table.has_point):
        return common, "as in the other columns"
    if not counts.is_open or table.has_point:
        return ".", ""
    other = {".": ",", ",": "."}
    mark = "." if counts["either_point"] else ","
    if options.thousands == "none" and not (counts["either_point"] and counts["either_comma"]):
        return mark, "nothing stands between thousands, as is stated"
    faults.add(
        "ambiguous_number",
        f"{quoted(counts.example)} of {faults.called(column)} has a {_NAMES[mark]} that may part "
        f"thousands or be the decimal sign, and no other number decides: state "
        f"{option('decimal', mark)} or {option('decimal', other[mark])}",
        column=column,
    )
    return ".", ""


def _thousands(counts: _Counts, decimal: str, *, is_sure: bool) -> str:
    if counts["space"]:
        return " "
    if counts["apostrophe"]:
        return "'"
    other = "," if decimal == "." else "."
    return other if is_sure and counts[f"grouped_{_NAMES[other]}"] else "none"


def _told(table: Table, styles: Mapping[str, NumberStyle], reason: str) -> Table:
    """The table with the styles, and its dialect with the commonest one."""
    dialect: Dialect = table.dialect
    options, style = table.options, next(iter(styles.values()), NumberStyle())
    for name, stated, value in (
        ("decimal", options.decimal, style.decimal),
        ("thousands", options.thousands, style.thousands),
    ):
        known = dialect.guessed(name, value, reason)
        dialect = known if stated is None else dialect.stated(name, stated)
    if options.currency is not None and dialect.get("currency") is None:
        dialect = dialect.stated("currency", options.currency)
    if style.has_marks:
        dialect = dialect.guessed(
            "negatives", "brackets, sign at the end or other minus", "some numbers have them"
        )
    return replace(table, styles=dict(styles), dialect=dialect)

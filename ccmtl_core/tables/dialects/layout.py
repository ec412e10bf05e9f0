"""Find out how the lines of a text are parted: delimiter, header, title lines, comments, padding."""

from __future__ import annotations

import csv
import re
from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass

from ccmtl_core.base.display import counted
from ccmtl_core.tables.dialects.dialect import Dialect, ReadOptions
from ccmtl_core.tables.faults import FaultList

DELIMITERS = {",": "commas", ";": "semicolons", "\t": "tabs", "|": "bars"}
MOST_TITLES = 50
MOST_RECORDS = 200
_SEPARATOR_LINE = re.compile(r'"?sep=(.)"?\r?\n')
_SPACED_NAMES = re.compile(r'"[^"\n]*"(?: "[^"\n]*")+\r?\n')
_LIKE_COMMENT = "#"


@dataclass(frozen=True)
class Layout:
    """How the lines of a text are parted."""

    delimiter: str
    quote: str
    n_before: int
    """Lines before the header or, without one, before the first row."""
    names: tuple[str, ...]
    has_header: bool
    is_padded: bool
    """Whether spaces around fields do not belong to them."""
    comment: str | None
    is_framed: bool = False
    """Whether lines begin and end with a bar, and lines of dashes may stand between them."""
    is_trailing: bool = False
    """Whether rows end with a delimiter that the header has not."""
    has_formulas: bool = False
    """Whether cells stand as ="00101", which spreadsheets take for text."""

    @property
    def is_plain(self) -> bool:
        """Whether each line stands as it is meant."""
        written = self.is_padded or self.is_framed or self.is_trailing or self.has_formulas
        return not written and self.comment is None


@dataclass(frozen=True)
class _Record:
    line: int
    """Its first line, from 0."""
    fields: list[str]


@dataclass(frozen=True)
class _Parted:
    """What one delimiter makes of the first records."""

    delimiter: str
    records: list[_Record]
    n_fields: int
    """Of most records; below 2 where the delimiter parts nothing."""
    header: int
    """Index of the record that names the columns."""
    has_wanted: bool

    @property
    def share(self) -> float:
        below = self.records[self.header :]
        return sum(len(record.fields) == self.n_fields for record in below) / max(1, len(below))

    @property
    def merit(self) -> tuple[bool, bool, float, int]:
        return self.has_wanted, self.n_fields > 1, round(self.share, 3), -self.header


def layout_of(
    head: str, options: ReadOptions, wanted: Collection[str], dialect: Dialect, faults: FaultList
) -> tuple[Layout, Dialect]:
    """Return the layout of a text that begins with ``head``, and the dialect with what was found.

    ``wanted`` are the names of columns that are asked for; they tell a header best.
    """
    quote = options.quote or '"'
    if options.quote is not None:
        dialect = dialect.stated("quote", quote)
    found, dialect = _delimiter(head, options, wanted, quote, dialect, faults)
    records, header = found.records, found.header
    if not records:
        raise faults.refusal_for("no_header", "the first line cannot be read as the names of columns")
    if options.header_row is not None:
        dialect = dialect.stated("header_row", options.header_row)
        header = _stated_header(records, options.header_row, faults)
    elif header:
        titles = counted(records[header].line, "line")
        evidence = f"the {titles} before it have fewer fields than those below"
        if found.has_wanted:
            evidence = "it has the names that are asked for"
        dialect = dialect.guessed("header_row", records[header].line + 1, evidence)
    else:
        dialect = dialect.guessed("header_row", records[0].line + 1, "the first line that is not blank")
    has_header = options.header_row != 0
    first = records[header]
    comment, dialect = _comment(records[header + 1 :], len(first.fields), options, dialect)
    padded = _is_padded(first.fields, wanted) if has_header else False
    names = first.fields
    framed = _is_framed(found)
    padded = padded or framed
    if padded:
        below = head.split("\n", first.line)[-1]  # a quote after a space may open in a title line
        again = next(_records(below, found.delimiter, quote, skipinitialspace=True), first)
        names = [name.strip() for name in again.fields]
        evidence = "bars frame the lines" if framed else "spaces stand around the names in the header"
        dialect = dialect.guessed("padding", "spaces", evidence)
    if framed:
        names = names[1:-1]
    if not has_header:
        names = [f"column_{i}" for i in range(1, len(names) + 1)]
    return Layout(
        delimiter=found.delimiter,
        quote=quote,
        n_before=first.line,
        names=tuple(names),
        has_header=has_header,
        is_padded=padded,
        comment=comment,
        is_framed=framed,
        is_trailing=has_header and not framed and _is_trailing(records[header + 1 :], len(names)),
        has_formulas=_has_formulas(head, found.delimiter),
    ), dialect


def has_names(head: bytes, wanted: Collection[str]) -> bool:
    """Whether a line near the beginning of a file has all these names, whatever parts them."""
    for encoding in ("utf-8-sig", "utf-16", "utf-16-be"):
        text = head.decode(encoding, "ignore")
        text = text if "\n" in text else text.replace("\r", "\n")
        if any(_parted(text, mark, '"', ReadOptions(), wanted).has_wanted for mark in DELIMITERS):
            return True
    return False


def lines_to_header(head: bytes, wanted: Collection[str], options: ReadOptions) -> int:
    """Count the lines of a text to its header, those above it included."""
    text, quote = head.decode("utf-8", "ignore"), options.quote or '"'
    marks = DELIMITERS if options.delimiter is None else [options.delimiter]
    best = max((_parted(text, mark, quote, options, wanted) for mark in marks), key=lambda one: one.merit)
    return best.records[best.header].line + 1 if best.records else 1


def is_parted(head: bytes) -> bool:
    """Whether a mark parts nearly all of the first lines of a text into as many fields, as of a table."""
    for encoding in ("utf-8-sig", "utf-16"):
        text = head.decode(encoding, "ignore")
        for mark in DELIMITERS:
            found = _parted(text, mark, '"', ReadOptions(), ())
            if found.n_fields > 1 and found.share > 0.9 and len(found.records) > found.header + 1:
                return True
    return False


def _delimiter(
    head: str,
    options: ReadOptions,
    wanted: Collection[str],
    quote: str,
    dialect: Dialect,
    faults: FaultList,
) -> tuple[_Parted, Dialect]:
    if options.delimiter is not None:
        parted = _parted(head, options.delimiter, quote, options, wanted)
        return parted, dialect.stated("delimiter", options.delimiter)
    if named := _SEPARATOR_LINE.match(head):
        parted = _parted(head, named[1], quote, options, wanted)
        return parted, dialect.guessed("delimiter", named[1], "the first line says so")
    all_parted = [_parted(head, delimiter, quote, options, wanted) for delimiter in DELIMITERS]
    if wanted and all_parted[0].has_wanted and all_parted[0].header == 0:
        return all_parted[0], dialect.guessed("delimiter", ",", "the header has the names asked for")
    if _is_framed(bars := all_parted[-1]):
        return bars, dialect.guessed("delimiter", "|", "lines begin and end with bars")
    best = max(all_parted, key=lambda parted: parted.merit)  # the first of equals
    if best.n_fields < 2:
        if _SPACED_NAMES.match(head):
            message = (
                "spaces part the names in quotes, as of R's write.table: state the `delimiter` ' ', or write "
                'the table with sep="," and row.names=FALSE'
            )
            raise faults.refusal_for("ambiguous_delimiter", message)
        return all_parted[0], dialect.guessed("delimiter", ",", "no mark parts the lines into columns")
    equal = [parted for parted in all_parted if parted.merit == best.merit]
    if len(equal) > 1 and not best.has_wanted:
        words = " or ".join(DELIMITERS[parted.delimiter] for parted in equal)
        message = f"columns may be separated by {words}, which fit alike: state the `delimiter`"
        raise faults.refusal_for("ambiguous_delimiter", message)
    below = best.records[best.header :]
    n_alike = sum(len(record.fields) == best.n_fields for record in below)
    evidence = f"{n_alike} of the first {len(below)} lines have {best.n_fields} fields"
    return best, dialect.guessed("delimiter", best.delimiter, evidence)


def _is_framed(found: _Parted) -> bool:
    """Whether lines begin and end with a bar, as lists of SAP and tables of Markdown and databases do."""
    if found.delimiter != "|" or found.n_fields < 3:
        return False
    rows = [record.fields for record in found.records[found.header :] if len(record.fields) == found.n_fields]
    return bool(rows) and not any(fields[0].strip() or fields[-1].strip() for fields in rows)


def _is_trailing(records: Sequence[_Record], n_names: int) -> bool:
    """Whether nearly all rows have one field more than there are names, and nothing in it."""
    longer = [record.fields[-1].strip() for record in records if len(record.fields) == n_names + 1]
    return n_names > 1 and len(longer) > 0.9 * len(records) and not any(longer)


def _has_formulas(head: str, delimiter: str) -> bool:
    between = re.escape(delimiter)
    formula = f'(?m)(?:^|{between})(?:="[^"\n]*"|"=""[^"\n]*""")(?:\r?$|{between})'
    return ('="' in head) and re.search(formula, head) is not None


def _parted(head: str, delimiter: str, quote: str, options: ReadOptions, wanted: Collection[str]) -> _Parted:
    records = [
        record
        for record in _records(head, delimiter, quote)
        if options.comment is None or not (record.fields and record.fields[0].startswith(options.comment))
    ]
    filled = [record for record in records if record.fields]
    counts = Counter(len(record.fields) for record in filled if len(record.fields) > 1)
    n_fields = max(counts, key=lambda n: (counts[n], n), default=1)
    for i, record in enumerate(filled[:MOST_TITLES]):
        if wanted and set(wanted) <= _bare(record.fields):
            return _Parted(delimiter, filled, n_fields, i, True)
    header = next((i for i, record in enumerate(filled) if not _is_title(record.fields, n_fields)), 0)
    return _Parted(delimiter, filled, n_fields, min(header, MOST_TITLES), False)


def _bare(names: Sequence[str]) -> set[str]:
    """The names without spaces around them, and without quotes that such spaces made part of them."""
    return {name.strip() for name in names} | {name.strip(" \"'") for name in names if name[:1] == " "}


def _records(head: str, delimiter: str, quote: str, *, skipinitialspace: bool = False) -> Iterator[_Record]:
    n_lines = head.count("\n") + 1
    reader = csv.reader(
        _lines(head),
        delimiter=delimiter,
        quotechar=quote,
        skipinitialspace=skipinitialspace,
    )
    line = 0
    with suppress(csv.Error):
        for i, fields in enumerate(reader):
            if i > MOST_RECORDS or (reader.line_num >= n_lines > 1 and not fields):
                return
            yield _Record(line, fields)
            line = reader.line_num


def _lines(head: str) -> Iterator[str]:
    """The lines, each with a line end, cut as they are asked for: of many, the first few are enough."""
    start = 0
    while end := head.find("\n", start) + 1:
        yield head[start:end]
        start = end
    yield head[start:] + "\n"


def _is_title(fields: Sequence[str], n_fields: int) -> bool:
    """Whether a line is a title above a table of so many fields: a cell or two, not one for each column."""
    n_filled = sum(bool(field.strip()) for field in fields)
    return n_fields > 1 and (n_filled < 2 or 2 * n_filled < n_fields)


def _stated_header(records: Sequence[_Record], line: int, faults: FaultList) -> int:
    if line == 0:
        return 0
    at = next((i for i, record in enumerate(records) if record.line + 1 == line), None)
    if at is None:
        message = f"line {line} was stated to name the columns, and no row of text begins there"
        raise faults.refusal_for("no_header", message)
    return at


def _comment(
    records: Sequence[_Record], n_fields: int, options: ReadOptions, dialect: Dialect
) -> tuple[str | None, Dialect]:
    if options.comment is not None:
        return options.comment, dialect.stated("comment", options.comment)
    marked = [record for record in records if record.fields[0].startswith(_LIKE_COMMENT)]
    if not marked or any(len(record.fields) == n_fields for record in marked):
        return None, dialect
    evidence = f"{counted(len(marked), 'line')} that begin with it have another number of fields"
    return _LIKE_COMMENT, dialect.guessed("comment", _LIKE_COMMENT, evidence)


def _is_padded(names: Sequence[str], wanted: Collection[str]) -> bool:
    if wanted:
        return not set(wanted) <= set(names) and set(wanted) <= _bare(names)
    n_padded = sum(name != name.strip() for name in names[1:])
    return n_padded > 0 and 2 * n_padded >= len(names) - 1

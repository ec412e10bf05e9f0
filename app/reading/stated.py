"""What can be stated of a file, in one place for the commands and for HTTP, with words for people.

No module of the library is imported, as that takes seconds, for which the help of a command does not wait:
its lists of choices are repeated here, and a test compares them.
"""

from __future__ import annotations

from typing import Any, Literal, NamedTuple

Shape = Literal["auto", "long", "wide"]
Decimal = Literal[".", ","]
Thousands = Literal["none", ",", ".", " ", "'"]
Ragged = Literal["refuse", "pad", "skip"]
Duplicates = Literal["error", "sum", "mean", "last"]
Missing = Literal["error", "absent"]
Negatives = Literal["keep", "clip", "error"]
Keep = Literal["keep", "drop"]
Fill = Literal["none", "zero", "forward"]
FillStart = Literal["series", "dataset"]


class Statement(NamedTuple):
    """One thing that can be stated."""

    kind: Any
    """``str``, ``int``, or a ``Literal`` of its values, for a policy the default first."""
    text: str
    """What it is."""
    value: str | None = None
    """What the help of a command calls its value; CHAR is a single one."""


OF_TEXT = {
    "delimiter": Statement(str, "What parts the fields of text: one character, or tab.", "CHAR"),
    "encoding": Statement(str, "The encoding of text, such as windows-1252 or gb18030.", "NAME"),
    "decimal": Statement(Decimal, "The decimal sign of numbers."),
    "thousands": Statement(Thousands, "What stands between thousands."),
    "quote": Statement(str, "What stands around fields with a delimiter; a double quote if absent.", "CHAR"),
    "header_row": Statement(int, "The line that names the columns, from 1; 0: none does.", "LINE"),
    "comment": Statement(str, "What lines begin with that are no rows.", "TEXT"),
    "currency": Statement(str, "A sign or word beside numbers, taken off.", "TEXT"),
    "empty": Statement(str, "What stands for no value in a column of numbers, such as NA.", "TEXT"),
    "ragged": Statement(
        Ragged, "Rows of another length: pad short ones, or skip all of them and blank lines."
    ),
    "sheet": Statement(str, "The sheet of a workbook.", "NAME"),
    "member": Statement(str, "The file in an archive, by its path.", "PATH"),
}
"""How any file is written."""
OF_SHAPE = {
    "shape": Statement(Shape, "Of series: long, a row holds a value; wide, many."),
    "periods": Statement(str, "Of a wide table: the columns that are periods, as W*.", "PATTERN"),
    "year": Statement(int, "Of dates without one, as 01-Mar; of a wide table, the first column's.", "YEAR"),
}
POLICIES = {
    "duplicates": Statement(Duplicates, "What several rows of a series in one period become."),
    "missing": Statement(Missing, "What a row without a value is; absent: as if it were not there."),
    "negatives": Statement(
        Negatives, "What becomes of values below zero, once rows of a period are put together; clip: 0."
    ),
    "leading_zeros": Statement(Keep, "What becomes of zeros before the first other value of a series."),
    "partial_last": Statement(Keep, "What becomes of the last period, where the file ends within it."),
    "fill": Statement(Fill, "What stands for a period without a row, once its series has begun."),
    "fill_start": Statement(
        FillStart, "Whether filling begins with each series, or for all with the first of all."
    ),
}
"""The repairs that a caller may choose; the first value of each repairs nothing."""

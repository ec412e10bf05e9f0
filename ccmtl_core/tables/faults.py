"""What is wrong with a table: each fault with its code, place and sentence, so that all are told at once."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from ccmtl_core.base.arrays import MAX_FAULTS
from ccmtl_core.base.display import counted, quoted
from ccmtl_core.base.exceptions import DataError

MAX_LISTED = 100
"""How many faults are written out; all are counted."""
MAX_VALUE_CHARACTERS = 200
NO_ROWS = "no_rows"
"""The code of a file of which no row is left."""
_LEAVING_OUT = {
    "skipped_rows": "`ragged='skip'`",
    "empty_number": "`missing='absent'`",
    "partial_last": "`partial_last='drop'`",
    "leading_zeros": "`leading_zeros='drop'`",
}
"""The policies that leave out rows, by the code under which these rows are counted."""

PartLines = tuple[tuple[str, int], ...]
"""The names of files that were joined into one text, each with the number of lines before it."""
Parts = tuple[tuple[str, int], ...]
"""The names of the joined files, each with the number of its first row in the table, from 1."""


@dataclass(frozen=True)
class Fault:
    """One fault of a table, its row counted from 1 without the header.

    Examples
    --------
    >>> str(Fault("empty_id", "the id is empty", 3, "store"))
    "row 3, column 'store': the id is empty"
    """

    code: str
    """Stable name of its kind."""
    message: str
    """What is wrong and, where it is known, what to do."""
    row: int | None = None
    column: str | None = None
    value: str | None = None
    """The offending text, cut at 200 characters."""
    unique_id: str | None = None
    """The id that stands in the row, where one is read."""
    ds: str | None = None
    """The time that stands in the row, where one is read."""

    def __str__(self) -> str:
        if self.row is None:
            return self.message
        column = "" if self.column is None else f", column {quoted(self.column)}"
        value = "" if not self.value else f", {quoted(self.value)}"
        return f"row {self.row}{column}{value}: {self.message}"

    def in_table(self, table: str) -> str:
        """Return the sentence with the table's name before it, where it has one."""
        if not table:
            return str(self)
        return f"{table}: {self}" if self.row is None else f"{table}, {self}"


@dataclass(frozen=True)
class Melted:
    """A wide table that was made into a long one: says in which of its columns a fault of the long one is.

    Examples
    --------
    >>> long = {"unique_id": "unique_id", "ds": "ds", "y": "y"}
    >>> melted = Melted(long, "sku", {"2024-01": "X2024.01"}, by_periods=True)
    >>> melted.column_of(Fault("unparseable_number", "not a number", 3, "y", "many", "0471", "2024-01"))
    'X2024.01'
    """

    names: Mapping[str, str]
    """What the long table calls its columns ``unique_id``, ``ds`` and ``y``."""
    key: str | None
    """The column of the wide table that holds the ids or times of its rows; None where rows are counted."""
    heads: Mapping[str, str]
    """The columns of the wide table that hold values, by the times or ids that their names became."""
    by_periods: bool
    """Whether each column with values is a period; otherwise each is a series."""

    def column_of(self, fault: Fault) -> str | None:
        """Return the column of the wide table that a fault is in; None if it is in none."""
        of_key, of_heads = self._of_key_and_heads()
        if fault.column == of_key:
            return self.key
        if fault.column not in (of_heads, self.names["y"]):
            return fault.column
        head = fault.ds if self.by_periods else fault.unique_id
        return self.heads.get((fault.value if fault.column == of_heads else head) or "")

    def called(self, column: str) -> str:
        """Return what a sentence calls a column of the long table."""
        of_key, of_heads = self._of_key_and_heads()
        if column == of_key and self.key is not None:
            return f"the column {quoted(self.key)}"
        return "the header" if column == of_heads else "the wide table"

    def _of_key_and_heads(self) -> tuple[str, str]:
        unique_id, ds = self.names["unique_id"], self.names["ds"]
        return (unique_id, ds) if self.by_periods else (ds, unique_id)


def no_rows(left_out: Mapping[str, int]) -> str:
    """Return the sentence on a file without a row left, from how many rows each code counts as left out.

    Examples
    --------
    >>> no_rows({"empty_number": 30})
    "the policies leave no row of the file: `missing='absent'` leaves out 30 rows"
    """
    told = [f"{_LEAVING_OUT.get(code, code)} leaves out {counted(n, 'row')}" for code, n in left_out.items()]
    return ": ".join(["the policies leave no row of the file", *filter(None, [", ".join(told)])])


def part_of(parts: Parts, row: int | None) -> tuple[str, int] | None:
    """Return the file that a row is of, and the row's number in that file; None for a single file.

    Examples
    --------
    >>> part_of((("jan.csv", 1), ("feb.csv", 32)), 33)
    ('feb.csv', 2)
    """
    begun = [] if row is None else [(name, row - first + 1) for name, first in parts if first <= row]
    return begun[-1] if begun else None


class TableError(DataError):
    """A table that cannot be used: the first faults of each kind by row, and how many there are of each code.

    Messages call the table by its name, where it has one.
    """

    def __init__(self, listed: Sequence[Fault], counts: Mapping[str, int], table: str = "") -> None:
        self.listed, self.counts, self.table = tuple(listed), dict(counts), table
        sentences = [fault.in_table(table) for fault in listed[:MAX_FAULTS]]
        super().__init__(sentences, n_faults=sum(counts.values()))

    def __reduce__(self) -> tuple[type[TableError], tuple[object, ...]]:  # type: ignore[override]
        """Keep every fault on the way from another process."""
        return type(self), (self.listed, self.counts, self.table)


class FaultList:
    """Samples of each kind of fault of one table, and how many there are of each."""

    def __init__(self, table: str = "") -> None:
        self.table = table
        self.parts: Parts = ()
        """Empty for a single file."""
        self.melted: Melted | None = None
        """Set where the file has a wide table that was made into a long one."""
        self._samples: dict[str, list[Fault]] = {}
        self._counts: dict[str, int] = {}

    def __bool__(self) -> bool:
        return bool(self._counts)

    def called(self, column: str) -> str:
        """Return what a sentence calls a column of the table."""
        return f"the column {quoted(column)}" if self.melted is None else self.melted.called(column)

    def add(
        self,
        code: str,
        message: str,
        *,
        row: int | None = None,
        column: str | None = None,
        value: str | None = None,
    ) -> None:
        """Note one fault."""
        shown = None if value is None else value[:MAX_VALUE_CHARACTERS]
        self.add_all(code, 1, [Fault(code, message, row, column, shown)])

    def add_all(self, code: str, count: int, samples: Iterable[Fault]) -> None:
        """Note ``count`` faults of one kind, of which ``samples`` are the first."""
        self._counts[code] = self._counts.get(code, 0) + count
        kept = self._samples.setdefault(code, [])
        kept.extend(sample for sample, _ in zip(samples, range(MAX_LISTED - len(kept)), strict=False))

    def kinds(self) -> list[tuple[str, int, list[Fault]]]:
        """Return each code with the number of its faults and the first of them."""
        return [(code, self._counts[code], list(samples)) for code, samples in self._samples.items()]

    def refusal(self) -> TableError:
        """Return the error that lists faults of each kind by row; without faults, that no row is left."""
        if not self:
            self.add(NO_ROWS, no_rows({}))
        quota = MAX_LISTED // max(1, len(self._samples))
        listed = [fault for samples in self._samples.values() for fault in samples[:quota]]
        spare = [fault for samples in self._samples.values() for fault in samples[quota:]]
        listed += spare[: MAX_LISTED - len(listed)]
        listed.sort(key=lambda fault: (fault.row or 0, fault.column or ""))
        return TableError(list(map(self._placed, listed)), self._counts, self.table)

    def _placed(self, fault: Fault) -> Fault:
        """The fault with its column in the file and, if there are several files, the one that has its row."""
        if self.melted is not None:
            fault = replace(fault, column=self.melted.column_of(fault))
        place = part_of(self.parts, fault.row)
        if place is None:
            return fault
        return replace(fault, message=f"{fault.message} (row {place[1]:,} of {place[0]})")

    def refusal_for(self, code: str, message: str) -> TableError:
        """Add a fault of the whole table, and return the error."""
        self.add(code, message)
        return self.refusal()

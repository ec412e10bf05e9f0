"""Read a column of a table as ids or numbers; each unusable cell is named by row and column.

Ids become text: "0471" stays "0471". Rows are counted from 1, the header not included.
"""

from __future__ import annotations

from collections.abc import Callable

import polars as pl

from ccmtl_core.base.arguments import check_kind
from ccmtl_core.base.arrays import MAX_FAULTS, Faults, all_finite
from ccmtl_core.base.display import quoted
from ccmtl_core.base.exceptions import ParameterError
from ccmtl_core.base.number_hint import number_hint
from ccmtl_core.base.types import FloatArray


class ColumnReader:
    """Reads columns of one piece of a table.

    Parameters
    ----------
    frame : polars DataFrame
        The piece.
    faults : Faults
        Collects what cannot be used; the caller raises it.
    first_row : int
        Rows of the table before this piece.
    table : str
        What the table is called in messages.

    Examples
    --------
    >>> faults = Faults()
    >>> reader = ColumnReader(pl.DataFrame({"store": [" 7", None], "price": ["1.5", "x"]}), faults)
    >>> reader.ids("store").to_list(), reader.numbers("price")
    ([' 7', None], array([1.5, nan]))
    >>> faults.refuse()
    Traceback (most recent call last):
        ...
    ccmtl_core.base.exceptions.DataError: 2 faults in the data:
    - row 2, column 'store': is empty
    - row 2, column 'price': 'x' is not a number
    """

    def __init__(self, frame: pl.DataFrame, faults: Faults, first_row: int = 0, table: str = "") -> None:
        self.frame, self.faults = frame, faults
        self._first_row, self._table = first_row, f"{table}, " if table else ""

    def ids(self, name: str) -> pl.Series:
        """Text, from text or integers."""
        column = self.frame[name]
        dtype = column.dtype
        if not (dtype == pl.String or dtype.is_integer() or isinstance(dtype, pl.Categorical | pl.Enum)):
            self._refuse_type(column, "text or integers")
            return column
        ids = column.cast(pl.String)
        self._describe(ids.is_null() | (ids == ""), column, "is empty")
        return ids

    def numbers(self, name: str) -> FloatArray:
        """Finite float64, from numbers, or from text that holds them."""
        column = self.frame[name]
        if column.dtype == pl.Float64 and column.null_count() == 0:
            plain = column.to_numpy()
            if all_finite(plain):
                return plain
        if column.dtype == pl.String:
            text = column.str.strip_chars()
            numbers = text.cast(pl.Float64, strict=False)
            unparsed = numbers.is_null() & column.is_not_null() & (text != "")
            self._describe(unparsed, column, "is not a number", number_hint)
            empty = column.is_null() | (text == "").fill_null(True)
        elif column.dtype.is_numeric() or column.dtype == pl.Boolean:
            numbers = column.cast(pl.Float64)
            empty = column.is_null()
        else:
            self._refuse_type(column, "numbers")
            return pl.zeros(len(column), eager=True).to_numpy()
        self._describe(empty, column, "is empty")
        self._describe(numbers.is_not_null() & ~numbers.is_finite(), column, "is not finite")
        return numbers.to_numpy()

    def _refuse_type(self, column: pl.Series, wanted: str) -> None:
        self.faults.add(f"{self._table}column {column.name!r} must hold {wanted}, not {column.dtype}")

    def _describe(
        self, bad: pl.Series, column: pl.Series, fault: str, hint: Callable[[str], str] = lambda text: ""
    ) -> None:
        rows = bad.fill_null(False).arg_true()
        for row in rows[:MAX_FAULTS]:
            cell = column[row]
            shown = "" if cell is None else f" {quoted(cell)}"
            place = f"{self._table}row {self._first_row + row + 1}, column {column.name!r}"
            self.faults.add(f"{place}:{shown} {fault}{hint(str(cell))}")
        self.faults.n += max(0, len(rows) - MAX_FAULTS)


def check_roles(task: str, target: str, features: tuple[str, ...]) -> list[str]:
    """Return the columns used, in the order task, target, features.

    Raises
    ------
    ParameterError
        No features, or a column used twice.
    """
    if not features:
        raise ParameterError("at least one feature column is needed")
    used = [task, target, *features]
    for name in used:
        check_kind(name, "the name of a column", str)
    repeated = sorted({name for name in used if used.count(name) > 1})
    if repeated:
        raise ParameterError(f"column {repeated[0]!r} is used twice")
    return used

"""Whatever a caller passes in, arrays and names of one kind out, or an error that lists the faults.

The checks that datasets, statistics, panels and models share.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray

from ccmtl_core._types import FloatArray, IntArray
from ccmtl_core.exceptions import DataError

MAX_FAULTS = 20
"""Faults that are written out; the rest are counted."""


def as_float64(values: ArrayLike, what: str) -> FloatArray:
    """Numbers of any real type as a C-ordered float64 array; masked entries become NaN.

    Raises
    ------
    DataError
        Values that are not real numbers (text that looks like numbers included), or ragged ones.
    """
    try:
        array = np.asarray(values) if not np.ma.isMaskedArray(values) else _filled(values)
    except ValueError as error:
        raise DataError(f"{what} is not a rectangular array: {error}") from error
    if array.dtype.kind not in "buifO":
        raise DataError(f"{what} must hold real numbers, not {array.dtype}")
    try:
        return np.ascontiguousarray(array, dtype=np.float64).reshape(array.shape)
    except (TypeError, ValueError, OverflowError) as error:
        raise DataError(f"{what} holds something that is not a real number: {error}") from error


def _filled(values: Any) -> NDArray[Any]:
    filled: NDArray[Any] = values.astype(np.float64).filled(np.nan)
    return filled


def all_finite(array: FloatArray) -> bool:
    """Whether no entry is NaN or infinite; one pass without a temporary when they are moderate."""
    with np.errstate(all="ignore"):
        return bool(np.isfinite(array.sum()) or np.isfinite(array).all())


def is_whole(value: object) -> bool:
    """Whether it is an integer of Python or NumPy; truth values are none."""
    return isinstance(value, int | np.integer) and not isinstance(value, bool)


def is_real(value: object) -> bool:
    """Whether it is one real number of Python or NumPy; truth values are none."""
    return is_whole(value) or isinstance(value, float | np.floating)


def read_only(array: NDArray[Any]) -> NDArray[Any]:
    """A view of the array that refuses writes; the caller's own array stays as it is."""
    view = array.view()
    view.flags.writeable = False
    return view


def as_shape(values: ArrayLike, shape: tuple[int, ...], what: str) -> FloatArray:
    """Numbers as a read-only float64 array of the shape, or a DataError."""
    array = as_float64(values, what)
    if array.shape != shape:
        raise DataError(f"{what} must be {shape}; got {array.shape}")
    return read_only(array)


def as_counts(values: ArrayLike, size: int) -> IntArray:
    """Numbers of samples as a read-only int64 array (size,), or a DataError."""
    array = np.asarray(values)
    if array.dtype.kind not in "iu" or array.shape != (size,):
        raise DataError(f"n_samples must be ({size},) integers; got {array.shape} {array.dtype}")
    return read_only(np.ascontiguousarray(array, dtype=np.int64))


def as_id(value: object) -> str:
    """Text as it is, an integer in decimal; nothing else names a task.

    Raises
    ------
    DataError
        None, floats (NaN among them) and other types.
    """
    if isinstance(value, str):
        return str(value)
    if is_whole(value):
        return str(int(cast("int", value)))
    raise DataError(f"a task id must be text or an integer, not {value!r}")


def checked_names(names: Sequence[object], what: str) -> tuple[str, ...]:
    """Names as a tuple of distinct, non-empty text.

    Raises
    ------
    DataError
        Lists each repeated or empty name.
    """
    all_text = set(map(type, names)) <= {str}
    checked = cast("tuple[str, ...]", tuple(names)) if all_text else tuple(map(as_id, names))
    if len(distinct := set(checked)) == len(checked) and "" not in distinct:
        return checked  # the usual case, without a loop in Python: there may be a million
    seen: set[str] = set()
    faults = []
    for position, name in enumerate(checked):
        if name == "" or name in seen:
            fault = "is empty" if name == "" else "is repeated"
            faults.append(f"{what} {name!r} at position {position} {fault}")
        seen.add(name)
    refuse(faults)
    return checked


def checked_index(values: ArrayLike, size: int, what: str) -> IntArray:
    """Positions as int64, each in [0, size).

    Raises
    ------
    DataError
        Names the rows whose position is outside.
    """
    index = np.asarray(values)
    if index.size == 0:
        return np.zeros(index.shape, dtype=np.int64)
    if index.dtype.kind not in "iu":
        raise DataError(f"{what} must hold integers, not {index.dtype}")
    if index.min() < 0 or index.max() >= size:
        bad = np.flatnonzero((index < 0) | (index >= size))
        refuse_each(bad, lambda row: f"{what}, row {row}: {index.flat[row]} is not in [0, {size})")
    return np.ascontiguousarray(index, dtype=np.int64)


def distinct_moments(values: ArrayLike, shape: tuple[int, ...], what: str) -> tuple[int, IntArray]:
    """How many distinct values there are, and the place of each row's among them in their order, (n,).

    Raises
    ------
    DataError
        Not one value for each row; rows without one (None, NaN, NaT); values that have no order.
    """
    given = as_array(values, what)
    if given.shape != shape:
        raise DataError(f"{what} must be {shape}, one for each row; got {given.shape}")
    try:
        if given.dtype.kind == "O":
            missing = np.fromiter((v is None or v != v for v in given), dtype=bool, count=len(given))
        else:
            missing = given != given  # as NaN and NaT are, and nothing else is
        if np.ma.isMaskedArray(values):
            missing = missing | np.ma.getmaskarray(values)
        refuse_each(np.flatnonzero(missing), lambda row: f"{what}, row {row}: there is no value")
        distinct, place = np.unique(given, return_inverse=True)
    except TypeError as error:
        raise DataError(f"{what} holds values of kinds that have no order: {error}") from error
    return len(distinct), place


def as_integers(values: ArrayLike, what: str) -> IntArray:
    """Integers as a C-ordered int64 array; an empty one may be of any type.

    Raises
    ------
    DataError
        Anything else (floats, text and truth values included), ragged values, or numbers beyond 64 bits.
    """
    array = as_array(values, what)
    if array.size and array.dtype.kind not in "iu":
        raise DataError(f"{what} must hold integers, not {array.dtype}")
    if array.size and array.max() > np.iinfo(np.int64).max:
        raise DataError(f"{what} holds {array.max()}, which is beyond 64 bits")
    return np.ascontiguousarray(array, dtype=np.int64).reshape(array.shape)


def as_array(values: ArrayLike, what: str) -> NDArray[Any]:
    """Values of any type as an array, or a DataError where they are ragged."""
    try:
        return np.asarray(values)
    except ValueError as error:
        raise DataError(f"{what} is not a rectangular array: {error}") from error


def default_feature_names(n_features: int) -> tuple[str, ...]:
    """("x_1", …, "x_P")."""
    return tuple(f"x_{p + 1}" for p in range(n_features))


class Faults:
    """Collects faults: the first are written out, all are counted."""

    def __init__(self) -> None:
        self.n = 0
        self._written: list[str] = []

    def add(self, fault: str) -> None:
        """Count one fault, and write it out while there is room."""
        self.n += 1
        if len(self._written) < MAX_FAULTS:
            self._written.append(fault)

    def refuse(self) -> None:
        """Raise one DataError if there are any."""
        if self.n:
            raise DataError(self._written, n_faults=self.n)


def refuse(faults: Sequence[str]) -> None:
    """Raise one DataError with the first faults and their number, if there are any."""
    if faults:
        raise DataError(faults[:MAX_FAULTS], n_faults=len(faults))


def refuse_each(bad: IntArray, describe: Callable[[int], str]) -> None:
    """Raise one DataError that describes the first of the bad positions, if there are any."""
    if len(bad):
        raise DataError([describe(int(i)) for i in bad[:MAX_FAULTS]], n_faults=len(bad))

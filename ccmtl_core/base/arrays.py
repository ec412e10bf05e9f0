"""Check the arrays, ids and names that callers pass: return them in one type, or raise an error.

Each error lists all faults. Rows count from 1 in it, as in files.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence, Set
from mmap import mmap
from typing import Any, cast

import numpy as np
import polars as pl
from numpy.typing import ArrayLike, NDArray

from ccmtl_core.base.display import quoted
from ccmtl_core.base.exceptions import DataError
from ccmtl_core.base.types import FloatArray, IntArray

MAX_FAULTS = 20
"""Faults that are written out; the rest are counted."""
EXACT_BELOW = 2**53
"""Whole numbers up to this size are exact as float64."""

_NO_NUMBERS = (str, bytes, bytearray, complex, np.complexfloating, np.datetime64, np.timedelta64)


def as_float64(values: ArrayLike, what: str) -> FloatArray:
    """Return real numbers of any type as a C-ordered float64 array; masked entries become NaN.

    Text, complex numbers, times, ragged lists and integers that no float64 equals are a DataError.
    """
    array = as_array(values, what)
    if array.dtype.kind not in "buifO":
        raise DataError(f"{what} must hold real numbers, not {array.dtype}")
    if array.dtype.kind == "O":  # of which NumPy would parse text, and drop imaginary parts
        kinds = set(map(type, array.ravel().tolist()))
        if wrong := sorted(kind.__name__ for kind in kinds if issubclass(kind, _NO_NUMBERS)):
            raise DataError(f"{what} must hold real numbers, not {' or '.join(wrong)}")
    try:
        numbers = np.ascontiguousarray(array, dtype=np.float64).reshape(array.shape)
    except (TypeError, ValueError, OverflowError) as error:
        _refuse_cells(values, array, what)
        raise DataError(f"{what} holds something that is not a real number: {error}") from error
    _refuse_inexact(values, array, numbers, what)
    return np.where(np.ma.getmaskarray(values), np.nan, numbers) if np.ma.isMaskedArray(values) else numbers


def _refuse_cells(values: object, array: NDArray[Any], what: str) -> None:
    """Name each value that float() does not take, such as the missing values of pandas."""
    bad = []
    for position, value in enumerate(array.ravel().tolist()):
        try:
            float(value)
        except (TypeError, ValueError, OverflowError):
            bad.append(position)
    refuse_each(
        bad, lambda i: f"{_place(values, array, i, what)}: {quoted(array.flat[i])} is not a real number"
    )


def _refuse_inexact(values: object, array: NDArray[Any], numbers: FloatArray, what: str) -> None:
    """Refuse integers that float64 would silently round."""
    if array.dtype.kind == "O" or (array.dtype.kind in "iu" and array.dtype.itemsize == 8):
        with np.errstate(invalid="ignore"):
            large = np.flatnonzero(np.abs(numbers) >= EXACT_BELOW)
        large = large[np.isfinite(numbers.flat[large])]
        exact = array.ravel()[large].tolist()
        pairs = zip(exact, numbers.flat[large].tolist(), strict=True)
        changed = np.array([is_whole(a) and int(a) != int(b) for a, b in pairs], dtype=np.bool_)
        refuse_each(
            large[changed],
            lambda i: (
                f"{_place(values, array, i, what)}: {array.flat[i]} is beyond 2**53, and the nearest "
                f"float64 is {int(numbers.flat[i])}: subtract what all have in common, or round it yourself"
            ),
        )


def _place(values: object, array: NDArray[Any], position: int, what: str) -> str:
    """Return the row of an entry, from 1, and for a table its column."""
    if array.ndim < 2:
        return f"{what}, row {position + 1}"
    row, column = divmod(position, array[0].size)
    names = column_names(values)
    return f"{what}, row {row + 1}, column {quoted(names[column]) if names else column + 1}"


def all_finite(array: FloatArray) -> bool:
    """Return whether no entry is NaN or infinite; a finite sum, which is quick to compute, proves it."""
    with np.errstate(all="ignore"):
        return bool(np.isfinite(array.sum()) or np.isfinite(array).all())


def is_whole(value: object) -> bool:
    """Return whether the value is an integer of Python or NumPy; truth values and durations are not."""
    return isinstance(value, int | np.integer) and not isinstance(value, bool | np.timedelta64)


def is_real(value: object) -> bool:
    """Return whether the value is one real number of Python or NumPy; truth values are not."""
    return is_whole(value) or isinstance(value, float | np.floating)


def read_only(array: NDArray[Any]) -> NDArray[Any]:
    """Return a view of the array that cannot be written to; the array itself stays as it is."""
    view = array.view()
    view.flags.writeable = False
    return view


def locked(array: NDArray[Any]) -> NDArray[Any]:
    """Make the memory of a new array, which nobody else holds, read-only for good, and return a view of it.

    Examples
    --------
    >>> values = locked(np.zeros(2))
    >>> values.flags.writeable = True
    Traceback (most recent call last):
        ...
    ValueError: cannot set WRITEABLE flag to True of this array
    """
    owner = array if array.base is None else array.base
    if isinstance(owner, np.ndarray):
        owner.flags.writeable = False
    return read_only(array)


def frozen(array: NDArray[Any]) -> NDArray[Any]:
    """Return the array itself if nobody can write to it or to what it is a view of, else a locked copy."""
    part: Any = array
    while isinstance(part, np.ndarray):
        if part.flags.writeable:
            return locked(array.copy())
        part = part.base
    is_map = isinstance(part, memoryview) and part.readonly and isinstance(part.obj, mmap)
    return array if part is None or isinstance(part, bytes) or is_map else locked(array.copy())


def as_integers(values: ArrayLike, what: str, *, also: str = "") -> IntArray:
    """Return integers as a C-ordered int64 array; all else, or a number beyond 64 bits, is a DataError.

    An empty array may be of any type. ``also`` names kinds of NumPy that are taken as well: "b" for truth
    values, "f" for floats that are whole.
    """
    array = as_array(values, what)
    if array.size and array.dtype.kind not in "iu" + also:
        raise DataError(f"{what} must hold integers, not {array.dtype}")
    if array.size and array.max() > np.iinfo(np.int64).max:
        raise DataError(f"{what} holds {array.max()}, which is beyond 64 bits")
    with np.errstate(invalid="ignore"):
        integers: IntArray = np.ascontiguousarray(array, dtype=np.int64).reshape(array.shape)
    if array.dtype.kind == "f" and (integers != array).any():
        raise DataError(f"{what} must hold integers, not {array[integers != array].flat[0]}")
    return integers


def as_shape(values: ArrayLike, shape: tuple[int, ...], what: str) -> FloatArray:
    """Return numbers as a :func:`frozen` float64 array of this shape; any other shape is a DataError."""
    array = as_float64(values, what)
    if array.shape != shape:
        raise DataError(f"{what} must be {shape}; got {array.shape}")
    return frozen(array)


def as_array(values: ArrayLike, what: str) -> NDArray[Any]:
    """Return values of any type as an array; ragged ones and a polars LazyFrame are a DataError."""
    if isinstance(values, pl.LazyFrame):
        raise DataError(f"{what} is a polars LazyFrame, which holds no values yet: give {what}.collect()")
    try:
        return np.asarray(values)
    except ValueError as error:
        raise DataError(f"{what} is not a rectangular array: {error}") from error


def as_counts(values: ArrayLike, size: int) -> IntArray:
    """Return numbers of samples as a :func:`frozen` int64 array (size,)."""
    array = as_integers(values, "n_samples")
    if array.shape != (size,):
        raise DataError(f"n_samples must be ({size},) integers; got {array.shape}")
    return frozen(array)


def as_sequence(values: object, what: str) -> Sequence[Any]:
    """Return a list of what was given; one value, text, a mapping or a set is a DataError."""
    if isinstance(values, list | tuple):
        return values
    if isinstance(values, Iterable) and not isinstance(values, str | bytes | bytearray | Mapping | Set):
        try:
            return list(values)
        except TypeError:  # an array without dimensions says that it can be iterated over
            pass
    raise DataError(f"{what} must be a list, not {quoted(values)}")


def as_id(value: object) -> str:
    """Return the id of a task as text: text as it is, an integer in decimal; all else is a DataError."""
    if isinstance(value, str):
        return str(value)
    if is_whole(value):
        return str(int(cast("int", value)))
    raise DataError(f"a task id must be text or an integer, not {quoted(value)}")


def checked_names(names: object, what: str) -> tuple[str, ...]:
    """Return names as a tuple of text; a DataError lists each repeated or empty one."""
    given = as_sequence(names, f"{what}s")
    checked = tuple(given if set(map(type, given)) <= {str} else map(as_id, given))
    if len(distinct := set(checked)) == len(checked) and "" not in distinct:
        return checked  # the usual case, without a loop in Python: there may be a million
    seen: set[str] = set()
    faults = []
    for position, name in enumerate(checked):
        if name == "" or name in seen:
            fault = "is empty" if name == "" else "is repeated"
            faults.append(f"{what} {quoted(name)} at position {position} {fault}")
        seen.add(name)
    refuse(faults)
    return checked


def checked_index(values: ArrayLike, size: int, what: str) -> IntArray:
    """Return positions as int64; a DataError names the rows whose position is not in [0, size)."""
    index = as_integers(values, what)
    if index.size and (index.min() < 0 or index.max() >= size):
        bad = np.flatnonzero((index < 0) | (index >= size))
        refuse_each(bad, lambda row: f"{what}, row {row + 1}: {index.flat[row]} is not in [0, {size})")
    return index


def distinct_moments(values: ArrayLike, shape: tuple[int, ...], what: str) -> tuple[int, IntArray]:
    """Return how many distinct values there are, and for each row the place of its value among them, (n,).

    Missing values, values of no order, and another number of values than of rows are a DataError.
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
        refuse_each(np.flatnonzero(missing), lambda row: f"{what}, row {row + 1}: there is no value")
        distinct, place = np.unique(given, return_inverse=True)
    except TypeError as error:
        raise DataError(f"{what} holds values of kinds that have no order: {error}") from error
    return len(distinct), place


def ids_or_default(task_ids: object, n_tasks: int) -> tuple[str, ...]:
    """Return the given ids, checked; "0", "1", … if none are given."""
    return tuple(map(str, range(n_tasks))) if task_ids is None else checked_names(task_ids, "task id")


def column_names(values: object) -> tuple[str, ...]:
    """Return the column names of a table of polars, pandas or Arrow; none if they are not text."""
    arrow = hasattr(values, "column_names")  # whose `columns` are values
    names = getattr(values, "column_names" if arrow else "columns", ())
    return tuple(map(str, names)) if all(isinstance(name, str) for name in names) else ()


def check_columns(values: object, feature_names: Sequence[str], what: str) -> None:
    """Raise a DataError if a table has other columns than the features, or has them in another order."""
    columns = column_names(values)
    if columns in ((), tuple(feature_names)):
        return
    pairs = zip(columns, feature_names, strict=True)
    place = next(p for p, (column, feature) in enumerate(pairs) if column != feature)
    raise DataError(
        f"column {place} of {what} is {quoted(columns[place])}, and feature {place} is "
        f"{quoted(feature_names[place])}: give the columns in the order of the features, "
        "or an array (to_numpy()), whose columns have no names"
    )


def features_or_default(
    feature_names: object, n_features: int, tables: Iterable[object] = ()
) -> tuple[str, ...]:
    """Return the given names, checked, else those of the first table that has any, else "x_1", "x_2", …."""
    if feature_names is not None:
        return checked_names(feature_names, "feature name")
    named_by = next(filter(None, map(column_names, tables)), None)
    return named_by or tuple(f"x_{p + 1}" for p in range(n_features))


def refuse(faults: Sequence[str]) -> None:
    """Raise one DataError with the first faults and their number, if there are any."""
    if faults:
        raise DataError(faults[:MAX_FAULTS], n_faults=len(faults))


def refuse_each(bad: IntArray | Sequence[int], describe: Callable[[int], str]) -> None:
    """Raise one DataError that describes the first of the bad positions, if there are any."""
    if len(bad):
        raise DataError([describe(int(i)) for i in bad[:MAX_FAULTS]], n_faults=len(bad))

"""What the library uses of a pandas DataFrame, for tests that need no pandas."""

from __future__ import annotations

from collections.abc import Mapping
from types import SimpleNamespace
from typing import Any

import numpy as np
from numpy.typing import NDArray


class MissingValue:
    """As ``pandas.NA``: neither equal to itself nor unequal, and no number."""

    def __eq__(self, other: object) -> MissingValue:  # type: ignore[override]
        return self

    def __hash__(self) -> int:
        return 0

    def __bool__(self) -> bool:
        raise TypeError("boolean value of NA is ambiguous")

    def __repr__(self) -> str:
        return "<NA>"


NA = MissingValue()


class ZonedTimes:
    """A column of times in UTC that are shown ``ahead`` of it."""

    dtype = SimpleNamespace(tz="+05:30")

    def __init__(self, utc: NDArray[Any], ahead: np.timedelta64) -> None:
        self._utc, self._ahead, self.dt = utc, ahead, self

    def tz_convert(self, zone: str) -> ZonedTimes:
        """Show the same moments in UTC."""
        assert zone == "UTC"
        return ZonedTimes(self._utc, np.timedelta64(0, "m"))

    def tz_localize(self, zone: None) -> NDArray[Any]:
        """Return what the clock shows."""
        return self._utc + self._ahead


class Frame:
    """Columns by name, which NumPy takes as a table of objects or numbers."""

    def __init__(self, columns: Mapping[str, Any]) -> None:
        self._columns = dict(columns)
        self.columns = list(columns)

    def __getitem__(self, name: str) -> Any:
        return self._columns[name]

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> NDArray[Any]:
        table = np.column_stack(list(self._columns.values()))
        return table if dtype is None else table.astype(dtype)

    def to_numpy(self) -> NDArray[Any]:
        """Return all columns as one array."""
        return self.__array__()

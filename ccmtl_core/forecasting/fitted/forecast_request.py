"""What a caller asks of a forecast: where it starts, and which ranges and quantiles it has."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, TypedDict

from ccmtl_core.base.arrays import as_sequence, is_real
from ccmtl_core.base.exceptions import ParameterError
from ccmtl_core.base.types import BoolArray, FloatArray, IntArray
from ccmtl_core.series.columns import SeriesColumns
from ccmtl_core.series.panel import SeriesPanel


class Newest(TypedDict, total=False):
    """What forecasts start from, as :meth:`ForecastModel.forecast` describes it."""

    panel: SeriesPanel | None
    unique_ids: Sequence[str] | None
    columns: SeriesColumns | None


def range_columns(level: Sequence[float], quantiles: Sequence[float] = ()) -> dict[str, float]:
    """Return the names of the columns of ranges and quantiles, each with its probability.

    Raises
    ------
    ParameterError
        A level that is no number from 1 to 99, or a quantile that is none from 0.005 to 0.995.

    Examples
    --------
    >>> range_columns([80], [0.5])
    {'yhat-lo-80': 0.1, 'yhat-hi-80': 0.9, 'yhat-q-50': 0.5}
    """
    columns: dict[str, float] = {}
    for name, given, least, most in (("level", level, 1.0, 99.0), ("quantiles", quantiles, 0.005, 0.995)):
        for value in as_sequence(given, name):
            if not (is_real(value) and least <= value <= most):
                raise ParameterError(f"{name} must hold numbers from {least:g} to {most:g}, not {value!r}")
            if name == "level":
                tail = round((100.0 - value) / 200.0, 12)
                columns |= {f"yhat-lo-{value:g}": tail, f"yhat-hi-{value:g}": 1.0 - tail}
            else:
                columns[f"yhat-q-{round(100.0 * value, 10):g}"] = float(value)
    return columns


class Start(NamedTuple):
    """Where forecasts of n series begin: rows of the model, newest values (n, R), last periods."""

    rows: IntArray
    tail: FloatArray
    last: IntArray
    constant: FloatArray
    nonnegative: BoolArray
    ids: tuple[str, ...]
    columns: SeriesColumns | None

    def part(self, series: slice | IntArray) -> Start:
        """Return some of the series."""
        newest = self.tail[series], self.last[series], self.constant[series], self.nonnegative[series]
        some = self.ids[series] if isinstance(series, slice) else tuple(self.ids[s] for s in series)
        return Start(self.rows[series], *newest, some, self.columns)

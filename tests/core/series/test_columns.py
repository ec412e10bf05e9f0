"""Columns beside the values: read from tables, looked up by series and period, refused by name."""

from __future__ import annotations

from datetime import date
from typing import Any

import numpy as np
import polars as pl
import pytest

from ccmtl_core import DataError, ParameterError
from ccmtl_core.forecasting import SeriesColumns

DAYS = [date(1970, 1, 3), date(1970, 1, 1), date(1970, 1, 1)]
FRAME = pl.DataFrame(
    {
        "unique_id": ["b", "b", "a"],
        "ds": DAYS,
        "y": [1.0, 2.0, 3.0],
        "price": [4, None, 6],
        "sale": [True, False, None],
    }
)


def test_a_table_is_looked_up_by_series_and_period() -> None:
    columns = SeriesColumns.from_frame(FRAME, "D")
    assert (columns.names, columns.unique_ids) == (("price", "sale"), ("a", "b"))
    place = columns.places(["b", "c", "a"])
    assert place.tolist() == [1, -1, 0]
    found = columns.at(np.array([1, 1, 0, -1, 0]), np.array([2, 0, 0, 0, 9]))
    nan = np.nan
    np.testing.assert_array_equal(found, [[4.0, 1.0], [nan, 0.0], [6.0, nan], [nan, nan], [nan, nan]])
    assert repr(columns) == "SeriesColumns(2 columns [price, sale], 2 series, 3 rows)"


def test_without_ids_a_row_holds_for_all_series() -> None:
    columns = SeriesColumns.from_frame(FRAME[:2].drop("unique_id"), "D")
    assert columns.at(columns.places(["x", "y"]), np.array([2, 1]))[:, 1].tolist()[0] == 1.0
    assert np.isnan(columns.at(columns.places(["y"]), np.array([1]))).all()
    assert "all series" in repr(columns)


def test_no_rows_know_nothing() -> None:
    assert np.isnan(SeriesColumns.from_frame(FRAME[:0], "D").at(np.array([0]), np.array([0]))).all()


@pytest.mark.parametrize(
    ("frame", "message"),
    [
        (FRAME.select("unique_id", "ds", "y"), "needs ds and columns of numbers; it has unique_id, ds, y"),
        (FRAME.select("unique_id", "price"), "needs ds and columns of numbers"),
        (FRAME.with_columns(price=pl.lit("1.99")), "column 'price' must hold numbers, not String"),
        (FRAME.with_columns(unique_id=pl.lit(1.5)), "'unique_id' must be text or integers without missing"),
        (FRAME.with_columns(unique_id=pl.lit("a")), "series 'a', period 1970-01-01.* appears twice"),
        (FRAME.with_columns(price=pl.lit(float("inf"))), "series 'a', period .*: not finite"),
    ],
)
def test_tables_that_cannot_be_used_are_refused(frame: pl.DataFrame, message: str) -> None:
    with pytest.raises(DataError, match=message):
        SeriesColumns.from_frame(frame, "D")


@pytest.mark.parametrize("values", [{"values": [1.0]}, {"names": ()}, {"series": [0, 0]}])
def test_shapes_that_do_not_fit_are_refused(values: dict[str, Any]) -> None:
    given = {"names": ("price",), "unique_ids": (), "series": [0], "period": [0], "values": [[1.0]], **values}
    with pytest.raises(DataError, match=r"values must be \(n, \d\), series and period \(n,\)"):
        SeriesColumns(**given, frequency="D")  # type: ignore[arg-type]


def test_another_kind_of_table_is_refused() -> None:
    with pytest.raises(ParameterError, match="frame must be DataFrame, not dict"):
        SeriesColumns.from_frame({"ds": DAYS}, "D")  # type: ignore[arg-type]

"""Tables of pandas and Arrow do what the same tables of polars do."""

from __future__ import annotations

from collections.abc import Callable
from datetime import date, timedelta
from typing import Any

import numpy as np
import polars as pl
import pytest

from ccmtl_core import DataError, ParameterError
from ccmtl_core.data.frames import as_polars
from ccmtl_core.forecasting import (
    ForecastModel,
    RowFeatures,
    SeriesColumns,
    SeriesPanel,
    fit_forecaster,
    forecast_all,
    new_products,
    total_forecasts,
    with_attributes,
)
from ccmtl_core.inspection import inspect
from tests.support.pandas_table import NA, Frame


class ArrowTable:
    """A table of any library that hands out its columns as an Arrow stream."""

    def __init__(self, frame: pl.DataFrame) -> None:
        self._frame = frame

    def __arrow_c_stream__(self, schema: object = None) -> object:
        return self._frame.__arrow_c_stream__(schema)


def of_pandas(frame: pl.DataFrame) -> Frame:
    """The same table as pandas holds it: text as objects, times in nanoseconds."""
    columns = {}
    for column in frame:
        array = np.array(column.to_list(), dtype=object) if column.dtype == pl.String else column.to_numpy()
        columns[column.name] = array.astype("M8[ns]") if array.dtype.kind == "M" else array
    return Frame(columns)


@pytest.fixture(scope="module")
def forecaster() -> ForecastModel:
    values = [[1.0, 3.0] * 6, [2.0, 6.0] * 6, [3.0, 9.0] * 6, [4.0, 12.0] * 6]
    panel = SeriesPanel(tuple("1234"), [0, 12, 24, 36, 48], [*range(12)] * 4, np.ravel(values), "D")
    return fit_forecaster(panel, 2, rows=RowFeatures(seasons=((2, 1),)))


KINDS = pl.DataFrame({"unique_id": list("12345"), "shop": ["x"] * 5})
DAYS = [date(2024, 1, 1) + timedelta(day) for day in range(8)]
SALES = pl.DataFrame({"unique_id": ["a"] * 8 + ["b"] * 8, "ds": DAYS * 2, "y": np.arange(16.0)})


@pytest.mark.parametrize("other", [of_pandas, ArrowTable])
@pytest.mark.parametrize(
    "use",
    [
        lambda model, of: new_products(model, of(KINDS)).forecast().rows(),
        lambda model, of: forecast_all(model, of(KINDS)).rows(),
        lambda model, of: with_attributes(model, of(KINDS)).model.metadata,
        lambda model, of: total_forecasts(of(model.forecast()), of(KINDS), ["shop"])["yhat"].to_list(),
        lambda _, of: SeriesColumns.from_frame(of(SALES.rename({"y": "price"})), "D").values.tolist(),
        lambda _, of: SeriesPanel.from_frame(of(SALES), "D").values.tolist(),
        lambda _, of: inspect(of(SALES)).require_panel().values.tolist(),
    ],
    ids=["new_products", "forecast_all", "with_attributes", "totals", "columns", "panel", "inspect"],
)
def test_what_takes_a_table_of_polars_takes_one_of_pandas_or_arrow(
    use: Callable[[ForecastModel, Callable[[pl.DataFrame], Any]], Any],
    other: Callable[[pl.DataFrame], Any],
    forecaster: ForecastModel,
) -> None:
    assert use(forecaster, other) == use(forecaster, lambda frame: frame)


def test_missing_values_of_pandas_become_null_and_integer_ids_text() -> None:
    columns = {
        "unique_id": np.array([7, 8]),
        "ds": np.array(["2024-01-01", "NaT"], dtype="M8[ns]"),
        "shop": np.array(["x", NA], dtype=object),
        "price": np.array([NA, 2.5], dtype=object),
        "offer": np.array([True, False]),
    }
    rows = as_polars(Frame(columns), "table").with_columns(pl.col("ds").dt.date()).rows()
    assert rows == [("7", date(2024, 1, 1), "x", None, True), ("8", None, None, 2.5, False)]


def test_a_table_of_pandas_needs_names_that_are_text_and_differ() -> None:
    twice = Frame({"y": np.arange(2)})
    twice.columns = ["y", "y"]
    with pytest.raises(DataError, match="table: there are two columns 'y'"):
        as_polars(twice, "table")
    twice.columns = ["y", 0]  # type: ignore[list-item]
    with pytest.raises(DataError, match="table: the column 0 has a name that is no text"):
        as_polars(twice, "table")


@pytest.mark.parametrize("what", ["forecasts", "attributes"])
def test_what_is_no_table_is_refused(what: str, forecaster: ForecastModel) -> None:
    tables = {"forecasts": forecaster.forecast(), "attributes": KINDS, what: {"unique_id": ["a"]}}
    with pytest.raises(ParameterError, match=f"{what} must be DataFrame, not dict: polars.DataFrame makes"):
        total_forecasts(**tables)

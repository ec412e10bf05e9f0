"""A file of series becomes a panel, or an error that names the file, the row and the column."""

from __future__ import annotations

from pathlib import Path

import pytest

from ccmtl_core import DataError, ParameterError
from ccmtl_core.forecasting import read_series


@pytest.fixture
def shop(tmp_path: Path) -> Path:
    return tmp_path / "shop.csv"


def test_rows_in_any_order_become_a_panel(shop: Path) -> None:
    shop.write_text("sku,day,sold\n002,2024-01-02,5\n001,2024-01-02,2\n001,2024-01-01,1\n")
    panel = read_series(shop, "D", unique_id="sku", ds="day", y="sold")
    assert panel.unique_ids == ("001", "002")
    assert panel.values.tolist() == [1.0, 2.0, 5.0]


def test_times_may_follow_a_pattern_of_their_own(shop: Path) -> None:
    shop.write_text("unique_id,ds,y\na,31/01/2024,1\na,01/02/2024,2\n")
    panel = read_series(shop, "D", ds_format="%d/%m/%Y")
    assert panel.frequency.to_datetime(panel.period).astype("M8[D]").astype(str).tolist() == [
        "2024-01-31",
        "2024-02-01",
    ]


def test_a_bad_cell_is_named_with_its_file_row_and_column(shop: Path) -> None:
    shop.write_text("unique_id,ds,y\na,2024-01-01,1\na,2024-01-02,many\n")
    with pytest.raises(DataError, match=r"shop\.csv.*row 2.*'y'.*'many'"):
        read_series(shop, "D")


def test_two_rows_of_a_series_in_one_period_are_refused(shop: Path) -> None:
    shop.write_text("unique_id,ds,y\na,2024-01-01,1\na,2024-01-01,2\n")
    with pytest.raises(DataError, match=r"1 row in .* row 2 \(series 'a', period 2024-01-01\).* sum or mean"):
        read_series(shop, "D")


@pytest.mark.parametrize(("aggregation", "values"), [("sum", [3.0, 5.0]), ("mean", [1.5, 5.0])])
def test_rows_of_a_period_are_aggregated_where_that_is_asked_for(
    shop: Path, aggregation: str, values: list[float]
) -> None:
    shop.write_text("unique_id,ds,y\na,2024-01-03,1\na,2024-01-08,5\na,2024-01-01,2\n")
    panel = read_series(shop, "W", aggregation=aggregation)
    assert panel.values.tolist() == values


def test_an_aggregation_that_does_not_exist_is_refused(shop: Path) -> None:
    with pytest.raises(ParameterError, match="'sum' or 'mean', not 'max'"):
        read_series(shop, "W", aggregation="max")


def test_a_pattern_that_cannot_be_used_is_refused(shop: Path) -> None:
    shop.write_text("unique_id,ds,y\na,2024-01-01,1\n")
    with pytest.raises(ParameterError, match="%Q"):
        read_series(shop, "D", ds_format="%Q")

"""A file of series becomes a panel, or an error that names the file, the row and the column."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from ccmtl_core import DataError, ParameterError
from ccmtl_core.forecasting import Frequency, read_series, read_series_table
from ccmtl_core.inspection import Policies


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
    with pytest.raises(DataError, match=r"shop\.csv.* `duplicates='sum'`.* row 2, series 'a', time '2024"):
        read_series(shop, "D")


@pytest.mark.parametrize(("duplicates", "values"), [("sum", [3.0, 5.0]), ("mean", [1.5, 5.0])])
def test_rows_of_a_period_are_aggregated_where_that_is_asked_for(
    shop: Path, duplicates: str, values: list[float]
) -> None:
    shop.write_text("unique_id,ds,y\na,2024-01-03,1\na,2024-01-08,5\na,2024-01-01,2\n")
    panel = read_series(shop, "W", policies=Policies(duplicates=duplicates))
    assert panel.values.tolist() == values


def test_dates_are_read_as_the_whole_column_shows(tmp_path: Path) -> None:
    path = tmp_path / "file.csv"
    path.write_text("unique_id,ds,y\na,1/3/2024,1\na,13/3/2024,2\n")
    assert (
        read_series(path, "D").period.tolist()
        == Frequency.DAY.to_period(["2024-03-01", "2024-03-13"]).tolist()
    )
    path.write_text("unique_id,ds,y\na,1/3/2024,1\na,12/3/2024,2\n")
    with pytest.raises(DataError, match=r"'%d/%m/%Y'.* or .*'%m/%d/%Y'"):
        read_series(path, "D")


def test_a_policy_that_does_not_exist_is_refused(shop: Path) -> None:
    with pytest.raises(ParameterError, match="'mean', 'last'; not 'max'"):
        read_series(shop, "W", policies=Policies(duplicates="max"))


def test_a_pattern_that_cannot_be_used_is_refused(shop: Path) -> None:
    shop.write_text("unique_id,ds,y\na,2024-01-01,1\n")
    with pytest.raises(ParameterError, match="%Q"):
        read_series(shop, "D", ds_format="%Q")


def test_rows_without_a_value_say_what_columns_will_be(shop: Path) -> None:
    shop.write_text(
        "unique_id,ds,y,price\na,2024-01-01,1,2\na,2024-01-02,,3\nb,2024-01-01,5,\nb,2024-01-02,,1\n"
    )
    table = read_series_table(shop, "D", future=["price"])
    assert table.panel.values.tolist() == [1.0, 5.0]
    assert table.columns is not None
    assert table.columns.ahead == ("price",)
    at = table.columns.at(
        np.array([0, 0, 1, 1]), table.panel.frequency.to_period(["2024-01-01", "2024-01-02"] * 2)
    )
    np.testing.assert_array_equal(at.ravel(), [2.0, 3.0, np.nan, 1.0])


def test_a_column_with_one_value_in_each_period_holds_for_all_series(shop: Path) -> None:
    shop.write_text("unique_id,ds,y,open,price\na,2024-01-01,1,1,2\na,2024-01-02,1,0,2\nb,2024-01-01,1,1,4\n")
    columns = read_series_table(shop, "D", past=["open", "price"]).columns
    assert columns is not None
    period = columns.frequency.to_period(["2024-01-02"])
    np.testing.assert_array_equal(columns.at(columns.places(["b"]), period), [[0.0, np.nan]])
    alone = read_series_table(shop, "D", past=["open"]).columns
    assert alone is not None
    assert alone.unique_ids == ()


def test_several_rows_a_day_over_stores_become_a_sum_beside_a_mean_price(shop: Path) -> None:
    shop.write_text("unique_id,ds,y,price\na,2024-01-01,1,2\na,2024-01-01,5,4\nb,2024-01-01,5,1\n")
    table = read_series_table(shop, "D", past=["price"], policies=Policies(duplicates="sum"))
    assert table.panel.values.tolist() == [6.0, 5.0]
    assert table.columns is not None
    assert table.columns.values.ravel().tolist() == [3.0, 1.0]


def test_attributes_are_those_of_all_products_and_do_not_change(shop: Path) -> None:
    shop.write_text("unique_id,ds,y,kind\na,2024-01-01,1,tea\na,2024-01-02,1,\nnew,2024-01-02,,jam\n")
    table = read_series_table(shop, "D", static=["kind"])
    assert table.panel.unique_ids == ("a",)
    assert table.attributes is not None
    assert table.attributes.rows() == [("a", "tea"), ("new", "jam")]
    shop.write_text("unique_id,ds,y,kind\na,2024-01-01,1,tea\na,2024-01-02,1,jam\n")
    with pytest.raises(DataError, match=r"'kind' of the product 'a' changes, first in row 2, to 'jam'"):
        read_series_table(shop, "D", static=["kind"])


def test_a_column_is_named_once(shop: Path) -> None:
    with pytest.raises(ParameterError, match="'y' is named twice"):
        read_series_table(shop, "D", unique_id="y", y="y")


def test_columns_and_frequency_that_are_not_stated_are_found(shop: Path) -> None:
    rows = "".join(f"1,00{i % 2},{5 + i // 2 * 7:02}/01/2024,{i},{i}\n" for i in range(8))
    shop.write_text("store,product,date,qty,price\n" + rows)
    table = read_series_table(shop, unique_id=["store", "product"], future=["price"])
    assert table.panel.frequency is Frequency.WEEK_TO_FRIDAY
    assert table.panel.unique_ids == ("1-000", "1-001")
    assert table.report is not None
    assert (table.report.traits["y"].value, table.report.traits["ds_format"].value) == ("qty", "%d/%m/%Y")


def test_a_period_may_have_one_row_without_a_value(shop: Path) -> None:
    shop.write_text("unique_id,ds,y,price\na,2024-01-01,1,2\na,2024-01-02,,2\na,2024-01-02,,3\n")
    with pytest.raises(DataError, match=r"1 row without a value .* the first in row 3 \(series 'a'\)"):
        read_series_table(shop, "D", future=["price"])


def test_sums_that_a_number_cannot_hold_are_told(shop: Path) -> None:
    shop.write_text("unique_id,ds,y\na,2024-01-01,1e308\na,2024-01-01,1e308\na,2024-01-02,3\n")
    with pytest.raises(DataError, match="overflow: the values of 1 period add up beyond"):
        read_series(shop, "D", policies=Policies(duplicates="sum"))


def test_periods_that_are_filled_without_their_price_are_counted(shop: Path) -> None:
    shop.write_text("unique_id,ds,y,price\na,2024-01-01,1,2\na,2024-01-03,,2\na,2024-01-05,2,2\n")
    filled = read_series_table(shop, "D", policies=Policies(fill="zero"), future=["price"])
    assert filled.report is not None
    told = {one.code: one for one in filled.report.findings}
    assert (told["filled_without_columns"].count, filled.report.accounts.values_added) == (2, {"fill": 3})
    assert "Write rows of these periods with the value, such as 0, and 'price'." in str(
        told["filled_without_columns"]
    )
    for policies, future in ((Policies(fill="zero"), []), (Policies(), ["price"])):
        report = read_series_table(
            shop, "D", policies=replace(policies, missing="absent"), future=future
        ).report
        assert report is not None
        assert "filled_without_columns" not in report.counts

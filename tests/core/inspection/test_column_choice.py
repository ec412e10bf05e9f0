"""Which columns hold what is found by their names and cells; a name that says otherwise is not overruled."""

from __future__ import annotations

from datetime import date, timedelta
from pathlib import Path
from typing import Any

import polars as pl
import pytest

from ccmtl_core.inspection import InspectionReport, inspect
from ccmtl_core.tables import ReadOptions

TODAY = date(2026, 1, 1)
DAYS = [date(2024, 1, day) for day in range(1, 6)]


def inspected(folder: Path, text: str, **stated: str) -> InspectionReport:
    path = folder / "sales.csv"
    path.write_text(text)
    return inspect(path, today=TODAY, dialect=ReadOptions(**stated))


NOT_OVERRULED = {
    "dates that are not known, beside others": (
        "sku,date,qty,delivery_date\n1,1st of May,3,2024-02-01\n1,2nd of May,4,2024-02-02\n",
        "unparseable_date",
        "column 'date'",
    ),
    "dates that are not known, by a word in the name": (
        "sku,Sales Date,qty,Updated\n1,1st of May,3,2024-02-01\n1,2nd of May,4,2024-02-02\n",
        "unparseable_date",
        "column 'Sales Date'",
    ),
    "units beside a stock": (
        "sku,date,qty,stock\n1,2024-01-01,3 pcs,1\n1,2024-01-02,4 pcs,2\n",
        "unparseable_number",
        "`currency='pcs'`",
    ),
    "numbers that may be years": (
        "item,date,sales\n1,1.1,2001\n1,2.1,2002\n1,3.1,2003\n",
        "unparseable_date",
        "column 'date'",
    ),
}


@pytest.mark.parametrize("name", NOT_OVERRULED)
def test_a_column_that_is_called_so_is_not_passed_over(tmp_path: Path, name: str) -> None:
    text, code, told = NOT_OVERRULED[name]
    (finding,) = (one for one in inspected(tmp_path, text).findings if one.code == code)
    assert told in finding.message
    assert finding.samples[0].row == 1


def test_numbers_that_are_called_ids_are_no_values() -> None:
    frame = pl.DataFrame({"sku": [1.0, 1.0, None, 2.0, 2.0], "date": DAYS, "qty": [5, 6, 7, 8, 9]})
    report = inspect(frame, today=TODAY)
    assert [one.code for one in report.findings if one.severity == "error"] == ["wrong_type"]
    assert "'sku' is of type Float64" in report.findings[0].message


def test_days_of_a_spreadsheet_in_another_column_are_no_dates(tmp_path: Path) -> None:
    path = tmp_path / "sales.csv"
    path.write_text("sku;date;qty\na;45292,5;40000\na;45293,5;40007\n")
    (finding,) = inspect(path, today=TODAY, ds_format="excel").findings
    assert (finding.code, finding.samples[0].value) == ("unparseable_date", "45292,5")


@pytest.mark.parametrize("unit", ["zł", "Stk"])
def test_a_stated_unit_counts_when_columns_are_chosen(tmp_path: Path, unit: str) -> None:
    text = f"sku;date;qty\na;2024-01-01;12 {unit}\na;2024-01-02;13 {unit}\n"
    report = inspected(tmp_path, text, currency=unit)
    assert report.require_panel().values.tolist() == [12, 13]


@pytest.mark.parametrize(
    "column",
    [
        pl.Series("tags", [[1], [2], [3], [4], [5]]),
        pl.Series("pairs", [[1, 2]] * 5, dtype=pl.Array(pl.Int64, 2)),
        pl.Series("picture", [b"\xff\xfe"] * 5),
        pl.Series("part", [{"a": 1}] * 5),
        pl.Series("lead", [timedelta(days=3)] * 5),
        pl.Series("span", range(5)).ext.to(pl.Extension("pandas.period", pl.Int64, '{"freq": "D"}')),
    ],
    ids=lambda column: column.name,
)
def test_columns_that_are_no_text_are_left_alone(tmp_path: Path, column: pl.Series) -> None:
    frame = pl.DataFrame({"sku": ["a"] * 5, "date": DAYS, "qty": [5, 6, 7, 8, 9]})
    path = tmp_path / "sales.parquet"
    frame.with_columns(column).write_parquet(path)
    assert inspect(path, today=TODAY).require_panel().values.tolist() == [5, 6, 7, 8, 9]
    frame.select("sku", "date").with_columns(column).write_parquet(path)
    (finding,) = inspect(path, today=TODAY).findings
    assert finding.code == "unknown_column"
    for role in ("unique_id", "ds", "y"):
        stated: dict[str, Any] = {"unique_id": "sku", "ds": "date", "y": "qty", role: column.name}
        (finding, *_) = inspect(frame.with_columns(column), today=TODAY, **stated).findings
        assert finding.code == "wrong_type"
    twice = pl.concat([frame.with_columns(column)] * 2)
    assert column.name not in str(inspect(twice, today=TODAY).findings[0])


CHOSEN = {
    "orders": ("Order Date,Sales Order No,Item Code,Order Qty", "Item Code", "Order Date", "Order Qty"),
    "organisations": ("Date,Sales Organization,SKU,Billed Quantity", "SKU", "Date", "Billed Quantity"),
    "a stock": ("date,sku,stock_quantity,units_sold", "sku", "date", "units_sold"),
    "a forecast": ("date,sku,forecast_qty,actual_qty", "sku", "date", "actual_qty"),
    "money": ("Datum,Artikel,Umsatz,Menge", "Artikel", "Datum", "Menge"),
    "a delivery": ("delivery_date,sold_on,SKU,Qty", "SKU", "sold_on", "Qty"),
    "money of articles": ("Order,Date,Article Sales,Item", "Item", "Date", "Article Sales"),
    "a printing": ("Print date,Day,Item,Quantity", "Item", "Day", "Quantity"),
    "contents of a case": ("Date,Item,Units per case,Cases", "Item", "Date", "Cases"),
    "what was returned": ("Date,Item,Qty returned,Qty sold", "Item", "Date", "Qty sold"),
    "a year": ("Posting Date,Year,Item,Quantity", "Item", "Posting Date", "Quantity"),
}  # fmt: skip


@pytest.mark.parametrize("name", CHOSEN)
def test_what_is_sold_is_chosen_beside(name: str) -> None:
    header, unique_id, ds, y = CHOSEN[name]
    columns: dict[str, Any] = {}
    for column in header.split(","):
        is_text, is_time = column == unique_id, column == ds or "date" in column.casefold()
        cells = ["a", "b", "a", "b"] if is_text else DAYS[:4] if is_time else [2021, 2022, 2023, 2024]
        columns[column] = [day.replace(year=2025) for day in DAYS[:4]] if column == ds else cells
    traits = inspect(pl.DataFrame(columns), today=TODAY).traits
    assert [traits[role].value for role in ("unique_id", "ds", "y")] == [unique_id, ds, y]


@pytest.mark.parametrize("column", ["id", "order_id", "Line Item"])
def test_a_number_of_each_row_is_no_id(column: str) -> None:
    days = [DAYS[0], DAYS[0], DAYS[1], DAYS[1]]
    frame = pl.DataFrame(
        {column: [1, 2, 3, 4], "date": days, "item_nbr": [55, 56, 55, 56], "qty": [3, 4, 5, 6]}
    )
    report = inspect(frame, today=TODAY)
    assert report.traits["unique_id"].value == "item_nbr"
    assert report.require_panel().unique_ids == ("55", "56")


AMOUNTS = ["Product Sales", "Store Revenue", "Artikel Umsatz", "Ventes produit", "Ordered Product Sales",
           "Number of items", "product_id_count", "Item margin", "Item stock", "SKU Units"]  # fmt: skip


@pytest.mark.parametrize("column", AMOUNTS)
def test_amounts_of_products_are_no_ids(column: str) -> None:
    cells = ["a", "b", "a", "b"]
    frame = pl.DataFrame(
        {"Ref": cells, "Date": DAYS[:4], column: ["5", "6", "5", "7"], "Units": [3, 4, 5, 6]}
    )
    stated = inspect(frame.with_columns(Buyer=pl.col("Ref")), today=TODAY)
    assert stated.findings[0].message.startswith("which column holds the series?")
    assert column not in stated.findings[0].message
    assert inspect(frame, y="Units", today=TODAY).traits["unique_id"].value == "Ref"


@pytest.mark.parametrize("cells", [["5.01", "6.25"], ["£18", "£19"], ["1,234", "2,500"], ["5,10", "6,20"]])
def test_fractions_and_money_are_no_ids_by_guess(cells: list[str]) -> None:
    frame = pl.DataFrame({"Ref": ["a", "b"], "Date": DAYS[:2], "Product line": cells, "Units": [3, 4]})
    assert inspect(frame, y="Units", today=TODAY).traits["unique_id"].value == "Ref"
    coded = frame.rename({"Product line": "Product code"}).with_columns(pl.lit("12.34").alias("Product code"))
    assert inspect(coded, y="Units", today=TODAY).traits["unique_id"].value == "Product code"


def test_amounts_are_not_named_as_part_of_a_series() -> None:
    frame = pl.DataFrame(
        {
            "sku": ["a"] * 4,
            "Date": [DAYS[0], DAYS[0], DAYS[1], DAYS[1]],
            "Store Sales": ["5.01", "6.25"] * 2,
            "Shop": ["x", "y"] * 2,
            "Units": [3, 4, 5, 6],
        }
    )
    (finding,) = (one for one in inspect(frame, today=TODAY).findings if one.code == "duplicate_period")
    assert "'Shop'" in finding.message
    assert "Store Sales" not in finding.message


NO_SALES = ["Verkaufspreis", "Umsatzsteuer", "Units on hand", "Menge Bestand", "Sales rank", "Units per case",
            "qty_per_pack", "Reorder qty", "Minimum quantity", "Sales VAT"]  # fmt: skip


@pytest.mark.parametrize("column", NO_SALES)
def test_what_was_not_sold_is_no_value_though_it_is_the_only_number(column: str) -> None:
    frame = pl.DataFrame({"sku": ["a", "a"], "date": DAYS[:2], column: [3, 4]})
    (finding,) = inspect(frame, today=TODAY).findings
    assert finding.message.startswith("which column holds the value?")


@pytest.mark.parametrize("column", ["Sales excl. VAT", "Umsatz ohne MwSt", "Units per day"])
def test_sales_without_tax_or_per_day_are_values(column: str) -> None:
    frame = pl.DataFrame({"sku": ["a", "a"], "date": DAYS[:2], column: [3, 4]})
    assert inspect(frame, today=TODAY).traits["y"].value == column

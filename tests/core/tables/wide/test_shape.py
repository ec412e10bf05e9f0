"""Wide tables become one value a row; long ones stay as they are."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest

from ccmtl_core import DataError
from ccmtl_core.forecasting import read_series
from ccmtl_core.inspection import InspectionReport, Policies, inspect
from ccmtl_core.inspection.reading import read_rows
from ccmtl_core.tables import ReadOptions
from ccmtl_core.tables.faults import FaultList
from ccmtl_core.tables.table_file import open_table
from ccmtl_core.tables.wide.shape import long_table

ROOT = Path(__file__).parents[4]
DATA = ROOT.parent / "shared" / "data"
VALUES = {"001": {0: 1.0, 1: 2.0, 2: 3.5}, "1": {0: 4.0, 2: 6.0}}
"""By series and period; one cell is empty."""
MONTHS = ["2024-01", "2024-02", "2024-03"]
WEEKS = "product,town,W0,W1,W2,MIN\n001,Oslo,1,2,3.5,1\n1,Rome,4,,6,4\n"
DATES = f"sku;{';'.join(MONTHS)}\n001;1;2;3,5\n1;4;;6\n"
ROWS_OF_DATES = "month,001,1\n2024-01,1,4\n2024-02,2,\n2024-03,3.5,6\n"
WORDS = "sku,Jan 2024,Feb 2024,Mar 2024\n001,1,2,3.5\n1,4,,6\n"
TWO_TEXTS = "product,group,2024-01,2024-02,2024-03\n001,food,1,2,3.5\n1,food,4,,6\n"
SHORT_YEARS = "sku,Jan 24,Feb 24,Mar 24\n001,1,2,3.5\n1,4,,6\n"
WIDE = {
    "a text that repeats beside the id": (TWO_TEXTS, {}, {}, "MS"),
    "words and two digits": (SHORT_YEARS, {}, {}, "MS"),
    "numbered periods": (WEEKS, {"unique_id": "product"}, {}, "1"),
    "a stated pattern": (WEEKS.replace("W", "K"), {"unique_id": "product"}, {"periods": "K*"}, "1"),
    "months in the header": (DATES, {}, {}, "MS"),
    "words in the header": (WORDS, {}, {}, "MS"),
    "a row for each month": (ROWS_OF_DATES, {"ds": "month"}, {}, "MS"),
    "a row for each month, stated": (ROWS_OF_DATES, {}, {"shape": "wide"}, "MS"),
}  # fmt: skip


def written(folder: Path, text: str) -> Path:
    path = folder / "wide.csv"
    path.write_text(text)
    return path


def codes(report: InspectionReport) -> dict[str, int]:
    return dict(report.counts)


@pytest.mark.parametrize("name", WIDE)
def test_a_wide_table_says_the_same_as_a_long_one(tmp_path: Path, name: str) -> None:
    text, columns, stated, frequency = WIDE[name]
    path, dialect = written(tmp_path, text), ReadOptions(**stated)
    given: dict[str, Any] = dict(columns)
    report = inspect(path, frequency=frequency, dialect=dialect, **given)
    formats = {"ds_format": "%Y-%m"} if text is ROWS_OF_DATES else {}
    panel = read_series(path, frequency, dialect=dialect, **{**formats, **given})
    for found in (report.require_panel(), panel):
        start = found.period.min()
        by_series = {
            unique_id: dict(
                zip((found.period[a:b] - start).tolist(), found.values[a:b].tolist(), strict=True)
            )
            for unique_id, a, b in zip(found.unique_ids, found.offsets, found.offsets[1:], strict=False)
        }
        assert by_series == VALUES
    assert codes(report)["missing_cells"] == 1
    assert report.accounts.rows_read == report.accounts.rows_used == 5
    assert report.traits["shape"].origin == ("stated" if "shape" in stated else "guessed")


def test_names_that_repeat_are_series_of_their_own_and_told(tmp_path: Path) -> None:
    names = [*(f"p{i % 10}" for i in range(12)), "p9 (2)"]
    path = written(tmp_path, ",".join(names) + "\n" + f"{','.join('5' * 13)}\n" * 3)
    report = inspect(path)
    assert codes(report)["repeated_columns"] == 2
    assert len(report.require_panel().unique_ids) == 13
    assert {"p0", "p0 (2)", "p9", "p9 (2)"} <= set(report.require_panel().unique_ids)


ONE_BAD_CELL = {
    "months": ("sku;2024-01;2024-02;2024-03\nA;1;2;3\nB;4;{};3\n", 2, "B", "2024-02"),
    "counted periods": ("sku,W1,W2,W3\nA,1,2,{}\nB,4,5,6\n", 1, "A", "3"),
    "a column for each series": (
        "date," + ",".join(f"S{i}" for i in range(12)) + "\n2024-01-01" + ",1" * 11 + ",{}\n2024-01-02"
        + ",1" * 12 + "\n", 1, "S11", "2024-01-01",
    ),
}  # fmt: skip


@pytest.mark.parametrize("cell", ["NA", "x", "#DIV/0!"])
@pytest.mark.parametrize("name", ONE_BAD_CELL)
@pytest.mark.parametrize("shape", ["auto", "wide"])
def test_a_cell_of_a_wide_table_that_is_no_number_is_told(
    tmp_path: Path, name: str, shape: str, cell: str
) -> None:
    text, row, unique_id, ds = ONE_BAD_CELL[name]
    report = inspect(written(tmp_path, text.format(cell)), dialect=ReadOptions(shape=shape))
    (finding,) = report.errors
    assert finding.code == "unparseable_number"
    (sample,) = finding.samples
    assert (sample.row, sample.unique_id, sample.ds, sample.value) == (row, unique_id, ds, cell)
    assert report.accounts.rows_read == report.accounts.rows_used + 1


def test_a_series_that_has_no_value_yet_hides_no_wide_table(tmp_path: Path) -> None:
    names = ",".join(f"S{i}" for i in range(12))
    path = written(tmp_path, f"date,{names}\n2024-01-01,NA{',1' * 11}\n2024-01-02,NA{',1' * 11}\n")
    assert inspect(path).counts["unparseable_number"] == 2


def test_a_table_of_words_called_as_periods_are_stays_long(tmp_path: Path) -> None:
    text = "sku,2024-01,2024-02,2024-03\na,low,low,1\nb,high,low,2\n"
    assert "shape" not in inspect(written(tmp_path, text)).traits


REPEATED = "product,Jan 24,Feb 24,Feb 24,Mar 24\nA,1,2,9,3\nB,1,2,8,3\n"


@pytest.mark.parametrize("shape", ["auto", "wide"])
def test_a_period_that_stands_over_two_columns_is_two_rows_of_it(tmp_path: Path, shape: str) -> None:
    path, dialect = written(tmp_path, REPEATED), ReadOptions(shape=shape)
    report = inspect(path, dialect=dialect)
    assert {"duplicate_period": 2, "repeated_columns": 1}.items() <= codes(report).items()
    assert "1 name [Feb 24]" in next(f.message for f in report.findings if f.code == "repeated_columns")
    added = inspect(path, dialect=dialect, policies=Policies(duplicates="sum"))
    assert added.require_panel().values.tolist() == [1, 11, 3, 1, 10, 3]
    assert (added.accounts.rows_read, added.accounts.rows_merged) == (8, 2)


@pytest.mark.parametrize("names", ["W1,W1,W2,W3", "KW 9,KW 9,KW 10,KW 11"])
def test_a_counted_period_may_stand_over_two_columns_too(tmp_path: Path, names: str) -> None:
    path = written(tmp_path, f"sku,{names}\na,1,2,3,4\nb,5,6,7,8\n")
    assert {"duplicate_period": 2, "repeated_columns": 1}.items() <= codes(inspect(path)).items()
    added = inspect(path, policies=Policies(duplicates="sum")).require_panel()
    assert added.values.tolist() == [3, 3, 4, 11, 7, 8]


UNSEEN = {
    "few series": (
        "date,A,B\n2024-01-01,1,2\n2024-01-02,4,5\n", "if each column beside 'date' is a series", "",
    ),
    "series of one name": (
        "date,A,B,A\n2024-01-01,1,2,3\n2024-01-02,4,5,6\n", "if each column beside 'date' is a series",
        "; those of one name become 'A', 'B', 'A (2)'",
    ),
    "two periods": (
        "sku,2024-01,2024-02\nA,1,2\nB,5,6\n", "if the 2 columns [2024-01, 2024-02] are periods", "",
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", UNSEEN)
def test_a_table_that_may_be_wide_is_refused_with_the_option_that_reads_it(tmp_path: Path, name: str) -> None:
    text, told, more = UNSEEN[name]
    path = written(tmp_path, text)
    finding = inspect(path).errors[0]
    assert finding.code == "unknown_column"
    assert finding.message.endswith(f"; {told}, state `shape='wide'`{more}")
    assert inspect(path, dialect=ReadOptions(shape="wide")).panel is not None


@pytest.mark.parametrize(("ragged", "code"), [("pad", "faulty_rows"), ("skip", "skipped_rows")])
def test_a_row_of_a_wide_table_that_is_not_read_is_accounted_for(
    tmp_path: Path, ragged: str, code: str
) -> None:
    path = written(tmp_path, "sku,W1,W2,W3\nA,1,2,5\nB,1,2,3,4\nC,1,2,3\n")
    accounts = inspect(path, dialect=ReadOptions(ragged=ragged)).accounts
    assert (accounts.rows_read, accounts.rows_used, accounts.rows_dropped) == (7, 6, {code: 1})


def test_columns_of_one_name_that_nothing_needs_are_told_and_not_read(tmp_path: Path) -> None:
    text = "unique_id,ds,y,x,x\nA,2024-01-01,1,5,1\nA,2024-01-02,2,6,1\n"
    report = inspect(written(tmp_path, text))
    assert (report.require_panel().values.tolist(), codes(report)["repeated_columns"]) == ([1, 2], 1)
    assert read_series(written(tmp_path, text), "D").values.tolist() == [1, 2]
    twice = inspect(written(tmp_path, text.replace("x,x", "y,x")))
    assert [finding.code for finding in twice.errors] == ["repeated_column"]


def test_a_long_table_that_is_stated_to_be_wide_is_refused(tmp_path: Path) -> None:
    path = written(tmp_path, "unique_id,ds,y\n1,2024-01-01,1\n1,2024-01-02,2\n")
    (finding,) = inspect(path, dialect=ReadOptions(shape="wide")).findings
    assert finding.code == "unknown_shape"
    assert "has the 3 columns [y, ds, unique_id] of a long one: leave `shape` out" in finding.message


def test_months_that_are_not_known_are_not_left_out(tmp_path: Path) -> None:
    header = "Artikel;Jan 24;Feb 24;Bře 24;Apr 24;Kvě 24;Jun 24\n"
    report = inspect(written(tmp_path, header + "01;1;2;3;4;5;6\n02;6;5;4;3;2;1\n"))
    (finding,) = report.findings
    assert finding.code == "unknown_periods"
    assert "'Bře 24', 'Kvě 24'" in finding.message
    totals = "sku,Jan 2023,Feb 2023,Mar 2023,Total 2023,Jan 2024\n1,1,2,3,6,1\n2,1,2,3,6,2\n"
    assert codes(inspect(written(tmp_path, totals)))["ignored_columns"] == 1


NAMES = {
    "German": ("Jan 24;Feb 24;Mrz 24;Apr 24;Mai 24", "MS", "2024-01-01", "2024-05-01"),
    "French": ("janv. 2024;févr. 2024;mars 2024;avr. 2024", "MS", "2024-01-01", "2024-04-01"),
    "weeks": ("2024-W09;2024-W10;2024-W11", "W", "2024-02-26", "2024-03-11"),
    "weeks with a word": ("CW9 2024;CW10 2024;CW11 2024", "W", "2024-02-26", "2024-03-11"),
    "weeks behind the year": ("2024 KW09;2024 KW10;2024 KW11", "W", "2024-02-26", "2024-03-11"),
}  # fmt: skip


@pytest.mark.parametrize("name", NAMES)
def test_months_and_weeks_are_read_as_other_languages_write_them(tmp_path: Path, name: str) -> None:
    names, frequency, first, last = NAMES[name]
    n = names.count(";") + 1
    rows = "".join(f"{one};{';'.join(map(str, range(1, n + 1)))}\n" for one in ("a", "b"))
    report = inspect(written(tmp_path, f"Artikel;{names}\n{rows}"))
    assert (report.traits["frequency"].value, report.first, report.last) == (frequency, first, last)
    assert report.require_panel().values.tolist() == 2 * list(range(1, n + 1))


WITHOUT_YEAR = {
    "days": ("01-Mar;02-Mar;03-Mar", 2024, "D", "2024-03-01", "2024-03-03"),
    "months into the next year": ("Nov;Dez;Jan", 2023, "MS", "2023-11-01", "2024-01-01"),
    "weeks into the next year": ("KW 51;KW 52;KW 1", 2024, "W", "2024-12-16", "2024-12-30"),
}  # fmt: skip


@pytest.mark.parametrize("name", WITHOUT_YEAR)
def test_periods_without_a_year_are_refused_until_it_is_stated(tmp_path: Path, name: str) -> None:
    names, year, frequency, first, last = WITHOUT_YEAR[name]
    path = written(tmp_path, f"sku;{names}\na;1;2;3\nb;4;5;6\n")
    (finding,) = inspect(path).findings
    assert finding.code == "unknown_periods"
    assert f"{names.partition(';')[0]!r} to" in finding.message
    assert "state the `year`" in finding.message
    report = inspect(path, dialect=ReadOptions(year=year))
    assert (report.traits["frequency"].value, report.first, report.last) == (frequency, first, last)
    assert report.require_panel().values.tolist() == [1, 2, 3, 4, 5, 6]


@pytest.mark.parametrize("names", ["M-3;M-2;M-1", "Week -3;Week -2;Week -1", "t-1;t-2;t-3",
                                   "1 back;2 back;3 back", "Lag 1;Lag 2;Lag 3", "P3;P2;P1"])  # fmt: skip
def test_periods_that_may_count_back_are_asked_for(tmp_path: Path, names: str) -> None:
    path = written(tmp_path, f"sku;{names}\na;1;2;3\nb;4;5;6\n")
    (finding,) = inspect(path).findings
    first, pattern = names.partition(";")[0], re.sub("[0-9]", "*", names.partition(";")[0])
    assert (finding.code, f"{first!r} to" in finding.message) == ("unknown_periods", True)
    assert f"state `periods={pattern!r}`" in finding.message
    assert inspect(path, dialect=ReadOptions(periods=pattern)).require_panel().n_series == 2


@pytest.mark.parametrize(("text", "said"), [
    ("sku;Year;M1;M2;M3\na;2023;1;2;3\na;2024;4;5;6\n", "a column of its own, 'Year'"),
    ("Jahr;Jan;Feb;Mar\n2023;1;2;3\n2024;4;5;6\n", "a column of its own, 'Jahr'"),
    ("Jahr;KW 1;KW 2;KW 3\n2023;1;2;3\n2024;4;5;6\n", "a column of its own, 'Jahr'"),
    ("Year;Q1;Q2;Q3\n2023;1;2;3\n2024;4;5;6\n", "a column of its own, 'Year'"),
    ("sku;1;2;3;1;2\n01;4;5;6;7;8\nb;5;6;7;8;9\n", "called '1' more than once"),
    ("sku;Q1;Q2;Q3;Q4;Q1\na;4;5;6;7;8\nb;5;6;7;8;9\n", "called 'Q1' more than once"),
])  # fmt: skip
def test_years_that_stand_elsewhere_are_asked_for(tmp_path: Path, text: str, said: str) -> None:
    (finding,) = inspect(written(tmp_path, text)).findings
    assert finding.code == "unknown_periods"
    assert said in finding.message


def test_series_that_are_numbered_may_stand_beside_years(tmp_path: Path) -> None:
    text = "Year;Store 1;Store 2;Store 3\n2022;1;2;3\n2023;4;5;6\n2024;7;8;9\n"
    report = inspect(written(tmp_path, text), dialect=ReadOptions(shape="wide"))
    assert report.require_panel().unique_ids == ("Store 1", "Store 2", "Store 3")
    assert (report.first, report.last) == ("2022-01-01", "2024-01-01")


@pytest.mark.parametrize("names", ["P1;P2;P3", "W-01;W-02;W-03"])
def test_periods_that_grow_are_counted(tmp_path: Path, names: str) -> None:
    report = inspect(written(tmp_path, f"sku;{names}\na;1;2;3\nb;4;5;6\n"))
    assert report.require_panel().values.tolist() == [1, 2, 3, 4, 5, 6]


def test_weeks_in_order_count_without_a_year(tmp_path: Path) -> None:
    path = written(tmp_path, "sku;KW 09;KW 10;KW 11\na;1;2;3\nb;4;5;6\n")
    report = inspect(path)
    assert (report.traits["frequency"].value, report.first) == ("1", "9")
    assert inspect(path, dialect=ReadOptions(year=2024)).first == "2024-02-26"


def test_an_unclear_column_of_ids_beside_dates_must_be_stated(tmp_path: Path) -> None:
    text = "product,town,2024-01,2024-02,2024-03\na,Oslo,1,2,3\nb,Rome,4,5,6\n"
    (finding,) = inspect(written(tmp_path, text)).findings
    assert finding.code == "unknown_column"
    assert "state `unique_id`; there are 'product', 'town'" in finding.message
    assert inspect(written(tmp_path, text), unique_id="town").series == 2


def test_names_that_share_one_number_count_no_periods(tmp_path: Path) -> None:
    text = "sku,Sold24,Left24,Lost24\na,1,2,3\nb,4,5,6\n"
    assert "shape" not in inspect(written(tmp_path, text)).traits


def test_columns_that_are_not_of_the_wide_table_are_told(tmp_path: Path) -> None:
    report = inspect(written(tmp_path, WEEKS), unique_id="product")
    (finding,) = (finding for finding in report.findings if finding.code == "ignored_columns")
    assert finding.count == 2
    assert "town, MIN" in finding.message


def test_a_long_table_with_columns_of_numbers_stays_long(tmp_path: Path) -> None:
    rows = "".join(f"a,2024-01-{day:02},{day},1,2,3\n" for day in range(1, 15))
    path = written(tmp_path, "unique_id,ds,y,x1,x2,x3\n" + rows)
    assert read_series(path, "D").values.tolist() == list(range(1, 15))
    assert "shape" not in inspect(path).traits


def test_a_table_that_is_stated_to_be_wide_and_is_not_is_refused(tmp_path: Path) -> None:
    path = written(tmp_path, "a,b\nx,y\n")
    with pytest.raises(DataError, match="as `periods='W\\*'`"):
        read_series(path, "D", dialect=ReadOptions(shape="wide"))


needs_data = pytest.mark.skipif(not DATA.is_dir(), reason="the public data sets are not on this machine")


@needs_data
@pytest.mark.parametrize(
    ("file", "n_series", "n_values", "told"),
    [
        ("sales_weekly/Sales_Transactions_Dataset_Weekly.csv", 811, 811 * 52, {"ignored_columns": 54}),
        ("r_demand_sets/expsmooth_carparts.csv", 2674, 51 * 2674 - 6122, {"missing_cells": 6122}),
        ("r_demand_sets/expsmooth_hospital.csv", 767, 84 * 767, {"repeated_columns": 732}),
    ],
)
def test_wide_files_of_others_go_in_as_they_are(
    file: str, n_series: int, n_values: int, told: dict[str, int]
) -> None:
    report = inspect(DATA / file)
    panel = read_series(DATA / file, "1")
    assert report.require_panel().unique_ids == panel.unique_ids
    assert (len(panel.unique_ids), len(panel.values)) == (n_series, n_values)
    assert told.items() <= codes(report).items()
    assert report.accounts.rows_read == report.accounts.rows_used == n_values


NUMBERS = "001,100,101,102\n002,200,201,202\n003,300,301,302\n"
AROUND = {
    "a word before": "sku,Qty Jan 2024,Qty Feb 2024,Qty Mar 2024\n",
    "words before": "Artikel,Sum of Jan 24,Sum of Feb 24,Sum of Mar 24\n",
    "a word behind": "sku,Jan.2024 Menge,Feb.2024 Menge,Mar.2024 Menge\n",
    "a word in brackets": "item,2024-01 (units),2024-02 (units),2024-03 (units)\n",
    "a letter for months": "sku,2024M01,2024M02,2024M03\n",
}


@pytest.mark.parametrize("name", AROUND)
def test_words_around_periods_are_no_part_of_them(tmp_path: Path, name: str) -> None:
    panel = inspect(written(tmp_path, AROUND[name] + NUMBERS)).require_panel()
    assert panel.unique_ids == ("001", "002", "003")
    assert (
        panel.frequency.to_datetime(panel.period[:3]).astype("datetime64[M]").astype(str).tolist() == MONTHS
    )
    assert panel.values[:3].tolist() == [100, 101, 102]


def test_words_around_periods_without_a_year_are_no_part_of_them(tmp_path: Path) -> None:
    path = written(tmp_path, "sku,Sum of Jan,Sum of Feb,Sum of Mar\n" + NUMBERS)
    (finding,) = (one for one in inspect(path).findings if one.severity == "error")
    assert "the columns 'Jan' to 'Mar'" in finding.message
    panel = inspect(path, dialect=ReadOptions(year=2024)).require_panel()
    assert panel.unique_ids == ("001", "002", "003")


UNKNOWN_PERIODS = {
    "months of another language": "sku,Styczeń 2024,Luty 2024,Marzec 2024\n",
    "months without a year": "sku,янв,фев,мар\n",
    "regions": "item,north,south,east\n",
}


@pytest.mark.parametrize("n_more", [0, 9])
@pytest.mark.parametrize("name", UNKNOWN_PERIODS)
def test_a_table_with_a_column_of_ids_is_never_turned_round(tmp_path: Path, name: str, n_more: int) -> None:
    header = UNKNOWN_PERIODS[name].rstrip() + "".join(f",and {i}" for i in "abcdefghi"[:n_more])
    rows = [row + ",7" * n_more for row in NUMBERS.split()]
    path = written(tmp_path, "\n".join([header, *rows, ""]))
    (finding,) = (one for one in inspect(path).findings if one.severity == "error")
    assert finding.code == "unknown_column"
    assert "are periods, name them as 2024-05" in finding.message


def test_a_long_table_of_numbers_alone_is_never_turned_round(tmp_path: Path) -> None:
    header = "sku,date,qty," + ",".join(f"f{i}" for i in range(10))
    rows = [f"1,{45292 + day},{day},{','.join('1' * 10)}" for day in range(20)]
    (finding,) = inspect(written(tmp_path, "\n".join([header, *rows, ""]))).findings
    assert finding.code == "ambiguous_dates"


def test_numbers_whose_first_column_may_be_ids_are_no_series_unless_stated(tmp_path: Path) -> None:
    header = ",".join(f"c{i}" for i in "abcdefghijklmn")
    rows = [",".join([str(100 + row), *"1234567890123"]) for row in range(5)]
    path = written(tmp_path, "\n".join([header, *rows, ""]))
    (finding, *_) = inspect(path).findings
    assert "if each column is a series, state `shape='wide'`" in finding.message
    report = inspect(path, dialect=ReadOptions(shape="wide"))
    assert len(report.require_panel().unique_ids) == 14


def test_series_of_a_wide_table_without_a_value_are_named(tmp_path: Path) -> None:
    report = inspect(written(tmp_path, "sku,Jan 2024,Feb 2024,Mar 2024\nA,1,2,3\nC,,,\nB,4,,6\n"))
    (finding,) = (one for one in report.findings if one.code == "empty_series")
    assert finding.count == 1
    assert "'C'" in finding.message
    assert report.require_panel().unique_ids == ("A", "B")


def test_of_columns_of_numbers_before_periods_the_one_that_is_called_so_has_the_ids(tmp_path: Path) -> None:
    path = written(tmp_path, "sku,price,Jan-24,Feb-24,Mar-24\n1,9,100,101,102\n2,8,200,201,202\n")
    assert inspect(path).require_panel().unique_ids == ("1", "2")


OF_PERIODS = "sku,2024-01,2024-02,2024-03\nA,1,2,3\nB,4,5,6\n"
OF_SERIES = "day,A,B,C\n2024-01-01,1,2,3\n2024-01-02,4,5,6\n2024-01-03,7,8,9\n"
COUNTED = "sku,W1,W2,W3\nA,1,2,3\nB,4,5,6\n"
PLACES = {
    "a number": (OF_PERIODS.replace("5", "few"), [(2, "2024-02", "few")]),
    "numbers": (OF_PERIODS.replace("5", "few").replace("1,2,3", "1,2,inf"),
                [(1, "2024-03", "inf"), (2, "2024-02", "few")]),
    "an id": (OF_PERIODS.replace("B", ""), [(2, "sku", "")] * 3),
    "a counted period": (COUNTED.replace("5", "few"), [(2, "W2", "few")]),
    "a number of a series": (OF_SERIES.replace("5", "few"), [(2, "B", "few")]),
    "a time": (OF_SERIES.replace("2024-01-02", "noon"), [(2, "day", "noon")] * 3),
}  # fmt: skip


@pytest.mark.parametrize("name", PLACES)
def test_a_fault_of_a_wide_table_names_the_column_of_the_file(tmp_path: Path, name: str) -> None:
    text, places = PLACES[name]
    path, options, faults = written(tmp_path, text), ReadOptions(shape="wide"), FaultList()
    stated = {"unique_id": None, "ds": None, "y": None}
    with open_table(path, [], faults, options) as table:
        read_rows(long_table(table, stated, faults), stated, faults)
    assert [(fault.row, fault.column, fault.value) for fault in faults.refusal().listed] == places


def test_a_finding_on_a_wide_table_names_the_columns_of_the_file(tmp_path: Path) -> None:
    text = OF_PERIODS.replace("5", "few").replace("6", "more")
    (finding,) = inspect(written(tmp_path, text)).errors
    assert finding.message.startswith("2 rows, columns '2024-02', '2024-03': not a number")
    unclear = "sku,01/02/2024,02/02/2024,03/02/2024\nA,1.234,2.345,3.456\n"
    of_code = {one.code: one.message for one in inspect(written(tmp_path, unclear)).errors}
    assert of_code["ambiguous_dates"].startswith("the dates of the header: '01/02/2024' may be")


BY_TIMES = {
    "days without a year": ("Date", ["01-Jan", "02-Jan", "03-Jan"], {"year": 2024}),
    "months without a year": ("Month", ["Jan", "Feb", "Mar"], {"year": 2024}),
    "numbers of weeks": ("Week", ["1", "2", "3"], {}),
    "months of another language": ("month", ["styczeń 2024", "luty 2024", "marzec 2024"], None),
}


@pytest.mark.parametrize("n_series", [2, 20])
@pytest.mark.parametrize("name", BY_TIMES)
def test_a_column_that_is_called_by_times_holds_no_ids(tmp_path: Path, name: str, n_series: int) -> None:
    column, times, stated = BY_TIMES[name]
    names = [f"P{i}" for i in range(n_series)]
    rows = [",".join([time, *(str(7 * i) for i in range(n_series))]) for time in times]
    path = written(tmp_path, "\n".join([",".join([column, *names]), *rows, ""]))
    report = inspect(path)
    if n_series == 2:
        assert "is a series, state `shape='wide'`" in report.findings[0].message
    elif name != "numbers of weeks":
        assert [one.code for one in report.findings if one.severity == "error"] in (
            ["ambiguous_dates"],
            ["unparseable_date"],
        )
    if stated is not None:
        panel = inspect(path, dialect=ReadOptions(shape="wide", **stated)).require_panel()
        assert sorted(panel.unique_ids) == sorted(names)


def test_a_number_beside_a_description_holds_the_ids_of_a_wide_table(tmp_path: Path) -> None:
    path = written(tmp_path, "SKU,Description,2024-01,2024-02,2024-03\n101,Apple,1,2,3\n102,Bread,4,5,6\n")
    report = inspect(path)
    assert report.require_panel().unique_ids == ("101", "102")
    assert dict(report.counts)["ignored_columns"] == 1


def test_years_by_months_are_not_turned_round(tmp_path: Path) -> None:
    text = "Year,Jan,Feb,Mar\n2021,1,2,3\n2022,4,5,6\n2023,7,8,9\n"
    for stated in ({}, {"year": 2021}):
        report = inspect(written(tmp_path, text), dialect=ReadOptions(**stated))
        assert any(one.severity == "error" for one in report.findings)


def test_a_single_series_is_read_once_it_is_stated_to_be_wide(tmp_path: Path) -> None:
    path = written(tmp_path, "Date,Sales\n2024-01-01,1\n2024-01-02,2\n")
    (finding,) = inspect(path).findings
    assert "if 'Sales' is the only series, state `shape='wide'`" in finding.message
    assert inspect(path, dialect=ReadOptions(shape="wide")).require_panel().unique_ids == ("Sales",)

"""An archive with a file a month is read as one table, and the report names the files of rows."""

from __future__ import annotations

import io
import warnings
import zipfile
from pathlib import Path

import pytest

from ccmtl_core.inspection import Policies, inspect
from ccmtl_core.tables import ReadOptions, read_table
from ccmtl_core.tables.faults import TableError

HEADER = "product,date,qty\n"
DAYS = range(1, 29)
MONTHS = {
    f"sales_{month}.csv": HEADER + "".join(f"a,2024-{month:02d}-{day:02d},{day % 7 + 1}\n" for day in DAYS)
    for month in (1, 2, 10)
}


def archive(folder: Path, files: dict[str, str | bytes]) -> Path:
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w") as packed:
        for name, text in files.items():
            packed.writestr(name, text)
    path = folder / "sales.zip"
    path.write_bytes(content.getvalue())
    return path


def test_files_of_the_same_columns_are_read_one_after_another(tmp_path: Path) -> None:
    endings: dict[str, str | bytes] = {
        "sales_10.csv": MONTHS["sales_10.csv"] + "\n\n",
        "sales_1.csv": b"\xef\xbb\xbf" + MONTHS["sales_1.csv"].encode(),
        "sales_2.csv": MONTHS["sales_2.csv"].replace("\n", "\r\n").rstrip(),
    }
    table = read_table(archive(tmp_path, endings), wanted=["product"], numbers=["qty"])
    assert table.frame["date"].to_list() == [
        f"2024-{month:02d}-{day:02d}" for month in (1, 2, 10) for day in range(1, 29)
    ]
    assert table.frame["qty"].sum() == 3 * sum(day % 7 + 1 for day in range(1, 29))
    assert table.row_of.tolist() == list(range(1, 85))
    (note,) = (note for note in table.notes if note.code == "joined_files")
    assert (note.count, note.unit) == (3, "files")
    assert "sales_1.csv (28 rows), sales_2.csv (28 rows), sales_10.csv (28 rows)" in note.message


@pytest.mark.parametrize("comment", ["", "# odd\n"])
def test_a_sample_row_names_its_file(tmp_path: Path, comment: str) -> None:
    files: dict[str, str | bytes] = dict(MONTHS)
    files["sales_2.csv"] = MONTHS["sales_2.csv"].replace(",2\n", f",many\n{comment}", 1)
    report = inspect(archive(tmp_path, files), policies=Policies(missing="absent"))
    (finding,) = report.errors
    (sample,) = finding.samples
    assert (sample.file, sample.value, sample.row) == ("sales_2.csv", "many", 29)
    assert finding.message.endswith("(row 1 of sales_2.csv)")
    assert report.counts["joined_files"] == 3


DAY_FIRST = HEADER + "".join(f"a,{day:02d}/01/2024,3\n" for day in range(5, 32))
FEBRUARY = {
    "month first, which its dates alone leave open": ("02/01", "02/02", "02/03"),
    "month first, which its dates decide": ("02/12", "02/13", "02/14"),
}


@pytest.mark.parametrize("name", FEBRUARY)
def test_files_whose_dates_are_of_two_orders_are_asked_about(tmp_path: Path, name: str) -> None:
    february = HEADER + "".join(f"a,{day}/2024,3\n" for day in FEBRUARY[name])
    path = archive(tmp_path, {"jan.csv": DAY_FIRST, "feb.csv": february})
    (error,) = inspect(path).errors
    assert error.code == "ambiguous_dates"
    assert "of feb.csv is" in error.message
    assert "`ds_format='%m/%d/%Y'`" in error.message
    stated = inspect(path, ds_format="%d/%m/%Y", frequency="D").counts
    assert "ambiguous_dates" not in stated


@pytest.mark.parametrize("days", [("01/02", "02/02", "03/02"), ("01/02",), ("28/02", "01/03")])
def test_files_of_one_order_are_read_together(tmp_path: Path, days: tuple[str, ...]) -> None:
    february = HEADER + "".join(f"a,{day}/2024,3\n" for day in days)
    report = inspect(archive(tmp_path, {"jan.csv": DAY_FIRST, "feb.csv": february}), frequency="D")
    assert (report.traits["ds_format"].value, report.errors) == ("%d/%m/%Y", ())
    assert str(report.last) >= "2024-02-01"


def test_rows_of_one_period_in_two_files_are_told_with_the_file(tmp_path: Path) -> None:
    files: dict[str, str | bytes] = {**MONTHS, "sales_11.csv": HEADER + "a,2024-01-05,3\n"}
    report = inspect(archive(tmp_path, files))
    (finding,) = report.errors
    assert (finding.code, finding.samples[0].file, finding.samples[0].row) == (
        "duplicate_period",
        "sales_11.csv",
        85,
    )


def test_a_pattern_states_which_files_are_read_together(tmp_path: Path) -> None:
    path = archive(tmp_path, {**MONTHS, "shops.csv": "shop,town\n1,Oslo\n"})
    assert inspect(path, dialect=ReadOptions(member="sales_1*.csv")).accounts.rows_read == 56
    assert inspect(path, unique_id="product").accounts.rows_read == 84
    with pytest.raises(TableError, match="state the `member`"):
        read_table(path)


@pytest.mark.parametrize(
    "files",
    [
        {"a.csv": MONTHS["sales_1.csv"], "b.csv": MONTHS["sales_1.csv"]},
        {"a.csv": MONTHS["sales_1.csv"], "b.csv": MONTHS["sales_2.csv"].replace("qty", "sold")},
        {"a.csv": "Jan\n" + MONTHS["sales_1.csv"], "b.csv": "Feb\n" + MONTHS["sales_2.csv"]},
    ],
    ids=["the same twice", "other columns", "titles that differ"],
)
def test_files_that_may_not_belong_together_are_refused(
    tmp_path: Path, files: dict[str, str | bytes]
) -> None:
    with pytest.raises(TableError, match=r"2 files.*one of a.csv, b.csv"):
        read_table(archive(tmp_path, files))


def two_of_one_name(folder: Path) -> Path:
    content = io.BytesIO()
    with zipfile.ZipFile(content, "w") as packed, warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # of two files with one name
        packed.writestr("sales.csv", MONTHS["sales_1.csv"])
        packed.writestr("sales.csv", MONTHS["sales_2.csv"])
    path = folder / "twice.zip"
    path.write_bytes(content.getvalue())
    return path


def test_two_files_of_one_name_are_both_read(tmp_path: Path) -> None:
    table = read_table(two_of_one_name(tmp_path))
    assert table.frame["date"].n_unique() == 56


@pytest.mark.parametrize("options", [ReadOptions(), ReadOptions(ragged="pad"), ReadOptions(comment="#")])
def test_a_quote_that_a_file_leaves_open_takes_nothing_of_the_next(
    tmp_path: Path, options: ReadOptions
) -> None:
    first = 'product,date,qty,note\na,2024-01-01,1,x\na,2024-01-02,2,"cut o'
    second = 'product,date,qty,note\na,2024-02-01,1,"y"\na,2024-02-02,2,z\n'
    with pytest.raises(TableError, match=r"'1\.csv' ends within a quoted field") as refused:
        read_table(archive(tmp_path, {"1.csv": first, "2.csv": second}), options)
    assert refused.value.counts == {"csv_unclosed_quote": 1}


def test_without_a_header_no_first_row_is_left_out(tmp_path: Path) -> None:
    files = {"1.csv": "A,2024-01-01,1\nA,2024-01-02,1\n", "2.csv": "A,2024-01-01,1\nA,2024-01-03,1\n"}
    table = read_table(archive(tmp_path, {**files}), ReadOptions(header_row=0))
    assert table.frame.height == 4


@pytest.mark.parametrize("header_row", [None, 3])
def test_titles_above_the_headers_of_all_files_are_left_out(tmp_path: Path, header_row: int | None) -> None:
    title = "Sales\n\n" if header_row is None else "Sales of {}\n\n"
    files: dict[str, str | bytes] = {name: title.format(name) + text for name, text in MONTHS.items()}
    files["sales_2.csv"] = str(files["sales_2.csv"]).replace("\n", "\r\n")
    table = read_table(archive(tmp_path, files), ReadOptions(header_row=header_row), wanted=["date"])
    assert table.frame.height == 84
    assert not set(table.frame["date"]) & {"date"}


def test_a_file_with_a_header_alone_has_no_row(tmp_path: Path) -> None:
    table = read_table(archive(tmp_path, {**MONTHS, "sales_3.csv": HEADER}), wanted=["date"])
    assert table.frame.height == 84
    (note,) = table.notes
    assert "sales_2.csv (28 rows), sales_3.csv (0 rows), sales_10.csv (28 rows)" in note.message


OTHERS = {
    "carriage returns": MONTHS["sales_2.csv"].replace("\n", "\r").encode(),
    "UTF-16": MONTHS["sales_2.csv"].encode("utf-16-be"),
}


@pytest.mark.parametrize("kind", OTHERS)
def test_a_file_of_the_same_columns_in_another_dress_is_not_left_out(tmp_path: Path, kind: str) -> None:
    files: dict[str, str | bytes] = {"sales_1.csv": MONTHS["sales_1.csv"], "sales_2.csv": OTHERS[kind]}
    with pytest.raises(TableError, match=r"state the `member`, one of sales_1\.csv, sales_2\.csv"):
        read_table(archive(tmp_path, files), wanted=["product", "date"])


def test_files_that_are_left_out_are_named(tmp_path: Path) -> None:
    files: dict[str, str | bytes] = {**MONTHS, "shops.csv": "shop,town\n1,Oslo\n", "read me.txt": "Sales"}
    (note,) = (
        one
        for one in read_table(archive(tmp_path, files), wanted=["qty"]).notes
        if one.code == "left_out_files"
    )
    assert note.count == 2
    assert "(shops.csv, read me.txt)" in note.message

"""Tables in workbooks, archives and formats of columns are read by what they are, whatever their names."""

from __future__ import annotations

import gzip
import io
import tarfile
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import polars as pl
import pytest
import zstandard

from ccmtl_core.inspection import inspect
from ccmtl_core.tables import ReadOptions, read_table
from ccmtl_core.tables.containers import unpack
from ccmtl_core.tables.faults import TableError
from tests.core.tables.containers.workbooks import XLS, Sheets, ods, xlsb, xlsx

HEADER = ["id", "ds", "y"]
ROWS = [("001", "2024-01-01", 1234.5), ("1", "2024-01-02", -2.0)]
TABLE: list[list[Any]] = [HEADER, *map(list, ROWS)]
PLAIN = b"id,ds,y\n001,2024-01-01,1234.5\n1,2024-01-02,-2\n"
OTHER = b"shop,town\n1,Oslo\n"


def zipped(**members: bytes) -> bytes:
    """An archive; in the names of its members ``_`` stands for a point and ``__`` for a slash."""
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in members.items():
            archive.writestr(name.replace("__", "/").replace("_", "."), content)
    return file.getvalue()


def tarred(content: bytes) -> bytes:
    file, member = io.BytesIO(), tarfile.TarInfo("sales.csv")
    member.size = len(content)
    with tarfile.open(fileobj=file, mode="w") as archive:
        archive.addfile(member, io.BytesIO(content))
    return file.getvalue()


def changed(content: bytes, place: int) -> bytes:
    """The bytes with another one in one place."""
    changed = bytearray(content)
    changed[place] ^= 0xFF
    return bytes(changed)


def saved(write: Callable[[pl.DataFrame, io.BytesIO], object]) -> bytes:
    file = io.BytesIO()
    write(pl.DataFrame(ROWS, schema=HEADER, orient="row"), file)
    return file.getvalue()


BOOKS: Sheets = {"Shops": [["shop", "town"], ["1", "Oslo"]], "Sales": TABLE}
JSON_LINES = (
    b'{"id": "001", "ds": "2024-01-01", "y": 1234.5}\n\n{"id": 1, "y": -2, "ds": "2024-01-02", "z": null}\n'
)
SAME: dict[str, tuple[bytes, dict[str, Any], dict[str, Any]]] = {
    "gzip": (gzip.compress(PLAIN), {}, {"compression": "gzip"}),
    "zstd in gzip": (gzip.compress(zstandard.compress(PLAIN)), {}, {"format": "text"}),
    "a zip": (zipped(sales_csv=PLAIN), {}, {"member": "sales.csv"}),
    "a zip in a zip": (zipped(d__in_zip=zipped(sales_csv=PLAIN)), {}, {"member": "d/in.zip/sales.csv"}),
    "a zip with other files": (zipped(a_csv=OTHER, b_csv=PLAIN), {}, {"member": "b.csv"}),
    "a zip with what a Mac adds": (zipped(__MACOSX__x=b"", s_csv=PLAIN), {}, {"member": "s.csv"}),
    "a stated member": (zipped(a_csv=PLAIN, b_csv=PLAIN + OTHER), {"member": "a.csv"}, {"member": "a.csv"}),
    "a stated archive in a zip": (
        zipped(a_zip=zipped(x_csv=PLAIN), b_zip=zipped(x_csv=PLAIN)),
        {"member": "b.zip"},
        {"member": "b.zip/x.csv"},
    ),
    "a workbook in a zip": (zipped(s_xlsx=xlsx({"S": TABLE})), {}, {"format": "workbook", "sheet": "S"}),
    "a workbook": (xlsx({"S": TABLE}), {}, {"format": "workbook", "delimiter": None, "encoding": None}),
    "one sheet of several": (xlsx(BOOKS), {}, {"sheet": "Sales"}),
    "a stated sheet": (xlsx({"A": TABLE, "B": TABLE}), {"sheet": "B"}, {"sheet": "B"}),
    "a sheet beside a hidden one": (xlsx({"A": TABLE, "B": TABLE}, hidden=["A"]), {}, {"sheet": "B"}),
    "a sheet with a title": (xlsx({"S": [["Sales", None, None], [], *TABLE]}), {}, {"header_row": 3}),
    "a sheet with blank rows around": (
        xlsx({"S": [[], [], *TABLE, [None, None, ""]]}),
        {},
        {"header_row": 3},
    ),
    "a workbook of LibreOffice": (ods(TABLE), {}, {"format": "workbook", "sheet": "Sales"}),
    "a binary workbook": (xlsb(TABLE), {}, {"format": "workbook", "sheet": "Sales"}),
    "a workbook of Excel 97": (XLS, {}, {"format": "workbook", "header_row": 2}),
    "Parquet": (saved(pl.DataFrame.write_parquet), {}, {"format": "parquet", "decimal": None}),
    "Parquet in zstd": (zstandard.compress(saved(pl.DataFrame.write_parquet)), {}, {"format": "parquet"}),
    "Arrow": (saved(pl.DataFrame.write_ipc), {}, {"format": "arrow"}),
    "a stream of Arrow": (saved(pl.DataFrame.write_ipc_stream), {}, {"format": "arrow stream"}),
    "lines of JSON": (JSON_LINES, {}, {"format": "json lines"}),
}


def written(folder: Path, content: bytes) -> Path:
    path = folder / "sales.csv"
    path.write_bytes(content)
    return path


@pytest.mark.parametrize("name", SAME)
def test_the_same_table_is_read_from_every_container(tmp_path: Path, name: str) -> None:
    content, stated, found = SAME[name]
    table = read_table(written(tmp_path, content), ReadOptions(**stated), wanted=["id"], numbers=["y"])
    assert table.frame.select(HEADER).rows() == ROWS
    assert {key: table.dialect.get(key) for key in found} == found
    assert table.row_of.tolist() == [1, 2]


ODD_CELLS = {
    "an error": (b't="e"><v>#DIV/0!</v>', "#DIV/0!", {"unparseable_number": 1}),
    "a formula with its value": (b"><f>1+1</f><v>2</v>", "2", {}),
    "a formula with an error": (b't="e"><f>1/0</f><v>#DIV/0!</v>', "#DIV/0!", {"unparseable_number": 1}),
    "a formula without a value": (
        b"><f>1+1</f>", "=1+1", {"formulas_without_value": 1, "unparseable_number": 1},
    ),
    "a formula with an empty value": (
        b"><f>1+1</f><v></v>", "=1+1", {"formulas_without_value": 1, "unparseable_number": 1},
    ),
    "a shared formula": (
        b'><f t="shared" si="0"/></c><c>', "=", {"formulas_without_value": 1, "unparseable_number": 1},
    ),
    "a formula of empty text": (b't="str"><f>""</f><v></v>', "", {}),
    "2**53 + 1": (b"><v>9007199254740993</v>", "9007199254740993", {}),
    "2**53 + 2": (b"><v>9007199254740994</v>", "9007199254740994.0", {}),
}  # fmt: skip


@pytest.mark.parametrize("name", ODD_CELLS)
def test_what_a_workbook_does_not_hold_as_a_number_is_told(tmp_path: Path, name: str) -> None:
    cell, text, notes = ODD_CELLS[name]
    path = written(tmp_path, xlsx({"S": [[None, None, None], [None, "id", "y"], [None, "007", cell]]}))
    assert read_table(path).frame.rows() == [("007", text)]
    found = read_table(path, numbers=["y"]).notes
    assert {note.code: note.count for note in found} == notes
    if "formulas_without_value" in notes:
        assert "no value (C3), as" in found[0].message
        assert "open the file in a spreadsheet program, and save it" in found[1].message


@pytest.mark.parametrize("beside", [b"Sales, of 2024.\nAsk Ann.\n", b"", b"%PDF-1.4, 2\n", b"id,ds,y"])
def test_a_file_in_an_archive_that_is_no_table_leaves_no_question(tmp_path: Path, beside: bytes) -> None:
    table = read_table(written(tmp_path, zipped(a_csv=PLAIN, readme_txt=beside)))
    assert (table.frame.height, table.dialect.get("member")) == (2, "a.csv")
    known = table.dialect.to_dict()["member"]["evidence"]
    assert known == "the only one of the files in the archive that is a table"


def test_a_formula_without_a_value_is_no_id(tmp_path: Path) -> None:
    rows = [["unique_id", "ds", "y"], [b'><f>"A"</f>', "2024-01-01", 1.0], ["=B", "2024-01-02", 2.0]]
    report = inspect(written(tmp_path, xlsx({"S": rows})))
    assert report.counts["empty_id"] == 2
    assert report.accounts.rows_dropped["faulty_rows"] == 2
    rows[1][0] = "=A"
    assert inspect(written(tmp_path, xlsx({"S": rows}))).require_panel().unique_ids == ("=A", "=B")


FRACTIONS = [["01", "2024-01-01", 22.125], ["01", "2024-01-02", 1.5]]


@pytest.mark.parametrize("decimal", [None, ",", "."])
@pytest.mark.parametrize("shape", ["long", "a column for each period", "a column for each series"])
def test_fractions_of_a_workbook_are_what_they_are(tmp_path: Path, decimal: Any, shape: str) -> None:
    rows: list[list[Any]] = [["sku", "ds", "qty"], *FRACTIONS]
    if shape == "a column for each period":
        rows = [["sku", "2024-01", "2024-02", "2024-03"], ["01", 22.125, 1.5, 3], ["02", 4, 5.375, 6]]
    elif shape == "a column for each series":
        rows = [["day", "a", "b"], *([day, 22.125, 1.5] for day in ("2024-01-01", "2024-01-02"))]
    options = ReadOptions(decimal=decimal, shape="wide" if shape == "a column for each series" else None)
    report = inspect(written(tmp_path, xlsx({"S": rows})), dialect=options)
    assert set(report.require_panel().values.tolist()) >= {22.125, 1.5}


@pytest.mark.parametrize("rows", [[["sku", "ds", "qty"], *FRACTIONS, ["02", "2024-01-02", "1.234"]],
                                  [["sku", "ds", "qty"], ["02", "2024-01-02", "-1.234,50"], *FRACTIONS],
                                  [["sku", "W 1", "W 2", "W 3"], ["1", "1.234", 1.5, 3]]])  # fmt: skip
def test_texts_among_numbers_of_a_workbook_are_refused(tmp_path: Path, rows: Any) -> None:
    report = inspect(written(tmp_path, xlsx({"S": rows})))
    (finding,) = (one for one in report.findings if one.code == "text_among_numbers")
    assert "1.234" in finding.message
    assert finding.severity == "error"


def test_numbers_of_a_workbook_tell_nothing_of_its_texts(tmp_path: Path) -> None:
    rows = [["sku", "ds", "qty", "price"], ["01", "2024-01-01", "1.234", 22.5]]
    with pytest.raises(TableError, match=r"'1\.234' of the column 'qty'") as refused:
        read_table(written(tmp_path, xlsx({"S": rows})), numbers=["qty", "price"])
    assert refused.value.counts == {"ambiguous_number": 1}


def test_cells_of_a_workbook_become_the_text_that_they_mean(tmp_path: Path) -> None:
    rows = [["a", "b", "c"], [4006381333931.0, True, 0.1], ["007", "x,y", 1e22], [None, '"', -0.5]]
    table = read_table(written(tmp_path, xlsx({"S": rows})))
    assert table.frame.rows() == [
        ("4006381333931", "true", "0.1"),
        ("007", "x,y", "1e+22"),
        ("", '"', "-0.5"),
    ]


REFUSED: dict[str, tuple[bytes, dict[str, Any], str, str]] = {
    "two files": (zipped(a_csv=PLAIN, b_csv=PLAIN), {}, "ambiguous_member", "one of a.csv, b.csv"),
    "no such file": (zipped(a_csv=PLAIN), {"member": "c"}, "no_such_member", "one of a.csv"),
    "an empty archive": (zipped(), {}, "empty_archive", "no file"),
    "an archive without its end": (zipped(a_csv=PLAIN)[:-30], {}, "undecodable_file", "cut off or damaged:"),
    "a workbook without its end": (xlsx({"S": TABLE})[:-30], {}, "undecodable_file", ".xlsx"),
    "a PDF": (b"%PDF-1.7\n%\xe2\xe3", {}, "other_format", "a PDF document"),
    "a file of MATLAB": (b"MATLAB 5.0 MAT-file, Platform: GLNXA64", {}, "other_format", "a file of MATLAB"),
    "an archive of 7-Zip": (b"7z\xbc\xaf\x27\x1c", {}, "other_format", "pack it as zip"),
    "an archive of tar": (gzip.compress(tarred(PLAIN)), {}, "other_format", "an archive of tar"),
    "changed bytes": (changed(zipped(a_csv=PLAIN * 50), 60), {}, "undecodable_file", "zip"),
    "a wrong offset": (changed(zipped(a_csv=PLAIN), -6), {}, "undecodable_file", "zip"),
    "two sheets": (xlsx({"A": TABLE, "B": TABLE}), {}, "ambiguous_sheet", "one of 'A', 'B'"),
    "no such sheet": (xlsx({"A": TABLE}), {"sheet": "B"}, "no_such_sheet", "one of 'A'"),
    "a sheet without cells": (xlsx({"A": []}), {}, "no_rows", "no visible sheet"),
    "half a workbook": (XLS[:900], {}, "not_workbook", "cannot be read"),
    "no line of JSON": (JSON_LINES + b"[1]\n", {}, "not_json_lines", "row 4, '[1]'"),
    "half a line of JSON": (JSON_LINES + b'{"id":\n', {}, "not_json_lines", "row 4"),
    "no stream": (b"\xff\xff\xff\xff", {}, "not_arrow", "cut off"),
    "half a stream": (saved(pl.DataFrame.write_ipc_stream)[:200], {}, "not_arrow", "cut off"),
    "packed over and over": (
        gzip.compress(gzip.compress(gzip.compress(gzip.compress(PLAIN)))), {}, "packed_too_often", "unpack it"
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_what_leaves_open_what_is_meant_is_refused(tmp_path: Path, name: str) -> None:
    content, stated, code, words = REFUSED[name]
    with pytest.raises(TableError) as refused:
        read_table(written(tmp_path, content), ReadOptions(**stated), wanted=["id"], numbers=["y"])
    assert list(refused.value.counts) == [code]
    assert words in str(refused.value)


@pytest.mark.parametrize("pack", [gzip.compress, zstandard.compress, lambda data: zipped(a_csv=data)])
def test_what_unpacks_to_more_than_is_meant_is_refused(
    tmp_path: Path, pack: Callable[[bytes], bytes], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(unpack, "USUAL_BYTES", 1 << 20)
    monkeypatch.setattr(unpack, "USUAL_RATIO", 1)
    with pytest.raises(TableError) as refused:
        read_table(written(tmp_path, pack(PLAIN + b"0" * (1 << 22))))
    assert list(refused.value.counts) == ["too_large_unpacked"]


def test_a_workbook_that_would_take_all_memory_is_refused(tmp_path: Path) -> None:
    """A cell in the last row and column of a sheet makes the reader allocate all cells before it."""
    content = xlsx({"S": [["id"]]})
    file = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(content)) as old, zipfile.ZipFile(file, "w") as new:
        for name in old.namelist():
            data = old.read(name).replace(
                b"</row>", b'</row><row r="1048576"><c r="XFD1048576"><v>1</v></c></row>'
            )
            new.writestr(name, data)
    with pytest.raises(TableError) as refused:
        read_table(written(tmp_path, file.getvalue()))
    assert list(refused.value.counts) == ["not_workbook"]


def test_a_text_that_begins_as_the_mark_of_tar_is_one(tmp_path: Path) -> None:
    assert read_table(written(tmp_path, b"ustar,y\n001,1\n")).frame.columns == ["ustar", "y"]

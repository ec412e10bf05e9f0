"""Files as people export them: what each is read as and what is said of it, or how it is refused."""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from ccmtl_core import ParameterError
from ccmtl_core.tables import ReadOptions, read_table
from ccmtl_core.tables.faults import TableError

ROWS = [("001", "2024-01-01", 1234.5), ("1", "2024-01-02", -2.0)]
PLAIN = "id,ds,y\n001,2024-01-01,1234.5\n1,2024-01-02,-2\n"
GERMAN = "id;ds;y\n001;2024-01-01;1.234,5\n1;2024-01-02;-2\n"


@dataclass(frozen=True)
class File:
    """A file, what is stated of it, and the dialect that it must be found to have."""

    content: str | bytes
    found: dict[str, Any] = field(default_factory=dict)
    stated: dict[str, Any] = field(default_factory=dict)
    notes: dict[str, int] = field(default_factory=dict)
    rows: tuple[int, ...] = (1, 2)


SAME = {
    "plain": File(PLAIN, {"delimiter": ",", "decimal": ".", "header_row": 1}),
    "semicolons": File(GERMAN, {"delimiter": ";", "decimal": ",", "thousands": "."}),
    "tabs": File(PLAIN.replace(",", "\t"), {"delimiter": "\t"}),
    "bars": File(PLAIN.replace(",", "|"), {"delimiter": "|"}),
    "another mark, stated": File(PLAIN.replace(",", "^"), {"delimiter": "^"}, {"delimiter": "^"}),
    "tabs, stated": File(PLAIN.replace(",", "\t"), {"delimiter": "\t"}, {"delimiter": "tab"}),
    "the delimiter in the first line": File("sep=;\n" + GERMAN, {"delimiter": ";", "header_row": 2}),
    "CRLF": File(PLAIN.replace("\n", "\r\n")),
    "padded": File(PLAIN.replace(",", " , "), {"padding": "spaces"}),
    "padded quotes": File('id,  "ds", y\n001, "2024-01-01", "1234.5"\n1, 2024-01-02, -2\n'),
    "commas between thousands": File(
        'id,ds,y\n001,2024-01-01,"1,234.50"\n1,2024-01-02,-2\n', {"thousands": ",", "decimal": "."}
    ),
    "spaces between thousands": File(
        GERMAN.replace("1.234,5", "1 234,5"), {"thousands": " ", "decimal": ","}
    ),
    "hard spaces between thousands": File(GERMAN.replace("1.234,5", "1\u202f234,5"), {"thousands": " "}),
    "apostrophes between thousands": File(GERMAN.replace("1.234,5", "1'234.50"), {"thousands": "'"}),
    "negatives in brackets": File(PLAIN.replace("-2", "(2.00)")),
    "signs at the end": File(
        GERMAN.replace("-2", "2-"), {"negatives": "brackets, sign at the end or other minus"}
    ),
    "a minus of typographers": File(
        GERMAN.replace("-2", "\u22122"), {"negatives": "brackets, sign at the end or other minus"}
    ),
    "a currency, stated": File(GERMAN.replace("1.234,5", "€ 1.234,5"), stated={"currency": "€"}),
    "a currency, found": File(GERMAN.replace("1.234,5", "€ 1.234,5").replace("-2", "-€2"), {"currency": "€"}),
    "a currency behind numbers": File(
        PLAIN.replace("1234.5", "1234.5$").replace("-2", "-2 $"), {"currency": "$"}
    ),
    "commas after lakhs": File(
        'id,ds,y\n001,2024-01-01,"0,01,234.50"\n1,2024-01-02,-2\n', {"thousands": ","}
    ),
    "a decimal comma between commas, stated": File(
        PLAIN.replace("1234.5", '"1234,5"'), {"decimal": ","}, {"decimal": ","}
    ),
    "single quotes, stated": File(PLAIN.replace("2024-01-01", "'2024-01-01'"), stated={"quote": "'"}),
    "a title": File("Sales of January\n" + PLAIN, {"header_row": 2}),
    "titles with a delimiter": File("Sales; of January;\n\n" + GERMAN, {"header_row": 3}),
    "a header in a stated line": File("id,ds,y\n" + PLAIN, {"header_row": 2}, {"header_row": 2}),
    "a quote above padded columns": File(
        ' "\n' + PLAIN.replace(",", " , "), {"header_row": 2, "padding": "spaces"}, {"header_row": 2}
    ),
    "blank lines around": File("\n\n" + PLAIN + "\n\n", {"header_row": 3}, notes={"blank_lines": 2}),
    "comments": File(
        PLAIN.replace("1,2024-01-02", "#, the second\n1,2024-01-02"),
        {"comment": "#"},
        notes={"comment_lines": 1},
        rows=(1, 3),
    ),
    "comments, stated": File(
        "// of January\n" + PLAIN + "// the end\n",
        {"comment": "//"},
        {"comment": "//"},
        notes={"comment_lines": 1},
    ),
    "a line of another length": File(
        PLAIN.replace("1,2024-01-02", "2,2024-01-02,3,4\n1,2024-01-02"),
        notes={"csv_field_count": 1},
        rows=(1, 3),
    ),
    "UTF-8 with mark": File(PLAIN.encode("utf-8-sig"), {"encoding": "utf-8"}),
    "UTF-16 with mark": File(PLAIN.encode("utf-16"), {"encoding": "utf-16"}),
    "UTF-16 big": File(PLAIN.encode("utf-16-be"), {"encoding": "utf-16-be"}),
    "UTF-16 little": File(GERMAN.encode("utf-16-le"), {"encoding": "utf-16-le", "delimiter": ";"}),
    "UTF-32": File(PLAIN.encode("utf-32"), {"encoding": "utf-32"}),
}


def written(folder: Path, content: str | bytes) -> Path:
    path = folder / "file"
    path.write_bytes(content.encode() if isinstance(content, str) else content)
    return path


@pytest.mark.parametrize("name", SAME)
def test_the_same_table_is_read_from_every_dialect(tmp_path: Path, name: str) -> None:
    file = SAME[name]
    table = read_table(written(tmp_path, file.content), ReadOptions(**file.stated), numbers=["y"])
    assert (table.frame.columns, table.frame.rows()) == (["id", "ds", "y"], ROWS)
    assert {key: table.dialect.get(key) for key in file.found} == file.found
    assert {note.code: note.count for note in table.notes} == file.notes
    assert tuple(table.row_of) == file.rows
    for trait in table.dialect.traits:
        assert (trait.origin == "stated") == (trait.name in file.stated)
        assert trait.evidence


def test_without_a_header_columns_have_numbers(tmp_path: Path) -> None:
    path = written(tmp_path, PLAIN.partition("\n")[2])
    table = read_table(path, ReadOptions(header_row=0), numbers=["column_3"])
    assert (table.frame.columns, table.frame.rows()) == (["column_1", "column_2", "column_3"], ROWS)


def test_short_rows_are_padded_where_that_is_stated(tmp_path: Path) -> None:
    path = written(tmp_path, "id,y,z\na,1\nb\nc,3,4\n")
    table = read_table(path, ReadOptions(ragged="pad"), numbers=["y"])
    assert table.frame.rows() == [("a", 1.0, ""), ("b", None, ""), ("c", 3.0, "4")]
    assert [(note.code, note.count, note.rows) for note in table.notes] == [("short_rows", 2, (1, 2))]


def test_a_line_break_in_quotes_is_none_of_a_row(tmp_path: Path) -> None:
    path = written(tmp_path, 'a title\nid;y\n"one\n#two";1\n# three\nfour;2\n')
    table = read_table(path, numbers=["y"])
    assert table.frame.rows() == [("one\n#two", 1.0), ("four", 2.0)]
    assert table.row_of.tolist() == [1, 3]


def test_cells_that_are_no_numbers_are_counted_and_shown(tmp_path: Path) -> None:
    table = read_table(written(tmp_path, "id,y\na,1\nb,many\nc,\nd,2\n"), numbers=["y"])
    assert table.frame["y"].to_list() == [1, None, None, 2]
    (note,) = table.notes
    assert (note.code, note.count, note.rows) == ("unparseable_number", 1, (2,))
    assert "'many'" in note.message


@pytest.mark.parametrize("cells", [("€3", "$4", "€5"), ("3%", "4%", "5%"), ("€3", "4", "5")])
def test_currencies_of_some_cells_and_percents_are_not_taken_off(
    tmp_path: Path, cells: tuple[str, ...]
) -> None:
    text = "id;y\n" + "".join(f"a;{cell}\n" for cell in cells)
    table = read_table(written(tmp_path, text), numbers=["y"])
    assert table.frame["y"].to_list() == [float(cell) if cell.isdigit() else None for cell in cells]
    assert "state `currency=" in table.notes[0].message


def test_numbers_of_crores_are_read(tmp_path: Path) -> None:
    table = read_table(written(tmp_path, "id;y\na;1,23,45,678.5\nb;-2,50,000\nc;1,23,45\n"), numbers=["y"])
    assert table.frame["y"].to_list() == [12_345_678.5, -250_000, None]


def test_marks_that_come_late_decide_too(tmp_path: Path) -> None:
    path = written(tmp_path, "id;y\n" + "a;7\n" * 5000 + "a;1.234\na;0,5\n")
    assert read_table(path, numbers=["y"]).frame["y"].to_list()[-2:] == [1234, 0.5]


def test_other_columns_decide_where_one_does_not(tmp_path: Path) -> None:
    path = written(tmp_path, "id;y;z\na;1.234;0,5\n")
    assert read_table(path, numbers=["y", "z"]).frame.rows() == [("a", 1234.0, 0.5)]


CODE_PAGES = {
    "windows-1251": "Молоко Хлеб Сыр Масло Картофель Яблоки Огурцы Помидоры Чай Кофе",
    "cp1251": "МОЛОКО ХЛЕБ СЫР молоко хлеб негазированная",
    "windows-1250": "Żółć gęś Łódź čeština příliš žluťoučký kůň Škoda Győr őrült sůl květák",
    "iso-8859-2": "Mléko čerstvé Łosoś wędzony Żółty ser",
    "windows-1253": "Γάλα Τυρί Ψωμί",
    "windows-1256": "حليب خبز جبنة",
    "koi8-r": "Молоко Сыр голландский Хлеб",
    "cp850": "Brötchen Käse Müsli Weißbrot",
    "cp866": "Молоко Сыр Хлеб шоколад",
    "windows-1252": "Hyvää päivää maitojäätelö käsityö sämpylä",
    "latin-1": "Crème brûlée Gâteau noël pêche",
    "windows-1254": "Ekmek şeker Süt Yoğurt ayçiçek yağı",
    "macintosh": "Brötchen Café crème Gemüse",
    "gb18030": "牛奶 面包 鸡蛋 苹果 大米 酱油 绿茶 可乐 洗发水 纸巾",
    "gbk": "面包蛋糕 牛奶饮料 苹果汁饮品",
    "big5": "牛奶 麵包 雞蛋 蘋果 大米 醬油 綠茶 可樂 洗髮精 衛生紙",
    "shift_jis": "牛乳 パン たまご りんご しょうゆ おにぎり コーヒー 紅茶 シャンプー ティッシュ",
    "cp932": "ジュース 牛乳① 食パン㈱",
    "euc_kr": "우유 빵 달걀 사과 쌀 간장 녹차 콜라 샴푸 휴지",
}
"""Words by which they can be told."""
UNSURE = {
    "windows-1252": "Crème Brûlée Käse",
    "windows-1254": "Ekmek şeker ekşi",
    "windows-1257": "Pienas šviežias Sūris",
    "windows-1253": "ΓΑΛΑ ΤΥΡΙ ΨΩΜΙ",
    "windows-1255": "חלב לחם צהובה",
}
"""Words that are words in other code pages too."""


def _of_words(folder: Path, words: list[str], encoding: str) -> Path:
    return written(folder, ("id;y\n" + "".join(f"{word};1\n" for word in words)).encode(encoding))


@pytest.mark.parametrize("encoding", CODE_PAGES)
def test_code_pages_are_guessed_rightly(tmp_path: Path, encoding: str) -> None:
    words = CODE_PAGES[encoding].split()
    path = _of_words(tmp_path, words, encoding)
    assert read_table(path, ReadOptions(encoding=encoding)).frame["id"].to_list() == words
    assert read_table(path).frame["id"].to_list() == words


@pytest.mark.parametrize("encoding", UNSURE)
def test_code_pages_are_not_guessed_where_words_fit_several(tmp_path: Path, encoding: str) -> None:
    words = UNSURE[encoding].split()
    path = _of_words(tmp_path, words, encoding)
    assert read_table(path, ReadOptions(encoding=encoding)).frame["id"].to_list() == words
    with pytest.raises(TableError, match=f"{encoding} reads"):
        read_table(path)


SAP = """01.02.2024      List of stock      1
-----------------------------------
|Material |Plant|Date      |    Menge|
-----------------------------------
|000123   |1000 |01.01.2024|   17,000|
|000123   |1000 |02.01.2024|1.072,500|
|000124   |1000 |02.01.2024|    2,500|
-----------------------------------
"""
MARKDOWN = "| Material | Menge |\n|:---|---:|\n| 000123 | 17,5 |\n| 000124 | 2,5 |\n"
MYSQL = (
    "+-----+-------+\n| Id  | Menge |\n+-----+-------+\n| 001 | 17.5  |\n| 002 |       |\n+-----+-------+\n"
)


@pytest.mark.parametrize(
    ("text", "values", "n_rules"),
    [(SAP, [17, 1072.5, 2.5], 2), (MARKDOWN, [17.5, 2.5], 1), (MYSQL, [17.5, None], 2)],
)
def test_tables_in_bars_are_read(tmp_path: Path, text: str, values: list[float | None], n_rules: int) -> None:
    table = read_table(written(tmp_path, text), numbers=["Menge"])
    assert table.frame["Menge"].to_list() == values
    assert all(name and name == name.strip() for name in table.frame.columns)
    assert {note.code: note.count for note in table.notes}["comment_lines"] == n_rules


def test_a_delimiter_at_the_end_of_rows_alone_is_left_out(tmp_path: Path) -> None:
    table = read_table(written(tmp_path, "id,y\na,1,\nb,2,\n"), numbers=["y"])
    assert table.frame.rows() == [("a", 1.0), ("b", 2.0)]
    assert [(note.code, note.count) for note in table.notes] == [("trailing_delimiters", 2)]


def test_a_filled_field_behind_empty_ones_is_not_left_out(tmp_path: Path) -> None:
    rows = "a,1,\n" * 300
    table = read_table(written(tmp_path, f"id,y\n{rows}b,2,3\n"), numbers=["y"])
    assert [(n.code, n.count) for n in table.notes] == [("trailing_delimiters", 300), ("csv_field_count", 1)]


@pytest.mark.parametrize("cell", ['="00101"', '"=""00101"""'])
def test_cells_that_spreadsheets_take_for_text_are_read(tmp_path: Path, cell: str) -> None:
    table = read_table(written(tmp_path, f"id,y\n{cell},1\n{cell},2\n"), numbers=["y"])
    assert table.frame.rows() == [("00101", 1.0), ("00101", 2.0)]
    assert [(note.code, note.count) for note in table.notes] == [("text_formulas", 2)]


@pytest.mark.parametrize("encoding", ["utf-8", "cp1252"])
def test_the_mark_at_the_end_of_a_text_of_dos_is_left_out(tmp_path: Path, encoding: str) -> None:
    text = "id,y\nKäse,1\nBrötchen,2\nMüsli,3\nWürze,4\n\x1a\x1a"
    table = read_table(written(tmp_path, text.encode(encoding)), numbers=["y"])
    assert table.frame["y"].to_list() == [1, 2, 3, 4]
    assert [(note.code, note.count) for note in table.notes] == [("end_mark", 2)]


R_TABLE = '"item" "y"\n"1" "a" 17\n"2" "b" 72\n'


def test_names_of_rows_without_a_name_are_told_as_the_cause(tmp_path: Path) -> None:
    path = written(tmp_path, R_TABLE)
    with pytest.raises(TableError, match="state the `delimiter` ' '"):
        read_table(path)
    (note,) = read_table(path, ReadOptions(delimiter=" ")).notes
    assert "has one name less than they have fields" in note.message


def test_japanese_with_escapes_is_read(tmp_path: Path) -> None:
    path = written(tmp_path, "id,y\n牛乳,1\nチーズ,2\n".encode("iso2022_jp"))
    assert read_table(path).frame["id"].to_list() == ["牛乳", "チーズ"]


@pytest.mark.parametrize("name", ["C+Batterie", "+49151234", "A+B", "x+ABC-y", "a+-b"])
def test_a_plus_is_no_sign_of_utf7(tmp_path: Path, name: str) -> None:
    assert read_table(written(tmp_path, f"id,y\n{name},1\n")).frame["id"].to_list() == [name]


TWO_READINGS = "Report\n\n\nArtikel;Datum;Währung\nMüller Käse;2025-03-01;1\nCrème brûlée;2025-03-01;2\n"


def test_code_pages_in_doubt_are_shown_by_a_word_that_they_read_differently(tmp_path: Path) -> None:
    path = written(tmp_path, TWO_READINGS.encode("cp1252"))
    with pytest.raises(TableError, match=r"\(line 4\).*windows-1252 reads 'Crème brûlée'"):
        read_table(path)


REFUSED = {
    "two delimiters that fit alike": ("id;price, EUR\n1;2,5\n", {}, "ambiguous_delimiter", "the `delimiter`"),
    "a point that may be either": ("id;y\n1;1.234\n2;3\n", {}, "ambiguous_number", "`decimal='.'` or `dec"),
    "a comma that may be either": ("id;y\n1;1,234\n2;3\n", {}, "ambiguous_number", "`decimal=','` or `dec"),
    "few words of a code page": ("id,y\nCafé,1\n".encode("latin-1"), {}, "not_utf8", "state the `encoding`"),
    "bytes that are not in the encoding": (b"id,y\n\xe9,1\n", {"encoding": "utf-8"}, "not_utf8", "another"),
    "bytes that belie the mark": (b"\xef\xbb\xbfid,y\n\xff,1\n", {}, "not_utf8", "mark says UTF-8"),
    "letters in UTF-7": ("id,y\nK+AOQ-se,1\n", {}, "undecodable_text", "'+AOQ-' is 'ä'"),
    "half a character": (b"id,y\n\x81", {"encoding": "gb18030"}, "undecodable_text", "another `encoding`"),
    "UTF-16 without its mark": (b"\0\0", {"encoding": "utf-16"}, "undecodable_text", "another `encoding`"),
    "an open quote": ('id,y\n"a,1\n', {}, "csv_unclosed_quote", "row 1"),
    "an open quote among comments": ('id,y\n"a,1\n', {"comment": "#"}, "csv_malformed", "row 1"),
    "a header line that is not there": ("id,y\na,1\n", {"header_row": 7}, "no_header", "line 7"),
    "nothing": (b"", {}, "empty_file", "empty"),
    "blank lines alone": ("\n\n", {}, "no_header", "columns"),
    "zeros": (b"\0" * 100, {}, "not_csv", "NUL"),
    "a page of the web": ("<html>\n<p>\n", {}, "not_csv", "HTML"),
}  # fmt: skip


@pytest.mark.parametrize("name", REFUSED)
def test_what_cannot_be_understood_is_refused(tmp_path: Path, name: str) -> None:
    content, stated, code, words = REFUSED[name]
    with pytest.raises(TableError) as refused:
        read_table(
            written(tmp_path, content), ReadOptions(**stated), numbers=["y"] if "id" in str(content) else []
        )
    assert code in refused.value.counts
    assert words in str(refused.value)


@pytest.mark.parametrize(
    "stated",
    [
        {"delimiter": ";;"},
        {"delimiter": "\n"},
        {"delimiter": "€"},
        {"delimiter": '"', "quote": '"'},
        {"decimal": "x"},
        {"decimal": ",", "thousands": ","},
        {"thousands": "_"},
        {"encoding": "no such"},
        {"encoding": "base64"},
        {"header_row": -1},
        {"header_row": "1"},
        {"comment": ""},
        {"ragged": "drop"},
        {"shape": "round"},
    ],
)
def test_what_cannot_be_meant_is_refused(stated: dict[str, Any]) -> None:
    with pytest.raises(ParameterError):
        ReadOptions(**stated)


@pytest.mark.parametrize("currency", ["-", ".", "e", "1"])
def test_a_currency_is_no_part_of_a_number(currency: str) -> None:
    with pytest.raises(ParameterError, match="`currency` must be no part of a number"):
        ReadOptions(currency=currency)


def test_a_mark_that_parts_no_thousands_is_the_decimal_sign(tmp_path: Path) -> None:
    path = tmp_path / "file.csv"
    path.write_text("id;y\na;1.234\nb;2.500\n")
    table = read_table(path, ReadOptions(thousands="none"), numbers=["y"])
    assert table.frame["y"].to_list() == [1.234, 2.5]

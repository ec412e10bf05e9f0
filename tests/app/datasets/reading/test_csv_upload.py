"""CSV files as people send them, good and bad: what is accepted, and where each fault is said to be."""

from __future__ import annotations

from pathlib import Path

import pytest

from ccmtl_core.inspection import inspect
from ccmtl_core.kernels.csv_scan import MAX_ROW_BYTES
from tests.app.datasets.conftest import CSV, Shop, faults

CALLED = "If the file calls it otherwise, say so in the `columns` of the dataset"
GOOD = "unique_id,ds,y\n0001,2000-11-01,3\n0001,2000-11-02,4.5\n2,2000-11-01,-1e2\n"


def test_a_good_file_is_reported_in_full(shop: Shop) -> None:
    name = shop.series(fill={"method": "zero"})
    answer = shop.upload(name, GOOD)
    assert answer.status_code == 201
    body = answer.json()
    assert (body["dataset"], body["version"]) == (name, 1)
    assert answer.headers["location"] == f"/v1/datasets/{name}/versions/1"
    assert body["report"].pop("inspection")["rows_used"] == 3
    told = [(w["code"], w["count"]) for w in body["report"].pop("warnings")]
    assert told == [("negative_values", 1), ("short_series", 2)]
    assert body["report"].pop("dialect")["delimiter"]["value"] == ","
    assert body["report"] == {
        "mode": "full",
        "rows": 3,
        "series": 2,
        "periods": 2,
        "first": "2000-11-01",
        "last": "2000-11-02",
        "aggregated_rows": 0,
        "overlapping_rows": 0,
        "filled_periods": 1,
        "time_zone": None,
        "ignored_columns": [],
        "dropped_periods": [],
        "idempotency_key": None,
        "version": {"values": 3, "series": 2, "periods": 2, "first": "2000-11-01", "last": "2000-11-02"},
    }


@pytest.mark.parametrize(
    "text",
    [
        "\ufeff" + GOOD,
        GOOD.replace("\n", "\r\n"),
        GOOD.rstrip("\n"),
        '"unique_id","ds","y"\n"0001","2000-11-01","3"\n"0001","2000-11-02","4.5"\n"2","2000-11-01","-1e2"\n',
        "y,unused,unique_id,ds\n3,x,0001,2000-11-01\n4.5,,0001,2000-11-02\n-1e2,,2,2000-11-01\n",
        GOOD.replace("2000-11-01", "2000-11-01T00:00:00"),
    ],
    ids=["bom", "crlf", "no last line end", "quoted", "other columns and order", "date times"],
)
def test_the_same_data_in_another_dress_makes_the_same_file(shop: Shop, text: str) -> None:
    plain, dressed = shop.series(), shop.series()
    shop.accepted(plain, GOOD)
    before = shop.files()
    shop.accepted(dressed, text)
    assert shop.files() == before


def test_columns_that_are_not_asked_for_are_reported(shop: Shop) -> None:
    report = shop.accepted(shop.series(), "unique_id,ds,y,colour,shop\na,2000-01-01,1,red,7\n")
    assert report["ignored_columns"] == ["colour", "shop"]


def test_every_kind_of_fault_is_reported_at_once(shop: Shop) -> None:
    long_id = "x" * 513
    rows = [
        ("a", "2000-01-01", "1"),
        ("", "2000-01-01", "1"),
        ("a\0b", "2000-01-01", "1"),
        (long_id, "2000-01-01", "1"),
        ("a", "2000-02-30", "1"),
        ("a", "", "1"),
        ("a", "2000-01-03", "three"),
        ("a", "2000-01-04", ""),
        ("a", "2000-01-05", "nan"),
        ("a", "2000-01-06", "1e999"),
        ("a", "2000-01-01", "2"),
        ("", "yesterday", "-inf"),
    ]
    text = "unique_id,ds,y\n" + "".join(",".join(row) + "\n" for row in rows) + "a,2000-01-07\n"
    problem = shop.refused(shop.series(), text)
    assert problem["code"] == "invalid_upload"
    assert faults(problem) == [
        ("empty_id", 2, "unique_id", ""),
        ("id_has_nul", 3, "unique_id", "a\0b"),
        ("id_too_long", 4, "unique_id", "x" * 200),
        ("unparseable_date", 5, "ds", "2000-02-30"),
        ("empty_date", 6, "ds", ""),
        ("unparseable_number", 7, "y", "three"),
        ("empty_number", 8, "y", ""),
        ("not_finite", 9, "y", "nan"),
        ("not_finite", 10, "y", "1e999"),
        ("duplicate_period", 11, None, "a"),
        ("unparseable_date", 12, "ds", "yesterday"),
        ("empty_id", 12, "unique_id", ""),
        ("not_finite", 12, "y", "-inf"),
        ("csv_field_count", 13, None, "a,2000-01-07"),
    ]
    assert problem["error_count"] == 14
    assert "2 empty_id" in problem["detail"]


def test_only_so_many_faults_are_listed_and_every_kind_is_among_them(shop: Shop) -> None:
    rows = "".join(f"a,2000-13-01,{i}\n" for i in range(5000)) + ",2000-01-01,1\n"
    problem = shop.refused(shop.series(), "unique_id,ds,y\n" + rows)
    assert problem["error_count"] == 5001
    assert len(problem["errors"]) == 100
    assert faults(problem)[0] == ("unparseable_date", 1, "ds", "2000-13-01")
    assert faults(problem)[-1] == ("empty_id", 5001, "unique_id", "")


@pytest.mark.parametrize(
    "number",
    [" 1", "1 ", "1,5", "1_000", "0x10", "$3", "--1", "1e", "١", "NA", "yes", "1.2.3", "NULL"],
)
def test_what_is_not_a_number_is_not_guessed_at(shop: Shop, number: str) -> None:
    problem = shop.refused(shop.series(), f'unique_id,ds,y\na,2000-01-01,1\na,2000-01-02,"{number}"\n')
    assert faults(problem) == [("unparseable_number", 2, "y", number)]


def test_a_missing_column_is_named_with_near_matches(shop: Shop) -> None:
    name = shop.series(columns={"unique_id": "PRODUCT_ID", "ds": "DATE", "y": "AMOUNT"})
    problem = shop.refused(name, "product_id,Amount ,when\n1,2,3\n")
    messages = {e["column"]: e["message"] for e in problem["errors"]}
    assert set(messages) == {"PRODUCT_ID", "DATE", "AMOUNT"}
    assert "did you mean 'product_id'?" in messages["PRODUCT_ID"]
    assert "did you mean 'Amount '?" in messages["AMOUNT"]
    assert "'when'" in messages["DATE"]


def test_repeated_header_names_are_refused(shop: Shop) -> None:
    rows = "unique_id,ds,{},y,z,z,z\na,2000-01-01,1,2,3,4,5\n"
    problem = shop.refused(shop.series(), rows.format("y"))
    assert [(e["code"], e["column"]) for e in problem["errors"]] == [("repeated_column", "y")]
    assert "2 times" in problem["errors"][0]["message"]
    report = shop.accepted(shop.series(), rows.format("x"))
    assert [(w["code"], w["count"]) for w in report["warnings"]] == [
        ("repeated_columns", 2),
        ("short_series", 1),
    ]
    problem = shop.refused(shop.regression(["x"]), "unique_id,x,y,z,z,z\na,1,2,3,4,5\n")
    assert "the header names 'z' 3 times" in problem["errors"][0]["message"]


def test_a_header_of_very_many_columns_is_answered_at_once(shop: Shop) -> None:
    problem = shop.refused(shop.series(), "," * 1_000_000 + "\n1\n")
    assert [e["code"] for e in problem["errors"]] == ["too_many_columns"]


def test_a_wide_table_is_read_as_one_value_a_row(shop: Shop) -> None:
    months = [f"1998-{month:02}" for month in range(1, 13)] + ["1999-01"]
    text = ",".join(["part", *months]) + "\n007,," + "7," * 11 + "1\n"
    report = shop.accepted(shop.series(frequency="MS"), text)
    assert (report["rows"], report["series"], report["periods"], report["first"]) == (12, 1, 12, "1998-02-01")
    assert report["dialect"]["shape"]["value"] == "a column for each period"
    assert [(w["code"], w["count"]) for w in report["warnings"]] == [
        ("missing_cells", 1),
        ("short_series", 1),
    ]


def test_a_wide_table_of_rows_is_recognised_and_its_columns_are_listed_once(shop: Shop) -> None:
    months = [f"1998-{month:02}" for month in range(1, 13)] + ["1999-01"]
    dataset = shop.regression(["ds"], unique_id="unique_id", y="y")
    refusal = shop.upload(dataset, ",".join(["part", *months]) + "\n" + "7," * 13 + "1\n").json()
    first, *others = [fault["message"] for fault in refusal["errors"]]
    assert first.startswith("the column 'ds' is missing; there are 'part', '1998-01'")
    assert first.endswith(
        "; a table with a column for each period must be given one row for each value first. " + CALLED
    )
    assert [other.partition("; ")[2] for other in others] == [f"see the columns above. {CALLED}"] * 2


def test_a_wide_table_that_does_not_look_like_one_is_told_how_to_be_read(shop: Shop) -> None:
    text = "day,A,B,A\n2024-01-01,1,2,3\n2024-01-02,4,5,6\n"
    refusal = shop.refused(shop.series(), text)
    assert "if each column beside 'day' is a series, state `shape=wide`" in refusal["errors"][0]["message"]
    assert shop.accepted(shop.series(), text, shape="wide")["series"] == 3


def test_a_fault_of_a_wide_table_names_the_column_of_the_file(shop: Shop) -> None:
    problem = shop.refused(shop.series(), "sku,2024-01-01,2024-01-02,2024-01-03\na,1,2,few\nb,1,2,3\n")
    assert faults(problem) == [("unparseable_number", 1, "2024-01-03", "few")]


def test_the_repeated_period_of_a_wide_table_is_decided_by_duplicates(shop: Shop) -> None:
    text = "product,Jan 24,Feb 24,Feb 24,Mar 24\nA,1,2,9,3\n"
    refusal = shop.refused(shop.series(frequency="MS"), text)
    assert [(e["code"], e["row"]) for e in refusal["errors"]] == [("duplicate_period", 1)]
    assert shop.accepted(shop.series(frequency="MS", duplicates="sum"), text)["version"]["values"] == 3


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("sku,01/02/2024,02/02/2024,03/02/2024\n1,1,2,3\n2,4,5,6\n", ("ambiguous_dates", 6)),
        ("sku,01/02/2024,02/02/2024,03/02/2024\n1,1,x,3\n2,4,5,6\n", ("ambiguous_dates", 6)),
        ("unique_id,ds,y", ("no_rows", 0)),
        ("unique_id~ds~y\na~2024-01-01~1\n", None),
    ],
)
def test_a_refusal_counts_the_rows_that_the_library_counts(
    shop: Shop, tmp_path: Path, text: str, told: tuple[str, int] | None
) -> None:
    (tmp_path / "file.csv").write_text(text)
    ours = inspect(tmp_path / "file.csv")
    problem = shop.refused(shop.series(), text)
    assert problem["report"]["rows_read"] == ours.accounts.rows_read
    if told is None:
        for message in (problem["errors"][0]["message"], ours.errors[0].message):
            assert "if a mark in it parts the fields, state it as the `delimiter`" in message
    else:
        assert (problem["errors"][0]["code"], problem["report"]["rows_read"]) == told
        assert ours.errors[0].code == told[0]


def test_very_many_missing_columns_are_all_named(shop: Shop) -> None:
    wanted = [f"feature_{i}" for i in range(1000)]
    header = ",".join(f"other_feature_{i}" for i in range(5000))
    problem = shop.refused(shop.regression(wanted), f"{header}\n1\n")
    assert "1,002 missing_column" in problem["detail"]


@pytest.mark.parametrize("separator", [";", "\t", "|"])
def test_other_separators_are_recognised(shop: Shop, separator: str) -> None:
    assert shop.accepted(shop.series(), GOOD.replace(",", separator))["rows"] == 3


def test_commas_in_a_header_of_semicolons_do_not_hide_it(shop: Shop) -> None:
    text = "unique_id;ds;y;price, EUR\n" + "a;2000-01-01;1,5;2,50\n" * 20_000
    assert shop.accepted(shop.series(aggregation="sum"), text)["rows"] == 20_000


def test_a_wrong_name_beside_other_marks_is_no_wrong_separator(shop: Shop) -> None:
    problem = shop.refused(shop.series(), "unique_id,ds,a;b|c\na,2000-01-01,1\n")
    assert [e["code"] for e in problem["errors"]] == ["missing_column"]


@pytest.mark.parametrize(
    ("row", "content_type"),
    [
        ("a{},2024-01-01,1\n", CSV),
        ('"a{}\n",2024-01-01,1\n', CSV),
        ('{{"unique_id": "{}"}}\n', "application/x-ndjson"),
    ],
)
def test_a_row_longer_than_any_of_a_table_is_named(shop: Shop, row: str, content_type: str) -> None:
    rows = ("unique_id,ds,y\n" if content_type == CSV else "") + row.format("x") * 3
    long = row.format("x\n" * (MAX_ROW_BYTES // 2) if '"a' in row else "x" * MAX_ROW_BYTES)
    problem = shop.refused(shop.series(), rows + long + row.format("x"), content_type)
    (fault,) = problem["errors"]
    assert fault["code"] == ("csv_long_row" if content_type == CSV else "long_row")
    assert fault["column"] is None
    assert f"{len(long) - 1:,} bytes" in fault["message"]
    assert f"line {rows.count(chr(10)) + 1}" in fault["message"]


@pytest.mark.parametrize("n_copies", [1, 10_000, 100_000])
@pytest.mark.parametrize("separator", [",", " "])
def test_a_file_whose_line_breaks_were_taken_out_is_recognised(
    shop: Shop, n_copies: int, separator: str
) -> None:
    lines = GOOD.replace(",", separator).splitlines()
    text = lines[0] + "".join(lines[1:]) * n_copies
    problem = shop.refused(shop.series(), text)
    (fault,) = problem["errors"]
    assert fault["code"] == "no_line_breaks"
    assert f"of the file's {len(text):,} bytes" in fault["message"]
    assert "--data-binary" in fault["message"]


def test_lines_that_end_in_carriage_returns_alone_are_read_and_told(shop: Shop) -> None:
    report = shop.accepted(shop.series(), GOOD.replace("\n", "\r"))
    (warning,) = (one for one in report["warnings"] if one["code"] == "carriage_returns")
    assert warning["count"] == GOOD.count("\n")


@pytest.mark.parametrize(
    ("content", "code", "hint"),
    [
        (b"", "empty_file", "empty"),
        (b"\xef\xbb\xbf", "no_header", "columns"),
        (b"unique_id,ds,y\n", "no_rows", "no rows"),
        (b"unique_id,ds,y", "no_rows", "no rows"),
        (b"unique_id,ds,y\r\n\r\n\n", "no_rows", "no rows"),
        (b"PAR1" + b"\0" * 20 + b"PAR1", "not_parquet", "Parquet"),
        (b"PK\x03\x04rest", "undecodable_file", "zip"),
        (b"\x1f\x8brest", "undecodable_file", "gzip"),
        (b"\x28\xb5\x2f\xfdrest", "undecodable_file", "zstd"),
        (b'{"unique_id": "a", "ds": "2000-01-01"}\n[1]\n', "not_json_lines", "JSON"),
        (b'[{"unique_id": "a", "ds": "2000-01-01"}]\n', "not_csv", "JSON"),
        (b"<html><body>Not found</body></html>\n", "not_csv", "HTML"),
    ],
)
def test_a_file_that_is_something_else_is_called_by_its_name(
    shop: Shop, content: bytes, code: str, hint: str
) -> None:
    problem = shop.refused(shop.series(), content)
    assert {e["code"] for e in problem["errors"]} >= {code}
    assert any(hint in e["message"] for e in problem["errors"])


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le", "utf-16-be", "utf-8-sig"])
@pytest.mark.parametrize("above", ["", "\n", "Sales of November\n\n"])
def test_other_encodings_and_lines_above_the_header_are_recognised(
    shop: Shop, encoding: str, above: str
) -> None:
    assert shop.accepted(shop.series(), (above + GOOD).encode(encoding))["rows"] == 3


def test_bytes_that_are_not_utf8_are_placed(shop: Shop) -> None:
    text = 'unique_id,ds,y\n"a\nb",2000-01-01,1\nCafé,2000-01-01,1\n'
    problem = shop.refused(shop.series(), text.encode("latin-1"))
    (fault,) = problem["errors"]
    assert (fault["code"], fault["row"]) == ("not_utf8", 2)
    assert "0xE9" in fault["message"]
    assert f"offset {text.index('é')}" in fault["message"]


def test_a_character_cut_in_two_at_a_block_border_is_still_utf8(shop: Shop) -> None:
    padding = "x" * (2**22 - len("unique_id,ds,y,note\n") - len("a,2000-01-01,1,") - 1)
    text = f"unique_id,ds,y,note\na,2000-01-01,1,{padding}é\n".encode()
    assert text[2**22 - 1] == "é".encode()[0]
    assert shop.accepted(shop.series(), text)["rows"] == 1
    problem = shop.refused(shop.series(), text.replace("é".encode(), b"\xc3\n"))
    assert f"offset {2**22 - 1} " in problem["errors"][0]["message"]


@pytest.mark.parametrize(
    ("row", "fault"),
    [
        ('5" pipe,2000-01-01,1', ("csv_quote_inside", 2, "unique_id", '5" pipe,2000-01-01,1')),
        ('"a"b,2000-01-01,1', ("csv_text_after_quote", 2, "unique_id", '"a"b,2000-01-01,1')),
        ('a,"2000-01-01,1', ("csv_unclosed_quote", 2, "ds", 'a,"2000-01-01,1')),
        ("a,2000-01-01,1\rb,2000-01-01,1", ("csv_lone_cr", 2, "y", "a,2000-01-01,1\rb,2000-01-01,1")),
        ("a,2000-01-01", ("csv_field_count", 2, None, "a,2000-01-01")),
        ("a,2000-01-01,1,2", ("csv_field_count", 2, None, "a,2000-01-01,1,2")),
        ("  ", ("csv_field_count", 2, None, "  ")),
        ("\nc,2000-01-01,1", ("csv_blank", 2, None, None)),
    ],
)
def test_malformed_rows_are_placed(
    shop: Shop, row: str, fault: tuple[str, int, str | None, str | None]
) -> None:
    text = f"unique_id,ds,y\nz,2000-01-01,1\n{row}\n"
    assert fault in faults(shop.refused(shop.series(), text))


def test_bad_cells_are_reported_beside_rows_of_a_wrong_length(shop: Shop) -> None:
    text = "unique_id,ds,y\nshort,2000-01-01\na,never,1\nb,2000-01-01,1,long,er\nc,2000-01-01,x\n"
    assert faults(shop.refused(shop.series(), text)) == [
        ("csv_field_count", 1, None, "short,2000-01-01"),
        ("unparseable_date", 2, "ds", "never"),
        ("csv_field_count", 3, None, "b,2000-01-01,1,long,er"),
        ("unparseable_number", 4, "y", "x"),
    ]


def test_a_wrong_length_in_the_first_row_does_not_change_what_the_others_are(shop: Shop) -> None:
    text = "unique_id,ds,y\nlong,2000-01-01,1,2,3\na,2000-01-01,1\n"
    assert faults(shop.refused(shop.series(), text)) == [
        ("csv_field_count", 1, None, "long,2000-01-01,1,2,3")
    ]


def test_very_many_malformed_rows_are_counted(shop: Shop) -> None:
    rows = "a,2000-01-01\n" * 30_000 + 'a,b"c,1\n' * 7
    problem = shop.refused(shop.series(), "unique_id,ds,y\n" + rows)
    assert problem["error_count"] == 30_007
    assert "(7 csv_quote_inside, 30,000 csv_field_count)" in problem["detail"]
    assert len(problem["errors"]) == 100


def test_blank_lines_at_the_end_are_skipped_with_a_warning(shop: Shop) -> None:
    report = shop.accepted(shop.series(), GOOD + "\n\r\n\n")
    assert report["rows"] == 3
    assert ("blank_lines", 3) in [(w["code"], w["count"]) for w in report["warnings"]]


def test_odd_ids_keep_their_text(shop: Shop) -> None:
    odd = [
        "0001",
        "1",
        " 1",
        "1 ",
        "a/b",
        'a"b',
        "a,b",
        "a\nb",
        "a\r\nb",
        "Ünï",
        "日本",
        "1e5",
        "null",
        "NaN",
    ]
    quoted = [name.replace('"', '""') for name in odd]
    text = "unique_id,ds,y\n" + "".join(f'"{name}",2000-01-01,1\n' for name in quoted)
    assert shop.accepted(shop.series(), text)["series"] == len(odd)


def test_regression_rows_are_checked_in_every_column(shop: Shop) -> None:
    text = "unique_id,y,price,size\na,1,2,3\n,x,nan,\na,1,2,3\n"
    problem = shop.refused(shop.regression(["price", "size"]), text)
    assert faults(problem) == [
        ("not_finite", 2, "price", "nan"),
        ("empty_number", 2, "size", ""),
        ("empty_id", 2, "unique_id", ""),
        ("unparseable_number", 2, "y", "x"),
    ]


def test_regression_has_no_periods(shop: Shop) -> None:
    report = shop.accepted(shop.regression(["price"]), "unique_id,y,price\nb,1,2\na,1,2\nb,1,2\n")
    assert (report["rows"], report["series"], report["aggregated_rows"]) == (3, 2, 0)
    assert report["periods"] is report["first"] is report["last"] is None
    assert report["version"] == {"values": 3, "series": 2, "periods": None, "first": None, "last": None}


def test_a_dry_run_reports_and_stores_nothing(shop: Shop) -> None:
    name = shop.series()
    before = shop.files()
    answer = shop.upload(name, GOOD, dry_run=True)
    assert answer.status_code == 200
    assert (answer.json()["version"], answer.json()["id"]) == (None, None)
    assert answer.json()["report"]["rows"] == 3
    assert shop.files() == before
    assert shop.client.get(f"/v1/datasets/{name}/versions").json()["items"] == []

"""Lines that are no rows are named with their line and text, and what accepts them does."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from ccmtl_core.inspection import inspect
from ccmtl_core.tables import ReadOptions, read_table
from ccmtl_core.tables.faults import TableError
from ccmtl_core.tables.sample_files import read_task_dataset, statistics_from_files

BODY = "id,ds,y\n" + "".join(f"a,2024-03-{day:02d},{day % 6 + 1}\n" for day in range(1, 31))
TOTAL = "Grand Total: 1890"
FAULTS: dict[str, tuple[str, dict[str, Any], str, int, str | None, tuple[str, ...]]] = {
    "a total": (
        f"{BODY}{TOTAL}\n", {}, "csv_field_count", 31, TOTAL, ("1 field,", "(line 32)", "'skip'", "comment")
    ),
    "a footer below a blank line": (
        f"{BODY}\n{TOTAL}\n", {}, "csv_blank", 31, None, ("(line 32)", "'skip'")
    ),
    "a comma in a name": (
        BODY + "Tea, green,2024-03-30,4\n", {}, "csv_field_count", 31, "Tea, green,2024-03-30,4",
        ("4 fields, the header 3", "(line 32)", "quotes", "delimiter"),
    ),
    "a total below a line break in quotes": (
        BODY.replace("a,2024-03-01", '"a\na",2024-03-01') + TOTAL, {}, "csv_field_count", 31, TOTAL,
        ("(line 33)",),
    ),
    "a total below comments and a title": (
        "Sales\n" + BODY.replace("a,2024-03-03", "# odd\na,2024-03-03") + TOTAL, {"comment": "#"},
        "csv_field_count", 32, TOTAL, ("(line 34)",),
    ),
    "a very long line": (
        f"{BODY}{'x' * 500}\n", {}, "csv_field_count", 31, "x" * 99 + "…", ("(line 32)",)
    ),
    "a quote that is never closed": (
        BODY.replace("a,2024-03-10", '"a,2024-03-10'), {}, "csv_unclosed_quote", 10, '"a,2024-03-10,5',
        ("(line 11)", "takes 21 lines", "'~'"),
    ),
    "a quote that is closed by the next": (
        BODY.replace("a,2024-03-10", '"a,2024-03-10').replace("a,2024-03-20", '"a",2024-03-20'), {},
        "csv_text_after_quote", 10, '"a,2024-03-10,5', ("opens in line 11 and takes 10 lines",),
    ),
}  # fmt: skip


@pytest.mark.parametrize("name", FAULTS)
def test_a_line_that_is_no_row_is_shown_with_what_accepts_it(tmp_path: Path, name: str) -> None:
    text, stated, code, row, value, words = FAULTS[name]
    path = tmp_path / "file.csv"
    path.write_text(text)
    findings = inspect(path, dialect=ReadOptions(**stated)).findings
    (finding,) = (finding for finding in findings if finding.code == code)
    assert (finding.samples[0].row, finding.samples[0].value) == (row, value)
    assert all(part in finding.message for part in words)
    assert {one.code for one in findings if one.severity == "error"} <= {code, "csv_field_count"}


def test_rows_of_another_length_are_left_out_where_that_is_stated(tmp_path: Path) -> None:
    path = tmp_path / "file.csv"
    path.write_text(f"{BODY}\n{TOTAL}\nTea, green,2024-03-30,4\n")
    report = inspect(path, dialect=ReadOptions(ragged="skip"))
    (finding,) = report.findings
    assert (finding.code, finding.severity, finding.count) == ("skipped_rows", "note", 3)
    assert [(sample.row, sample.value) for sample in finding.samples] == [
        (31, ""),
        (32, TOTAL),
        (33, "Tea, green,2024-03-30,4"),
    ]
    assert report.accounts.rows_dropped == {"skipped_rows": 3}
    assert report.accounts.rows_read == 33
    assert report.require_panel().values.tolist() == [day % 6 + 1.0 for day in range(1, 31)]
    table = read_table(path, ReadOptions(ragged="skip"), numbers=["y"])
    assert (table.frame.height, [note.code for note in table.notes]) == (30, ["skipped_rows"])


def test_broken_quotes_are_not_skipped(tmp_path: Path) -> None:
    path = tmp_path / "file.csv"
    path.write_text(f'{BODY}5" pipe,2024-03-30,4\n{TOTAL}\n')
    with pytest.raises(TableError) as refused:
        read_table(path, ReadOptions(ragged="skip"))
    assert refused.value.counts == {"csv_quote_inside": 1, "csv_field_count": 1}


def test_a_bad_cell_is_shown_with_the_id_and_the_time_of_its_row(tmp_path: Path) -> None:
    path = tmp_path / "file.csv"
    path.write_text(f"{BODY}a,2024-03-31,many\nb,soon,1\nTotal,,1890\n,2024-03-30,1\n")
    samples = {finding.code: finding.samples[0] for finding in inspect(path).findings}
    shown = {
        code: (sample.row, sample.unique_id, sample.ds, sample.value) for code, sample in samples.items()
    }
    assert shown == {
        "unparseable_number": (31, "a", "2024-03-31", "many"),
        "unparseable_date": (32, "b", None, "soon"),
        "empty_date": (33, "Total", None, ""),
        "empty_id": (34, None, "2024-03-30", ""),
    }


HEADER = BODY.splitlines()[0]
AGAIN: dict[str, tuple[str, dict[str, Any], list[int]]] = {
    "two exports": (f"{BODY}{HEADER}\nb,2024-03-01,7\n", {}, [31]),
    "a sorted file": (f"{BODY}{HEADER}\n{HEADER}\n", {}, [31, 32]),
    "below the header": (f"{HEADER}\r\n{BODY}".replace("\n", "\r\n").replace("\r\r", "\r"), {}, [1]),
    "without a line end": (BODY + HEADER, {}, [31]),
    "with comments": (BODY.replace("a,2024-03-03", f"# odd\n{HEADER}\na,2024-03-03"), {"comment": "#"}, [4]),
    "with spaces": (BODY.replace(",", ", ") + HEADER.replace(",", ", "), {}, [31]),
    "with rows to be skipped": (f"{TOTAL}\n{HEADER}\n{TOTAL}\n", {"ragged": "skip"}, [32]),
}


@pytest.mark.parametrize("name", AGAIN)
def test_a_row_that_repeats_the_header_is_left_out_and_told(tmp_path: Path, name: str) -> None:
    text, stated, rows = AGAIN[name]
    path = tmp_path / "file.csv"
    path.write_text(BODY + text if text.startswith(TOTAL) else text, newline="")
    report = inspect(path, dialect=ReadOptions(**stated))
    (finding,) = (finding for finding in report.findings if finding.code == "repeated_header")
    assert (finding.severity, finding.count) == ("warning", len(rows))
    assert [sample.row for sample in finding.samples] == rows
    panel = report.require_panel()
    assert panel.values[:30].tolist() == [day % 6 + 1.0 for day in range(1, 31)]
    assert report.accounts.rows_used == len(panel.values) == 30 + (name == "two exports")
    assert report.accounts.rows_dropped["repeated_header"] == len(rows)
    table = read_table(path, ReadOptions(**stated), numbers=["y"])
    assert table.frame.height == len(panel.values)
    assert "repeated_header" in [note.code for note in table.notes]


@pytest.mark.parametrize("read", [statistics_from_files, read_task_dataset])
def test_samples_without_a_report_are_refused_with_a_repeated_header(
    tmp_path: Path, read: Callable[..., object]
) -> None:
    path = tmp_path / "file.csv"
    path.write_text("store,sold,price\n007,3,1.5\nstore,sold,price\n007,1,2\n")
    with pytest.raises(TableError, match="row 2: the row repeats the header: take it out") as caught:
        read(path, task="store", target="sold", features=["price"])
    assert caught.value.counts == {"repeated_header": 1}


def test_rows_below_a_repeated_header_keep_their_numbers(tmp_path: Path) -> None:
    path = tmp_path / "file.csv"
    path.write_text(f"{BODY}{HEADER}\nb,2024-03-01,many\n")
    (fault,) = (finding for finding in inspect(path).findings if finding.code == "unparseable_number")
    assert fault.samples[0].row == 32


def test_a_header_within_quotes_or_with_more_behind_it_is_no_repetition(tmp_path: Path) -> None:
    path = tmp_path / "file.csv"
    path.write_text(f'{BODY}"b\n{HEADER}\n",2024-03-01,7\n')
    report = inspect(path)
    assert "repeated_header" not in report.counts
    assert report.require_panel().values.tolist()[-1] == 7.0
    path.write_text(BODY + HEADER + "2\n")
    assert "repeated_header" not in inspect(path).counts

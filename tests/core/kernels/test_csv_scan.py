"""The scan of a CSV file's structure against Python's own reader, and on every kind of irregularity."""

from __future__ import annotations

import csv
import io

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from ccmtl_core.kernels.csv_scan import MAX_IRREGULARITIES, CsvStructure, Irregularity, scan_csv

field = st.text(st.sampled_from('ab,"\n\r ;é'), max_size=6)


def scan(text: str | bytes, n_fields: int) -> CsvStructure:
    data = text.encode() if isinstance(text, str) else text
    return scan_csv(np.frombuffer(data, np.uint8), n_fields)


def found(structure: CsvStructure) -> list[tuple[str, int, int, int]]:
    return [(Irregularity(kind).name, *place) for kind, *place in structure.irregularities.tolist()]


@given(
    rows=st.lists(st.lists(field, min_size=2, max_size=4), min_size=1, max_size=8),
    end=st.sampled_from(["\n", "\r\n"]),
    quoting=st.sampled_from([csv.QUOTE_ALL, csv.QUOTE_MINIMAL]),
    keep_last_end=st.booleans(),
)
def test_rows_and_lengths_agree_with_the_csv_module(
    rows: list[list[str]], end: str, quoting: int, keep_last_end: bool
) -> None:
    if quoting == csv.QUOTE_MINIMAL:  # with which the module does not quote a carriage return
        rows = [[text.replace("\r", "") for text in row] for row in rows]
    file = io.StringIO()
    csv.writer(file, lineterminator=end, quoting=quoting).writerows(rows)
    text = file.getvalue() if keep_last_end else file.getvalue().removesuffix(end)
    n_fields = len(rows[0])
    structure = scan(text, n_fields)
    assert structure.n_rows == len(rows) - 1
    assert found(structure) == [
        ("FIELD_COUNT", i, len(row) - 1, len(row)) for i, row in enumerate(rows) if len(row) != n_fields
    ]


@given(st.binary(max_size=60), st.integers(1, 4))
def test_any_bytes_can_be_scanned(data: bytes, n_fields: int) -> None:
    structure = scan(data, n_fields)
    assert structure.n_rows + structure.n_blank_at_end <= data.count(b"\n") + 1
    assert len(structure.irregularities) == structure.n_irregularities


def test_every_irregularity_is_placed() -> None:
    text = 'a,b\n\n1,2\n1\n"x"y,"2""3"\nx"y",5\n6,7\r8\n9,"1\n0'
    structure = scan(text, 2)
    assert found(structure) == [
        ("BLANK", 1, 0, 0),
        ("FIELD_COUNT", 3, 0, 1),
        ("TEXT_AFTER_QUOTE", 4, 0, 0),
        ("QUOTE_INSIDE", 5, 0, 0),
        ("LONE_CR", 6, 1, 0),
        ("UNCLOSED_QUOTE", 7, 1, 0),
    ]
    assert structure.n_rows == 7
    assert [text[begin:end] for begin, end in structure.spans.tolist()] == [
        "", "1", '"x"', "x", "6,7", '"1\n0'
    ]  # fmt: skip
    assert structure.spans[:, 0].tolist() == [4, 9, 11, 23, 30, 38]


def test_blank_lines_before_a_row_are_each_placed() -> None:
    structure = scan("a,b\r\n\r\n\r\n1,2\r\n\r\n", 2)
    assert structure.spans.tolist() == [[5, 5], [7, 7]]


def test_blank_lines_at_the_end_are_not_rows() -> None:
    structure = scan("a,b\n1,2\n\n\r\n", 2)
    assert (structure.n_rows, structure.n_blank_at_end, structure.n_irregularities) == (1, 2, 0)


def test_a_header_alone_has_no_rows() -> None:
    for text in ("", "a,b", "a,b\n", "a,b\n\n"):
        assert scan(text, 2).n_rows == 0


def test_more_irregularities_than_are_listed_are_counted() -> None:
    structure = scan("a,b\n" + "1\n" * (MAX_IRREGULARITIES + 5), 2)
    assert structure.counts == {Irregularity.FIELD_COUNT: MAX_IRREGULARITIES + 5}
    assert len(structure.irregularities) == MAX_IRREGULARITIES


def test_the_scan_tells_where_it_stands() -> None:
    assert scan('a,b\n1,"x\ny",', 2).end == (1, 2)

"""Bytes that are nearly files, and what must hold of every one of them."""

from __future__ import annotations

import gzip
import io
import zipfile
from collections.abc import Callable
from contextlib import suppress
from datetime import date
from pathlib import Path

import polars as pl
import zstandard
from hypothesis import strategies as st

from ccmtl_core import DataError
from ccmtl_core.inspection import inspect
from ccmtl_core.tables import ReadOptions, ReadTable, read_table
from tests.core.tables.containers.workbooks import xlsx

PLAIN = 'id,ds,y\n001,2024-01-01,1234.5\n1,2024-01-02,-2\n"a\n,",2024-01-03,0\n'
OTHERS = [
    PLAIN.replace(",", ";").replace(".", ","),
    "Sales\n\n" + PLAIN.replace(",", "\t"),
    PLAIN.replace(",", " , ") + "\n\n",
    "# told\n" + PLAIN + "# and, ended\n",
    "sku,W0,W1,W2\n001,1,,2\n1,4,5,6\n",
    "day,a,b,a\n2024-01-01,1,2,3\n2024-01-02,4,,6\n",
    "id|y\n1|1.234\n2|(5)\n3|1 000-\n",
    "id;ds;y\nМолоко;2024;1\nХлеб;2025;2\nСыр;2026;3\n",
    '{"id": "001", "y": 1}\n\n{"id": 2, "y": null}\n',
]
LEFT_OUT = ("csv_field_count", "csv_blank", "comment_lines", "skipped_rows", "repeated_header")


def _zipped(*contents: bytes) -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        for number, content in enumerate(contents):
            archive.writestr(f"{number}.csv", content)
    return file.getvalue()


def _of_columns() -> list[bytes]:
    frame = pl.DataFrame({"id": ["a", "b"], "ds": [date(2024, 1, 1), date(2024, 1, 2)], "y": [1.0, 2.0]})
    stream, parquet = io.BytesIO(), io.BytesIO()
    frame.write_ipc_stream(stream)
    frame.write_parquet(parquet)
    return [stream.getvalue(), parquet.getvalue()]


TEXTS = [text.encode() for text in (PLAIN, *OTHERS)]
PACKED: list[Callable[[bytes], bytes]] = [
    gzip.compress,
    zstandard.compress,
    _zipped,
    lambda content: _zipped(content, TEXTS[0]),
    lambda content: _zipped(_zipped(TEXTS[0], content), content),
]
"""What a text can be packed in, alone or beside another one that may be joined with it."""
SEEDS = [
    *TEXTS,
    PLAIN.encode("utf-16"), OTHERS[0].encode("utf-16-be"), OTHERS[-2].encode("windows-1251"),
    *(pack(TEXTS[0]) for pack in PACKED),
    *_of_columns(),
    xlsx({"Shops": [["shop", "town"], ["1", "Oslo"]], "S": [["id", "y"], ["001", 1.5], ["1", -2.0]]}),
]  # fmt: skip
EDITS = st.lists(
    st.tuples(
        st.integers(0, 2000),
        st.integers(0, 6),
        st.sampled_from([b"", b",", b";", b'"', b"\n", b"\r", b"\0", b"\xff", b"#", b"(", b"1.2", b"\xc3"]),
    ),
    max_size=6,
)  # fmt: skip


def edited(seed: bytes, edits: list[tuple[int, int, bytes]]) -> bytes:
    """The bytes with some taken out and others put in."""
    for place, length, new in edits:
        at = place % (len(seed) + 1)
        seed = seed[:at] + new + seed[at + length :]
    return seed


FILES = st.one_of(
    st.binary(max_size=200),
    st.text(st.sampled_from('ab1.,;\t|"\n\r #('), max_size=120).map(str.encode),
    st.builds(edited, st.sampled_from(SEEDS), EDITS),
    st.builds(
        lambda pack, text, edits: pack(edited(text, edits)),
        st.sampled_from(PACKED), st.sampled_from(TEXTS), EDITS,
    ),
)  # fmt: skip
OPTIONS = st.builds(
    ReadOptions,
    delimiter=st.sampled_from([None, None, ";", "|"]),
    encoding=st.sampled_from([None, None, "gb18030", "utf-16"]),
    decimal=st.sampled_from([None, None, ","]),
    header_row=st.sampled_from([None, None, 0, 2]),
    comment=st.sampled_from([None, None, "#"]),
    ragged=st.sampled_from([None, None, "pad", "skip"]),
    shape=st.sampled_from([None, None, "wide"]),
)


def check(path: Path, content: bytes, options: ReadOptions) -> None:
    """Assert that the file is read with an account of each row, or refused as what it is, by both readers."""
    path.write_bytes(content)
    with suppress(DataError):
        check_rows(read_table(path, options))
    try:
        report = inspect(path, dialect=options)
    except DataError:
        return
    accounts = report.accounts
    dropped = sum(accounts.rows_dropped.values())
    assert accounts.rows_read == accounts.rows_used + accounts.rows_merged + dropped
    assert min(accounts.rows_dropped.values(), default=0) >= 0


def check_rows(table: ReadTable) -> None:
    """Assert that rows are in order, and that those that are not there are counted."""
    assert table.frame.height == len(table.row_of)
    numbers = table.row_of.tolist()
    assert numbers == sorted(set(numbers))
    n_told = sum(note.count for note in table.notes if note.code in LEFT_OUT)
    assert max(numbers, default=0) <= len(numbers) + n_told
    assert all(trait.evidence for trait in table.dialect.traits)

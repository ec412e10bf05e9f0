"""Rows of plain cells: numbers to the last bit, ids apart whatever their length, and no other rows."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ccmtl_core.kernels import csv_rows
from ccmtl_core.kernels.csv_rows import ID, IGNORED, Columns, NotPlain, plain_rows

HEADER = "note,id,x,y\n"


def columns(decimal: str = ".", delimiter: str = ",") -> Columns:
    places = np.array([IGNORED, ID, 0, 1])
    return Columns(places, np.full(4, ord(decimal), dtype=np.uint8), delimiter, '"')


def read(text: str, batch_rows: int = 100, **more: str) -> tuple[list[str], list[float], list[float]]:
    """The id, x and y of each row."""
    ids, of_rows, x, y = [], [], [], []
    data = np.frombuffer(text.encode(), np.uint8)
    for batch in plain_rows(data, columns(**more), batch_rows, has_header=True):
        ids += batch.new_ids
        of_rows += [ids[task] for task in batch.task]
        x += batch.X[:, 0].tolist()
        y += batch.y.tolist()
    assert len(set(ids)) == len(ids)
    return of_rows, x, y


@pytest.mark.parametrize("end", ["\n", "\r\n"])
@pytest.mark.parametrize("last", [True, False])
def test_ids_are_text_and_quotes_and_line_ends_belong_to_none(end: str, last: bool) -> None:
    rows = ["note,id,x,y", "a,007,1,-2.50", '"b,\n",7,0.1,3', ',"007","12.25","-0"', ",é x ,3,4"]
    text = end.join(rows) + end * last
    assert read(text) == (["007", "7", "007", "é x "], [1.0, 0.1, 12.25, 3.0], [-2.5, 3.0, -0.0, 4.0])


def test_a_comma_may_be_the_decimal_sign() -> None:
    assert read("a;b;c;d\n;1;2,5;3\n", decimal=",", delimiter=";") == (["1"], [2.5], [3.0])


@given(st.lists(st.tuples(st.integers(0, 10**15), st.integers(0, 15), st.booleans()), min_size=1))
def test_numbers_are_the_nearest_to_their_text(numbers: list[tuple[int, int, bool]]) -> None:
    texts = []
    for digits, n_decimals, is_negative in numbers:
        text = str(digits).zfill(n_decimals + 1)
        point = len(text) - n_decimals
        fraction = "." + text[point:] if n_decimals else ""
        texts.append("-" * is_negative + text[:point] + fraction)
    found = read(HEADER + "".join(f",1,{text},0\n" for text in texts))[1]
    assert list(map(repr, found)) == [repr(float(text)) for text in texts]


@given(
    st.lists(st.text(st.characters(exclude_characters='\r\n,"\0', codec="utf-8"), min_size=1, max_size=12))
)
def test_equal_ids_are_one_task_and_others_are_not(ids: list[str]) -> None:
    text = HEADER + "".join(f",{name},1,1\n" for name in ids)
    assert read(text, batch_rows=3)[0] == ids


@pytest.mark.parametrize("length", [4, 300])
def test_there_is_room_for_any_number_of_ids(length: int) -> None:
    ids = [str(i).zfill(length) for i in range(3000)] * 2
    assert read(HEADER + "".join(f",{name},1,1\n" for name in ids), batch_rows=500)[0] == ids


def test_ids_whose_mixed_keys_are_equal_are_apart() -> None:
    tasks, text = csv_rows._Tasks(), np.frombuffer(b"first id,other id", np.uint8)
    keys, spots = np.array([5, 5, 5]), np.array([0, 9, 0]) << csv_rows._LENGTH_BITS | 8
    found = np.empty(3, dtype=np.int64)
    assert tasks.number(text, keys, spots, found) == ["first id", "other id"]
    assert found.tolist() == [0, 1, 0]


def test_ids_that_all_collide_are_left_to_others() -> None:
    n = 2 * csv_rows._PROBES
    text = np.frombuffer(b"".join(b"%08d" % i for i in range(n)), np.uint8)
    spots = 8 * np.arange(n) << csv_rows._LENGTH_BITS | 8
    with pytest.raises(NotPlain):
        csv_rows._Tasks().number(text, np.full(n, 5), spots, np.empty(n, dtype=np.int64))


@pytest.mark.parametrize(
    "row",
    [
        ",1,,2", ",1,2,", ",,1,2", ',"",1,2', ",1,1e3,2", ",1,+1,2", ",1, 1,2", ",1,1.,2", ",1,.5,2",
        ",1,-,2", ",1,1,2,3", ",1,2", "", "\n,1,1,2", ",1,9007199254740993,2", ",1,1234567890123456789,2",
        ",1,nan,2", ',1,"1,2', ',"1"x,1,2', ',1"x,1,2', ',"a""b",1,2', ",1,1\r,2", ",1,1,2\r\r",
        "x\ry,1,1,2", ",a\0b,1,2", f",{'x' * 513},1,2", ",1,1,2x", ',1,1,"2"x', ",1,true,2", ",1,1.2.3,2",
    ],
)  # fmt: skip
def test_all_else_is_left_to_others(row: str) -> None:
    with pytest.raises(NotPlain):
        read(f"{HEADER},1,2,3\n{row}\n,1,2,3\n")

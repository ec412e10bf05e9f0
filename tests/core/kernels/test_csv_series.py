"""Rows of series in plain cells: ids and times by numbers, in pieces that end anywhere, and no other rows."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ccmtl_core.kernels.csv_rows import IGNORED, NotPlain
from ccmtl_core.kernels.csv_series import NUMBER, Fields, SeriesReader
from ccmtl_core.kernels.csv_texts import PADDING, PROBES

Row = tuple[str, str, float]


def read(
    text: str, kinds: list[int], *, size: int = 1 << 20, room: int = 100, may_be_empty: bool = False
) -> tuple[list[Row], SeriesReader]:
    """The id, time and number of each row; the bytes come in pieces of a size."""
    fields = Fields(np.array(kinds), ord("."), ord(","), ord('"'), may_be_empty)
    reader, data, kept, rows = SeriesReader(fields, "-"), text.encode(), b"", []
    ids, times, y = np.empty(room, np.int32), np.empty(room, np.int32), np.empty(room)
    while data:
        kept, data = kept + data[:size], data[size:]
        piece = np.frombuffer(kept + bytes(PADDING), np.uint8).copy()
        n, end = room, 0
        while n == room:
            n, end = reader.read(piece, end, len(kept), ids, times, y)
            rows += list(zip(ids[:n].tolist(), times[:n].tolist(), y[:n].tolist(), strict=True))
        kept = kept[end:]
    if kept:
        raise NotPlain
    names, numbers, n_rows = reader.ids()
    moments, places, n_at, first = reader.times()
    id_of, time_of = dict(zip(numbers, names, strict=True)), dict(zip(places, moments, strict=True))
    assert n_rows.sum() == n_at.sum() == reader.n_rows == len(rows)
    assert all(rows[row][1] == place for row, place in zip(first, places, strict=True))
    return [(id_of[one], time_of[time], value) for one, time, value in rows], reader


@pytest.mark.parametrize("end", ["\n", "\r\n"])
@pytest.mark.parametrize("size", [20, 33, 1000])
def test_texts_are_those_of_the_file_whatever_pieces_it_comes_in(end: str, size: int) -> None:
    lines = ['a,"x ""y""",d1,1', '"a,b",,d2,-2.5', 'a,,d1,"3"', '"b",,"d2",0.1', "b,,d,4"]
    rows, reader = read(end.join(lines) + end, [0, IGNORED, 1, NUMBER], size=size, room=2)
    assert rows == [
        ("a", "d1", 1.0),
        ("a,b", "d2", -2.5),
        ("a", "d1", 3.0),
        ("b", "d2", 0.1),
        ("b", "d", 4.0),
    ]
    assert (reader.n_id_changes, reader.n_times) == (4, 3)


@given(st.lists(st.tuples(*[st.sampled_from(["a", "b", "ab", "x-y", "x", "y"])] * 3), min_size=1), st.data())
def test_several_columns_make_one_id_in_their_order(
    ids: list[tuple[str, str, str]], data: st.DataObject
) -> None:
    text = "".join(f"{c},{a},{i % 4},{b},{i}\n" for i, (a, b, c) in enumerate(ids))
    rows, reader = read(text, [2, 0, 3, 1, NUMBER], size=data.draw(st.integers(30, 99)), room=3)
    assert rows == [("-".join(one), str(i % 4), float(i)) for i, one in enumerate(ids)]
    assert len(reader.ids()[0]) == len(set(ids))


@pytest.mark.parametrize("parts", [1, 2])
def test_there_is_room_for_any_number_of_ids_and_times(parts: int) -> None:
    names = [f"{i * 7919 % 5000:0200d}" for i in range(5000)] * 2
    text = "".join(f"{'s,' * (parts - 1)}{name},{i},1\n" for i, name in enumerate(names))
    rows, reader = read(text, [*range(parts + 1), NUMBER], room=1000)
    assert [row[:2] for row in rows] == [("s-" * (parts - 1) + one, str(i)) for i, one in enumerate(names)]
    assert reader.n_times == len(names)


def test_a_number_may_be_empty_where_that_is_said() -> None:
    text = 'a,,d\na,"",d\na,1,d\n'
    values = [row[2] for row in read(text, [0, NUMBER, 1], may_be_empty=True)[0]]
    assert list(map(math.isnan, values)) == [True, True, False]
    with pytest.raises(NotPlain):
        read(text, [0, NUMBER, 1])


def test_texts_that_all_collide_are_left_to_others(monkeypatch: pytest.MonkeyPatch) -> None:
    reader = SeriesReader(Fields(np.array([0, 1, NUMBER]), 0, ord(","), ord('"'), False), "-")
    reader._slots[:] = 1  # as if the text of number 0 were in each
    piece = np.frombuffer(b"a,d,1\n" + bytes(PADDING), np.uint8).copy()
    assert len(reader._slots) > PROBES
    with pytest.raises(NotPlain):
        reader.read(piece, 0, 6, np.empty(1, np.int32), np.empty(1, np.int32), np.empty(1))


@pytest.mark.parametrize(
    "row",
    [
        ",d,1", '"",d,1', "a,,1", "a,d,", "a,d,x", "a,d,+1", "a,d,1e3", "a,d,1,2", "a,d", "", "a\0,d,1",
        "a,d\r,1", 'a"b,d,1', '"a"b,d,1', '"a""b",d,1', '"a,d,1', f"{'x' * 513},d,1",
        "a,d,9007199254740993", "a,d,1\r\r", '"a\n",d,1',
    ],
)  # fmt: skip
def test_all_else_is_left_to_others(row: str) -> None:
    with pytest.raises(NotPlain):
        read(f"a,d,1\n{row}\na,d,1\n", [0, 1, NUMBER])

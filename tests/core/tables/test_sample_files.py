"""Files of every kind in; ids kept as text, and every unusable cell named by row and column."""

from __future__ import annotations

import gzip
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ccmtl_core import DataError, ParameterError, TaskDataset
from ccmtl_core.tables.sample_files import read_task_dataset


def read(path: Path, features: Sequence[str] = ("a", "b")) -> TaskDataset:
    return read_task_dataset(path, task="id", target="y", features=features)


def write(folder: Path, text: str | bytes, name: str = "f.csv") -> Path:
    path = folder / name
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return path


def test_rows_are_grouped_and_columns_taken_in_the_order_asked_for(tmp_path: Path) -> None:
    path = write(tmp_path, "b,unused,id,y,a\n1,z,t2,10,2\n3,z,t1,30,4\n5,z,t2,50,6\n")
    data = read(path)
    assert data.task_ids == ("t2", "t1")
    assert data.feature_names == ("a", "b")
    assert data.X.tolist() == [[2, 1], [6, 5], [4, 3]]
    assert data.y.tolist() == [10, 50, 30]


@pytest.mark.parametrize("end", ["\n", "\r\n"])
@pytest.mark.parametrize("mark", [b"", b"\xef\xbb\xbf"])
@pytest.mark.parametrize("packed", [False, True])
def test_line_ends_byte_order_marks_quotes_and_gzip(
    tmp_path: Path, end: str, mark: bytes, packed: bool
) -> None:
    lines = [
        '"id","y","a","b"',
        '"0471","1","2","3"',
        '"471","1e3","-2.5",".5"',
        '"a, ""b""/c","0","0","0"',
    ]
    content = mark + (end.join(lines) + end).encode()
    data = read(write(tmp_path, gzip.compress(content) if packed else content))
    assert data.task_ids == ("0471", "471", 'a, "b"/c')
    assert data.X.tolist() == [[2, 3], [-2.5, 0.5], [0, 0]]
    assert data.y.tolist() == [1, 1000, 0]


IDS = st.text(st.characters(codec="utf-8", exclude_characters="\0"), min_size=1, max_size=8)


@given(ids=st.lists(IDS, min_size=1, max_size=20), suffix=st.sampled_from([".csv", ".parquet"]))
def test_any_text_survives_as_an_id(
    ids: list[str], suffix: str, tmp_path_factory: pytest.TempPathFactory
) -> None:
    path = tmp_path_factory.mktemp("ids") / f"f{suffix}"
    frame = pl.DataFrame({"id": ids, "y": range(len(ids)), "a": 1.0, "b": 2.0})
    if suffix == ".csv":
        frame.write_csv(path, quote_style="always")
    else:
        frame.write_parquet(path)
    data = read(path)
    assert data.task_ids == tuple(dict.fromkeys(ids))
    expected = [i for name in data.task_ids for i, other in enumerate(ids) if other == name]
    assert data.y.tolist() == expected


@pytest.mark.parametrize("dtype", [pl.Int32, pl.UInt64, pl.Categorical])
def test_parquet_ids_may_be_integers_or_categories(tmp_path: Path, dtype: type[pl.DataType]) -> None:
    ids = pl.Series("id", ["7", "8", "7"]).cast(dtype)
    frame = pl.DataFrame({"id": ids, "y": [True, False, True], "a": [1, 2, 3], "b": [0.5, 1.5, 2.5]})
    frame.write_parquet(tmp_path / "f.bin")
    data = read(tmp_path / "f.bin")
    assert data.task_ids == ("7", "8")
    assert data.y.tolist() == [1, 1, 0]


def test_every_unusable_cell_is_named_at_once(tmp_path: Path) -> None:
    path = write(tmp_path, 'id,y,a,b\n1,1,2,3\n,4,nan,\n2,zz,1e400,"1,5"\n')
    with pytest.raises(DataError) as caught:
        read(path)
    assert caught.value.faults == [
        f"{path}, row 2, column 'a', 'nan': not a finite number; if it says that there is no value, "
        "state `empty='nan'`",
        f"{path}, row 2, column 'b': the number is empty: write one, or leave the row out",
        f"{path}, row 2, column 'id': the id is empty",
        f"{path}, row 3, column 'a', '1e400': not a finite number",
        f"{path}, row 3, column 'b', '1,5': not a number such as -1234.5 or 1e-3"
        "; the decimal sign must be a point, not a comma: 1.5; or state `decimal=','`",
        f"{path}, row 3, column 'y', 'zz': not a number such as -1234.5 or 1e-3",
    ]


def test_a_column_of_faults_is_shortened(tmp_path: Path) -> None:
    path = write(tmp_path, "id,y,a,b\n" + "x,NA,1,1\n" * 100)
    with pytest.raises(DataError, match="100 faults") as caught:
        read(path)
    assert caught.value.n_faults == 100
    assert len(caught.value.faults) == 20


@pytest.mark.parametrize("pack", [bytes, gzip.compress])
def test_quotes_in_a_header_are_those_of_its_fields(tmp_path: Path, pack: Callable[[bytes], bytes]) -> None:
    text = b'id,y,"sto""re","a, ""b""",c_duplicated_0\n1,2,3,4,5\n'
    data = read(write(tmp_path, pack(text)), ['a, "b"', 'sto"re', "c_duplicated_0"])
    assert data.feature_names == ('a, "b"', 'sto"re', "c_duplicated_0")
    assert data.X.tolist() == [[4, 3, 5]]


@pytest.mark.parametrize("pack", [bytes, gzip.compress])
@pytest.mark.parametrize(
    ("text", "message"),
    [
        (b"id,y,a,b,a\n1,1,1,1,1\n", "names 'a' 2 times"),
        (b"id,y,a,b,c,c,c\n1,1,1,1,1,1,1\n", "names 'c' 3 times"),
        (b'\xef\xbb\xbfid,y,a,b,"s""t","s""t"\r\n1,1,1,1,1,1\r\n', "names 's\"t' 2 times"),
        (b"id,y,a,b,,\n1,1,1,1,1,1\n", "names '' 2 times"),
    ],
)
def test_a_column_named_twice_is_refused(
    tmp_path: Path, text: bytes, message: str, pack: Callable[[bytes], bytes]
) -> None:
    path = write(tmp_path, pack(text))
    with pytest.raises(DataError) as caught:
        read(path)
    assert str(caught.value) == f"{path}: the header {message}"


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (b"", "is empty"),
        (b"id,y,a,b\n", "names its columns and has no rows"),
        (b"id,y,A,c\n1,1,1,1\n", "the column 'a' is missing; did you mean 'A'?"),
        (b"id,y,a,b\n1,1,1,1,9\n", "row 1, '1,1,1,1,9': the row has 5 fields, the header 4 (line 2)"),
        (b"id,y,a,b\n\xff\xfe,1,1,1\n", "; save it as UTF-8"),
        (b"\x7fELF\0\0\0", "is not CSV in UTF-8: its first line contains NUL bytes"),
        (b"PAR1 and then something else", "the Parquet file was cut off"),
        (b"\x1f\x8b\x08 not gzip at all", "begins as gzip and cannot be decompressed"),
        (b"{}", "looks like JSON, of which lines are read"),
    ],
)
def test_files_that_are_something_else_are_refused(tmp_path: Path, text: bytes, message: str) -> None:
    with pytest.raises(DataError) as caught:
        read(write(tmp_path, text))
    assert message in str(caught.value)


@pytest.mark.parametrize(
    ("column", "values", "message"),
    [
        ("id", [1.5, 2.5], "the column 'id' is of type Float64; text or whole numbers are needed"),
        ("id", ["x", None], "row 2, column 'id': the id is empty"),
        ("a", [None, 1.0], "row 1, column 'a': the number is empty: write one, or leave the row out"),
        ("a", [1.0, float("inf")], "row 2, column 'a', 'inf': not a finite number"),
        ("y", [[1.0], [2.0]], "the column 'y' is of type List(Float64); numbers are needed"),
    ],
)
def test_parquet_columns_of_the_wrong_kind_are_refused(
    tmp_path: Path, column: str, values: list[object], message: str
) -> None:
    parts: dict[str, list[object]] = {"id": ["x", "y"], "y": [1.0, 2.0], "a": [1.0, 2.0], "b": [1.0, 2.0]}
    pl.DataFrame({**parts, column: values}).write_parquet(tmp_path / "f.parquet")
    with pytest.raises(DataError) as caught:
        read(tmp_path / "f.parquet")
    assert message in str(caught.value)


@pytest.mark.parametrize("features", [[], ["a", "y"], ["id"]])
def test_columns_must_be_used_once(tmp_path: Path, features: list[str]) -> None:
    with pytest.raises(ParameterError):
        read(write(tmp_path, "id,y,a,b\n1,1,1,1\n"), features)


def test_a_repeated_feature_is_refused(tmp_path: Path) -> None:
    with pytest.raises(DataError, match="feature 'a' at position 1 is repeated"):
        read(write(tmp_path, "id,y,a,b\n1,1,1,1\n"), ["a", "a"])


def test_a_missing_file_is_an_os_error(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        read(tmp_path / "none.csv")


def test_damaged_parquet_is_read_or_refused_and_never_worse(tmp_path: Path) -> None:
    frame = pl.DataFrame({"id": ["a", "b", "c"] * 50, "y": range(150), "a": 0.5, "b": 1})
    frame.write_parquet(tmp_path / "f.parquet")
    whole = (tmp_path / "f.parquet").read_bytes()
    rng = np.random.default_rng(0)
    refused = 0
    for _ in range(400):
        damaged = bytearray(whole)
        damaged[rng.integers(len(damaged))] = rng.integers(256)
        try:
            read(write(tmp_path, bytes(damaged)))
        except DataError:
            refused += 1
    assert refused > 100


def test_numbers_keep_every_bit(tmp_path: Path) -> None:
    values = np.random.default_rng(0).standard_normal(500) * 10.0 ** np.arange(-250, 250)
    frame = pl.DataFrame({"id": "t", "y": values, "a": values, "b": 1})
    frame.write_csv(tmp_path / "f.csv")
    assert read(tmp_path / "f.csv").y.tobytes() == values.tobytes()

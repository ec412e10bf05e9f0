"""Statistics of files: the same as from memory, whatever the kind of file and the size of the pieces."""

from __future__ import annotations

import gzip
import subprocess
import sys
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ccmtl_core import DataError, ParameterError, SufficientStatistics, TaskDataset, statistics_from_files
from ccmtl_core.tables import ReadOptions, sample_files

FEATURES = ["price", "promo"]


@pytest.fixture(scope="module")
def table() -> pl.DataFrame:
    rng = np.random.default_rng(0)
    n = 500
    return pl.DataFrame(
        {
            "other": rng.normal(size=n),
            "store": [f"0{s}" for s in np.sort(rng.integers(0, 40, n))],
            "sold": rng.normal(size=n),
            "price": rng.normal(size=n),
            "promo": rng.integers(0, 2, n),
        }
    )


@pytest.fixture(scope="module")
def expected(table: pl.DataFrame) -> SufficientStatistics:
    X = table.select(pl.col(FEATURES).cast(pl.Float64)).to_numpy()
    ids = table["store"].to_list()
    return SufficientStatistics.from_dataset(TaskDataset.from_long(X, table["sold"].to_numpy(), ids))


def read(*paths: Path, **more: int) -> SufficientStatistics:
    return statistics_from_files(paths, task="store", target="sold", features=FEATURES, **more)


def assert_close(one: SufficientStatistics, other: SufficientStatistics) -> None:
    assert one.task_ids == other.task_ids
    np.testing.assert_array_equal(one.n_samples, other.n_samples)
    for name in ("gram", "xty", "yty", "weight", "x_sum", "y_sum"):
        np.testing.assert_allclose(getattr(one, name), getattr(other, name), rtol=1e-13, atol=1e-13)


@pytest.mark.parametrize("batch_rows", [1, 7, 100, 10_000])
@pytest.mark.parametrize("kind", ["csv", "parquet", "ipc", "gz"])
def test_pieces_give_what_the_whole_gives(
    table: pl.DataFrame, expected: SufficientStatistics, kind: str, batch_rows: int, tmp_path: Path
) -> None:
    file = tmp_path / "sales"
    if kind == "gz":
        file.write_bytes(gzip.compress(table.write_csv().encode()))
    else:
        getattr(table, f"write_{kind}")(file)
    statistics = read(file, batch_rows=batch_rows)
    assert_close(statistics, expected)
    assert statistics.feature_names == tuple(FEATURES)


def test_many_files_in_any_number_of_processes_give_the_same_bits(
    table: pl.DataFrame, expected: SufficientStatistics, tmp_path: Path
) -> None:
    files = []
    for number, part in enumerate(table.iter_slices(130)):  # a store's rows lie in two files here and there
        files.append(tmp_path / f"{number}.parquet")
        part.write_parquet(files[-1])
    one, two = read(*files), read(*files, n_jobs=2)
    assert_close(one, expected)
    assert one.task_ids == two.task_ids
    for name in ("gram", "xty", "yty", "weight", "x_sum", "y_sum"):
        np.testing.assert_array_equal(getattr(one, name), getattr(two, name))


def test_integers_name_tasks_in_parquet(table: pl.DataFrame, tmp_path: Path) -> None:
    table.with_columns(pl.col("store").cast(pl.Int64)).write_parquet(tmp_path / "sales.parquet")
    assert read(tmp_path / "sales.parquet").task_ids[0] == "0"


def test_faults_name_file_row_and_column(table: pl.DataFrame, tmp_path: Path) -> None:
    good, bad = tmp_path / "good.csv", tmp_path / "bad.csv"
    table.write_csv(good)
    lines = table.write_csv().splitlines()
    lines[321] = "1.0,,2.0,much,"
    bad.write_text("\n".join(lines))
    for more in ({"n_jobs": 1}, {"n_jobs": 2}):
        with pytest.raises(DataError) as refused:
            read(good, bad, batch_rows=100, **more)
        assert refused.value.faults == [
            f"{bad}, row 321, column 'price', 'much': not a number such as -1234.5 or 1e-3",
            f"{bad}, row 321, column 'promo': the number is empty: write one, or leave the row out",
            f"{bad}, row 321, column 'store': the id is empty",
        ]


def test_what_cannot_be_read_is_refused(table: pl.DataFrame, tmp_path: Path) -> None:
    whole, cut, empty = tmp_path / "whole.parquet", tmp_path / "cut.parquet", tmp_path / "empty.csv"
    table.write_parquet(whole)
    cut.write_bytes(whole.read_bytes()[:-100])
    empty.write_text("store,sold,price,promo\n")
    with pytest.raises(DataError, match=r"cut\.parquet: the Parquet file was cut off"):
        read(whole, cut)
    with pytest.raises(DataError, match=r"empty\.csv: the file names its columns and has no rows"):
        read(whole, empty)
    with pytest.raises(DataError, match=r"the column 'prize' is missing; did you mean 'price'"):
        statistics_from_files(whole, task="store", target="sold", features=["prize"])
    with pytest.raises(FileNotFoundError):
        read(tmp_path / "absent.csv")
    with pytest.raises(ParameterError, match="no files"):
        read()
    with pytest.raises(ParameterError, match="batch_rows"):
        read(whole, batch_rows=0)
    with pytest.raises(ParameterError, match="'sold' is used twice"):
        statistics_from_files(whole, task="store", target="sold", features=["sold"])


MEASURE = """
import resource, sys
from ccmtl_core import statistics_from_files
def peak():
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
read = lambda path: statistics_from_files(path, task="id", target="y", features=[f"x{p}" for p in range(10)])
read(sys.argv[1])
before = peak()
print(read(sys.argv[2]).n_samples.sum(), peak() - before)
"""


def test_memory_does_not_grow_with_the_file(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    files = []
    for n in (600_000, 2_400_000):
        numbers = {name: rng.random(n) for name in ("y", *(f"x{p}" for p in range(10)))}
        files.append(tmp_path / f"{n}.parquet")
        pl.DataFrame({"id": np.arange(n) % 100, **numbers}).write_parquet(
            files[-1], compression="uncompressed"
        )
    done = subprocess.run([sys.executable, "-c", MEASURE, *files], capture_output=True, text=True, check=True)
    n_rows, grown_kilobytes = map(int, done.stdout.split())
    assert n_rows == 2_400_000
    assert grown_kilobytes * 1024 < 0.4 * (files[1].stat().st_size - files[0].stat().st_size)


CELLS = {
    "store": ["1", "01", "a b", '"q"', '"a,b"', "", "é", "12345678", "12345679", 'x"', "x" * 513],
    "number": [
        "1",
        "-2.5",
        "0.1",
        "12,5",
        "1.234",
        "1,234",
        "1e3",
        "",
        "+1",
        " 1",
        "007",
        '"3"',
        "-0",
        "true",
    ],
    "other": ["", "x", '"y;\n"', "2024-01-01"],
}


def rows_of(delimiter: str) -> st.SearchStrategy[str]:
    number = st.one_of(st.integers(-99, 99).map(str), st.sampled_from(CELLS["number"][:2]))
    plain = st.tuples(st.sampled_from(CELLS["store"][:4]), number, number, st.just(""))
    odd = st.tuples(*(st.sampled_from(CELLS[k]) for k in ("store", "number", "number", "other")))
    lines = st.lists(st.one_of(plain, plain, plain, odd).map(delimiter.join), max_size=5)
    return lines.map(
        lambda rows: delimiter.join(["store", "sold", "price", "other"]) + "\n" + "\n".join(rows)
    )


@settings(max_examples=40, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    content=st.sampled_from(",;").flatmap(rows_of),
    end=st.sampled_from(["", "\n", "\r\n"]),
    decimal=st.sampled_from([None, None, ",", "."]),
)
def test_one_pass_over_plain_rows_says_what_the_careful_reader_says(
    content: str, end: str, decimal: str | None, tmp_path: Path
) -> None:
    file = tmp_path / "f.csv"
    file.write_bytes((content.replace("\n", end or "\n") + end).encode())
    told = []
    for is_quick in (True, False):
        with pytest.MonkeyPatch.context() as patch:
            if not is_quick:
                patch.setattr(sample_files, "_statistics_of_plain_text", lambda *_: None)
            try:
                statistics = statistics_from_files(
                    file, task="store", target="sold", features=["price"], batch_rows=2,
                    dialect=ReadOptions(decimal=decimal),
                )  # fmt: skip
                told.append({k: np.asarray(v).tolist() for k, v in vars(statistics).items() if v is not None})
            except DataError as error:
                told.append(str(error))
    assert told[0] == told[1]

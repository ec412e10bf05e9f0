"""The paper's data: how many samples, which rows train, and what a table of counts becomes."""

from __future__ import annotations

import io
import zipfile
from collections.abc import Callable
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from scipy.io import savemat

from ccmtl_core import DataError, TaskDataset
from ccmtl_core.data.synthetic import grouped_syn
from ccmtl_core.reproduce.readers import (
    lagged,
    random_split,
    read_counts,
    read_sales,
    read_school,
    read_ta_feng,
)
from tests.support.real_data import DATA, SCHOOL, TA_FENG, needs

SALES = DATA / "sales_weekly"


@needs(SCHOOL)
def test_school_has_the_papers_numbers() -> None:
    data = read_school(DATA)
    assert (data.n_tasks, len(data.y), data.n_features) == (139, 15_362, 28)
    assert (data.X[:, 27] == 1).all()


@needs(SALES)
def test_sales_has_42_samples_per_product() -> None:
    data = read_sales(DATA)
    assert (data.n_tasks, set(data.n_samples.tolist()), len(data.y)) == (811, {42}, 34_062)


@needs(TA_FENG)
@pytest.mark.slow
def test_ta_feng_has_110_samples_per_product() -> None:
    data = read_ta_feng(DATA)
    assert (data.n_tasks, set(data.n_samples.tolist()), len(data.y)) == (23_812, {110}, 2_619_320)


def test_counts_of_stops_add_up_and_missing_ones_are_zero(tmp_path: Path) -> None:
    times = [f"2024-01-01T{hour:02}:00" for hour in range(12)]
    rows = [("007", t, 1.0) for t in times] + [("007", times[11], 2.0), ("9", times[0], 5.0)]
    pl.DataFrame(rows, ["stop", "time", "boardings"], orient="row").sample(
        fraction=1.0, shuffle=True, seed=0
    ).write_csv(tmp_path / "stops.csv")
    data = read_counts(tmp_path / "stops.csv", "stop", "time", "boardings")
    assert data.task_ids == ("007", "9")
    assert data.y.tolist() == [1.0, 3.0, 0.0, 0.0]
    assert data.X[0].tolist() == [1.0] * 5


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("stop,time\na,1\n", "cannot be read: it has no column 'n'; its columns are 'stop', 'time'$"),
        ("stop,time,n\na,1,2\n", "more than 10 times"),
        ("stop,time,n\na,1,\n", "empty cells"),
        ("stop,time,n\na,W9,1\na,W10,1\n", "do not sort"),
    ],
)
def test_tables_that_cannot_be_used_are_refused(text: str, words: str, tmp_path: Path) -> None:
    (tmp_path / "stops.csv").write_text(text)
    with pytest.raises(DataError, match=words):
        read_counts(tmp_path / "stops.csv", "stop", "time", "n")


def test_a_missing_file_is_named_with_its_origin(tmp_path: Path) -> None:
    with pytest.raises(DataError, match=r"no school\.mat in .* MALSAR"):
        read_school(tmp_path)


def _archive() -> bytes:
    stream = io.BytesIO()
    zipfile.ZipFile(stream, "w").close()
    return stream.getvalue()


def _matrices() -> bytes:
    stream = io.BytesIO()
    savemat(stream, {"A": np.eye(2)})
    return stream.getvalue()


@pytest.mark.parametrize(
    ("read", "name", "content", "words"),
    [
        (read_school, "school.mat", b"", "school.mat that ships with"),
        (read_school, "school.mat", b"junk" * 99, "school.mat that ships with"),
        (read_school, "school.mat", _matrices(), "it has no variables X and Y"),
        (read_sales, "Sales_Transactions_Dataset_Weekly.csv", b"W0,W2\n1,2\n", "no column 'Product_Code'"),
        (read_sales, "Sales_Transactions_Dataset_Weekly.csv", b"Product_Code,W0\n1,2\n", "no column 'W1'"),
        (read_ta_feng, "ta_feng.csv.zip", b"junk", "not a zip file"),
        (read_ta_feng, "ta_feng.csv.zip", _archive(), "the archive is empty"),
    ],
)
def test_a_file_that_is_another_is_named_with_what_to_do(
    read: Callable[[Path], TaskDataset], name: str, content: bytes, words: str, tmp_path: Path
) -> None:
    (tmp_path / name).write_bytes(content)
    with pytest.raises(DataError, match=rf"{name} is not the .*{words}.*: fetch it from there"):
        read(tmp_path)


def test_a_split_takes_the_share_of_each_task_and_loses_no_row() -> None:
    sizes = [1, 10, 25]
    data = TaskDataset.from_arrays([np.ones((n, 1)) for n in sizes], [np.arange(n) for n in sizes])
    split = random_split(data, 0.4, 5, np.random.default_rng(0))
    assert split.training.n_samples.tolist() == [1, 4, 10]
    assert (split.training.n_samples + split.held_out.n_samples).tolist() == sizes
    assert np.ptp([fold.n_samples[2] for fold in split.folds]) == 0
    total = split.training + split.held_out
    np.testing.assert_allclose(total.yty, [float((np.arange(n) ** 2).sum()) for n in sizes])


def test_series_become_rows_of_the_five_values_before() -> None:
    data = lagged(np.arange(13.0)[None], ["a"])
    assert data.X.tolist() == [[9, 8, 7, 6, 5], [10, 9, 8, 7, 6], [11, 10, 9, 8, 7]]
    assert data.y.tolist() == [10, 11, 12]


def test_groups_of_syn_share_five_features_and_seeds_repeat() -> None:
    tasks = grouped_syn(np.random.default_rng(3), task_spread=0.0)
    W, group = tasks.weights, tasks.cluster
    assert (W[group == 0] == W[0]).all()
    assert (np.flatnonzero(W[1]) == np.arange(5, 10)).all()
    rest = tasks.dataset.y - np.einsum("np,np->n", tasks.dataset.X, W[tasks.dataset.task_index])
    assert rest.std() == pytest.approx(1.0, rel=0.05)
    again = grouped_syn(np.random.default_rng(3), task_spread=0.0)
    np.testing.assert_array_equal(again.dataset.y, tasks.dataset.y)

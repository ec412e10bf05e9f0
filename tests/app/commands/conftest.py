"""A file of samples for the tests of ``ccmtl fit``."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import polars as pl
import pytest

from ccmtl_core.data.synthetic import syn


@pytest.fixture(scope="module")
def table() -> pl.DataFrame:
    data = syn(np.random.default_rng(0), n_tasks=30, n_features=2, n_samples=20).dataset
    ids = [f"0{t}" for t in data.task_index]
    return pl.DataFrame({"id": ids, "y": data.y, "a": data.X[:, 0], "b": data.X[:, 1]})


@pytest.fixture
def csv(table: pl.DataFrame, tmp_path: Path) -> Path:
    table.write_csv(tmp_path / "sales.csv")
    return tmp_path / "sales.csv"

"""A sample of an upload's rows tells whether others hold them, without the rows."""

from __future__ import annotations

import numpy as np
import polars as pl
import pytest

from app.datasets.stored import row_samples
from app.datasets.stored.row_samples import row_hashes, sampled
from app.datasets.upload.overlap import overlap_of_rows
from ccmtl_core.tables.cells import ROW

RNG = np.random.default_rng(5)


def rows(n: int, first: int = 0) -> pl.DataFrame:
    ids = [f"{t % 7}" for t in range(n)]
    return pl.DataFrame({"unique_id": ids, "y": np.arange(first, first + n) / 3, "x_0": np.ones(n)})


def test_the_hash_of_a_row_stays_the_same() -> None:
    frame = pl.DataFrame({"unique_id": ["0001", "1", "1"], "y": [1.5, 0.0, -0.0], "x_0": [2.0, -1.0, -1.0]})
    hashes = row_hashes(frame).tolist()
    assert hashes[1] == hashes[2]
    assert hashes[:2] == [12873009727424111631, 14413721674769957110]


def test_columns_are_not_taken_for_each_other() -> None:
    frame = pl.DataFrame({"unique_id": ["a", "a"], "y": [1.0, 2.0], "x_0": [2.0, 1.0]})
    assert len(set(row_hashes(frame).tolist())) == 2


@pytest.mark.parametrize("n_again", [10_000, 5_000, 0])
def test_rows_of_a_large_upload_that_come_again_are_estimated(
    monkeypatch: pytest.MonkeyPatch, n_again: int
) -> None:
    monkeypatch.setattr(row_samples, "MAX_SAMPLED", 500)
    earlier = pl.concat([sampled(rows(10_000), 0), sampled(rows(40, first=50_000), 1)])
    assert earlier.height == 540
    sent = pl.concat([rows(10_000)[:n_again], rows(300, first=90_000)])
    found = overlap_of_rows(sent.with_row_index(ROW, offset=1), earlier)
    if not n_again:
        assert found is None
        return
    assert found is not None
    assert found.n_rows == pytest.approx(n_again, rel=0.15)
    assert f"about {found.n_rows} of {sent.height} rows" in found.first.message
    assert found.is_doubtful == (n_again == 10_000)

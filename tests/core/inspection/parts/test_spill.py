"""Rows that are set aside come back as they were, by region and across regions, and series by series."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, closing
from pathlib import Path

import numpy as np
import pytest

from ccmtl_core.inspection.parts.spill import Spill, regroup


@pytest.fixture
def files() -> Iterator[ExitStack]:
    with ExitStack() as stack:
        yield stack


def spill(files: ExitStack, path: Path, *types: type[np.generic]) -> Spill:
    path.touch()
    return files.enter_context(closing(Spill(path, types)))


def test_rows_are_read_across_regions(tmp_path: Path, files: ExitStack) -> None:
    numbers, values = np.arange(23, dtype=np.int32), np.arange(23) / 7
    rows = spill(files, tmp_path / "rows", np.int32, np.float64)
    for begin in range(0, 23, 5):
        rows.append((numbers[begin : begin + 5], values[begin : begin + 5]))
    for begin, end in ((0, 23), (4, 6), (5, 10), (7, 8), (3, 23)):
        read = rows.read(begin, end)
        assert [column.tolist() for column in read] == [
            numbers[begin:end].tolist(),
            values[begin:end].tolist(),
        ]
    rows.close()
    with pytest.raises(ValueError, match="closed"):
        rows.read(0, 1)


def test_rows_are_regrouped_in_their_order_with_their_numbers(tmp_path: Path, files: ExitStack) -> None:
    random = np.random.default_rng(0)
    codes, values = random.integers(0, 6, 50).astype(np.int32), random.random(50)
    rows = spill(files, tmp_path / "rows", np.int32, np.float64)
    for begin in range(0, 50, 7):
        rows.append((codes[begin : begin + 7], values[begin : begin + 7]))
    group_of = np.array([2, 0, 1, 0, 2, 1])
    groups = group_of[codes]
    to = spill(files, tmp_path / "groups", np.int32, np.float64, np.int64)
    regroup(rows.read, to, group_of, np.bincount(groups), batch_rows=8)
    order = np.argsort(groups, kind="stable")
    read = to.read(0, 50)
    assert [column.tolist() for column in read] == [
        codes[order].tolist(),
        values[order].tolist(),
        order.tolist(),
    ]


def test_a_file_that_was_cut_is_no_reason_to_wait_forever(tmp_path: Path, files: ExitStack) -> None:
    rows = spill(files, tmp_path / "rows", np.int32)
    rows.append((np.arange(9, dtype=np.int32),))
    (tmp_path / "rows").write_bytes(b"")
    with pytest.raises(EOFError):
        rows.read(0, 9)

"""The benchmark of scale runs at sizes of seconds, and its sections hold what they promise there."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from benchmarks.scale import appended, many_tasks, million, neighbours
from examples.ta_feng import generate


@pytest.mark.landing
def test_growing_sizes_end_certified_and_give_a_slope() -> None:
    section = many_tasks.measure(sizes=(300, 600))
    assert len(section.tables) == 2
    for rows in section.tables.values():
        assert [row["tasks"] for row in rows] == [300] * 3 + [600] * 3
        assert max(row["gap"] for row in rows) <= many_tasks.TOLERANCE
    slopes = [bar for bar in section.bars if "slope" in bar.what]
    assert len(slopes) == 6


def test_overlapping_centres_make_one_component() -> None:
    (rows,) = many_tasks.measure(sizes=(1000,), spreads=["overlapping"]).tables.values()
    assert {row["components"] for row in rows} == {1}


def test_the_slope_is_that_of_the_logarithms() -> None:
    rows = [{"tasks": n, "seconds": 3.0 * n**1.5} for n in (10, 100, 1000)]
    assert many_tasks.slope(rows) == pytest.approx(1.5)


@pytest.mark.slow
def test_streamed_blocks_are_fitted_in_a_process_of_their_own() -> None:
    section = million.measure(n_tasks=1500)
    (rows,) = section.tables.values()
    assert [row["share"] for row in rows] == ["0.001", "0.01", "0.1"]
    assert max(row["gap"] for row in rows) <= many_tasks.TOLERANCE
    assert all(0.05 < row["peak GB"] < 4.0 for row in rows)
    assert all(row["generating"] > 0.0 for row in rows)


def test_the_search_by_blocks_finds_what_a_tree_finds() -> None:
    points = np.random.default_rng(0).normal(size=(1500, 5))
    row = neighbours.compare("a cloud", points)
    assert (row["points"], row["features"], row["rows that differ"]) == (1500, 5, 0)
    assert row["tree / blocks"] > 0.0


def test_appending_ends_where_the_cold_run_ends(tmp_path: Path) -> None:
    source = generate(tmp_path / "transactions.csv", n_products=150, n_days=60)
    section = appended.compare(source, tmp_path, [3.0])
    (rows,) = section.tables.values()
    assert abs(rows[0]["difference of J"]) <= appended.TOLERANCE
    assert max(rows[0]["gap"], rows[0]["cold gap"]) <= appended.TOLERANCE

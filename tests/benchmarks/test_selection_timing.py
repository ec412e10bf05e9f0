"""The timing of a selection at a size of seconds: what it tells is what the selection found."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from benchmarks.selection import timing
from ccmtl_core import select
from ccmtl_core.synthetic import syn


def test_the_whole_selection_is_timed_and_told() -> None:
    data = syn(np.random.default_rng(0), n_tasks=40, n_features=2, n_samples=20).dataset
    section = timing.time_selection(data, most_seconds=1e-9)
    (whole,), path = section.tables.values()
    expected = select(data)
    assert (whole["folds"], whole["strengths"]) == (5, 21)
    assert whole["error"] == pytest.approx(expected.errors.min())
    assert whole["shrunk"] == pytest.approx(expected.rivals["shrunk"].mean())
    assert [row["error"] for row in path] == pytest.approx(expected.errors.tolist())
    assert [bar.met for bar in section.bars] == [False, True, True]


def test_what_is_not_there_is_skipped(tmp_path: Path) -> None:
    assert "is not there" in str(timing.measure(tmp_path).skipped)

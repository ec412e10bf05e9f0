"""The timing of a selection at a size of seconds: what it tells is what the selection found."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from benchmarks import ta_feng
from benchmarks.scale import appended
from benchmarks.selection import data, midsize, models, timing, wide
from ccmtl_core import select
from ccmtl_core.data.synthetic import syn
from examples.ta_feng import NotToBeHad


def test_the_whole_selection_is_timed_and_told() -> None:
    rows = syn(np.random.default_rng(0), n_tasks=40, n_features=2, n_samples=20).dataset
    section = timing.time_selection(rows, most_seconds=1e-9)
    (whole,), path = section.tables.values()
    expected = select(rows)
    assert (whole["folds"], whole["strengths"]) == (5, 21)
    assert whole["error"] == pytest.approx(expected.errors.min())
    assert whole["shrunk"] == pytest.approx(expected.rivals["shrunk"].mean())
    assert [row["error"] for row in path] == pytest.approx(expected.errors.tolist())
    assert [bar.met for bar in section.bars] == [False, True, True]


def test_the_stages_of_a_selection_of_invented_weeks_are_timed() -> None:
    section = midsize.measure(n_tasks=60, n_features=10)
    for rows in section.tables.values():
        stages = [row["stage"] for row in rows]
        assert stages[:2] == ["whole selection", "statistics of all folds"]
        assert stages[-1].startswith("one fold: path, 21 strengths in ")
    assert [bar.met for bar in section.bars] == [True] * 4


def test_a_selection_with_many_features_is_timed_and_certified() -> None:
    section = wide.measure(n_tasks=60, n_features=24)
    stages, folds = section.tables.values()
    assert stages[0]["stage"] == "whole selection"
    assert len(folds) == 5
    assert [bar.met for bar in section.bars[1:]] == [True, True]


@pytest.fixture
def no_pip(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def fetch(folder: Path) -> None:
        raise NotToBeHad("pip could not download it")

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(ta_feng, "fetch", fetch)


@pytest.mark.usefixtures("no_pip")
def test_what_is_not_to_be_had_is_skipped(tmp_path: Path) -> None:
    assert timing.measure(tmp_path).skipped == "pip could not download it"
    assert appended.measure(tmp_path).skipped == "pip could not download it"
    left_out = str(models.measure(tmp_path).skipped)
    assert "pip could not download it" in left_out
    assert f"{data.SALES} is not there; --help says where it comes from" in left_out

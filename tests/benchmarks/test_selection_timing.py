"""The timing of a selection at a size of seconds: what it tells is what the selection found."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from benchmarks.selection import __main__ as command
from benchmarks.selection import timing
from benchmarks.solver.report import Bar, Section
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


def test_what_is_not_there_is_skipped(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert "is not there" in str(timing.measure(tmp_path).skipped)
    chosen = command.options(["--json", "--only", "timing", "--data", str(tmp_path)])
    assert command.run(chosen) == 0
    assert "is not there" in json.loads(capsys.readouterr().out)["sections"]["timing"]["skipped"]


@pytest.mark.parametrize(("arguments", "code"), [([], 1), (["--no-bar"], 0)])
def test_a_missed_bar_is_told(
    arguments: list[str], code: int, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    section = Section({"A table": [{"seconds": 2.0}]}, [Bar("seconds", 2.0, 1.0)])
    monkeypatch.setattr(command, "SECTIONS", {"timing": lambda folder: section})
    assert command.run(command.options(arguments)) == code
    assert "missed: timing: seconds: 2, ≤ 1" in capsys.readouterr().err

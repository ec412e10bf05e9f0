"""The command line of all packages of benchmarks: sections chosen, missed bars told, one core kept."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from runpy import run_path
from typing import Any

import pytest

from benchmarks.forecasting import __main__ as forecasting
from benchmarks.report import Bar, Section
from benchmarks.runner import Sections, command_line, run
from benchmarks.scale import __main__ as scale
from benchmarks.selection import __main__ as selection
from benchmarks.solver import __main__ as solver

ROOT = Path(__file__).parents[2]
PACKAGES = {
    "solver": solver.SECTIONS,
    "scale": scale.SECTIONS,
    "selection": selection.SECTIONS,
    "forecasting": forecasting.SECTIONS,
}


def printed_by(package: str, *arguments: str) -> dict[str, Any]:
    command = [sys.executable, "-m", f"benchmarks.{package}", "--json", *arguments]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    document: dict[str, Any] = json.loads(done.stdout)
    return document


@pytest.mark.parametrize(("arguments", "code"), [([], 1), (["--no-bar"], 0)])
def test_a_missed_bar_is_told(arguments: list[str], code: int, capsys: pytest.CaptureFixture[str]) -> None:
    section = Section(
        {"A table": [{"seconds": 2.0}]}, [Bar("seconds", 2.0, 1.0), Bar("ratio", 3.0, 2.0, at_least=True)]
    )
    sections: Sections = {"gram": lambda chosen: section}
    options = command_line("solver", "About.", sections, "a folder")
    assert run(sections, options.parse_args(arguments)) == code
    printed = capsys.readouterr()
    assert "measuring gram ..." in printed.err
    assert "missed: gram: seconds: 2, ≤ 1" in printed.err
    assert "ratio" not in printed.err
    assert run(sections, options.parse_args([*arguments, "--json"])) == code
    document = json.loads(capsys.readouterr().out)
    assert document["missed"] == ["gram: seconds: 2, ≤ 1"]
    assert [bar["met"] for bar in document["sections"]["gram"]["bars"]] == [False, True]


def test_a_figure_that_is_not_a_number_misses() -> None:
    assert not Bar("ratio", float("nan"), 1.0).met
    assert not Bar("ratio", float("nan"), 1.0, at_least=True).met


RUN_AS_MODULES = sorted(
    str(path.relative_to(ROOT))
    for path in (ROOT / "benchmarks").rglob("*.py")
    if '__name__ == "__main__"' in path.read_text()
)


@pytest.mark.parametrize("path", RUN_AS_MODULES)
def test_help_measures_nothing(
    path: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys, "argv", [path, "--help"])
    with pytest.raises(SystemExit) as ended:
        run_path(str(ROOT / path), run_name="__main__")
    printed = capsys.readouterr()
    module = path.removesuffix(".py").replace("/", ".").removesuffix(".__main__")
    assert (ended.value.code, printed.err) == (0, "")
    assert f"usage: python -m {module}" in printed.out


@pytest.mark.parametrize("package", PACKAGES)
def test_sections_are_chosen_by_name(package: str, capsys: pytest.CaptureFixture[str]) -> None:
    sections = PACKAGES[package]
    options = command_line(package, "About.", sections, "a folder")
    first, *_, last = sections
    assert options.parse_args([]).only == list(sections)
    assert options.parse_args(["--only", f"{last},{first}"]).only == [last, first]
    with pytest.raises(SystemExit) as stopped:
        options.parse_args(["--only", f"{first},nothing"])
    assert stopped.value.code == 2
    assert f"there is no section nothing; there are {first}" in capsys.readouterr().err


@pytest.mark.landing
def test_the_solver_is_measured_on_one_core(tmp_path: Path) -> None:
    document = printed_by("solver", "--only", "school", "--data", str(tmp_path))
    assert "school.mat is not there" in document["sections"]["school"]["skipped"]
    assert sys.platform != "linux" or len(document["machine"]["pinned_to"]) == 1

"""``ccmtl reproduce``: tables, files, and messages about what is missing or wrong."""

from __future__ import annotations

import json
from pathlib import Path
from typing import get_args

import pytest
from typer.testing import CliRunner, Result

from app.commands import reproduce_command
from app.commands.cli import cli
from ccmtl_core.reproduce import EXPERIMENTS

QUICK = ("--quick", "--repeats", 1, "--methods", "STL,ITL", "--settings", "20 %")


def run(*arguments: object) -> Result:
    return CliRunner().invoke(cli, ["reproduce", *map(str, arguments)], env={"NO_COLOR": "1"})


def test_an_experiment_is_printed_kept_and_drawn(tmp_path: Path) -> None:
    done = run("syn", *QUICK, "--output", tmp_path / "out")
    assert done.exit_code == 0, done.stderr
    assert done.stdout.startswith("| RMSE over all rows | 20 % |\n| --- | --- |\n| STL | ")
    assert "| mean RMSE of tasks | 20 % |" in done.stdout
    assert "2/2: ITL, 20 %, repeat 1" in done.stderr
    names = {path.name for path in (tmp_path / "out").iterdir()}
    assert names == {f"syn-quick.{ending}" for ending in ("jsonl", "json", "md", "png")}
    again = json.loads(run("syn", *QUICK, "--output", tmp_path / "out", "--json").stdout)
    assert [row["method"] for row in again["rows"]] == ["STL", "ITL"]
    assert (tmp_path / "out" / "syn-quick.md").read_text() == done.stdout


@pytest.mark.parametrize(
    ("arguments", "code", "words"),
    [
        (("school",), 1, "there is no school.mat"),
        (("syn", "--methods", "CCML"), 2, "did you mean CCMTL?"),
        (("syn", "--methods", ""), 2, "--methods names no method: leave it out for all, or name some of STL"),
        (("syn", "--settings", " "), 2, "--settings names no setting"),
        (("syn", "--settings", "50"), 2, "there is no setting '50'"),
        (("table",), 2, "--columns"),
        (("table", "--columns", "a,b"), 2, "must name three"),
        (("syn", "--columns", "a,b,c"), 2, "go together"),
        (("table", "--columns", "a,b,b"), 2, "all different"),
        (("syn", "--limit", "inf"), 2, "'--limit': Input should be less than or equal to 100000000"),
        (("table", "--columns", "a,b,c", "--data", "nowhere.csv"), 1, "there is no file nowhere.csv"),
    ],
)
def test_what_is_missing_or_wrong_is_said(
    arguments: tuple[str, ...], code: int, words: str, tmp_path: Path
) -> None:
    done = run(*arguments, "--output", tmp_path)
    assert done.exit_code == code
    assert words in " ".join(done.stderr.replace("│", " ").split())


def test_without_the_extra_its_name_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(name: str) -> None:
        raise ImportError(f"no {name}")

    monkeypatch.setattr(reproduce_command, "import_module", missing)
    done = run("syn")
    assert done.exit_code == 1
    assert "pip install 'ccmtl[reproduce]'" in done.stderr


def test_the_options_offer_the_experiments_there_are() -> None:
    assert set(get_args(reproduce_command.Experiment)) == {*EXPERIMENTS, "table"}

"""``ccmtl fit``: report, model file, messages, exit codes; as a process where pipes and terminals matter."""

from __future__ import annotations

import json
import os
import pty
import select
import subprocess
import sys
from dataclasses import replace
from pathlib import Path
from typing import Any, get_args

import numpy as np
import polars as pl
import pytest
from rich.console import Console
from typer.testing import CliRunner, Result

from app.commands import fit_data, options
from app.commands.cli import NamedCommand, cli
from app.commands.fit_model import _once, _share_done
from ccmtl_core import (
    CCMTLModel,
    DataError,
    FitResult,
    ModelChoices,
    SolveStatus,
    TaskDataset,
    fit,
)
from ccmtl_core.choices.model_choices import LossScaling, Metric, choice_texts
from ccmtl_core.fitting.scoring import RULES
from ccmtl_core.fitting.selection import DEFAULT_FOLDS, FOLDS
from ccmtl_core.solver.fusion_solver import SOLVERS
from tests.support.forked import forked_ccmtl
from tests.support.processes import PATIENCE

COMMAND = [sys.executable, "-m", "app.commands.cli", "fit"]
COLUMNS = ["--task", "id", "--target", "y", "--features", "a,b"]


def run(*arguments: str | Path) -> Result:
    return CliRunner().invoke(cli, ["fit", *map(str, arguments)])


def dataset_of(table: pl.DataFrame) -> TaskDataset:
    X = table.select("a", "b").to_numpy()
    return TaskDataset.from_long(X, table["y"].to_numpy(), table["id"].to_list(), feature_names=["a", "b"])


def test_json_report_and_model_equal_a_fit_in_the_library(
    csv: Path, table: pl.DataFrame, tmp_path: Path
) -> None:
    model_file = tmp_path / "model.npz"
    arguments = [csv, *COLUMNS, "--fusion-strength", "0.5", "--json", "--output", model_file]
    done = forked_ccmtl("fit", *map(str, arguments))
    assert done.returncode == 0, done.stderr
    assert [line for line in done.stderr.splitlines() if not line.startswith("Compiling")] == []
    report = json.loads(done.stdout)
    assert (report["tasks"], report["samples"], report["status"]) == (30, 600, "converged")
    assert report["gap"] <= report["tolerance"] == 1e-4
    assert set(report["seconds"]) == {"statistics", "start", "graph", "solve"}
    from_library = fit(dataset_of(table), fusion_strength=0.5)
    model = CCMTLModel.load(report["model"])
    assert model.weights.tobytes() == from_library.model.weights.tobytes()
    assert model.task_ids[:2] == ("00", "01")
    assert report["objective"] == from_library.report.objective


@pytest.mark.parametrize("metric", ["euclidean", "mahalanobis"])
def test_the_model_s_choices_are_those_of_the_library(
    csv: Path, table: pl.DataFrame, tmp_path: Path, metric: str
) -> None:
    chosen = ["--fit-intercept", "--loss-scaling", "spread", "--metric", metric]
    done = run(csv, *COLUMNS, "--fusion-strength", "0.5", *chosen, "--output", tmp_path / "m.npz")
    assert done.exit_code == 0, done.stderr
    choices: dict[str, Any] = {"fit_intercept": True, "loss_scaling": "spread", "metric": metric}
    expected = fit(dataset_of(table), fusion_strength=0.5, **choices).model
    model = CCMTLModel.load(tmp_path / "m.npz")
    assert model.weights.tobytes() == expected.weights.tobytes()
    assert model.intercept.tobytes() == expected.intercept.tobytes()


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (["--loss-scaling", "residual"], "'residual' is not one of 'none', 'spread'"),
        (["--metric", "cosine"], "'cosine' is not one of 'euclidean', 'mahalanobis'"),
        (["--start", "shrunk"], "No such option: --start"),
    ],
)
def test_a_choice_that_does_not_exist_is_a_wrong_command(csv: Path, wrong: list[str], message: str) -> None:
    done = run(csv, *COLUMNS, "--fusion-strength", "0.5", *wrong)
    assert done.exit_code == 2
    assert message in " ".join(done.stderr.replace("│", " ").split())


def test_parquet_gives_the_same_and_the_table_is_for_people(
    csv: Path, table: pl.DataFrame, tmp_path: Path
) -> None:
    table.write_parquet(tmp_path / "sales.parquet")
    done = run(tmp_path / "sales.parquet", *COLUMNS, "--fusion-strength", "0.5")
    again = run(csv, *COLUMNS, "--fusion-strength", "0.5")
    assert (done.exit_code, again.exit_code) == (0, 0), done.stderr

    def without_times(text: str) -> list[str]:
        return [line for line in text.splitlines() if not line.startswith("seconds")]

    assert without_times(done.stdout) == without_times(again.stdout)
    assert "status           converged" in done.stdout
    assert "tasks            30" in done.stdout


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--task", "id", "--target", "y", "--features", "a,y"], "column 'y' is used twice"),
        (["--task", "id", "--target", "y", "--features", ""], "at least one feature column is needed"),
        ([*COLUMNS, "--output", "nowhere/model.npz"], "the folder of nowhere/model.npz does not exist"),
        ([*COLUMNS, "--output", "model.txt"], "give a name that ends in .npz"),
        ([*COLUMNS, "--solver", "magic"], "'magic' is not one of 'auto'"),
        ([*COLUMNS, "--tolerance", "0"], "0.0 is not a finite number above 0"),
        ([*COLUMNS, "--fusion-strength", "-1"], "0, or from 1e-100 to 1e100; not '-1'"),
        ([*COLUMNS, "--fusion-strength", "nan"], "0, or from 1e-100 to 1e100"),
        ([*COLUMNS, "--fusion-strength", "1e-101,1"], "0, or from 1e-100 to 1e100"),
        ([*COLUMNS, "--n-neighbors", "0"], "'--n-neighbors': Input should be greater than or equal to 1"),
        (["--lags", "0", "--frequency", "D"], "'--lags': Input should be greater than or equal to 1"),
    ],
)
def test_a_wrong_argument_is_said_in_words(csv: Path, arguments: list[str], message: str) -> None:
    done = run(csv, "--fusion-strength", "1", *arguments)
    assert done.exit_code == 2
    assert message in " ".join(done.stderr.split())
    assert isinstance(done.exception, SystemExit)
    assert done.stdout == ""


def test_a_column_that_is_not_there_is_named_with_a_near_match(csv: Path) -> None:
    done = run(csv, "--task", "id", "--target", "y", "--features", "a,A", "--fusion-strength", "1")
    assert (done.exit_code, done.stdout) == (1, "")
    assert "the column 'A' is missing; did you mean 'a'?" in done.stderr


def test_bad_cells_and_missing_files_are_named(tmp_path: Path) -> None:
    (tmp_path / "bad.csv").write_text("id,y,a,b\nx,1,2,3\nx,one,2,\n")
    done = run(tmp_path / "bad.csv", *COLUMNS, "--fusion-strength", "1")
    assert done.exit_code == 1
    assert "row 2, column 'y', 'one': not a number" in done.stderr
    assert "row 2, column 'b': the number is empty" in done.stderr
    missing = run(tmp_path / "none.csv", *COLUMNS, "--fusion-strength", "1")
    assert missing.exit_code == 1
    assert f"There is no file {tmp_path / 'none.csv'}; this runs in {Path.cwd()}" in missing.stderr


def test_an_output_that_is_no_file_is_refused_before_anything_is_read(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.npz")
    done = run(tmp_path / "none.csv", *COLUMNS, "--fusion-strength", "1", "--output", tmp_path / "pipe.npz")
    assert (done.exit_code, done.stdout) == (2, "")
    assert f"{tmp_path / 'pipe.npz'} is a pipe, a socket or a device; give the name of a file" in done.stderr
    assert (tmp_path / "pipe.npz").is_fifo()


@pytest.mark.parametrize("strength", ["1", "auto"])
def test_a_folder_is_told_from_a_file(tmp_path: Path, strength: str) -> None:
    done = run(tmp_path, *COLUMNS, "--fusion-strength", strength)
    assert (done.exit_code, done.stdout) == (1, "")
    assert done.stderr == f"{tmp_path} is a folder; give one file, with the rows of all files in it\n"


@pytest.mark.parametrize("mark", [";", "\t", "|"])
def test_a_file_with_another_separator_gives_the_same_model(tmp_path: Path, mark: str) -> None:
    text = "id,y,a,b\nx,1,2,3\nx,2,1,5\nz,4,1,1\n"
    for name, content in (("commas", text), ("others", text.replace(",", mark))):
        (tmp_path / f"{name}.csv").write_text(content)
        done = run(
            tmp_path / f"{name}.csv", *COLUMNS, "--fusion-strength", "1", "--output", tmp_path / f"{name}.npz"
        )
        assert done.exit_code == 0, done.stderr
    models = [CCMTLModel.load(tmp_path / f"{name}.npz") for name in ("commas", "others")]
    np.testing.assert_array_equal(models[0].weights, models[1].weights)


@pytest.mark.parametrize("command", ["fit", "serve", "statistics-sql"])
def test_switches_are_shown_as_such(command: str) -> None:
    shown = CliRunner().invoke(cli, [command, "--help"]).stdout
    assert "--help" in shown
    assert "bool" not in shown.lower()


def test_the_help_says_what_the_library_says() -> None:
    shown = {option.name: option for option in NamedCommand("fit").imported().params}
    for name, text in choice_texts().items():
        assert shown[name].help == text
        assert shown[name].default == getattr(ModelChoices(), name)


def test_the_options_offer_what_the_library_does() -> None:
    for mine, its in [
        (get_args(options.Folds), FOLDS),
        (get_args(options.Rule), RULES),
        (get_args(options.Solver), SOLVERS),
        (get_args(options.LossScaling), get_args(LossScaling)),
        (get_args(options.Metric), get_args(Metric)),
        (options.DEFAULT_FOLDS, DEFAULT_FOLDS),
    ]:
        assert mine == its


def test_a_missing_option_is_a_wrong_command_line(csv: Path) -> None:
    done = run(csv, *COLUMNS)
    assert done.exit_code == 2
    assert "--fusion-strength" in done.stderr


def test_a_tolerance_out_of_reach_still_writes_the_model(
    csv: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # On easy data the gap comes out as exactly zero, so that no tolerance is out of reach: say that it is.
    def fit_in_vain(*arguments: Any, **options: Any) -> FitResult:
        result = fit(*arguments, **options)
        return replace(result, report=replace(result.report, status=SolveStatus.ROUND_LIMIT))

    monkeypatch.setattr(fit_data, "fit", fit_in_vain)
    model_file = tmp_path / "model.npz"
    done = run(csv, *COLUMNS, "--fusion-strength", "0.5", "--output", model_file)
    assert done.exit_code == 3
    assert "tolerance" in done.stderr
    assert CCMTLModel.load(model_file).weights.shape == (30, 2)


def test_names_with_commas_are_quoted(table: pl.DataFrame, tmp_path: Path) -> None:
    table.rename({"a": "price, net"}).write_csv(tmp_path / "sales.csv")
    columns = ["--task", "id", "--target", "y", "--features", '"price, net", b']
    done = run(tmp_path / "sales.csv", *columns, "--fusion-strength", "1", "--json")
    assert done.exit_code == 0, done.stderr
    assert json.loads(done.stdout)["features"] == ["price, net", "b"]


def test_a_file_is_read_in_pieces_unless_a_strength_is_to_be_chosen(
    csv: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def whole(*arguments: object, **named: object) -> TaskDataset:
        raise DataError("read as a whole")

    monkeypatch.setattr(fit_data, "read_task_dataset", whole)
    assert run(csv, *COLUMNS, "--fusion-strength", "0.5").exit_code == 0
    chosen = run(csv, *COLUMNS, "--fusion-strength", "0.5,1")
    assert (chosen.exit_code, chosen.stderr) == (1, "read as a whole\n")


def test_a_terminal_gets_a_bar_and_a_pipe_none(csv: Path) -> None:
    ours, theirs = pty.openpty()
    process = subprocess.Popen(
        [*COMMAND, str(csv), *COLUMNS, "--fusion-strength", "0.5", "--json"],
        stdout=subprocess.PIPE,
        stderr=theirs,
        env={**os.environ, "TERM": "xterm", "COLUMNS": "120"},
    )
    os.close(theirs)
    drawn = b""
    while select.select([ours], [], [], PATIENCE)[0]:
        try:
            drawn += os.read(ours, 4096)
        except OSError:  # the terminal closed with its process
            break
    os.close(ours)
    output, _ = process.communicate(timeout=PATIENCE)
    assert process.returncode == 0
    assert json.loads(output)["status"] == "converged"
    assert "solve" in drawn.decode()
    assert "━" in drawn.decode()


@pytest.mark.parametrize(
    ("gap", "tolerance", "share"),
    [
        (None, 1e-4, None),
        (1.0, 1e-4, 0.0),
        (1e-2, 1e-4, 0.5),
        (1e-9, 1e-4, 1.0),
        (0.0, 1e-4, 1.0),
        (5.0, 2.0, None),
    ],
)
def test_the_bar_counts_digits_of_the_gap(gap: float | None, tolerance: float, share: float | None) -> None:
    assert _share_done(gap, tolerance) == (None if share is None else pytest.approx(share))


def test_a_fit_that_waits_for_the_compiler_says_so_once(capsys: pytest.CaptureFixture[str]) -> None:
    tell = _once(Console(stderr=True))
    for begins in (True, False, True, False):
        tell(begins)
    said = "Compiling the numerical kernels for this kind of fit (once per machine)\n"
    assert capsys.readouterr().err == said

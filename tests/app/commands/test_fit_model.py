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

import ccmtl_core
from app.commands import fit_data, options
from app.commands.cli import NamedCommand, cli
from app.commands.fit_model import _once, _share_done
from ccmtl_core import (
    CCMTLModel,
    DataError,
    FitResult,
    ModelChoices,
    SolveStatus,
    SufficientStatistics,
    TaskDataset,
    fit,
    statistics_frame,
)
from ccmtl_core.choices.model_choices import LossScaling, Metric, choice_texts
from ccmtl_core.data.synthetic import syn
from ccmtl_core.fitting.scoring import RULES
from ccmtl_core.fitting.selection import DEFAULT_FOLDS, FOLDS
from ccmtl_core.solver.fusion_solver import SOLVERS
from tests.support.processes import PATIENCE

COMMAND = [sys.executable, "-m", "app.commands.cli", "fit"]
COLUMNS = ["--task", "id", "--target", "y", "--features", "a,b"]


@pytest.fixture(scope="module")
def table() -> pl.DataFrame:
    data = syn(np.random.default_rng(0), n_tasks=30, n_features=2, n_samples=20).dataset
    ids = [f"0{t}" for t in data.task_index]
    return pl.DataFrame({"id": ids, "y": data.y, "a": data.X[:, 0], "b": data.X[:, 1]})


@pytest.fixture
def csv(table: pl.DataFrame, tmp_path: Path) -> Path:
    table.write_csv(tmp_path / "sales.csv")
    return tmp_path / "sales.csv"


def run(*arguments: str | Path) -> Result:
    return CliRunner().invoke(cli, ["fit", *map(str, arguments)])


def test_json_report_and_model_equal_a_fit_in_the_library(
    csv: Path, table: pl.DataFrame, tmp_path: Path
) -> None:
    model_file = tmp_path / "model.npz"
    arguments = [csv, *COLUMNS, "--fusion-strength", "0.5", "--json", "--output", model_file]
    done = subprocess.run([*COMMAND, *map(str, arguments)], capture_output=True, text=True, timeout=PATIENCE)
    assert done.returncode == 0, done.stderr
    assert done.stderr == ""
    report = json.loads(done.stdout)
    assert (report["tasks"], report["samples"], report["status"]) == (30, 600, "converged")
    assert report["gap"] <= report["tolerance"] == 1e-4
    assert set(report["seconds"]) == {"statistics", "start", "graph", "solve"}
    from_library = fit(_dataset(table), fusion_strength=0.5)
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
    expected = fit(_dataset(table), fusion_strength=0.5, **choices).model
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


def _dataset(table: pl.DataFrame) -> TaskDataset:
    X = table.select("a", "b").to_numpy()
    return TaskDataset.from_long(X, table["y"].to_numpy(), table["id"].to_list(), feature_names=["a", "b"])


def test_the_strength_is_chosen_as_the_library_chooses_it(
    csv: Path, table: pl.DataFrame, tmp_path: Path
) -> None:
    model_file = tmp_path / "model.npz"
    options = ["--fusion-strength", "0,1,10,1000", "--n-folds", "3", "--fit-intercept"]
    done = run(csv, *COLUMNS, *options, "--json", "--output", model_file)
    assert done.exit_code == 0, done.stderr
    report = json.loads(done.stdout)
    expected = ccmtl_core.select(_dataset(table), [0.0, 1.0, 10.0, 1000.0], n_folds=3, fit_intercept=True)
    assert report["fusion_strength"] == expected.fusion_strength
    chosen = report["selection"]
    assert chosen["fusion_strengths"] == [0.0, 1.0, 10.0, 1000.0]
    assert chosen["errors"] == pytest.approx(expected.errors.tolist(), rel=1e-3)
    assert (chosen["folds"], chosen["order"]) == ("random", None)
    assert set(chosen["rivals"]) == set(expected.rivals)
    for rival, errors in expected.rivals.items():
        assert chosen["rivals"][rival] == pytest.approx(errors.mean())
    model = CCMTLModel.load(model_file)
    assert np.allclose(model.weights, expected.fit.model.weights, atol=1e-2)
    assert np.allclose(model.intercept, expected.fit.model.intercept, atol=1e-2)
    people = run(csv, *COLUMNS, "--fusion-strength", "auto", "--folds", "contiguous", "--fit-intercept")
    assert "best of 21 strengths on 5 contiguous folds by the order of rows" in people.stdout
    assert ", shrunk " in people.stdout
    assert ", shrunk same choices " in people.stdout


def test_rivals_with_the_same_choices_are_not_listed_where_there_are_none(csv: Path) -> None:
    shown = run(csv, *COLUMNS, "--fusion-strength", "0,1", "--n-folds", "2").stdout
    assert "; pooled " in shown
    assert "same choices" not in shown


def test_a_plain_rival_that_did_better_is_named_as_in_the_service(tmp_path: Path) -> None:
    rng = np.random.default_rng(3)
    X, task = rng.standard_normal((90, 2)), np.arange(90) % 30
    y = X @ [1.0, -1.0] + 3.0 * rng.standard_normal(90)
    pl.DataFrame({"id": task, "y": y, "a": X[:, 0], "b": X[:, 1]}).write_csv(tmp_path / "noise.csv")
    options = ["--fusion-strength", "0,1e-3", "--n-folds", "3"]
    done = run(tmp_path / "noise.csv", *COLUMNS, *options, "--json")
    assert done.exit_code == 0, done.stderr
    report = json.loads(done.stdout)
    chosen = report["selection"]
    least, error = min(chosen["rivals"].values()), chosen["errors"][chosen["chosen"]]
    assert report["notes"][:2] == [
        "On the folds that chose the strength the rival shrunk (each drawn towards the pooled model) "
        f"has a smaller error than this model, {least:.6g} against {error:.6g}.",
        "What to try: fit_intercept true, or loss_scaling spread, or metric mahalanobis, or the rival itself "
        "(ccmtl_core.rival_models fits it).",
    ]
    assert "the rival shrunk" in run(tmp_path / "noise.csv", *COLUMNS, *options).stdout


def test_statistics_by_fold_choose_too(table: pl.DataFrame, tmp_path: Path) -> None:
    data = _dataset(table)
    fold = np.arange(len(data.y)) % 3
    parts = SufficientStatistics.by_fold(data, fold, 3)
    frames = [statistics_frame(part).with_columns(fold=pl.lit(f)) for f, part in enumerate(parts)]
    pl.concat(frames).write_csv(tmp_path / "folds.csv")
    options = ["--fusion-strength", "0,3", "--json"]
    done = run("--statistics", tmp_path / "folds.csv", *options)
    assert done.exit_code == 0, done.stderr
    errors = json.loads(done.stdout)["selection"]["errors"]
    assert errors == pytest.approx(ccmtl_core.select(data, [0.0, 3.0], folds=fold).errors.tolist(), rel=1e-3)
    frames[0].drop("fold").write_csv(tmp_path / "whole.csv")
    done = run("--statistics", tmp_path / "whole.csv", *options)
    assert done.exit_code == 1
    assert "the statistics hold no folds" in done.stderr


def test_one_held_out_part_has_no_standard_error(csv: Path) -> None:
    options = ["--fusion-strength", "0,1", "--folds", "rolling", "--n-folds", "1"]
    done = run(csv, *COLUMNS, *options, "--rule", "one_standard_error")
    assert (done.exit_code, done.stdout) == (2, "")
    assert "one_standard_error needs two or more held-out parts, and there is 1" in done.stderr
    best = run(csv, *COLUMNS, *options, "--json")
    assert best.exit_code == 0, best.stderr
    assert json.loads(best.stdout)["selection"]["standard_errors"] == [None, None]


@pytest.mark.parametrize("option", [["--folds", "random"], ["--n-folds", "5"], ["--rule", "best"]])
def test_one_strength_leaves_nothing_to_choose(csv: Path, option: list[str]) -> None:
    done = run(csv, *COLUMNS, "--fusion-strength", "1", *option)
    assert done.exit_code == 2
    said = " ".join(done.stderr.replace("│", " ").split())
    assert f"{option[0]} would choose among several strengths, and --fusion-strength 1 is one" in said


def test_a_strength_that_stands_twice_is_a_wrong_command_line(csv: Path) -> None:
    done = run(csv, *COLUMNS, "--fusion-strength", "1,2,1.0")
    assert done.exit_code == 2
    assert "must name no number twice" in " ".join(done.stderr.split())


@pytest.mark.parametrize("text", ["much", "1,", "1;2", "Auto"])
def test_a_strength_that_is_none_is_a_wrong_command_line(csv: Path, text: str) -> None:
    done = run(csv, *COLUMNS, "--fusion-strength", text)
    assert done.exit_code == 2
    assert "must be a number, numbers with commas" in " ".join(done.stderr.split())


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
    while select.select([ours], [], [], 60)[0]:
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

"""``ccmtl predict`` and ``ccmtl forecast``: answers, messages, exit codes; once as a user runs them."""

from __future__ import annotations

import json
import shlex
import subprocess
import sys
from datetime import date, timedelta
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from app.commands.cli import cli
from ccmtl_core import CCMTLModel
from tests.support.forked import forked_ccmtl
from tests.support.processes import PATIENCE

SERIES = {"frequency": "D", "fill": "none", "ds_format": None}


def run(*arguments: object) -> Result:
    return CliRunner().invoke(cli, [*map(str, arguments)], env={"NO_COLOR": "1"})


@pytest.fixture
def stores(tmp_path: Path) -> Path:
    CCMTLModel([[2.0, 1.0], [3.0, 0.0]], ("001", "002"), ("price", "promotion")).save(tmp_path / "m.npz")
    return tmp_path


@pytest.fixture
def shop(tmp_path: Path) -> Path:
    weights = [[1.0, 1.0], [0.0, 1.0]]
    CCMTLModel(weights, ("a", "b"), ("lag_1", "lag_2"), {"series": SERIES}).save(tmp_path / "m.npz")
    return tmp_path


def test_rows_are_predicted_in_the_order_of_the_file(stores: Path) -> None:
    (stores / "rows.csv").write_text("promotion,store,price\n1,002,5\n0,001,2\n")
    done = forked_ccmtl("predict", str(stores / "m.npz"), str(stores / "rows.csv"), "--task", "store")
    assert (done.returncode, done.stdout, done.stderr) == (0, "task,yhat\n002,15.0\n001,4.0\n", "")


def test_predictions_may_go_to_a_file(stores: Path) -> None:
    (stores / "rows.csv").write_text("promotion,store,price\n1,002,5\n")
    out = stores / "out.csv"
    done = run("predict", stores / "m.npz", stores / "rows.csv", "--task", "store", "--output", out)
    assert (done.exit_code, done.stdout) == (0, "")
    assert out.read_text() == "task,yhat\n002,15.0\n"


@pytest.mark.parametrize(
    ("rows", "said"),
    [
        ("store,price,promotion\n001,5,x\n", "row 1, column 'promotion'"),
        ("store,price\n001,5\n", "'promotion'"),
        ("store,price,promotion\n01,5,1\n", "'001'"),
    ],
)
def test_rows_that_cannot_be_predicted_write_nothing(stores: Path, rows: str, said: str) -> None:
    (stores / "rows.csv").write_text(rows)
    done = run("predict", stores / "m.npz", stores / "rows.csv", "--task", "store")
    assert (done.exit_code, done.stdout) == (1, "")
    assert said in done.stderr


def test_each_series_is_forecast_from_its_end(shop: Path) -> None:
    history = "unique_id,ds,y\na,2024-01-01,1\na,2024-01-02,2\nb,2024-01-02,5\nb,2024-01-03,7\n"
    (shop / "sold.csv").write_text(history)
    done = run("forecast", shop / "m.npz", shop / "sold.csv", "--horizon", 2, "--output", shop / "out.csv")
    assert (done.exit_code, done.stderr.count("\n")) == (0, 1)
    assert done.stderr.startswith("Warning short_series: 2 of 2 series have fewer than 8 values")
    assert (shop / "out.csv").read_text().splitlines() == [
        "unique_id,ds,yhat",
        "a,2024-01-03,3.0",
        "a,2024-01-04,5.0",
        "b,2024-01-04,5.0",
        "b,2024-01-05,7.0",
    ]


def test_series_without_a_forecast_are_counted_and_named(shop: Path) -> None:
    history = "unique_id,ds,y\na,2024-01-01,1\na,2024-01-02,2\nb,2024-01-02,5\nnew,2024-01-03,7\n"
    (shop / "sold.csv").write_text(history)
    done = run("forecast", shop / "m.npz", shop / "sold.csv", "--horizon", 1)
    assert done.exit_code == 0
    assert "1 series unknown to the model: 'new'" in done.stderr
    assert "1 series without values in each of their last 2 periods: 'b'" in done.stderr
    assert done.stdout.count("\n") == 2


def test_no_forecast_at_all_is_an_error(shop: Path) -> None:
    (shop / "sold.csv").write_text("unique_id,ds,y\nnew,2024-01-03,7\nnew,2024-01-04,7\n")
    done = run("forecast", shop / "m.npz", shop / "sold.csv", "--horizon", 1)
    assert (done.exit_code, done.stdout) == (1, "")
    assert "no series of the file can be forecast" in done.stderr


def test_rows_of_the_fit_s_own_task_column_are_predicted(stores: Path) -> None:
    rows = "promotion,store,price,sales\n1,002,5,7\n0,001,2,3\n1,001,3,4\n"
    (stores / "rows.csv").write_text(rows)
    columns = ("--task", "store", "--target", "sales", "--features", "price,promotion")
    options = ("--fusion-strength", 0, "--output", stores / "m.npz")
    assert run("fit", stores / "rows.csv", *columns, *options).exit_code == 0
    done = run("predict", stores / "m.npz", stores / "rows.csv")
    assert [line.partition(",")[0] for line in done.stdout.splitlines()] == ["task", "002", "001", "001"]


def test_a_model_that_names_no_task_column_asks_for_it(stores: Path) -> None:
    (stores / "rows.csv").write_text("promotion,store,price\n1,002,5\n")
    done = run("predict", stores / "m.npz", stores / "rows.csv")
    assert done.exit_code == 2
    assert "add --task" in done.stderr


def test_predict_with_a_model_of_series_points_to_forecast(shop: Path) -> None:
    (shop / "sold.csv").write_text("unique_id,ds,y\na,2024-01-01,1\n")
    done = run("predict", shop / "m.npz", shop / "sold.csv", "--task", "unique_id")
    assert (done.exit_code, done.stderr.count("\n")) == (1, 1)
    assert "ccmtl forecast goes on from their values; rows to predict from need the columns" in done.stderr
    (shop / "rows.csv").write_text("unique_id,lag_1,lag_2\na,1,2\n")
    assert run("predict", shop / "m.npz", shop / "rows.csv", "--task", "unique_id").stdout.endswith("a,3.0\n")


@pytest.mark.parametrize("command", ["predict", "forecast"])
def test_swapped_arguments_are_told(shop: Path, command: str) -> None:
    horizon = ("--horizon", 1) if command == "forecast" else ()
    done = run(command, "sold.csv", "m.npz", *horizon)
    assert done.exit_code == 2
    assert "the model comes first, then the rows: m.npz sold.csv" in done.stderr


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--horizon", "0"], "'--horizon': Input should be greater than or equal to 1"),
        (["--horizon", "1", "--output", "out.txt"], "give a name that ends in .csv"),
    ],
)
def test_a_wrong_argument_of_a_forecast_ends_with_code_2(shop: Path, options: list[str], said: str) -> None:
    done = run("forecast", shop / "m.npz", shop / "sold.csv", *options)
    assert (done.exit_code, done.stdout) == (2, "")
    assert said in " ".join(done.stderr.split())


@pytest.mark.parametrize("metadata", [{}, {"series": "daily"}, {"series": {"frequency": "D"}}])
def test_a_model_of_samples_forecasts_no_series(stores: Path, metadata: dict[str, object]) -> None:
    CCMTLModel([[1.0]], ("001",), ("x",), metadata).save(stores / "m.npz")
    (stores / "sold.csv").write_text("unique_id,ds,y\n001,2024-01-03,7\n")
    done = run("forecast", stores / "m.npz", stores / "sold.csv", "--horizon", 1)
    assert done.exit_code == 1
    assert "ccmtl fit --lags" in done.stderr


def test_an_answer_that_cannot_be_printed_is_an_error(stores: Path) -> None:
    (stores / "rows.csv").write_text("promotion,store,price\n1,002,5\n")
    arguments = ["predict", str(stores / "m.npz"), str(stores / "rows.csv"), "--task", "store"]
    done = forked_ccmtl(*arguments, stdout="/dev/full")
    why = "Standard output cannot be written: No space left on device\n"
    assert (done.returncode, done.stderr) == (1, why)
    line = " ".join([sys.executable, "-m", "app.commands.cli", *map(shlex.quote, arguments), ">&-"])
    closed = subprocess.run(line, shell=True, capture_output=True, text=True, timeout=PATIENCE)
    why = "Standard output cannot be written: Bad file descriptor\n"
    assert (closed.returncode, closed.stderr) == (1, why)


def test_answers_are_utf_8_whatever_the_locale(stores: Path) -> None:
    CCMTLModel([[1.0]], ("Café",), ("price",)).save(stores / "m.npz")
    (stores / "rows.csv").write_text("store,price\nCafé,5\n", encoding="utf-8")
    arguments = ["predict", str(stores / "m.npz"), str(stores / "rows.csv"), "--task", "store"]
    done = CliRunner(charset="ascii").invoke(cli, arguments)
    assert (done.exit_code, done.stdout_bytes.decode()) == (0, "task,yhat\nCafé,5.0\n")


def test_a_file_that_is_not_there_is_named(stores: Path) -> None:
    done = run("predict", stores / "absent.npz", stores / "rows.csv", "--task", "store")
    assert done.exit_code == 1
    assert "absent.npz" in done.stderr


def test_series_are_fitted_and_forecast_with_two_commands(tmp_path: Path) -> None:
    days = [f"2024-01-{day:02}" for day in range(1, 31)]
    rows = [f"{name},{day},{(i * k) % 5}" for k, name in enumerate("abcd", 1) for i, day in enumerate(days)]
    (tmp_path / "sold.csv").write_text("\n".join(["sku,day,sold", *rows]))
    columns = ("--unique-id", "sku", "--ds", "day", "--y", "sold")
    fitted = run(
        *("fit", tmp_path / "sold.csv", *columns, "--lags", 5, "--frequency", "D", "--fusion-strength", 0),
        *("--n-neighbors", 2, "--json", "--output", tmp_path / "m.npz"),
    )
    assert fitted.exit_code == 0, fitted.stderr
    assert json.loads(fitted.stdout)["samples"] == 4 * 25
    done = run("forecast", tmp_path / "m.npz", tmp_path / "sold.csv", *columns, "--horizon", 3)
    assert done.exit_code == 0, done.stderr
    *_, last = done.stdout.splitlines()
    name, day, yhat = last.split(",")
    assert (name, day) == ("d", "2024-02-02")
    assert float(yhat) == pytest.approx(32 * 4 % 5, abs=1e-6)  # the pattern repeats every five days


def test_what_series_leave_out_is_noted(tmp_path: Path) -> None:
    rows = [f"a,2024-01-{day:02},{day}" for day in (1, 2, 3, 5, 6, 7)] + ["b,2024-01-01,1"]
    (tmp_path / "sold.csv").write_text("\n".join(["unique_id,ds,y", *rows]))
    series = ("--lags", 2, "--frequency", "D", "--fusion-strength", 0)
    options = ("fit", tmp_path / "sold.csv", *series, "--json")
    notes = json.loads(run(*options, "--accept-gaps").stdout)["notes"]
    assert "5 values of 7 could not be learned from: not all 2 periods before them are there." in notes
    assert any(note.startswith("1 series has no sample") for note in notes)
    filled = json.loads(run(*options, "--fill", "zero").stdout)["notes"]
    assert "7 periods without a row counted as 0." in filled


def test_several_rows_of_a_period_are_aggregated_in_the_fit_and_in_forecasts(tmp_path: Path) -> None:
    days = [f"{name},2024-01-{day:02},{day % 7}" for name in "ab" for day in range(1, 29)]
    (tmp_path / "sold.csv").write_text("\n".join(["unique_id,ds,y", *days]))
    series = ("fit", tmp_path / "sold.csv", "--lags", 1, "--frequency", "W", "--fusion-strength", 1)
    refused = run(*series)
    assert refused.exit_code == 1
    assert "48 of 56 rows fall into a period that has a row of their series already" in refused.stderr
    assert "The first: row 2, series 'a'" in refused.stderr
    summed = run(*series, "--duplicates", "sum", "--output", tmp_path / "m.npz", "--json")
    assert json.loads(summed.stdout)["samples"] == 2 * 3
    done = run("forecast", tmp_path / "m.npz", tmp_path / "sold.csv", "--horizon", 1)
    assert [line.rpartition(",")[0] for line in done.stdout.splitlines()[1:]] == [
        "a,2024-01-29",
        "b,2024-01-29",
    ]
    assert all(float(line.rpartition(",")[2]) == pytest.approx(21) for line in done.stdout.splitlines()[1:])


def test_gaps_that_leave_out_most_values_are_refused_unless_accepted(tmp_path: Path) -> None:
    first = date(2024, 1, 1)
    days = [first + timedelta(days=day) for day in range(84)]
    rows = [f"{name},{day},1" for name in "ab" for day in days if day.weekday() < 5]
    (tmp_path / "sold.csv").write_text("\n".join(["unique_id,ds,y", *rows]))
    series = ("fit", tmp_path / "sold.csv", "--lags", 4, "--frequency", "D", "--fusion-strength", 1)
    refused = run(*series)
    assert (refused.exit_code, refused.stdout) == (1, "")
    assert "with --lags 4 only 24 of 112 rows can be used" in refused.stderr
    for remedy in ("--fill zero", "fewer --lags", "a longer --frequency", "--accept-gaps"):
        assert remedy in refused.stderr
    assert run(*series, "--accept-gaps").exit_code == 0
    assert run(*series, "--fill", "zero").exit_code == 0


def test_more_lags_than_a_series_has_values_are_refused_by_their_option(tmp_path: Path) -> None:
    (tmp_path / "sold.csv").write_text("unique_id,ds,y\na,2024-01-01,1\na,2024-01-02,2\n")
    done = run("fit", tmp_path / "sold.csv", "--lags", 2, "--frequency", "D", "--fusion-strength", 1)
    assert done.exit_code == 1
    assert done.stderr.endswith("\n--lags 2 needs series of 3 values or more, and the longest has 2\n")


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--lags", "2", "--task", "a"], "columns are --unique-id, --ds and --y"),
        (["--lags", "2", "--frequency", "D", "--features", "x"], "--features"),
        (
            ["--task", "a", "--target", "b", "--features", "c", "--ds", "d"],
            "--ds: these are for series",
        ),
        (["--frequency", "D"], "--lags"),
    ],
)
def test_options_of_series_and_of_samples_are_not_mixed(options: list[str], said: str) -> None:
    done = run("fit", "sold.csv", *options, "--fusion-strength", "1")
    assert done.exit_code == 2
    assert said in done.stderr

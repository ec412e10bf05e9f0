"""``ccmtl forecast FILE`` without a model, and ``ccmtl backtest FILE``: answers, messages and exit codes."""

from __future__ import annotations

import json
from datetime import date, timedelta
from io import StringIO
from pathlib import Path

import numpy as np
import polars as pl
import pytest
from typer.testing import CliRunner, Result

from app.commands.cli import cli
from ccmtl_core.forecasting import SeriesPanel, fit_forecaster


def run(*arguments: object) -> Result:
    return CliRunner().invoke(cli, [*map(str, arguments)], env={"NO_COLOR": "1"})


def sales(n_series: int = 6, n: int = 42) -> pl.DataFrame:
    noise = np.random.default_rng(0).normal(size=(n_series, n))
    values = 10.0 + 5.0 * np.sin(2.0 * np.pi * np.arange(n) / 7.0) + noise
    days = [date(2024, 1, 1) + timedelta(days=t) for t in range(n)]
    ids = [f"{t:03}" for t in range(n_series) for _ in range(n)]
    return pl.DataFrame({"unique_id": ids, "ds": days * n_series, "y": values.ravel().round(3)})


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("shop") / "sold.csv"
    sales().write_csv(path)
    return path


def test_a_file_is_forecast_by_itself(shop: Path) -> None:
    done = run("forecast", shop, "--frequency", "D", "--horizon", 3, "--level", "80,95")
    assert (done.exit_code, done.stderr) == (0, "")
    answer = pl.read_csv(
        StringIO(done.stdout), schema_overrides={"unique_id": pl.String}, try_parse_dates=True
    )
    panel = SeriesPanel.from_frame(sales(), "D")
    expected = fit_forecaster(panel, 3).forecast(level=[80, 95])
    assert answer.columns == expected.columns
    assert answer["unique_id"].to_list() == expected["unique_id"].to_list()
    assert answer["yhat-lo-80"].to_list() == pytest.approx(expected["yhat-lo-80"].to_list())


def test_forecasts_of_a_file_by_itself_may_go_to_a_file(shop: Path, tmp_path: Path) -> None:
    out = tmp_path / "out.csv"
    done = run("forecast", shop, "--frequency", "D", "--horizon", 1, "--output", out)
    assert (done.exit_code, done.stdout) == (0, "")
    assert out.read_text().startswith("unique_id,ds,yhat\n000,2024-02-12,")


def test_a_backtest_prints_a_verdict_and_tables(shop: Path) -> None:
    done = run("backtest", shop, "--frequency", "D", "--horizon", 3, "--n-origins", 2)
    assert (done.exit_code, done.stderr) == (0, "")
    lines = done.stdout.splitlines()
    assert lines[0].startswith("ccmtl wins over the naive forecasts: mean RMSSE")
    assert "2 windows of 3 periods, each forecast from what lay before it:" in lines
    methods = [line.split()[0] for line in lines[4:11]]
    assert methods == [
        "ccmtl", "zero", "seasonal_naive", "window_average", "pooled", "single_task", "shrunk",
    ]  # fmt: skip
    assert any(line.split()[:3] == ["decile", "n_series", "RMSSE"] for line in lines)


def test_a_backtest_as_json_is_one_object_without_nan(shop: Path) -> None:
    done = run(
        "backtest", shop, "--frequency", "D", "--horizon", 2, "--n-origins", 1, "--level", "90", "--json"
    )
    assert done.exit_code == 0
    answer = json.loads(done.stdout, parse_constant=pytest.fail)
    assert answer["overall"][0]["method"] == "ccmtl"
    assert 0.0 <= answer["overall"][0]["coverage-90"] <= 1.0
    assert len(answer["per_series"]) == 6 * 7


def test_columns_are_named_and_gaps_are_filled(tmp_path: Path) -> None:
    path = tmp_path / "sold.csv"
    table = (
        sales().filter(pl.col("ds").dt.weekday() < 7).rename({"unique_id": "sku", "ds": "day", "y": "units"})
    )
    table.write_csv(path)
    options = ["--task", "sku", "--time", "day", "--target", "units", "--fill", "zero"]
    done = run("forecast", path, "--frequency", "D", "--horizon", 7, *options)
    assert done.exit_code == 0
    assert len(done.stdout.splitlines()) == 1 + 6 * 7


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ("forecast {shop} --horizon 3", "--frequency is needed"),
        ("forecast m.npz --horizon 3", "m.npz is a model: give the FILE"),
        ("forecast m.npz {shop} --horizon 3 --level 80", "--level: for forecasts without a model"),
        ("forecast {shop} --horizon 3 --frequency D --level 80;95", "is no list of numbers from 1 to 99"),
        ("backtest {shop} --horizon 3 --frequency D --level 100", "is no list of numbers from 1 to 99"),
        ("backtest {shop} --horizon 3", "--frequency"),
    ],
)
def test_a_wrong_argument_ends_with_code_2(shop: Path, options: str, said: str) -> None:
    done = run(*options.format(shop=shop).split())
    assert done.exit_code == 2
    assert said in " ".join(done.stderr.replace("│", " ").split())


def test_a_history_that_is_too_short_says_what_to_do(shop: Path) -> None:
    done = run("backtest", shop, "--frequency", "D", "--horizon", 30, "--n-origins", 2)
    assert (done.exit_code, done.stdout) == (1, "")
    assert "ask for fewer or shorter windows" in done.stderr


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    done = run("backtest", tmp_path / "none.csv", "--frequency", "D", "--horizon", 2)
    assert done.exit_code == 1
    assert "There is no file" in done.stderr

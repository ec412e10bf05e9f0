"""``ccmtl forecast FILE`` without a model, and ``ccmtl backtest FILE``: answers, messages and exit codes."""

from __future__ import annotations

import json
from datetime import date, timedelta
from io import StringIO
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from typer.testing import CliRunner, Result

from app.commands import forecast_file
from app.commands.cli import cli
from ccmtl_core import DataError
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
    ranges = ["--level", "80,95", "--quantiles", "0.1,0.5"]
    done = run("forecast", shop, "--frequency", "D", "--horizon", 3, *ranges)
    assert (done.exit_code, done.stderr) == (0, "")
    answer = pl.read_csv(
        StringIO(done.stdout), schema_overrides={"unique_id": pl.String}, try_parse_dates=True
    )
    panel = SeriesPanel.from_frame(sales(), "D")
    expected = fit_forecaster(panel, 3).forecast(level=[80, 95], quantiles=[0.1, 0.5])
    assert answer.columns == expected.columns
    assert answer["unique_id"].to_list() == expected["unique_id"].to_list()
    assert answer["yhat-q-10"].to_list() == answer["yhat-lo-80"].to_list()
    assert answer["yhat-lo-80"].to_list() == pytest.approx(expected["yhat-lo-80"].to_list())


def test_forecasts_of_a_file_by_itself_may_go_to_a_file(shop: Path, tmp_path: Path) -> None:
    out = tmp_path / "out.csv"
    done = run("forecast", shop, "--frequency", "D", "--horizon", 1, "--output", out)
    assert (done.exit_code, done.stdout) == (0, "")
    assert out.read_text().startswith("unique_id,ds,yhat\n000,2024-02-12,")


def test_a_backtest_prints_a_verdict_and_tables(shop: Path) -> None:
    done = run(
        "backtest", shop, "--frequency", "D", "--horizon", 3, "--n-origins", 2, "--quantiles", "0.1,0.975"
    )
    assert (done.exit_code, done.stderr) == (0, "")
    lines = done.stdout.splitlines()
    assert lines[0].startswith("ccmtl wins over the naive forecasts: mean RMSSE")
    assert "2 windows of 3 periods, each forecast from what lay before it:" in lines
    methods = [line.split()[0] for line in lines[4:11]]
    assert methods == [
        "ccmtl", "zero", "seasonal_naive", "window_average", "pooled", "single_task", "shrunk",
    ]  # fmt: skip
    assert any(line.split()[:3] == ["decile", "n_series", "RMSSE"] for line in lines)
    assert [line.split()[0] for line in lines[-4:]] == ["By", "quantile", "0.1", "0.975"]


def test_a_backtest_as_json_is_one_object_without_nan(shop: Path) -> None:
    done = run(
        "backtest", shop, "--frequency", "D", "--horizon", 2, "--n-origins", 1, "--level", "90", "--json"
    )
    assert done.exit_code == 0
    answer = json.loads(done.stdout, parse_constant=pytest.fail)
    assert answer["overall"][0]["method"] == "ccmtl"
    assert 0.0 <= answer["overall"][0]["coverage-90"] <= 1.0
    assert len(answer["per_series"]) == 6 * 7


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> dict[str, Any]:
    """What the library is asked by a command that ends then."""
    told: dict[str, Any] = {}

    def stop(panel: SeriesPanel, horizon: int, **options: Any) -> None:
        told.update(options, panel=panel, horizon=horizon)
        raise DataError("asked enough")

    monkeypatch.setattr(forecast_file, "fit_forecaster", stop)
    monkeypatch.setattr(forecast_file, "backtest", stop)
    return told


@pytest.mark.parametrize("command", ["forecast", "backtest"])
def test_columns_and_frequency_are_found_and_told(
    tmp_path: Path, command: str, asked: dict[str, Any]
) -> None:
    path = tmp_path / "sold.csv"
    names = {"unique_id": "sku", "ds": "day", "y": "units"}
    table = sales().with_columns(pl.col("ds").dt.to_string("%d/%m/%Y"), store=pl.lit("1")).rename(names)
    table.write_csv(path, separator=";")
    done = run(command, path, "--horizon", 2)
    assert done.stderr == (
        "Understood as if stated: --unique-id sku --ds day --y units --ds-format %d/%m/%Y --frequency D "
        "--delimiter ';'\nasked enough\n"
    )
    assert asked["panel"].unique_ids[0] == "000"
    done = run(
        command, path, "--horizon", 2, "--unique-id", "store,sku", "--frequency", "W", "--duplicates=sum"
    )
    assert "Understood as if stated: --ds day --y units --ds-format %d/%m/%Y --delimiter" in done.stderr
    assert "252 rows: 36 used, 216 merged\n" in done.stderr
    assert (asked["panel"].unique_ids[0], asked["panel"].frequency) == ("1-000", "W")


@pytest.mark.parametrize("command", ["forecast", "backtest"])
def test_forecasts_may_aim_at_totals(shop: Path, command: str, asked: dict[str, Any]) -> None:
    run(command, shop, "--horizon", 7)
    assert asked["aim"] == "products"
    run(command, shop, "--horizon", 7, "--aim", "totals")
    assert asked["aim"] == "totals"


def test_columns_are_named_and_gaps_are_filled(tmp_path: Path) -> None:
    path = tmp_path / "sold.csv"
    table = (
        sales().filter(pl.col("ds").dt.weekday() < 7).rename({"unique_id": "sku", "ds": "day", "y": "units"})
    )
    table.write_csv(path)
    options = ["--unique-id", "sku", "--ds", "day", "--y", "units", "--fill", "zero"]
    done = run("forecast", path, "--frequency", "D", "--horizon", 7, *options)
    assert done.exit_code == 0
    assert "216 rows: 216 used, 0 merged, 30 values added (fill)" in done.stderr
    assert len(done.stdout.splitlines()) == 1 + 6 * 7


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ("forecast m.npz --horizon 3", "m.npz is a model: give the FILE"),
        ("forecast m.npz {shop} --horizon 3 --level 80", "--level: for forecasts without a model"),
        ("forecast m.npz {shop} --horizon 3 --quantiles 0.1", "--quantiles: for forecasts without a model"),
        (
            "forecast m.npz {shop} --horizon 3 --fill zero --aim totals --past stock",
            "--past, --aim, --fill: for forecasts without",
        ),
        ("forecast {shop} --horizon 3 --aim both", "'both' is not one of 'products', 'totals'"),
        ("forecast {shop} --horizon 3 --frequency D --level 80;95", "is no list of numbers from 1 to 99"),
        ("forecast {shop} --horizon 3 --quantiles 0.1,90", "is no list of numbers from 0.005 to 0.995"),
        ("backtest {shop} --horizon 3 --quantiles 10", "is no list of numbers from 0.005 to 0.995"),
        ("backtest {shop} --horizon 3 --frequency D --level 100", "is no list of numbers from 1 to 99"),
    ],
)
def test_a_wrong_argument_ends_with_code_2(shop: Path, options: str, said: str) -> None:
    done = run(*options.format(shop=shop).split())
    assert done.exit_code == 2
    assert said in " ".join(done.stderr.replace("│", " ").split())


def test_a_value_that_may_be_mistyped_is_told(tmp_path: Path) -> None:
    path, rows = tmp_path / "sold.csv", [f"a,2024-01-{d:02},5" for d in range(1, 29)]
    rows[19] = "a,2024-01-20,100000"
    path.write_text("\n".join(["unique_id,ds,y", *rows]))
    told = (
        "1 series has one value far above all others, which counts as the largest of the others: "
        "'a' 2024-01-20: 100000 as 5. Is it mistyped? Then correct it in the data.\n"
    )
    done = run("forecast", path, "--frequency", "D", "--horizon", 1)
    assert (done.stdout, done.stderr) == ("unique_id,ds,yhat\na,2024-01-29,5.0\n", told)
    assert run("backtest", path, "--frequency", "D", "--horizon", 2, "--n-origins", 1).stderr == told
    fitted = run("fit", path, "--frequency", "D", "--lags", 2, "--fusion-strength", 1)
    assert (
        "far above all others, which the model learned from as it is: 'a' 2024-01-20: 100000."
        in fitted.stdout
    )


def test_what_may_not_be_meant_is_told_beside_the_forecasts(tmp_path: Path) -> None:
    path = tmp_path / "sold.csv"
    rows = [f"{s},2024-01-{d:02},{d % 3 + 1}" for s in "ab" for d in range(1, 31) if d % 5 < 2]
    path.write_text("\n".join(["unique_id,ds,y", *rows]))
    done = run("forecast", path, "--frequency", "D", "--horizon", 1)
    assert done.exit_code == 0
    assert "Warning absent_periods: 36 of the 60 periods between" in done.stderr
    assert "choose --fill zero" in done.stderr


def test_a_history_that_is_too_short_to_validate_is_told(tmp_path: Path) -> None:
    path = tmp_path / "sold.csv"
    path.write_text("unique_id,ds,y\na,2024-01-01,1\na,2024-01-02,2\n")
    done = run("forecast", path, "--frequency", "D", "--horizon", 1, "--level", "80")
    assert done.exit_code == 0
    assert "The history is too short to hold any of it out" in done.stderr


def test_columns_that_no_row_knows_ahead_are_refused_before_the_fit(
    offers: Path, tmp_path: Path, asked: dict[str, Any]
) -> None:
    path = tmp_path / "sold.csv"
    promoted().drop_nulls("y").write_csv(path)
    done = run("forecast", path, "--frequency", "D", "--horizon", 3, "--future", "promotion")
    assert (done.exit_code, asked) == (1, {})
    assert "no row says what promotion will be after 2024-02-29: add rows" in done.stderr


def test_a_history_that_is_too_short_says_what_to_do(shop: Path) -> None:
    done = run("backtest", shop, "--frequency", "D", "--horizon", 30, "--n-origins", 2)
    assert (done.exit_code, done.stdout) == (1, "")
    assert "ask for fewer or shorter windows" in done.stderr


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    done = run("backtest", tmp_path / "none.csv", "--frequency", "D", "--horizon", 2)
    assert done.exit_code == 1
    assert "There is no file" in done.stderr


def promoted(n_series: int = 6, n: int = 60, ahead: int = 3) -> pl.DataFrame:
    """Sales that a promotion raises by 20, and rows without sales that say when the next ones are."""
    rng = np.random.default_rng(1)
    promotion = rng.random((n_series, n + ahead)) < 0.3
    sold = 10.0 + 20.0 * promotion + rng.normal(size=promotion.shape)
    days = [date(2024, 1, 1) + timedelta(days=t) for t in range(n + ahead)]
    frame = pl.DataFrame(
        {
            "unique_id": [f"{t:03}" for t in range(n_series) for _ in days],
            "ds": days * n_series,
            "y": sold.ravel().round(3),
            "promotion": promotion.ravel(),
            "kind": ["tea" if t % 2 else "jam" for t in range(n_series) for _ in days],
        }
    )
    return frame.with_columns(pl.when(pl.col("ds") < days[n]).then("y"))


@pytest.fixture(scope="module")
def offers(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("offers") / "sold.csv"
    promoted().write_csv(path)
    return path


OUTLIERS = (
    "Warning outliers: 34 of 360 values are more than 10 spreads away from the median of their series: are "
    "they mistyped, or of another unit?\n"
)


def answered(done: Result) -> pl.DataFrame:
    assert done.exit_code == 0
    outliers, note = done.stderr.splitlines(keepends=True)
    assert outliers == OUTLIERS
    assert note.startswith("On rolling origins the rival shrunk same choices has a smaller error than this")
    types = {"unique_id": pl.String}
    return pl.read_csv(StringIO(done.stdout), schema_overrides=types, try_parse_dates=True)


def test_forecasts_follow_a_promotion_that_rows_without_sales_announce(offers: Path) -> None:
    options = ["--frequency", "D", "--horizon", 3, "--future", "promotion"]
    answer = answered(run("forecast", offers, *options))
    coming = promoted().filter(pl.col("y").is_null())
    both = answer.join(coming, on=["unique_id", "ds"])
    assert len(both) == 18
    with_offer = both.filter("promotion")["yhat"].to_numpy()
    without = both.filter(~pl.col("promotion"))["yhat"].to_numpy()
    assert with_offer.min() > 25.0
    assert without.max() < 15.0
    parts = answered(run("forecast", offers, *options, "--contributions"))
    assert parts["future_promotion"].max() > 15.0


def test_a_missing_future_row_is_named(tmp_path: Path) -> None:
    path = tmp_path / "sold.csv"
    rows = promoted()
    rows.filter(~((pl.col("unique_id") == "003") & (pl.col("ds") == date(2024, 3, 2)))).write_csv(path)
    done = run("forecast", path, "--frequency", "D", "--horizon", 3, "--future", "promotion")
    assert (done.exit_code, done.stdout) == (1, "")
    assert "series '003': 'promotion' is not known at 2024-03-02; add rows" in done.stderr


def test_a_discontinued_product_is_left_out_and_told(tmp_path: Path) -> None:
    path = tmp_path / "sold.csv"
    rows = promoted()
    gone = (pl.col("unique_id") == "003") & (pl.col("ds") > date(2024, 2, 1))
    kinds = pl.when(pl.col("unique_id") < "003").then(pl.lit("tea")).otherwise(pl.lit("jam"))
    rows.filter(~gone).with_columns(kind=kinds).write_csv(path)
    options = ["--frequency", "D", "--horizon", 3, "--future", "promotion"]
    for more in ([], ["--static", "kind"]):
        done = run("forecast", path, *options, *more)
        assert done.exit_code == 0, done.stderr
        assert "1 of 6 series have no forecast, as they have ended: '003'. All 3 periods" in done.stderr
        answer = pl.read_csv(StringIO(done.stdout), schema_overrides={"unique_id": pl.String})
        assert len(answer) == 15
        assert "003" not in answer["unique_id"]


def test_a_backtest_forecasts_windows_with_what_is_known_of_them(offers: Path) -> None:
    options = ["--frequency", "D", "--horizon", 3, "--n-origins", 1, "--level", "80", "--json"]
    errors = []
    for columns, too_high in ((["--future", "promotion"], False), (["--past", "promotion"], True)):
        done = run("backtest", offers, *options, *columns)
        assert (done.exit_code, done.stderr.startswith(OUTLIERS)) == (0, True)
        notes = done.stderr.splitlines()[1:]
        assert len(notes) == too_high
        assert all("% too high, and with the sum of the rival window average" in note for note in notes)
        errors.append(json.loads(done.stdout)["overall"][0]["rmsse"])
    assert errors[0] < 0.3 * errors[1]


def test_discontinued_products_do_not_stop_a_backtest(tmp_path: Path) -> None:
    path = tmp_path / "sold.csv"
    end = pl.col("unique_id").replace_strict(
        {"003": date(2024, 2, 1), "004": date(2024, 2, 28)}, default=None
    )
    promoted().filter(end.is_null() | (pl.col("ds") <= end)).write_csv(path)
    options = ["--frequency", "D", "--horizon", 3, "--n-origins", 1, "--future", "promotion", "--json"]
    done = run("backtest", path, *options)
    assert done.exit_code == 0, done.stderr
    errors = {
        row["unique_id"]: row["rmsse"]
        for row in json.loads(done.stdout)["per_series"]
        if row["method"] == "ccmtl"
    }
    assert errors.pop("003", None) is None  # nothing of it lies in the window
    assert len(errors) == 5
    assert max(errors.values()) < 0.5  # 004 is scored up to its end


def test_a_product_without_history_is_forecast_from_its_like_and_sums_are_coherent(tmp_path: Path) -> None:
    path = tmp_path / "sold.csv"
    new = promoted().filter((pl.col("unique_id") == "001") & pl.col("y").is_null())
    rows = pl.concat([promoted(), new.with_columns(unique_id=pl.lit("new/1"))])
    rows.write_csv(path)
    options = ["--frequency", "D", "--horizon", 3, "--future", "promotion", "--static", "kind"]
    answer = answered(run("forecast", path, *options, "--level", "80"))
    assert answer.columns == ["unique_id", "ds", "yhat", "yhat-lo-80", "yhat-hi-80", "status"]
    status = dict(answer.select("unique_id", "status").iter_rows())
    assert status.pop("new/1") in ("from_like", "from_all")
    assert set(status.values()) == {"ok"}
    kinds = answered(run("forecast", path, *options, "--total-by", "kind"))
    whole = answered(run("forecast", path, *options, "--total-by", "all"))
    assert kinds["n_products"].to_list() == [3] * 3 + [4] * 3
    assert kinds["yhat"].sum() == pytest.approx(answer["yhat"].sum()) == pytest.approx(whole["yhat"].sum())


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ("--unique-id y --y y", "the column 'y' is named twice"),
        ("--future promotion --past promotion", "the column 'promotion' is named twice"),
        ("--total-by kind", "kind must be named in --static too"),
        ("--total-by all --level 80", "sums of forecasts have no ranges"),
        ("--total-by all --quantiles 0.9", "--quantiles: sums of forecasts have no ranges"),
        ("--contributions --level 80", "goes without --level"),
        ("--contributions --quantiles 0.9", "goes without --level, --quantiles"),
    ],
)
def test_options_that_contradict_each_other_are_refused(offers: Path, options: str, said: str) -> None:
    done = run("forecast", offers, "--frequency", "D", "--horizon", 3, *options.split())
    assert done.exit_code == 2
    assert said in " ".join(done.stderr.replace("│", " ").split())

"""The comparison of forecasts: its arithmetic, its sets, and what it says of a set that is not there."""

from __future__ import annotations

import re
import tomllib
from argparse import ArgumentTypeError
from pathlib import Path

import numpy as np
import pytest

from benchmarks.forecasting import __main__ as command
from benchmarks.forecasting import measure, rivals, sets
from benchmarks.forecasting.scores import score
from benchmarks.forecasting.sets import ForecastSet, split
from ccmtl_core.forecasting import Frequency, SeriesPanel

FOLDER = Path(rivals.__file__).parent


def panel(values: np.ndarray) -> SeriesPanel:
    T, n = values.shape
    ids = tuple(f"{t:03d}" for t in range(T))
    return SeriesPanel(ids, np.arange(T + 1) * n, np.tile(np.arange(n), T), values.ravel(), Frequency.DAY)


@pytest.fixture
def three() -> ForecastSet:
    """Two series that change, in one store each with the third, whose history does not."""
    values = np.array([[1.0, 3.0, 1.0, 4.0, 6.0], [0.0, 4.0, 0.0, 0.0, 0.0], [5.0, 5.0, 5.0, 9.0, 1.0]])
    return split(panel(values), horizon=2, season=2, group=["b", "a", "a"], in_total=2)


def test_the_last_window_is_held_out(three: ForecastSet) -> None:
    assert three.history.tolist() == [[1.0, 3.0, 1.0], [0.0, 4.0, 0.0], [5.0, 5.0, 5.0]]
    assert three.held_out.tolist() == [[4.0, 6.0], [0.0, 0.0], [9.0, 1.0]]
    assert three.take(np.array([2])).history.tolist() == [[5.0, 5.0, 5.0]]


def test_a_series_whose_history_never_changes_is_left_out_of_the_mean(three: ForecastSet) -> None:
    yhat = np.array([[2.0, 6.0], [2.0, 2.0], [5.0, 5.0]])
    assert score(three, yhat).rmsse == pytest.approx((np.sqrt(2.0) / 2.0 + 0.5) / 2.0)


def test_errors_of_values_of_totals_and_bias_are_shares_of_what_was_sold(three: ForecastSet) -> None:
    found = score(three, np.array([[2.0, 6.0], [2.0, 2.0], [5.0, 5.0]]))
    assert found.wape == pytest.approx((2.0 + 4.0 + 8.0) / 20.0)
    assert found.bias == pytest.approx((22.0 - 20.0) / 20.0)
    assert found.wape_of_totals == pytest.approx((2.0 + 4.0) / 20.0)


def test_the_simple_rivals_forecast_what_their_names_say() -> None:
    values = np.arange(14.0)[None]
    data = split(panel(values), horizon=4, season=3)
    case = rivals.Case("walmart", data, None)  # type: ignore[arg-type]
    assert rivals.seasonal_naive(case).yhat.tolist() == [[7.0, 8.0, 9.0, 7.0]]
    assert rivals.window_average(case).yhat.tolist() == [[5.5] * 4]
    assert rivals.zero(case).yhat.tolist() == [[0.0] * 4]


def test_ours_and_the_rivals_are_scored_and_held_to_bars() -> None:
    rng = np.random.default_rng(0)
    values = 5.0 + np.tile([0.0, 3.0, 1.0, 0.0, 2.0, 7.0, 9.0], 12) + rng.normal(size=(20, 84))
    data = split(panel(values), horizon=7, season=7, group=["a", "b"] * 10, in_total=7)
    section = measure.compare("ta-feng", data, ["zero", "seasonal_naive"], candidates=True)
    errors, (chosen,), of_ranges, tried = section.tables.values()
    assert [row["forecast"] for row in errors] == ["ccmtl", "ccmtl, aim totals", "zero", "seasonal naive"]
    assert errors[0]["RMSSE"] < errors[3]["RMSSE"] < errors[2]["RMSSE"]
    assert [row["ranges"] for row in of_ranges][:2] == ["ccmtl, 80 %", "seasonal naive, 80 %"]
    assert of_ranges[0]["Winkler"] < of_ranges[1]["Winkler"]
    assert errors[2]["bias"] == -1.0
    assert chosen["features"] == tried[0]["features"]
    assert tried[0]["validated"] > 0.0
    bars = [bar.what for bar in section.bars if "% ranges" not in bar.what]
    assert len(section.bars) - len(bars) == 10
    assert bars == [
        "RMSSE",
        "RMSSE of chosen rows over the best tried",
        "RMSSE, best rival (seasonal_naive)",
        "size of bias, best rival (seasonal_naive)",
        "the same with aim totals (seasonal_naive)",
        "WAPE of totals, best rival (seasonal_naive)",
    ]


def test_a_rival_whose_library_is_missing_tells_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    def missing(name: str) -> None:
        raise ModuleNotFoundError(f"No module named {name!r}", name="lightgbm")

    monkeypatch.setattr(rivals.importlib, "import_module", missing)
    with pytest.raises(SystemExit, match=r"lightgbm is missing(.|\n)*forecasting/requirements.txt"):
        rivals.rival("lightgbm_rows")


def test_rivals_are_chosen_by_name() -> None:
    assert command._rivals("zero,auto_ets") == ["zero", "auto_ets"]
    with pytest.raises(ArgumentTypeError, match=r"there is no rival nothing; there are zero, "):
        command._rivals("zero,nothing")


def test_a_set_without_its_file_is_left_out(tmp_path: Path) -> None:
    section = measure.measure("carparts", tmp_path, [], candidates=False)
    assert section.skipped is not None
    assert "expsmooth_carparts.csv is not there; --help says where it comes from" in section.skipped


def test_every_set_has_settings_of_its_rivals() -> None:
    settings = tomllib.loads((FOLDER / "rivals.toml").read_text())
    assert settings["lightgbm_lags"].keys() == sets.SETS.keys()
    assert settings["threads"] == 2


def test_the_rivals_are_pinned_and_no_index_is_named() -> None:
    pins = (FOLDER / "requirements.txt").read_text().splitlines()
    assert all(re.fullmatch(r"[A-Za-z0-9._-]+==[^ @/]+", pin) for pin in pins)
    names = {pin.split("==")[0] for pin in pins}
    assert {"lightgbm", "mlforecast", "statsforecast"} <= names

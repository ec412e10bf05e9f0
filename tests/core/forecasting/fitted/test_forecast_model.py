"""What a fitted forecaster forecasts: dates, steps, newer values, columns known ahead, and its file."""

from __future__ import annotations

import pickle
from datetime import date, datetime, timedelta
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from ccmtl_core import DataError, ModelChoices, ModelFileError, ParameterError, UnknownTaskError
from ccmtl_core.forecasting import (
    ForecastModel,
    RowFeatures,
    SeriesColumns,
    SeriesPanel,
    fit_forecaster,
)
from ccmtl_core.forecasting.fitted.latest_rows import are_cut
from tests.core.forecasting.panels import ROWS, noisy, panel_of


def test_dates_follow_the_newest_value_of_each_series() -> None:
    start = {
        "h": datetime(2024, 2, 28, 22),
        "D": date(2024, 2, 27),
        "W": date(2024, 2, 26),
        "MS": date(2024, 1, 1),
    }
    expected = {
        "h": [datetime(2024, 2, 29, 18), datetime(2024, 2, 29, 19)],
        "D": [date(2024, 3, 18), date(2024, 3, 19)],
        "W": [date(2024, 7, 15), date(2024, 7, 22)],
        "MS": [date(2025, 9, 1), date(2025, 10, 1)],
    }
    for frequency, first in start.items():
        shape = noisy(3, 20)
        times = SeriesPanel.from_frame(
            pl.DataFrame({"unique_id": ["a"], "ds": [first], "y": [1.0]}), frequency
        ).period
        panel = SeriesPanel(shape.unique_ids, shape.offsets, shape.period + times, shape.values, frequency)
        frame = fit_forecaster(panel, 2, rows=ROWS, fusion_strength=1.0).forecast()
        assert frame["unique_id"].to_list() == ["s0", "s0", "s1", "s1", "s2", "s2"]
        assert frame["ds"].to_list() == expected[frequency] * 3


def test_month_ends_are_followed_by_the_next_months() -> None:
    ends = [
        date(2023, m, 28) + timedelta(days=31 - 28 if m in (1, 3, 5, 7, 8, 10, 12) else 0)
        for m in range(1, 13)
    ]
    frame = pl.DataFrame({"unique_id": ["a"] * 12, "ds": ends, "y": [float(i % 3) for i in range(12)]})
    panel = SeriesPanel.from_frame(frame, "MS")
    dates = fit_forecaster(panel, 2, rows=RowFeatures(windows=(1,))).forecast()["ds"]
    assert dates.to_list() == [date(2024, 1, 1), date(2024, 2, 1)]


def test_times_with_a_zone_count_for_their_local_date() -> None:
    shape = noisy(1, 20)
    times = pl.datetime_range(
        datetime(2024, 3, 25), datetime(2024, 4, 13), "1d", time_zone="Europe/Berlin", eager=True
    )
    frame = pl.DataFrame({"unique_id": ["a"] * 20, "ds": times, "y": shape.values})
    panel = SeriesPanel.from_frame(frame, "D")
    forecast = fit_forecaster(panel, 1, rows=ROWS, fusion_strength=1.0).forecast()
    assert forecast["ds"].to_list() == [date(2024, 4, 14)]


def test_steps_beyond_the_horizon_feed_on_the_forecasts_before_them(forecaster: ForecastModel) -> None:
    whole = forecaster.point_forecasts(8)
    panel = noisy()
    values = panel.values.reshape(6, 40)
    for done in (3, 6):
        longer = panel_of(*np.concatenate([values, whole[:, :done]], axis=1).tolist())
        np.testing.assert_allclose(
            forecaster.point_forecasts(2, panel=longer), whole[:, done : done + 2], rtol=1e-12
        )
    assert (forecaster.point_forecasts(3) == whole[:, :3]).all()


def test_forecasts_that_feed_on_themselves_stay_finite() -> None:
    panel = panel_of([1.0, 2.0, 4.0, 8.0], [-1.0, -3.0, -9.0, -27.0])
    rows, choices = RowFeatures(lags=(1,)), ModelChoices()
    model = fit_forecaster(panel, 1, rows=rows, choices=choices, fusion_strength=0.0)
    yhat = model.point_forecasts(2_000)
    np.testing.assert_allclose(yhat[:, :2], [[16.0, 32.0], [-81.0, yhat[1, 1]]])
    ends = np.array([16.0, -81.0]) + np.array([1.0, -1.0]) * model.scale * (10 + 2_000)
    np.testing.assert_allclose(yhat[:, -1], ends)
    assert are_cut(yhat[:, :2], model.tail, model.scale, 1).tolist() == [False, True]
    assert not are_cut(yhat[:, :1], model.tail, model.scale, 1).any()
    parts = model.contributions(100).drop("unique_id", "ds", "yhat").to_numpy().sum(axis=1)
    np.testing.assert_allclose(parts, yhat[:, :100].ravel())


def test_newer_values_are_forecast_from_without_a_fit(forecaster: ForecastModel) -> None:
    later = noisy(seed=1)
    frame = forecaster.forecast(panel=later)
    assert frame["ds"][0] == date(1970, 2, 10)
    assert not np.allclose(frame["yhat"], forecaster.forecast()["yhat"])
    some = panel_of(later.values[:40].tolist(), later.values[40:80].tolist())
    assert forecaster.forecast(panel=some).equals(frame[:6])


def test_some_series_in_the_order_asked_for(forecaster: ForecastModel) -> None:
    frame = forecaster.forecast(unique_ids=["s4", "s1"])
    assert frame["unique_id"].to_list() == ["s4"] * 3 + ["s1"] * 3
    whole = forecaster.forecast()
    assert frame["yhat"].to_list() == [*whole["yhat"][12:15], *whole["yhat"][3:6]]
    assert forecaster.forecast(panel=noisy(), unique_ids=["s4", "s1"]).equals(frame)


def test_series_that_it_was_not_fitted_to_are_named(forecaster: ForecastModel) -> None:
    with pytest.raises(UnknownTaskError, match="unknown task 's9'"):
        forecaster.forecast(unique_ids=["s9"])
    with pytest.raises(UnknownTaskError, match="unknown task 's6'"):
        forecaster.forecast(panel=noisy(7))
    with pytest.raises(DataError, match="the panel does not hold the series 's5'"):
        forecaster.forecast(panel=noisy(5), unique_ids=["s5"])


def test_a_panel_of_another_frequency_is_refused(forecaster: ForecastModel) -> None:
    with pytest.raises(DataError, match="the panel's frequency is 'W', the model's 'D'"):
        forecaster.forecast(panel=panel_of([1.0, 2.0], frequency="W"))


def test_contributions_add_up_to_the_forecast(forecaster: ForecastModel) -> None:
    frame = forecaster.contributions(5)
    assert frame.columns == ["unique_id", "ds", "yhat", *ROWS.names, "intercept", "adjustment"]
    parts = frame.drop("unique_id", "ds", "yhat").to_numpy().sum(axis=1)
    np.testing.assert_allclose(parts, frame["yhat"], rtol=1e-12)
    assert frame.select("unique_id", "ds", "yhat").equals(forecaster.forecast(5))
    assert (frame["adjustment"] == 0.0).all()
    still = fit_forecaster(panel_of([5.0] * 8, [1.0, 2.0] * 4), 1, rows=RowFeatures(windows=(1,)))
    assert still.contributions(unique_ids=["s0"]).row(0)[2:] == (5.0, 0.0, 0.0, 5.0)


def test_a_file_brings_the_same_forecasts_back(forecaster: ForecastModel, tmp_path: Path) -> None:
    forecaster.save(tmp_path / "f.npz")
    again = ForecastModel.load(tmp_path / "f.npz")
    for other in (again, pickle.loads(pickle.dumps(forecaster))):
        assert other.forecast(7).equals(forecaster.forecast(7))
        assert other.report == forecaster.report
        assert other.forecast(level=[80]).equals(forecaster.forecast(level=[80]))
        assert not other.tail.flags.writeable
    assert repr(again) == (
        "ForecastModel(6 series, 4 features [level_1, level_3, trend_2, season_4_1], "
        "3 periods ahead, frequency D)"
    )


def test_another_file_is_refused(forecaster: ForecastModel, tmp_path: Path) -> None:
    forecaster.model.save(tmp_path / "m.npz")
    with pytest.raises(ModelFileError, match="damaged or not a model file"):
        ForecastModel.load(tmp_path / "m.npz")
    forecaster.save(tmp_path / "f.npz")
    content = bytearray((tmp_path / "f.npz").read_bytes())
    content[content.index(b"s4")] = ord("t")
    (tmp_path / "f.npz").write_bytes(content)
    with pytest.raises(ModelFileError):
        ForecastModel.load(tmp_path / "f.npz")


def test_forecasts_end_at_zero_unless_values_were_negative() -> None:
    falling = [float(v) for v in range(20, 0, -1)]
    panel = panel_of(falling, [v - 10.0 for v in falling])
    rows = RowFeatures(lags=(1, 2))
    forecasts = fit_forecaster(
        panel, 9, rows=rows, choices=ModelChoices(), fusion_strength=0.0
    ).point_forecasts(30)
    assert forecasts[0].min() == 0.0
    assert forecasts[1].min() < -10.0


def test_negative_sales_among_newer_values_let_forecasts_fall_below_zero() -> None:
    falling = [float(v) for v in range(20, 0, -1)]
    rows = RowFeatures(lags=(1, 2))
    model = fit_forecaster(panel_of(falling), 1, rows=rows, choices=ModelChoices(), fusion_strength=0.0)
    np.testing.assert_allclose(model.point_forecasts(3), 0.0, atol=1e-9)
    newer = panel_of([*falling, 0.0, -1.0, -2.0])
    np.testing.assert_allclose(model.point_forecasts(3, panel=newer), [[-3.0, -4.0, -5.0]])


def test_integers_and_ids_of_any_kind() -> None:
    frame = pl.DataFrame(
        {
            "unique_id": ["a/b"] * 8 + ["0471"] * 8,
            "ds": [date(2024, 1, 1 + i) for i in range(8)] * 2,
            "y": [1, 2, 3, 4] * 4,
        }
    )
    model = fit_forecaster(SeriesPanel.from_frame(frame, "D"), 2, rows=RowFeatures(windows=(1, 2)))
    assert model.forecast(unique_ids=["a/b"])["unique_id"].to_list() == ["a/b"] * 2


def test_a_slash_in_an_id(tmp_path: Path) -> None:
    shape = noisy(2, 12)
    ids = ("shop/7", "../ü 日本")
    panel = SeriesPanel(ids, shape.offsets, shape.period, shape.values, "D")  # type: ignore[arg-type]
    fit_forecaster(panel, 2, rows=RowFeatures(windows=(1, 2))).save(tmp_path / "f.npz")
    again = ForecastModel.load(tmp_path / "f.npz")
    for name in ids:
        assert again.forecast(unique_ids=[name])["unique_id"].to_list() == [name] * 2


def test_tens_of_thousands_of_ids_in_one_request() -> None:
    panel = noisy(20_000, 8)
    model = fit_forecaster(
        panel, 2, rows=RowFeatures(windows=(1,)), choices=ModelChoices(), fusion_strength=0.0
    )
    frame = model.forecast(28)
    assert len(frame) == 560_000
    assert np.isfinite(frame["yhat"].to_numpy()).all()


def with_promotions(n: int = 40, ahead: int = 3) -> tuple[SeriesPanel, SeriesColumns]:
    """Three series that a promotion, at the target, lifts by twice their size."""
    rng = np.random.default_rng(0)
    promotion = (rng.random((3, n + ahead)) < 0.3).astype(np.float64)
    size = np.array([1.0, 10.0, 100.0])[:, None]
    values = size * (5.0 + 2.0 * promotion[:, :n] + 0.1 * rng.normal(size=(3, n)))
    series, period = np.repeat(np.arange(3), n + ahead), np.tile(np.arange(n + ahead), 3)
    ids = ("s0", "s1", "s2")
    columns = SeriesColumns(("promotion",), ids, series, period, promotion.reshape(-1, 1), "D")  # type: ignore[arg-type]
    return panel_of(*values.tolist()), columns


def test_a_column_that_is_known_ahead_moves_the_forecast() -> None:
    panel, columns = with_promotions()
    rows = RowFeatures(windows=(8,), future=("promotion",))
    model = fit_forecaster(panel, 3, rows=rows, columns=columns)
    yhat = model.point_forecasts(columns=columns) / np.array([[1.0], [10.0], [100.0]])
    promotion = columns.values.reshape(3, -1)[:, 40:]
    assert 0.0 < promotion.mean() < 1.0
    np.testing.assert_allclose(yhat, 5.0 + 2.0 * promotion, atol=0.4)
    frame = model.contributions(columns=columns)
    assert ((frame["future_promotion"] == 0.0).to_numpy() == (promotion.ravel() == 0.0)).all()


def test_missing_future_rows_are_listed_and_refused() -> None:
    panel, columns = with_promotions(ahead=2)
    rows = RowFeatures(windows=(8,), past=("promotion",), future=("promotion",))
    model = fit_forecaster(panel, 3, rows=rows, columns=columns)
    missing = model.missing_columns(columns=columns)
    assert missing.rows() == [(f"s{t}", date(1970, 2, 12), "promotion") for t in range(3)]
    with pytest.raises(
        DataError, match=r"3 faults .*\n- series 's0': 'promotion' is not known at 1970-02-12"
    ):
        model.forecast(columns=columns)
    assert len(model.forecast(2, columns=columns)) == 6
    assert model.missing_columns(2, columns=columns).is_empty()
    assert len(model.missing_columns(2, unique_ids=["s1"])) == 3  # today's and those of two days
    with pytest.raises(ParameterError, match="the features name the columns promotion, promotion: give them"):
        model.forecast()


def test_one_discontinued_product_does_not_stop_all_others() -> None:
    panel, columns = with_promotions(ahead=3)
    place = panel.series_index
    last = int(panel.period.max())
    end = last - 5
    sold = (place != 1) | (panel.period <= end)
    offsets = np.concatenate([[0], np.cumsum(np.bincount(place[sold]))])
    gone = SeriesPanel(panel.unique_ids, offsets, panel.period[sold], panel.values[sold], "D")
    kept = (columns.series != 1) | (columns.period <= end)
    prices = SeriesColumns(
        columns.names,
        columns.unique_ids,
        columns.series[kept],
        columns.period[kept],
        columns.values[kept],
        "D",
    )
    rows = RowFeatures(windows=(8,), future=("promotion",))
    model = fit_forecaster(gone, 3, rows=rows, columns=prices)
    assert model.ended(columns=prices) == ("s1",)
    found = model.forecast(columns=prices, level=[80])
    assert found["unique_id"].unique(maintain_order=True).to_list() == ["s0", "s2"]
    assert model.missing_columns(columns=prices).is_empty()
    assert set(model.contributions(columns=prices)["unique_id"]) == {"s0", "s2"}
    day = date(1970, 1, 1) + timedelta(days=end)
    words = f"series 's1' ended at {day}, 3 periods or more before the newest one, .*: leave it out"
    with pytest.raises(DataError, match=words):
        model.forecast(unique_ids=["s0", "s1"], columns=prices)
    assert model.ended(columns=columns) == ()  # known of these periods, it is forecast as ever
    assert len(model.forecast(columns=columns)) == 9
    assert model.ended(6, columns=prices) == ()  # the last of its periods is to come
    words = r"'s1': 'promotion' is not known for 6 periods, "
    with pytest.raises(DataError, match=words):
        model.forecast(6, columns=prices)


def test_a_holiday_is_one_for_all_series() -> None:
    panel, _ = with_promotions()
    days = [date(1970, 1, 1) + timedelta(days=d) for d in range(50)]
    frame = pl.DataFrame({"ds": days, "holiday": [d % 11 == 0 for d in range(50)]})
    holiday = SeriesColumns.from_frame(frame, "D")
    model = fit_forecaster(panel, 3, rows=RowFeatures(windows=(2,), future=("holiday",)), columns=holiday)
    assert np.isfinite(model.point_forecasts(columns=holiday)).all()


def test_steps_out_of_range_are_refused(forecaster: ForecastModel) -> None:
    with pytest.raises(ParameterError, match="h must be at least 1, not 0"):
        forecaster.forecast(0)
    with pytest.raises(ParameterError, match="h must be at most"):
        forecaster.contributions(10**9)

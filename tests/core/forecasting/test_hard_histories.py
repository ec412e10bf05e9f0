"""Histories as planners have them are forecast whole: each kind of trouble has a test of its name."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta, timezone
from pathlib import Path

import numpy as np
import polars as pl
import pytest

from ccmtl_core import ModelChoices
from ccmtl_core.forecasting import SeriesPanel, fit_forecaster, read_series
from ccmtl_core.inspection import Policies

CHOICES = ModelChoices(metric="mahalanobis", fit_intercept=True)


def sold(days: list[date] | list[datetime], n_series: int = 4) -> pl.DataFrame:
    rng = np.random.default_rng(2)
    values = 5.0 + np.arange(n_series)[:, None] + rng.normal(size=(n_series, len(days)))
    ids = [f"{t}/x" for t in range(n_series) for _ in days]
    return pl.DataFrame({"unique_id": ids, "ds": days * n_series, "y": values.ravel()})


def forecast(panel: SeriesPanel, horizon: int) -> pl.DataFrame:
    """Forecasts with a range, by all that is chosen automatically at one strength."""
    found = fit_forecaster(panel, horizon, choices=CHOICES, fusion_strength=10.0).forecast(level=[80])
    numbers = found.select("yhat", "yhat-lo-80", "yhat-hi-80").to_numpy()
    assert np.isfinite(numbers).all()
    assert len(found) == panel.n_series * horizon
    return found


def test_gaps_on_closed_days() -> None:
    days = [date(2024, 1, 1) + timedelta(days=d) for d in range(40)]
    open_days = [day for day in days if day.isoweekday() < 7]
    found = forecast(SeriesPanel.from_frame(sold(open_days), "D"), 3)
    assert found["ds"][0] == open_days[-1] + timedelta(days=1)


def test_several_rows_a_day_over_stores(tmp_path: Path) -> None:
    days = [date(2024, 1, 1) + timedelta(days=d) for d in range(20)]
    path = tmp_path / "sold.csv"
    pl.concat([sold(days), sold(days).with_columns(pl.col("y") + 1.0)]).write_csv(path)
    panel = read_series(path, "D", policies=Policies(duplicates="sum"))
    assert len(panel.values) == 4 * 20
    forecast(panel, 2)


def test_month_end_steps() -> None:
    ends = [date(2022 + m // 12, m % 12 + 1, 1) - timedelta(days=1) for m in range(1, 30)]
    named_by_first = forecast(SeriesPanel.from_frame(sold(ends), "MS"), 2)["ds"][:2].to_list()
    assert named_by_first == [date(2024, 6, 1), date(2024, 7, 1)]
    named_by_last = forecast(SeriesPanel.from_frame(sold(ends), "ME"), 2)["ds"][:2].to_list()
    assert named_by_last == [date(2024, 6, 30), date(2024, 7, 31)]


def test_six_points_of_history() -> None:
    days = [date(2024, 1, 1) + timedelta(days=d) for d in range(6)]
    forecast(SeriesPanel.from_frame(sold(days), "D"), 2)


@pytest.mark.parametrize(("frequency", "after"), [("D", date(2024, 1, 21)), ("h", datetime(2024, 1, 19, 19))])
def test_time_zone_aware_dates(frequency: str, after: date) -> None:
    zone = timezone(timedelta(hours=5))
    moments = [datetime(2024, 1, 1, 0, tzinfo=zone) + timedelta(days=d) for d in range(20)]
    if frequency == "h":
        moments = [datetime(2024, 1, 19, 18, tzinfo=UTC) - timedelta(hours=h) for h in range(30)]
    local = [moment.astimezone(zone) for moment in moments]
    frame = sold([m.replace(tzinfo=None) for m in local]).with_columns(
        pl.col("ds").dt.replace_time_zone("Etc/GMT-5")
    )
    assert forecast(SeriesPanel.from_frame(frame, frequency), 1)["ds"][0] == after

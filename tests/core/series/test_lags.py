"""Lag rows against a plain loop: only windows of consecutive periods, newest lag first."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ccmtl_core import ParameterError
from ccmtl_core.forecasting import SeriesPanel, lag_dataset, latest_lags, split_by_time
from ccmtl_core.series.lags import NO_PERIOD


@st.composite
def panels(draw: st.DrawFn) -> SeriesPanel:
    """Series with gaps, short ones and empty ones."""
    periods = draw(st.lists(st.sets(st.integers(-3, 15)), min_size=1, max_size=5))
    lengths = [len(own) for own in periods]
    period = [p for own in periods for p in sorted(own)]
    values = np.random.default_rng(draw(st.integers(0, 99))).standard_normal(len(period))
    ids = tuple(f"s{t}" for t in range(len(periods)))
    return SeriesPanel(ids, np.concatenate([[0], np.cumsum(lengths)]), period, values, "D")  # type: ignore[arg-type]


def longest(panel: SeriesPanel) -> int:
    return int(np.diff(panel.offsets).max())


def by_period(panel: SeriesPanel, t: int) -> dict[int, float]:
    own = slice(panel.offsets[t], panel.offsets[t + 1])
    return dict(zip(panel.period[own].tolist(), panel.values[own].tolist(), strict=True))


@given(panel=panels(), n_lags=st.integers(1, 6))
def test_rows_are_those_of_a_plain_loop(panel: SeriesPanel, n_lags: int) -> None:
    if longest(panel) <= n_lags:
        with pytest.raises(ParameterError, match=f"allow at most {max(longest(panel) - 1, 0)}$"):
            lag_dataset(panel, n_lags)
        return
    lagged = lag_dataset(panel, n_lags)
    X, y, task, target = [], [], [], []
    for t in range(panel.n_series):
        values = by_period(panel, t)
        for period, value in values.items():
            lags = [values.get(period - lag) for lag in range(1, n_lags + 1)]
            if None not in lags:
                X.append(lags)
                y.append(value)
                task.append(t)
                target.append(period)
    assert lagged.dataset.X.tolist() == X
    assert lagged.dataset.y.tolist() == y
    assert lagged.dataset.task_index.tolist() == task
    assert lagged.target_period.tolist() == target
    assert lagged.n_dropped == len(panel.values) - len(y)
    assert lagged.dataset.task_ids == panel.unique_ids
    assert lagged.dataset.feature_names == tuple(f"lag_{i}" for i in range(1, n_lags + 1))


@given(panel=panels(), n_lags=st.integers(1, 6))
def test_the_latest_lags_are_the_row_that_comes_next(panel: SeriesPanel, n_lags: int) -> None:
    if longest(panel) < n_lags:
        with pytest.raises(ParameterError, match=f"allow at most {longest(panel)}$"):
            latest_lags(panel, n_lags)
        return
    lags, last_period = latest_lags(panel, n_lags)
    for t in range(panel.n_series):
        values = by_period(panel, t)
        if not values:
            assert last_period[t] == NO_PERIOD
            assert np.isnan(lags[t]).all()
            continue
        assert last_period[t] == max(values)
        expected = [values.get(max(values) - back) for back in range(n_lags)]
        if None in expected:
            assert np.isnan(lags[t]).all()
        else:
            assert lags[t].tolist() == expected


@given(panel=panels(), n_lags=st.integers(1, 3), fraction=st.floats(0.01, 0.99))
def test_a_split_holds_out_the_last_part_of_the_span(
    panel: SeriesPanel, n_lags: int, fraction: float
) -> None:
    if longest(panel) <= n_lags:
        return
    lagged = lag_dataset(panel, n_lags)
    target = lagged.target_period
    if len(target) == 0 or target.min() == target.max():
        with pytest.raises(ParameterError, match="too few to hold any out"):
            split_by_time(lagged, fraction)
        return
    fold, cut = split_by_time(lagged, fraction)
    span = int(target.max() - target.min()) + 1
    held_out = int(target.max()) - cut + 1
    assert fold.tolist() == (target >= cut).astype(int).tolist()
    assert 1 <= held_out < span
    assert (
        abs(held_out - fraction * span) <= max(0.5, 1 - fraction * span, fraction * span - (span - 1)) + 1e-9
    )
    assert set(fold.tolist()) == {0, 1}


def test_half_of_an_odd_span_is_rounded_up() -> None:
    panel = SeriesPanel(("a",), [0, 6], range(6), np.arange(6.0), "D")  # type: ignore[arg-type]
    fold, cut = split_by_time(lag_dataset(panel, 1), 0.5)
    assert (fold.tolist(), cut) == ([0, 0, 1, 1, 1], 3)


@pytest.mark.parametrize("fraction", [0.0, 1.0, -0.5, float("nan"), "0.5", None, True])
def test_fractions_outside_the_unit_interval_are_refused(fraction: Any) -> None:
    panel = SeriesPanel(("a",), [0, 3], [0, 1, 2], [1.0, 2.0, 3.0], "D")  # type: ignore[arg-type]
    with pytest.raises(ParameterError, match="holdout_fraction"):
        split_by_time(lag_dataset(panel, 1), fraction)


def test_at_least_one_lag_is_needed() -> None:
    panel = SeriesPanel(("a",), [0, 1], [0], [1.0], "D")  # type: ignore[arg-type]
    for make in (lag_dataset, latest_lags):
        with pytest.raises(ParameterError, match="n_lags must be at least 1"):
            make(panel, 0)


@pytest.mark.parametrize("make", [lag_dataset, latest_lags])
@pytest.mark.parametrize("n_lags", [1.5, 2.0, "2", True, None])
def test_lags_are_counted_by_an_integer(make: Any, n_lags: object) -> None:
    panel = SeriesPanel(("a",), [0, 3], [0, 1, 2], [1.0, 2.0, 3.0], "D")  # type: ignore[arg-type]
    with pytest.raises(ParameterError, match="n_lags must be an integer, not"):
        make(panel, n_lags)


def test_lags_may_be_an_unsigned_integer_of_numpy() -> None:
    panel = SeriesPanel(("a",), [0, 4], [0, 1, 2, 3], np.arange(4.0), "D")  # type: ignore[arg-type]
    two: Any = np.uint8(2)
    assert lag_dataset(panel, two).dataset.X.tolist() == lag_dataset(panel, 2).dataset.X.tolist()
    assert latest_lags(panel, two)[0].tolist() == [[3.0, 2.0]]


def test_more_lags_than_any_series_has_are_refused_at_once() -> None:
    panel = SeriesPanel(("a", "b"), [0, 4, 5], [0, 1, 2, 3, 0], np.ones(5), "D")  # type: ignore[arg-type]
    with pytest.raises(ParameterError, match=r"the longest series has 4 values, which allow at most 3"):
        lag_dataset(panel, 10**12)
    with pytest.raises(ParameterError, match=r"the longest series has 4 values, which allow at most 4"):
        latest_lags(panel, 10**12)


def test_what_is_no_panel_is_refused() -> None:
    other: Any = {"unique_id": ["a"]}
    with pytest.raises(ParameterError, match="panel must be a SeriesPanel, not dict"):
        lag_dataset(other, 1)
    with pytest.raises(ParameterError, match="panel must be a SeriesPanel, not dict"):
        latest_lags(other, 1)
    with pytest.raises(ParameterError, match="lagged must be a LaggedPanel, as lag_dataset returns it"):
        split_by_time(other, 0.5)


def test_the_periods_of_rows_cannot_be_changed() -> None:
    panel = SeriesPanel(("a",), [0, 3], [1, 2, 3], [1.0, 2.0, 3.0], "D")
    with pytest.raises(ValueError, match="read-only"):
        lag_dataset(panel, 1).target_period[0] = 7

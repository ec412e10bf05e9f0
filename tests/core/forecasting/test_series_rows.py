"""Rows against their definition, no look ahead, blocks of time, and the rows that forecast."""

from __future__ import annotations

from dataclasses import replace
from importlib import import_module

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ccmtl_core import DataError, ParameterError, SufficientStatistics, TaskDataset
from ccmtl_core.forecasting import (
    RowFeatures,
    SeriesPanel,
    direct_rows,
    direct_statistics,
    lag_dataset,
    latest_rows,
    latest_tails,
    rolling_origins,
    series_scale,
)
from tests.core.forecasting.panels import panel_of
from tests.core.forecasting.reference import by_period, column_at, columns_of, panels, row, row_features

LEVEL = RowFeatures(windows=(1,))


@settings(deadline=None)
@given(data=st.data(), features=row_features(), horizon=st.integers(1, 9), every=st.integers(1, 4))
def test_rows_are_those_of_the_definition(
    data: st.DataObject, features: RowFeatures, horizon: int, every: int
) -> None:
    panel = data.draw(panels())
    columns = data.draw(columns_of(panel))
    first, last = int(panel.period.min()), int(panel.period.max())
    origins = range(first, last, every)
    scale = np.arange(1.0, panel.n_series + 1)
    rows = direct_rows(panel, features, horizon, origins=list(origins), scale=scale, columns=columns)
    expected, left_out = [], 0
    for t in range(panel.n_series):
        values = {p: value / scale[t] for p, value in by_period(panel, t).items()}
        for target, y in values.items():
            for k in range(1, horizon + 1):
                if target - k not in origins:
                    continue
                unique_id = panel.unique_ids[t]
                past = [column_at(columns, unique_id, target - k, name) for name in features.past]
                future = [column_at(columns, unique_id, target, name) for name in features.future]
                own = row(values, features, target - k, k, past)
                if np.isnan([*own, *future]).any() or target - k < min(values):
                    left_out += 1
                    continue
                date = features.calendar_values(np.array([target]), panel.frequency)[0]
                expected.append((t, target, k, y, [*own, *date, *future]))
    assert rows.n_left_out == left_out
    assert rows.dataset.task_index.tolist() == [t for t, *_ in expected]
    assert rows.target_period.tolist() == [target for _, target, *_ in expected]
    assert rows.step.tolist() == [k for _, _, k, *_ in expected]
    assert rows.dataset.y.tolist() == [y for *_, y, _ in expected]
    X = np.array([own for *_, own in expected]).reshape(-1, len(features.names))
    np.testing.assert_allclose(rows.dataset.X, X, rtol=1e-12, atol=1e-12)
    assert (rows.dataset.task_ids, rows.dataset.feature_names) == (panel.unique_ids, features.names)


@settings(deadline=None)
@given(panel=panels(), features=row_features(), horizon=st.integers(1, 5), data=st.data())
def test_what_comes_after_the_origin_never_changes_a_row(
    panel: SeriesPanel, features: RowFeatures, horizon: int, data: st.DataObject
) -> None:
    features = replace(features, windows=(1, *features.windows), past=(), future=())
    origin = data.draw(st.integers(int(panel.period.min()), int(panel.period.max()) - 1))
    scale = np.ones(panel.n_series)
    before = direct_rows(panel, features, horizon, origins=[origin], scale=scale)
    later = np.where(panel.period > origin, panel.values * -7.0 + 1e6, panel.values)
    changed = SeriesPanel(panel.unique_ids, panel.offsets, panel.period, later, panel.frequency)
    after = direct_rows(changed, features, horizon, origins=[origin], scale=scale)
    assert (before.dataset.X == after.dataset.X).all()
    assert (before.target_period == after.target_period).all()


@settings(deadline=None)
@given(panel=panels(), features=row_features(), horizon=st.integers(1, 5), n_blocks=st.integers(1, 5))
def test_statistics_of_blocks_are_those_of_their_rows(
    panel: SeriesPanel, features: RowFeatures, horizon: int, n_blocks: int
) -> None:
    features = replace(features, windows=(1, *features.windows), past=(), future=())
    origins = rolling_origins(panel, features, horizon)
    rows = direct_rows(panel, features, horizon, origins=origins)
    own = [list(by_period(panel, t).values()) for t in range(panel.n_series)]
    constant = np.array([len(set(values)) <= 1 for values in own])
    kept = ~constant[rows.dataset.task_index]
    if not kept.any():
        with pytest.raises(DataError, match="no series has a row"):
            direct_statistics(panel, features, horizon, n_blocks=n_blocks)
        return
    blocks = direct_statistics(panel, features, horizon, n_blocks=n_blocks)
    assert len(blocks) <= n_blocks
    target, start = rows.target_period[kept], 0
    order = np.argsort(target, kind="stable")
    X, y, task = (array[kept][order] for array in (rows.dataset.X, rows.dataset.y, rows.dataset.task_index))
    for block in blocks:
        stop = start + int(block.n_samples.sum())
        # a block ends between two targets: those that train lie all before the first that is held out
        assert stop == len(target) or target[order][stop - 1] < target[order][stop]
        names = {"task_ids": list(panel.unique_ids), "feature_names": features.names}
        part = TaskDataset.from_long(
            X[start:stop], y[start:stop], [panel.unique_ids[t] for t in task[start:stop]], **names
        )
        expected = SufficientStatistics.from_dataset(part)
        assert (block.n_samples == expected.n_samples).all()
        np.testing.assert_allclose(block.gram, expected.gram, rtol=1e-9, atol=1e-6)
        np.testing.assert_allclose(block.xty, expected.xty, rtol=1e-9, atol=1e-6)
        np.testing.assert_allclose(block.x_sum, expected.x_sum, rtol=1e-9, atol=1e-6)  # type: ignore[arg-type]
        start = stop
    assert start == len(target)


@settings(deadline=None)
@given(data=st.data(), features=row_features(), horizon=st.integers(1, 9))
def test_rows_that_forecast_are_those_of_the_definition(
    data: st.DataObject, features: RowFeatures, horizon: int
) -> None:
    panel = data.draw(panels())
    columns = data.draw(columns_of(panel))
    tails, newest = latest_tails(panel, features.reach)
    steps, beside = range(1, horizon + 1), {"unique_ids": panel.unique_ids, "columns": columns}
    missing = [
        (t, period, name)
        for t in range(panel.n_series)
        if by_period(panel, t)
        for periods, names in (([newest[t]], features.past), (newest[t] + np.array(steps), features.future))
        for period in periods
        for name in names
        if np.isnan(column_at(columns, panel.unique_ids[t], period, name))
    ]
    arguments = tails, features, np.full(panel.n_series, 2.0), steps, newest, panel.frequency
    if missing:
        with pytest.raises(DataError, match="not known") as caught:
            latest_rows(*arguments, **beside)  # type: ignore[arg-type]
        assert caught.value.n_faults == len({t for t, _, _ in missing})
        return
    X, known = latest_rows(*arguments, **beside)  # type: ignore[arg-type]
    assert np.isfinite(X).all()
    for t in range(panel.n_series):
        values = {p: value / 2.0 for p, value in by_period(panel, t).items()}
        assert known[t] == bool(values)
        for k in steps if values else ():
            o = max(values)
            past = [column_at(columns, panel.unique_ids[t], o, name) for name in features.past]
            future = [column_at(columns, panel.unique_ids[t], o + k, name) for name in features.future]
            own = np.array(row(values, features, o, k, past))
            tail = [value for p, value in values.items() if p > o - features.reach]
            own[np.isnan(own)] = np.mean(tail)  # lags that are not there
            own = np.concatenate(
                [own, features.calendar_values(np.array([o + k]), panel.frequency)[0], future]
            )
            np.testing.assert_allclose(X[t, k - 1], own, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("chunk", [1, 40, 300])
def test_rows_and_statistics_do_not_depend_on_how_the_work_is_cut(
    chunk: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    rng = np.random.default_rng(0)
    panel = panel_of(*(rng.normal(size=n).tolist() for n in (40, 7, 23, 40)))
    features = RowFeatures(windows=(1, 5), seasons=((7, 1),), calendar=("day_of_week",))
    whole, blocks = direct_rows(panel, features, 3), direct_statistics(panel, features, 3)
    monkeypatch.setattr(import_module("ccmtl_core.forecasting.row_maker"), "CHUNK", chunk)
    cut, parts = direct_rows(panel, features, 3), direct_statistics(panel, features, 3)
    assert (cut.dataset.X == whole.dataset.X).all()
    assert (cut.target_period == whole.target_period).all()
    assert (cut.dataset.offsets == whole.dataset.offsets).all()
    assert cut.n_left_out == whole.n_left_out
    for block, part in zip(blocks, parts, strict=True):
        assert (block.n_samples == part.n_samples).all()
        np.testing.assert_allclose(block.gram, part.gram, rtol=1e-12)


def test_a_trend_is_the_change_per_period_times_the_step() -> None:
    panel = panel_of([2.0 * i for i in range(9)], [5.0, 6.0, 8.0], [1.0, 4.0])
    tails, newest = latest_tails(panel, 4)
    X, _ = latest_rows(tails, RowFeatures(trends=(2,)), np.ones(3), [1, 5], newest, panel.frequency)
    of_half_a_window_more = (7.0 - 19.0 / 3.0) * np.array([1.0, 5.0])
    np.testing.assert_allclose(X[:, :, 0], [[2.0, 10.0], of_half_a_window_more, [0.0, 0.0]], atol=1e-12)


def test_lags_at_a_horizon_of_one_are_the_papers_rows() -> None:
    rng = np.random.default_rng(0)
    panel = panel_of(rng.normal(size=12).tolist(), rng.normal(size=5).tolist())
    rows = direct_rows(panel, RowFeatures.for_lags(3), 1, scale=np.ones(2))
    lagged = lag_dataset(panel, 3)
    assert (rows.dataset.X == lagged.dataset.X).all()
    assert (rows.dataset.y == lagged.dataset.y).all()
    assert (rows.target_period == lagged.target_period).all()


def test_some_of_the_series() -> None:
    panel = panel_of([1.0, 2.0, 4.0], [5.0, 6.0], [7.0, 9.0, 9.0])
    whole, some = direct_rows(panel, LEVEL, 1), direct_rows(panel, LEVEL, 1, series=slice(1, 3))
    assert some.dataset.task_ids == ("s1", "s2")
    assert (whole.dataset.X[2:] == some.dataset.X).all()
    for wrong in (slice(0, 3, 2), slice(2, 2)):
        with pytest.raises(ParameterError, match="a slice of some of the 3 series"):
            direct_rows(panel, LEVEL, 1, series=wrong)


def test_integers_are_values_like_any_others() -> None:
    whole, real = panel_of([1, 2, 4]), panel_of([1.0, 2.0, 4.0])
    assert (direct_rows(whole, LEVEL, 1).dataset.X == direct_rows(real, LEVEL, 1).dataset.X).all()


def test_the_scale_is_the_root_mean_square_of_the_changes() -> None:
    panel = panel_of([0.0, 3.0, 3.0, -1.0], [0.0, 0.0], [1000.0, 1000.0], [5.0], [])
    assert series_scale(panel).tolist() == pytest.approx([np.sqrt(25 / 3), 1.0, 1.0, 0.005, 1.0])


@pytest.mark.parametrize("size", [1e-200, 1e200])
def test_the_scale_of_values_whose_squares_no_number_holds(size: float) -> None:
    assert series_scale(panel_of([0.0, size, 0.0])) == pytest.approx([size])


def test_series_that_never_change_have_no_rows() -> None:
    blocks = direct_statistics(panel_of([5.0] * 9, [0.0] * 9, [float(i % 4) for i in range(9)]), LEVEL, 2)
    assert [int(n) for n in sum(block.n_samples for block in blocks)] == [0, 0, 15]  # type: ignore[call-overload]


def test_negative_values_are_kept() -> None:
    rows = direct_rows(panel_of([-1.0, -3.0]), LEVEL, 1, scale=[1.0])
    assert (rows.dataset.X.item(), rows.dataset.y.item()) == (-1.0, -3.0)


def test_six_points_of_history() -> None:
    panel = panel_of([3.0, 1.0, 4.0, 1.0, 5.0, 9.0], frequency="MS")
    features = RowFeatures.widest("MS", 2, 6)
    blocks = direct_statistics(panel, features, 2)
    assert sum(int(block.n_samples[0]) for block in blocks) > 0
    assert len(blocks) > 1


def test_too_short_a_history_says_what_a_row_needs() -> None:
    with pytest.raises(DataError, match=r"the longest has 3 values, and a row needs .* at most 5"):
        direct_statistics(panel_of([1.0, 2.0, 3.0], [1.0]), RowFeatures.for_lags(5), 1)
    with pytest.raises(DataError, match="the panel has values in 1 period: a forecast needs two"):
        direct_rows(panel_of([1.0], [2.0]), LEVEL, 1)
    with pytest.raises(DataError, match="the panel has values in 0 periods"):
        direct_rows(panel_of([]), LEVEL, 1)


def test_a_mistyped_time_is_refused_before_it_fills_the_memory() -> None:
    panel = SeriesPanel(("a",), [0, 2], [0, 2**31], [1.0, 2.0], "h")  # type: ignore[arg-type]
    with pytest.raises(DataError, match="is one of the times mistyped"):
        direct_rows(panel, LEVEL, 1)


def test_month_ends_are_one_period_apart() -> None:
    months = ["2024-01-31", "2024-02-29", "2024-03-31"]
    period = SeriesPanel(("a",), [0, 3], [0, 1, 2], [1.0, 2.0, 3.0], "MS").frequency.to_period(months)
    panel = SeriesPanel(("a",), [0, 3], period, [1.0, 2.0, 3.0], "MS")  # type: ignore[arg-type]
    assert direct_rows(panel, LEVEL, 1, scale=[1.0]).dataset.X.ravel().tolist() == [1.0, 2.0]


def test_origins_are_spread_over_the_history_up_to_the_last_whole_horizon() -> None:
    panel = panel_of([float(i) for i in range(100)])
    features = RowFeatures(windows=(10,))
    assert rolling_origins(panel, features, 5).tolist() == list(range(9, 99))
    few = rolling_origins(panel, features, 5, n_origins=9)
    assert few.tolist() == list(range(14, 99, 10))
    assert 94 in few
    assert rolling_origins(panel, RowFeatures(windows=(90,)), 5)[0] == 49  # half of a short history


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"horizon": 0}, "horizon must be at least 1, not 0"),
        ({"horizon": 1.5}, "horizon must be an integer"),
        ({"features": "level_1"}, "features must be RowFeatures, not str"),
        ({"panel": [1.0]}, "panel must be SeriesPanel, not list"),
        ({"origins": [99]}, "origins must hold periods from 0 to 2, those of the panel"),
        ({"scale": [0.0]}, "scale must be positive and finite"),
        ({"scale": [1.0, 1.0]}, r"scale must be \(1,\); got \(2,\)"),
    ],
)
def test_arguments_out_of_their_range_are_refused(arguments: dict[str, object], message: str) -> None:
    given_arguments = {"panel": panel_of([1.0, 2.0, 3.0, 5.0]), "features": LEVEL, "horizon": 1, **arguments}
    with pytest.raises((ParameterError, DataError), match=message):
        direct_rows(**given_arguments)  # type: ignore[arg-type]


def test_tails_of_other_shapes_are_refused() -> None:
    with pytest.raises(DataError, match=r"tail must be \(T, R\)"):
        latest_rows([1.0], LEVEL, [1.0], [1], [0], "D")
    with pytest.raises(DataError, match=r"origin must be \(1,\); got \(2,\)"):
        latest_rows([[1.0]], LEVEL, [1.0], [1], [0, 0], "D")
    with pytest.raises(ParameterError, match="steps must be at least 1"):
        latest_rows([[1.0]], LEVEL, [1.0], [0], [0], "D")


def test_an_empty_tail_has_finite_features_and_is_told() -> None:
    X, known = latest_rows([[np.nan, np.nan]], RowFeatures(windows=(2,), lags=(1,)), [1.0], [1, 2], [5], "D")
    assert X.tolist() == [[[0.0, 0.0]] * 2]
    assert known.tolist() == [False]

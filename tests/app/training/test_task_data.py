"""Which rows are trained on, which are held out, and where forecasts start."""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from app.datasets.definition import SeriesDefinition
from app.datasets.stored.frames import LoadedPanel
from app.training.schemas import TrainingJobRequest
from app.training.task_data import prepare, split_within_tasks
from ccmtl_core import TaskDataset
from ccmtl_core.forecasting import Frequency, SeriesPanel


def request(**given: Any) -> TrainingJobRequest:
    return TrainingJobRequest(dataset="d", model="m", fusion_strength=1.0, **given)


def loaded(*series: list[tuple[int, float]], frequency: str = "D") -> LoadedPanel:
    """Series as lists of (period, value)."""
    entries = [entry for one in series for entry in one]
    panel = SeriesPanel(
        tuple(f"s{t}" for t in range(len(series))),
        np.cumsum([0, *map(len, series)]),
        np.array([period for period, _ in entries], dtype=np.int64),
        np.array([value for _, value in entries]),
        Frequency(frequency),
    )
    return LoadedPanel(panel, SeriesDefinition(kind="series", frequency=Frequency(frequency)), 3)


@given(sizes=st.lists(st.integers(0, 30), min_size=1, max_size=8), fraction=st.floats(0.01, 0.99))
def test_every_task_gives_its_share_of_rows(sizes: list[int], fraction: float) -> None:
    offsets = np.cumsum([0, *sizes])
    fold = split_within_tasks(offsets, fraction)
    assert fold.shape == (sum(sizes),)
    for t, size in enumerate(sizes):
        held_out = int(fold[offsets[t] : offsets[t + 1]].sum())
        assert held_out == int(size * fraction)
        assert held_out < size or size == 0
    assert np.array_equal(fold, split_within_tasks(offsets, fraction))


def test_held_out_rows_of_a_task_are_drawn_not_its_last() -> None:
    fold = split_within_tasks(np.array([0, 1000]), 0.5)
    assert 200 < fold[:500].sum() < 300


def test_series_become_rows_of_lags_cut_by_time() -> None:
    data = prepare(loaded([(p, float(p)) for p in range(10)], [(8, 1.0), (9, 2.0)]), request(lags=2))
    assert data.dataset.X[:2].tolist() == [[1.0, 0.0], [2.0, 1.0]]
    assert data.dataset.n_samples.tolist() == [8, 0]
    assert data.fold is not None
    assert data.fold.tolist() == [0] * 4 + [1] * 4
    assert data.facts == {
        "n_rows": 8,
        "n_periods_filled": 3,
        "n_periods_without_all_lags": 4,
        "first_held_out": "1970-01-07T00:00:00",
    }
    assert data.history is not None
    assert data.history.lags.tolist() == [[9.0, 8.0], [2.0, 1.0]]
    assert data.history.last_period.tolist() == [9, 9]


def test_five_lags_are_taken_when_none_are_named() -> None:
    data = prepare(loaded([(p, 1.0) for p in range(9)]), request())
    assert data.dataset.feature_names == ("lag_1", "lag_2", "lag_3", "lag_4", "lag_5")


def test_nothing_is_held_out_when_nothing_is_asked_for() -> None:
    series = prepare(loaded([(p, 1.0) for p in range(9)]), request(holdout=None))
    rows = prepare(TaskDataset.from_arrays([np.ones((3, 1))], [[1.0, 2.0, 3.0]]), request(holdout=None))
    assert series.fold is None
    assert rows.fold is None
    assert "first_held_out" not in series.facts


def test_regression_rows_are_held_out_at_random_and_have_no_history() -> None:
    data = prepare(TaskDataset.from_arrays([np.ones((4, 1))], [np.arange(4.0)]), request(holdout=0.25))
    assert data.fold is not None
    assert data.fold.sum() == 1
    assert data.history is None

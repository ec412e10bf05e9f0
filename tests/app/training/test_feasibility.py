"""A request is refused exactly when preparing its rows, or splitting them, would leave nothing to work on."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from app.datasets.stored.coverage import coverage_of
from app.datasets.stored.frames import LoadedPanel
from app.training.feasibility import find_faults
from app.training.schemas import TrainingJobRequest
from app.training.task_data import prepare, statistics
from ccmtl_core import DataError, ParameterError, SufficientStatistics, TaskDataset
from ccmtl_core.forecasting import lag_dataset, split_by_time
from tests.app.training.test_task_data import loaded, request


def parts(data: LoadedPanel | TaskDataset, request: TrainingJobRequest) -> list[SufficientStatistics]:
    folds, held_out = statistics(prepare(data, request), request)
    return [*folds, *([] if held_out is None else [held_out])]


def locations(
    data: LoadedPanel | TaskDataset, request: TrainingJobRequest, unsound: set[str]
) -> list[str | None]:
    coverage = coverage_of(data.panel if isinstance(data, LoadedPanel) else data)
    return [fault.location for fault in find_faults(coverage, request, unsound)]


@given(
    series=st.lists(st.sets(st.integers(0, 12), max_size=10), min_size=1, max_size=4),
    lags=st.integers(1, 6),
    holdout=st.none() | st.floats(0.05, 0.95),
)
def test_refused_exactly_when_it_cannot_work(
    series: list[set[int]], lags: int, holdout: float | None
) -> None:
    data = loaded(*[[(period, 1.0) for period in sorted(periods)] for periods in series])
    expected = []
    if max(map(len, series)) <= lags or not len((lagged := lag_dataset(data.panel, lags)).target_period):
        expected = ["body.lags"]
    elif holdout is not None:
        try:
            fold, _ = split_by_time(lagged, holdout)
            assert set(fold) == {0, 1}
        except ParameterError:
            expected = ["body.holdout"]
    assert locations(data, request(lags=lags, holdout=holdout, accept_gaps=True), set()) == expected


@given(
    series=st.lists(st.sets(st.integers(0, 14), max_size=12), min_size=1, max_size=4),
    lags=st.integers(1, 4),
    holdout=st.none() | st.floats(0.05, 0.95),
    folds=st.sampled_from([None, "rolling", "contiguous"]),
    n_folds=st.integers(2, 5),
)
def test_a_choice_is_refused_exactly_when_its_folds_cannot_be_made(
    series: list[set[int]], lags: int, holdout: float | None, folds: str | None, n_folds: int
) -> None:
    data = loaded(*[[(period, 1.0) for period in sorted(periods)] for periods in series])
    asked = {"fusion_strength": "auto", "lags": lags, "holdout": holdout, "folds": folds, "n_folds": n_folds}
    asked["accept_gaps"] = True
    request = TrainingJobRequest(dataset="d", model="m", **asked)  # type: ignore[arg-type]
    one_strength = request.model_copy(update={"fusion_strength": 1.0})
    if locations(data, one_strength, set()):
        return
    try:
        assert all(part.n_samples.any() for part in parts(data, request))
        expected = []
    except DataError:
        expected = ["body.n_folds"]
    assert locations(data, request, set()) == expected


@given(
    sizes=st.lists(st.integers(0, 12), min_size=1, max_size=4),
    holdout=st.none() | st.floats(0.05, 0.95),
    n_folds=st.integers(2, 5),
)
def test_random_folds_are_refused_where_one_could_be_empty(
    sizes: list[int], holdout: float | None, n_folds: int
) -> None:
    data = TaskDataset.from_arrays([np.ones((n, 1)) for n in sizes], [np.ones(n) for n in sizes])
    asked = {"fusion_strength": [0.0, 1.0], "holdout": holdout, "n_folds": n_folds}
    request = TrainingJobRequest(dataset="d", model="m", **asked)  # type: ignore[arg-type]
    found = locations(data, request, set())
    if not found:
        assert all(part.n_samples.any() for part in parts(data, request))
    elif found == ["body.n_folds"]:
        kept = max(sizes) - int(max(sizes) * (holdout or 0.0))
        assert kept < n_folds


@given(
    series=st.lists(st.sets(st.integers(0, 12), min_size=1), min_size=1, max_size=4), lags=st.integers(1, 6)
)
def test_gaps_are_refused_exactly_when_half_of_the_rows_are_lost_to_them(
    series: list[set[int]], lags: int
) -> None:
    data = loaded(*[[(period, 1.0) for period in sorted(periods)] for periods in series])
    asked = request(lags=lags, holdout=None)
    if locations(data, asked.model_copy(update={"accept_gaps": True}), set()):
        return
    used = len(lag_dataset(data.panel, lags).target_period)
    possible = sum(len(one) - lags if len(one) > lags else len(one) for one in series)
    assert locations(data, asked, set()) == (["body.lags"] if used < possible / 2 else [])
    assert locations(data, asked, {"accept_gaps"}) == []


def test_folds_fit_the_kind_of_data() -> None:
    series = loaded([(t, 1.0) for t in range(30)])
    rows = TaskDataset.from_arrays([np.ones((30, 1))], [np.ones(30)])
    for data, folds, location in (
        (series, "random", ["body.folds"]),
        (rows, "rolling", ["body.folds"]),
        (series, "contiguous", []),
        (rows, "random", []),
    ):
        asked = {"fusion_strength": "auto", "folds": folds}
        request = TrainingJobRequest(dataset="d", model="m", **asked)  # type: ignore[arg-type]
        assert locations(data, request, set()) == location


def test_the_message_says_what_is_there_and_what_is_needed() -> None:
    data = loaded([(1, 1.0), (2, 1.0), (3, 1.0), (9, 1.0)])
    [fault] = find_faults(coverage_of(data.panel), request(lags=3), set())
    assert fault.message == (
        "no series has 4 consecutive periods, which 3 lags need; the longest run of periods is 3"
    )


def test_lags_are_no_matter_for_regression() -> None:
    rows = TaskDataset.from_arrays([np.ones((4, 1))], [np.ones(4)])
    assert locations(rows, request(lags=5, holdout=0.1), set()) == ["body.lags", "body.holdout"]
    assert locations(rows, request(), set()) == []


def test_what_is_not_sound_is_not_judged() -> None:
    rows = TaskDataset.from_arrays([np.ones((1, 1))], [np.ones(1)])
    series = loaded([(1, 1.0), (2, 1.0)])
    assert locations(rows, request(lags=5), {"holdout"}) == ["body.lags"]
    assert locations(rows, request(lags=5), {"lags", "holdout"}) == []
    assert locations(series, request(lags=5), {"lags"}) == []
    assert locations(series, request(lags=1), {"holdout"}) == []


def test_a_dataset_without_rows_is_refused() -> None:
    rows = TaskDataset.from_arrays([np.empty((0, 1))], [[]])
    assert locations(rows, request(), set()) == ["body.dataset"]

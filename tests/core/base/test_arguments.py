"""What is of the wrong kind is refused by name, by every function that fits, before any row is read."""

from __future__ import annotations

from collections.abc import Callable
from datetime import date, datetime, timedelta
from decimal import Decimal
from functools import cache
from typing import Any

import numpy as np
import polars as pl
import pytest

from ccmtl_core import (
    DataError,
    FitResult,
    ParameterError,
    SufficientStatistics,
    TaskDataset,
    TriangularStatistics,
    append_statistics,
    contiguous_folds,
    fit,
    fit_path,
    fused_weights,
    fusion_threshold,
    merge_statistics,
    nearest_neighbour_graph,
    period_factors,
    pooled_weights,
    random_coefficients,
    random_folds,
    read_statistics,
    select,
    shrunk_weights,
    single_task_weights,
    statistics_frame,
    statistics_from_files,
    strength_grid,
)

rng = np.random.default_rng(0)
DATA = TaskDataset.from_arrays(list(rng.standard_normal((6, 8, 2))), list(rng.standard_normal((6, 8))))


@cache
def statistics() -> SufficientStatistics:
    return SufficientStatistics.from_dataset(DATA)


@cache
def factors() -> TriangularStatistics:
    return TriangularStatistics.from_dataset(DATA)


@cache
def first() -> FitResult:
    return fit(statistics(), fusion_strength=1.0, n_neighbors=2)


def by_fit(fusion_strength: Any = 1.0, **given: Any) -> Any:
    return fit(DATA, fusion_strength=fusion_strength, **given)


def by_path(fusion_strength: Any = 1.0, **given: Any) -> Any:
    return fit_path(DATA, [fusion_strength], **given)


def by_selection(fusion_strength: Any = 1.0, **given: Any) -> Any:
    return select(DATA, [fusion_strength], n_folds=2, **given)


every_face = pytest.mark.parametrize("call", [by_fit, by_path, by_selection])


@every_face
@pytest.mark.parametrize("wrong", [2.0, True, "3", None, np.float64(2), np.True_, np.timedelta64(2, "D")])
def test_neighbours_are_counted_by_an_integer(call: Callable[..., Any], wrong: object) -> None:
    with pytest.raises(ParameterError, match="n_neighbors must be an integer, not "):
        call(n_neighbors=wrong)


@every_face
@pytest.mark.parametrize("wrong", ["1", None, True, 1j, [1.0], pytest.param(10**400, id="huge")])
def test_a_strength_is_a_number(call: Callable[..., Any], wrong: object) -> None:
    with pytest.raises(ParameterError, match=r"fusion_strengths? must be a"):
        call(fusion_strength=wrong, n_neighbors=2)


@pytest.mark.parametrize("several", ["auto", [0.0, 1.0], np.ones(200)])
def test_several_strengths_are_for_other_functions(several: object) -> None:
    with pytest.raises(ParameterError, match=r"; select chooses one by cross-validation, fit_path") as caught:
        by_fit(fusion_strength=several)
    assert len(str(caught.value)) < 250


def test_a_word_for_strengths_says_how_to_get_the_grid() -> None:
    with pytest.raises(ParameterError, match=r"not 'auto'\. Leave it out for a grid"):
        select(DATA, "auto")


TABLE = pl.DataFrame({"x": [1.0, 2.0], "y": [1.0, 2.0]})


@pytest.mark.parametrize(
    "call",
    [
        lambda: fit(TABLE, fusion_strength=1.0),
        lambda: fit(TABLE.to_numpy(), fusion_strength=1.0),
        lambda: fit_path(TABLE),
        lambda: select(TABLE),
        lambda: select([TABLE, TABLE]),
        lambda: pooled_weights(TABLE),
        lambda: single_task_weights(TABLE),
        lambda: shrunk_weights(TABLE, 1.0),
        lambda: random_coefficients(TABLE),
        lambda: fused_weights(TABLE, first().graph),
        lambda: fusion_threshold(TABLE, first().graph),
        lambda: strength_grid(TABLE, first().graph),
        lambda: random_folds(TABLE, 2, rng),
        lambda: contiguous_folds(TABLE, 2),
        lambda: period_factors(TABLE, [1, 2]),
    ],
)
def test_a_table_is_told_how_it_becomes_a_dataset(call: Callable[[], Any]) -> None:
    with pytest.raises(ParameterError, match=r"^data must be .* not .*TaskDataset\.from_long\(table"):
        call()


def test_statistics_of_all_rows_cannot_be_parted() -> None:
    with pytest.raises(ParameterError, match="give select a TaskDataset, or the statistics of each fold"):
        select(statistics())


def test_rivals_take_a_dataset_too() -> None:
    assert np.array_equal(pooled_weights(DATA), pooled_weights(statistics()))


@every_face
@pytest.mark.parametrize("wrong", ["x", None, True, pytest.param(10**400, id="huge")])
def test_a_tolerance_is_a_number(call: Callable[..., Any], wrong: object) -> None:
    with pytest.raises(ParameterError, match="tolerance must be a finite number above 0, not "):
        call(tolerance=wrong, n_neighbors=2)


@pytest.mark.parametrize("call", [by_fit, by_path])
@pytest.mark.parametrize("wrong", ["x", [[0, 1]], 3])
def test_a_graph_is_a_graph(call: Callable[..., Any], wrong: object) -> None:
    with pytest.raises(ParameterError, match="graph must be a TaskGraph, not "):
        call(graph=wrong)


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ([[1.0], [1.0, 2.0]], "a list of one or more numbers"),
        ("12", "a list of one or more numbers"),
        (["1", "2"], "0, or from 1e-100 to 1e100"),
        ([1.0, None], "0, or from 1e-100 to 1e100"),
        ([True], "0, or from 1e-100 to 1e100"),
    ],
)
def test_strengths_are_a_list_of_numbers(wrong: Any, message: str) -> None:
    with pytest.raises(ParameterError, match=message):
        fit_path(DATA, wrong, n_neighbors=2)
    with pytest.raises(ParameterError, match=message):
        select(DATA, wrong, n_folds=2, n_neighbors=2)


@pytest.mark.parametrize("wrong", [0, 1.0, "2", True])
def test_workers_are_counted_by_an_integer_other_than_zero(wrong: Any) -> None:
    with pytest.raises(ParameterError, match="n_jobs must be an integer other than 0"):
        select(DATA, [1.0], n_folds=2, n_neighbors=2, n_jobs=wrong)
    with pytest.raises(ParameterError, match="n_jobs must be an integer other than 0"):
        statistics_from_files(["a.csv", "b.csv"], task="t", target="y", features=["x"], n_jobs=wrong)


@every_face
def test_numbers_and_truth_values_of_numpy_are_as_good(call: Callable[..., Any]) -> None:
    usual = call(fusion_strength=2.0, n_neighbors=2, tolerance=1e-4, fit_intercept=True)
    given = call(
        fusion_strength=np.int64(2),
        n_neighbors=np.uint8(2),
        tolerance=np.float64(1e-4),
        fit_intercept=np.True_,
    )
    one, other = (
        result.model(0) if call is by_path else getattr(result, "fit", result).model
        for result in (usual, given)
    )
    np.testing.assert_array_equal(one.weights, other.weights)
    np.testing.assert_array_equal(one.intercept, other.intercept)


def test_a_given_graph_is_taken_whatever_the_number_of_neighbours() -> None:
    two: Any = np.int32(2)
    graph = nearest_neighbour_graph(first().model.weights, two)
    np.testing.assert_array_equal(by_fit(graph=graph, n_neighbors=4).graph.edges, graph.edges)


@pytest.mark.parametrize(
    ("kind", "missing"), [("O", None), ("O", np.nan), ("f8", np.nan), ("M8[D]", np.datetime64("NaT", "D"))]
)
def test_rows_without_a_period_or_time_are_named(kind: str, missing: object) -> None:
    when: Any = np.tile(np.arange(8), 6).astype(kind)
    when[[5, 7]] = missing
    with pytest.raises(DataError, match=r"period, row 6: there is no value\n.*period, row 8"):
        period_factors(DATA, when)
    with pytest.raises(DataError, match=r"time, row 6: there is no value\n.*time, row 8"):
        contiguous_folds(DATA, 2, when)


def test_periods_of_kinds_without_an_order_are_refused() -> None:
    mixed: Any = np.array([1, "a"] * 24, dtype=object)
    with pytest.raises(DataError, match="period holds values of kinds that have no order"):
        period_factors(DATA, mixed)
    named: Any = np.array(["a", "b"] * 24, dtype=object)
    np.testing.assert_array_equal(period_factors(DATA, named), period_factors(DATA, np.arange(48) % 2))


@pytest.mark.parametrize(
    ("times", "kind"),
    [
        (np.array(["9", "10"]), "str_"),
        (np.array([b"9", b"10"]), "bytes_"),
        (np.array([9, "10"], dtype=object), "str"),
        (np.array([None, "10"], dtype=object), "str"),
        (np.array([1j, 2.0]), "complex128"),
        (np.array([True, False]), "bool"),
        (np.array([True, 2], dtype=object), "bool"),
    ],
)
def test_times_that_do_not_say_when_are_refused(times: Any, kind: str) -> None:
    for folds in ("contiguous", "rolling"):
        with pytest.raises(DataError, match=f"time must hold numbers, dates or datetimes, not {kind}: text"):
            select(DATA, [1.0], folds=folds, n_folds=2, n_neighbors=2, time=np.tile(times, 24))
    with pytest.raises(DataError, match=f"time must hold numbers, dates or datetimes, not {kind}: text"):
        contiguous_folds(DATA, 2, np.tile(times, 24))


@pytest.mark.parametrize(
    "times",
    [
        [date(2024, 1, 9), date(2024, 1, 10)],
        [datetime(2024, 1, 9, 23), datetime(2024, 1, 10, 1)],
        [np.datetime64("2024-01-09"), np.datetime64("2024-01-10")],
        [timedelta(hours=9), timedelta(hours=10)],
        [Decimal("9.5"), 10],
        [np.float32(9), 10],
    ],
)
def test_dates_and_numbers_of_python_are_times(times: list[Any]) -> None:
    fold = contiguous_folds(DATA, 2, np.tile(np.array(times, dtype=object), 24))
    assert fold.tolist() == [0, 1] * 24


def test_ragged_and_masked_times_are_refused() -> None:
    ragged: Any = [[1], [1, 2]]
    with pytest.raises(DataError, match="time is not a rectangular array"):
        contiguous_folds(DATA, 2, ragged)
    with pytest.raises(DataError, match="period is not a rectangular array"):
        period_factors(DATA, ragged)
    masked = np.ma.masked_equal(np.arange(48), 5)  # type: ignore[no-untyped-call]
    with pytest.raises(DataError, match="time, row 6: there is no value"):
        contiguous_folds(DATA, 2, masked)


def takes_paths(path: Any, **given: Any) -> Any:
    return statistics_from_files(path, **{"task": "t", "target": "y", "features": ["x"], **given})


@pytest.mark.parametrize(
    "call",
    [
        lambda: by_fit(on_progress=5),
        lambda: by_selection(on_progress=5),
        lambda: by_path(on_point=5),
        lambda: by_selection(rng=5),
        lambda: random_folds(DATA, 2, 5),  # type: ignore[arg-type]
        lambda: append_statistics(statistics(), statistics(), forgetting="x"),  # type: ignore[arg-type]
        lambda: append_statistics(statistics(), statistics(), forgetting=None),  # type: ignore[arg-type]
        lambda: append_statistics(statistics(), statistics(), forgetting=[0.5]),  # type: ignore[arg-type]
        lambda: append_statistics(statistics(), None),  # type: ignore[arg-type]
        lambda: append_statistics(None, statistics()),  # type: ignore[arg-type]
        lambda: append_statistics(statistics(), factors()),  # type: ignore[arg-type]
        lambda: merge_statistics(statistics()),  # type: ignore[arg-type]
        lambda: merge_statistics([statistics(), None]),  # type: ignore[list-item]
        lambda: fusion_threshold(None, None),  # type: ignore[arg-type]
        lambda: fusion_threshold(statistics(), None),  # type: ignore[arg-type]
        lambda: fusion_threshold(statistics(), first().graph, ratio="x"),  # type: ignore[arg-type]
        lambda: fused_weights(statistics(), None),  # type: ignore[arg-type]
        lambda: strength_grid(statistics(), None),  # type: ignore[arg-type]
        lambda: strength_grid(statistics(), first().graph, n="x"),  # type: ignore[arg-type]
        lambda: shrunk_weights(statistics(), "x"),  # type: ignore[arg-type]
        lambda: statistics_frame(None),  # type: ignore[arg-type]
        lambda: SufficientStatistics.from_dataset(None),  # type: ignore[arg-type]
        lambda: TriangularStatistics.from_dataset(statistics()),  # type: ignore[arg-type]
        lambda: SufficientStatistics.by_fold(None, [0], 1),  # type: ignore[arg-type]
        lambda: takes_paths([None]),
        lambda: takes_paths("a\0b"),
        lambda: takes_paths("a.csv", batch_rows="x"),
        lambda: takes_paths("a.csv", task=5),
        lambda: read_statistics(""),
    ],
)
def test_an_argument_of_the_wrong_kind_is_named(call: Callable[[], Any]) -> None:
    with pytest.raises(ParameterError, match=r" must (be|name) |at least 3 strengths, not 'x'"):
        call()


@pytest.mark.parametrize(
    "call",
    [
        lambda: statistics().scaled("x"),  # type: ignore[arg-type]
        lambda: factors().scaled("0.5"),  # type: ignore[arg-type]
        lambda: statistics().squared_error("x"),
        lambda: SufficientStatistics.by_fold(DATA, [[0], [1, 2]], 3),
        lambda: SufficientStatistics.from_blocks([], 2, 1, feature_names=5),  # type: ignore[arg-type]
        lambda: TriangularStatistics.from_blocks([], 2, 1, task_ids="ab"),
        lambda: takes_paths(5),
        lambda: takes_paths("a.csv", features="ab"),
        lambda: takes_paths("a.csv", features=None),
        lambda: first().model.rows(None),  # type: ignore[arg-type]
    ],
)
def test_data_of_the_wrong_kind_is_named(call: Callable[[], Any]) -> None:
    with pytest.raises(
        DataError, match=r" must (be a list|hold real numbers), not |is not a rectangular array"
    ):
        call()

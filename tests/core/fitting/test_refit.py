"""Appended rows: the model of all rows, found from the old one, and certified like any other."""

from __future__ import annotations

import numpy as np
import pytest

from ccmtl_core import (
    CCMTLModel,
    DataError,
    FitResult,
    ParameterError,
    SufficientStatistics,
    TaskDataset,
    append_statistics,
    fit,
    refit,
)
from ccmtl_core.data.synthetic import syn

STRENGTH, TOLERANCE = 3.0, 1e-6


@pytest.fixture(scope="module")
def parts() -> list[SufficientStatistics]:
    """Four fifths of the rows, and the rest."""
    data = syn(np.random.default_rng(0), n_tasks=60, n_features=4, n_samples=20).dataset
    return SufficientStatistics.by_fold(data, np.arange(len(data.y)) % 5 == 0, 2)


@pytest.fixture(scope="module")
def first(parts: list[SufficientStatistics]) -> FitResult:
    return fit(parts[0], fusion_strength=STRENGTH, tolerance=TOLERANCE)


@pytest.mark.parametrize(
    ("solver", "tolerance"),
    [
        ("auto", TOLERANCE),
        ("newton", TOLERANCE),
        ("alternating", 1e-4),
    ],
)
@pytest.mark.parametrize("fit_intercept", [False, True])
def test_it_finds_what_a_fit_of_all_rows_finds(
    parts: list[SufficientStatistics], first: FitResult, solver: str, tolerance: float, fit_intercept: bool
) -> None:
    statistics = append_statistics(*parts)
    cold = fit(
        statistics, fusion_strength=STRENGTH, tolerance=tolerance, solver=solver, fit_intercept=fit_intercept
    )
    warm = refit(
        first,
        statistics,
        fusion_strength=STRENGTH,
        tolerance=tolerance,
        solver=solver,
        fit_intercept=fit_intercept,
    )
    assert warm.report.gap <= tolerance
    assert warm.report.objective == pytest.approx(cold.report.objective, rel=tolerance)
    np.testing.assert_array_equal(warm.graph.edges, cold.graph.edges)
    assert warm.model.task_ids == statistics.task_ids


def test_nothing_new_takes_no_more_rounds(parts: list[SufficientStatistics]) -> None:
    more = {"fusion_strength": STRENGTH, "tolerance": 1e-4, "solver": "alternating"}
    cold = fit(parts[0], **more)  # type: ignore[arg-type]
    warm = refit(cold, parts[0], **more)  # type: ignore[arg-type]
    assert warm.report.rounds <= cold.report.rounds
    assert warm.report.objective <= cold.report.objective * (1 + 1e-4)


def test_new_tasks_join_and_old_ones_may_leave(parts: list[SufficientStatistics], first: FitResult) -> None:
    data = TaskDataset.from_arrays(
        [np.eye(4)] * 2, [np.ones(4), np.zeros(4)], ["task_3", "new"], parts[0].feature_names
    )
    both = append_statistics(parts[0], SufficientStatistics.from_dataset(data))
    assert both.task_ids == (*parts[0].task_ids, "new")
    warm = refit(first, both, fusion_strength=STRENGTH, tolerance=TOLERANCE)
    cold = fit(both, fusion_strength=STRENGTH, tolerance=TOLERANCE)
    assert warm.report.objective == pytest.approx(cold.report.objective, rel=TOLERANCE)
    fewer = parts[0].reordered(np.arange(10, 60))
    assert len(refit(first, fewer, fusion_strength=STRENGTH).model.task_ids) == 50


def test_a_loaded_model_will_do(parts: list[SufficientStatistics], first: FitResult) -> None:
    model = CCMTLModel(first.model.weights, first.model.task_ids, first.model.feature_names)
    assert refit(model, parts[0], fusion_strength=STRENGTH).report.gap <= 1e-4


def test_the_old_graph_can_be_kept(parts: list[SufficientStatistics], first: FitResult) -> None:
    statistics = append_statistics(*parts)
    kept = refit(first, statistics, fusion_strength=STRENGTH, graph=first.graph)
    assert kept.graph is first.graph
    assert kept.report.gap <= 1e-4


def test_old_rows_count_less(parts: list[SufficientStatistics]) -> None:
    old, new = parts
    statistics = append_statistics(old, new, forgetting=0.25)
    np.testing.assert_allclose(statistics.gram, 0.25 * old.gram + new.gram)
    assert statistics.weight is not None
    np.testing.assert_array_equal(statistics.weight, 0.25 * old.n_samples + new.n_samples)
    np.testing.assert_array_equal(statistics.n_samples, old.n_samples + new.n_samples)
    forgotten = append_statistics(old, new, forgetting=0.0)
    np.testing.assert_array_equal(forgotten.xty, new.xty)


def test_what_does_not_fit_together_is_refused(parts: list[SufficientStatistics], first: FitResult) -> None:
    for factor in (-0.1, 1.1, float("nan")):
        with pytest.raises(ParameterError, match="forgetting must be from 0 to 1"):
            append_statistics(*parts, forgetting=factor)
    other = CCMTLModel(first.model.weights, first.model.task_ids, ("a", "b", "c", "d"))
    with pytest.raises(DataError, match="other features"):
        refit(other, parts[0], fusion_strength=STRENGTH)
    with pytest.raises(DataError, match="initial_weights must be"):
        fit(parts[0], fusion_strength=STRENGTH, initial_weights=np.zeros((2, 2)))
    with pytest.raises(DataError, match="must be finite"):
        fit(parts[0], fusion_strength=STRENGTH, initial_weights=np.full((60, 4), np.nan))

"""The face of the fit: what goes in, what is told on the way, what is refused."""

from __future__ import annotations

import numpy as np
import pytest

from ccmtl_core import (
    DataError,
    ParameterError,
    Progress,
    TaskDataset,
    fit,
    nearest_neighbour_graph,
    single_task_weights,
)
from tests.core.fits import every_solver, run
from tests.core.fusion_problems import chain, regular


def test_the_same_input_gives_bitwise_the_same_answer() -> None:
    instance = regular(np.random.default_rng(0), chain(50), 3)
    first = fit(instance.dataset, fusion_strength=1.0)
    again = fit(instance.dataset, fusion_strength=1.0)
    assert np.array_equal(first.model.weights, again.model.weights)


def test_names_travel_through() -> None:
    data = TaskDataset.from_arrays([[[1.0, 2.0]], [[2.0, 1.0]]], [[1.0], [2.0]], ["01", "1"], ["a", "b"])
    result = fit(data, fusion_strength=0.1)
    assert (result.model.task_ids, result.model.feature_names) == (("01", "1"), ("a", "b"))


def test_a_given_graph_is_used() -> None:
    instance = regular(np.random.default_rng(0), chain(10), 2)
    result = run(instance, 1e-4)
    assert result.graph is instance.graph
    defaults = fit(instance.dataset, fusion_strength=1.0, n_neighbors=3)
    expected = nearest_neighbour_graph(single_task_weights(instance.statistics), 3)
    assert np.array_equal(defaults.graph.edges, expected.edges)


def test_the_statistics_are_not_changed() -> None:
    instance = regular(np.random.default_rng(0), chain(10), 2)
    before = instance.statistics.gram.copy(), instance.statistics.xty.copy()
    run(instance, 1e-8)
    assert np.array_equal(instance.statistics.gram, before[0])
    assert np.array_equal(instance.statistics.xty, before[1])


@every_solver
def test_progress_tells_phases_and_rounds_in_order(solver: str) -> None:
    instance = regular(np.random.default_rng(0), chain(20), 2)
    told: list[Progress] = []
    result = fit(instance.dataset, fusion_strength=5.0, n_neighbors=3, solver=solver, on_progress=told.append)
    phases = [this.phase for this in told if this.round == 0]
    assert phases == ["statistics", "start", "graph", "solve"]
    rounds = [this for this in told if this.round > 0]
    assert [this.round for this in rounds] == list(range(1, result.report.rounds + 1))
    assert [this.objective for this in rounds] == [this.objective for this in result.report.history]
    assert (np.diff([this.elapsed for this in told]) >= 0).all()
    assert rounds[-1].gap == result.report.gap


@pytest.mark.parametrize("phase", ["statistics", "start", "graph", "solve"])
@pytest.mark.parametrize("number", [0, 2])
def test_an_exception_of_the_listener_ends_the_fit(phase: str, number: int) -> None:
    class Cancelled(Exception):
        pass

    def listen(progress: Progress) -> None:
        if progress.phase == phase and progress.round == number:
            raise Cancelled

    instance = regular(np.random.default_rng(0), chain(20), 2)
    if number and phase != "solve":
        fit(instance.dataset, fusion_strength=5.0, on_progress=listen)
        return
    with pytest.raises(Cancelled):
        fit(instance.dataset, fusion_strength=5.0, n_neighbors=3, on_progress=listen)


@every_solver
def test_the_best_gap_never_rises(solver: str) -> None:
    instance = regular(np.random.default_rng(3), chain(60), 3).with_strength(10.0)
    history = run(instance, 1e-9, solver).report.history
    gaps = [this.gap for this in history if this.gap is not None]
    assert len(gaps) >= 1
    assert (np.diff(gaps) <= 0).all()


@pytest.mark.parametrize("tolerance", [0.0, -1.0, np.nan, np.inf])
def test_refuses_an_unusable_tolerance(tolerance: float) -> None:
    instance = regular(np.random.default_rng(0), chain(3), 1)
    with pytest.raises(ParameterError, match="tolerance must be a finite number above 0"):
        fit(instance.statistics, fusion_strength=1.0, tolerance=tolerance)


def test_refuses_other_unusable_arguments() -> None:
    instance = regular(np.random.default_rng(0), chain(3), 1)
    with pytest.raises(
        ParameterError, match="solver must be one of auto, dual, alternating, newton; not 'magic'"
    ):
        fit(instance.statistics, fusion_strength=1.0, solver="magic")
    short = regular(np.random.default_rng(0), chain(3), 4, n=3)
    with pytest.raises(ParameterError, match="solver 'dual' needs more independent rows than features"):
        fit(short.statistics, fusion_strength=1.0, solver="dual")
    with pytest.raises(ParameterError, match="fusion_strength"):
        fit(instance.statistics, fusion_strength=-1.0)
    with pytest.raises(ParameterError, match="n_neighbors"):
        fit(instance.statistics, fusion_strength=1.0, n_neighbors=0)
    with pytest.raises(DataError, match="the graph has 4 tasks, the data 3"):
        fit(instance.statistics, fusion_strength=1.0, graph=chain(4))


def test_weights_to_begin_from_change_the_rounds_only() -> None:
    instance = regular(np.random.default_rng(0), chain(20), 2)
    first = run(instance, 1e-6)
    again = fit(
        instance.dataset,
        fusion_strength=instance.strength,
        graph=instance.graph,
        tolerance=1e-6,
        initial_weights=first.model.weights,
    )
    assert again.report.rounds <= first.report.rounds
    assert again.report.objective == pytest.approx(first.report.objective, rel=1e-6)


def test_weights_to_begin_from_are_one_finite_row_for_each_task() -> None:
    instance = regular(np.random.default_rng(0), chain(10), 2)
    with pytest.raises(DataError, match="initial_weights must be"):
        fit(instance.dataset, fusion_strength=1.0, initial_weights=np.zeros((2, 2)))
    with pytest.raises(DataError, match="must be finite"):
        fit(instance.dataset, fusion_strength=1.0, initial_weights=np.full((10, 2), np.nan))


def test_all_fused_in_several_components_is_said_not_to_be_one_model() -> None:
    rng = np.random.default_rng(0)
    X = rng.standard_normal((12, 20, 2))
    slopes = np.where(np.arange(12)[:, None] < 6, 100.0, -100.0) * np.ones((12, 2))
    data = TaskDataset.from_arrays(X, np.einsum("tnp,tp->tn", X, slopes) + rng.standard_normal((12, 20)))
    (note,) = fit(data, 1e9, n_neighbors=3).report.notes
    assert "into 2 models and not one" in note
    assert "A larger n_neighbors can join them" in note
    assert fit(data, 1e9, n_neighbors=8).report.notes == ()
    assert fit(data, 0.01, n_neighbors=3).report.notes == ()

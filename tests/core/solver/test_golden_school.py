"""School, and a set made here in its likeness: statistics lose nothing, and the optimum is certified."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from ccmtl_core import (
    SolveStatus,
    SufficientStatistics,
    TaskDataset,
    fit,
    nearest_neighbour_graph,
    single_task_weights,
)
from tests.core.fusion_problems import Instance
from tests.core.oracle import interior_point
from tests.core.school_like import each_school, school, school_like

# The least J at five strengths, on which two independent solvers agree: ours to a gap of 1e-11, and Clarabel,
# as test_an_independent_solver_finds_the_golden_objective shows. He et al. (AAAI 2019) print School's without
# decimals.
GOLDEN = {
    school: {0.01: 664642.37, 0.1: 665572.65, 1: 674229.19, 10: 725027.12, 100: 764844.47},
    school_like: {0.01: 1169448.85, 0.1: 1170831.06, 1: 1183915.77, 10: 1266670.61, 100: 1328588.57},
}
Pupils = Callable[[], TaskDataset]


def tasks(data: TaskDataset) -> list[tuple[np.ndarray, np.ndarray]]:
    ends = zip(data.offsets[:-1], data.offsets[1:], strict=True)
    return [(data.X[a:b], data.y[a:b]) for a, b in ends]


@each_school
def test_the_set_has_the_papers_size_and_no_task_of_full_rank(pupils: Pupils) -> None:
    data = pupils()
    assert (data.n_tasks, data.n_features, len(data.y)) == (139, 28, 15362)
    ranks = [np.linalg.matrix_rank(X) for X, _ in tasks(data)]
    assert max(ranks) < data.n_features, "minimum norm matters"


def test_the_set_made_here_is_the_same_everywhere() -> None:
    data = school_like()
    weights = np.arange(len(data.y)) % 1009
    assert (weights @ data.X.sum(axis=1), weights @ data.y) == (566141836, 195771296)


@each_school
def test_rank_start_and_graph_from_statistics_equal_those_from_the_rows(pupils: Pupils) -> None:
    fits = [np.linalg.lstsq(X, y, rcond=None) for X, y in tasks(pupils())]
    from_rows = np.array([solution for solution, *_ in fits])
    statistics = SufficientStatistics.from_dataset(pupils())
    assert statistics.least_squares.rank.tolist() == [int(rank) for _, _, rank, _ in fits]
    start = single_task_weights(statistics)
    assert start == pytest.approx(from_rows, rel=1e-7, abs=1e-8)
    ours, theirs = nearest_neighbour_graph(start), nearest_neighbour_graph(from_rows)
    assert np.array_equal(ours.edges, theirs.edges)
    assert np.array_equal(ours.multiplicity, theirs.multiplicity)


@each_school
@pytest.mark.parametrize("strength", GOLDEN[school])
@pytest.mark.parametrize(("solver", "tolerance"), [("newton", 1e-7), ("alternating", 1e-4)])
def test_golden_objective(pupils: Pupils, strength: float, solver: str, tolerance: float) -> None:
    data, golden = pupils(), GOLDEN[pupils][strength]
    statistics = SufficientStatistics.from_dataset(data)
    result = fit(statistics, fusion_strength=strength, tolerance=tolerance, solver=solver)
    assert result.report.status == SolveStatus.CONVERGED
    assert result.report.gap <= tolerance
    assert abs(result.report.objective - golden) <= max(tolerance, 1e-6) * golden
    W = result.model.weights
    i, j = result.graph.edges.T
    penalty = (result.graph.multiplicity * np.linalg.norm(W[i] - W[j], axis=1)).sum()
    loss = ((np.einsum("np,np->n", data.X, W[data.task_index]) - data.y) ** 2).sum()
    assert result.report.objective == pytest.approx(0.5 * (loss + strength * penalty), rel=1e-10)


@pytest.mark.slow
@pytest.mark.timeout(1200)
@pytest.mark.parametrize("strength", GOLDEN[school_like])
def test_an_independent_solver_finds_the_golden_objective(strength: float) -> None:
    """Clarabel, to all digits it has, on the triangular factors of the rows, which have the same loss."""
    rows = tasks(school_like())
    factors = [np.linalg.qr(np.column_stack(task), mode="r") for task in rows]
    start = np.array([np.linalg.lstsq(X, y, rcond=None)[0] for X, y in rows])
    graph = nearest_neighbour_graph(start)
    reduced = Instance(tuple(R[:, :-1] for R in factors), tuple(R[:, -1] for R in factors), graph, strength)
    X, y = zip(*rows, strict=True)
    value = Instance(X, y, graph, strength).objective(interior_point(reduced))
    assert value == pytest.approx(GOLDEN[school_like][strength], abs=0.006)

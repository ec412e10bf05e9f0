"""School, the real set with published optima: statistics lose nothing, and the optimum is certified."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from scipy.io import loadmat

from ccmtl_core import (
    SolveStatus,
    SufficientStatistics,
    TaskDataset,
    fit,
    nearest_neighbour_graph,
    single_task_weights,
)

FILE = Path(__file__).parents[4] / "shared" / "data" / "school" / "school.mat"
pytestmark = pytest.mark.skipif(not FILE.exists(), reason=f"the School set is not here: {FILE}")

# Two independent solvers agree on these; He et al. (AAAI 2019) print the whole part in their table.
GOLDEN = {0.01: 664642.37, 0.1: 665572.65, 1: 674229.19, 10: 725027.12, 100: 764844.47}


@pytest.fixture(scope="module")
def school() -> TaskDataset:
    file = loadmat(FILE)
    X = [np.asarray(block, dtype=np.float64) for block in file["X"].ravel()]
    y = [np.asarray(block, dtype=np.float64).ravel() for block in file["Y"].ravel()]
    return TaskDataset.from_arrays(X, y)


@pytest.fixture(scope="module")
def statistics(school: TaskDataset) -> SufficientStatistics:
    return SufficientStatistics.from_dataset(school)


def rows(school: TaskDataset, t: int) -> tuple[np.ndarray, np.ndarray]:
    part = slice(school.offsets[t], school.offsets[t + 1])
    return school.X[part], school.y[part]


def test_is_the_set_of_the_paper(school: TaskDataset) -> None:
    assert (school.n_tasks, school.n_features, len(school.y)) == (139, 28, 15362)
    ranks = [np.linalg.matrix_rank(rows(school, t)[0]) for t in range(school.n_tasks)]
    assert max(ranks) < school.n_features, "no task is of full rank: minimum norm matters"


def test_rank_start_and_graph_from_statistics_equal_those_from_the_rows(
    school: TaskDataset, statistics: SufficientStatistics
) -> None:
    fits = [np.linalg.lstsq(*rows(school, t), rcond=None) for t in range(school.n_tasks)]
    from_rows = np.array([solution for solution, *_ in fits])
    assert statistics.least_squares.rank.tolist() == [int(rank) for _, _, rank, _ in fits]
    start = single_task_weights(statistics)
    assert start == pytest.approx(from_rows, rel=1e-7, abs=1e-8)
    ours, theirs = nearest_neighbour_graph(start), nearest_neighbour_graph(from_rows)
    assert np.array_equal(ours.edges, theirs.edges)
    assert np.array_equal(ours.multiplicity, theirs.multiplicity)


@pytest.mark.parametrize("strength", GOLDEN)
@pytest.mark.parametrize(("solver", "tolerance"), [("newton", 1e-7), ("alternating", 1e-4)])
def test_golden_objective(
    school: TaskDataset, statistics: SufficientStatistics, strength: float, solver: str, tolerance: float
) -> None:
    result = fit(statistics, fusion_strength=strength, tolerance=tolerance, solver=solver)
    assert result.report.status == SolveStatus.CONVERGED
    assert result.report.gap <= tolerance
    golden = GOLDEN[strength]
    assert abs(result.report.objective - golden) <= max(tolerance, 1e-6) * golden
    W = result.model.weights
    i, j = result.graph.edges.T
    penalty = (result.graph.multiplicity * np.linalg.norm(W[i] - W[j], axis=1)).sum()
    loss = ((np.einsum("np,np->n", school.X, W[school.task_index]) - school.y) ** 2).sum()
    assert result.report.objective == pytest.approx(0.5 * (loss + strength * penalty), rel=1e-10)

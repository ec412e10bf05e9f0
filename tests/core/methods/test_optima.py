"""Each convex method against the optimum of its objective, written out as rows and solved by cvxpy."""

from __future__ import annotations

from collections.abc import Callable

import cvxpy as cp
import numpy as np
import pytest

from ccmtl_core import methods, nearest_neighbour_graph, pooled_weights
from ccmtl_core.choices.single_task import start_weights
from ccmtl_core.statistics.sufficient_statistics import SufficientStatistics
from tests.core.methods.small import Tasks, tasks


def differences(data: Tasks, W: cp.Variable, order: int, squared: bool = False) -> cp.Expression:
    graph = nearest_neighbour_graph(start_weights(data.statistics), 2)
    lengths = [cp.norm(W[i] - W[j], order) for i, j in graph.edges]
    terms = [cp.square(length) for length in lengths] if squared else lengths
    return 0.5 * cp.sum(cp.multiply(graph.multiplicity, cp.hstack(terms)))


def clusters(data: Tasks, W: cp.Variable, rho: float, eta: float, k: int) -> tuple[cp.Expression, list]:
    T = data.statistics.n_tasks
    M = cp.Variable((T, T), symmetric=True)
    terms = [cp.matrix_frac(W[:, p], eta * np.eye(T) + M) for p in range(W.shape[1])]
    limits = [cp.trace(M) == k, M >> 0, np.eye(T) - M >> 0]
    return rho * eta * (1 + eta) * cp.sum(cp.hstack(terms)), limits


def shrunk(data: Tasks, W: cp.Variable, s: float) -> cp.Expression:
    size = np.trace(data.statistics.gram, axis1=1, axis2=2).mean() / data.statistics.n_features
    return 0.5 * s * size * cp.sum_squares(W - pooled_weights(data.statistics)[None])


def low_rank(data: Tasks, W: cp.Variable) -> cp.Expression:
    S = cp.Variable(W.shape)
    return 3.0 * cp.normNuc(W - S) + 2.0 * cp.sum(cp.norm(S, 2, axis=1))


CASES: dict[str, tuple[methods.TaskRegressor, Callable]] = {
    "ITL": (methods.ITL(0.7), lambda d, W: 0.35 * cp.sum_squares(W)),
    "Shrunk": (methods.Shrunk(0.5), lambda d, W: shrunk(d, W, 0.5)),
    "L21": (methods.L21(4.0), lambda d, W: 4.0 * cp.sum(cp.norm(W, 2, axis=0))),
    "Trace": (methods.Trace(3.0), lambda d, W: 3.0 * cp.normNuc(W)),
    "RMTL": (methods.RMTL(3.0, 2.0), low_rank),
    "CMTL": (methods.CMTL(0.8, 0.4, n_clusters=2), lambda d, W: clusters(d, W, 0.8, 0.5, 2)),
    "CMTL, one cluster": (methods.CMTL(0.3, 2.0, n_clusters=1), lambda d, W: clusters(d, W, 0.3, 2 / 0.3, 1)),
    "SRMTL": (methods.SRMTL(0.6, n_neighbors=2), lambda d, W: 0.6 * differences(d, W, 2, squared=True)),
    "FuseMTL": (methods.FuseMTL(1.5, n_neighbors=2), lambda d, W: 1.5 * differences(d, W, 1)),
    "ADMM": (methods.ADMM(1.5, n_neighbors=2), lambda d, W: 1.5 * differences(d, W, 2)),
    "CCMTL": (methods.CCMTL(1.5, n_neighbors=2), lambda d, W: 1.5 * differences(d, W, 2)),
}


@pytest.mark.parametrize("seed", [0, 1])
@pytest.mark.parametrize("name", CASES)
def test_the_objective_is_the_least_there_is(name: str, seed: int) -> None:
    model, penalty = CASES[name]
    data = tasks(seed)
    W = cp.Variable((data.statistics.n_tasks, data.statistics.n_features))
    loss = sum(cp.sum_squares(x @ W[t] - y) for t, (x, y) in enumerate(data.blocks) if len(y))
    made = penalty(data, W)
    added, limits = made if isinstance(made, tuple) else (made, [])
    problem = cp.Problem(cp.Minimize(0.5 * loss + added), limits)
    problem.solve(solver=cp.CLARABEL)
    model.fit(data.X, data.y, data.task)
    assert model.converged_
    assert model.objective_ == pytest.approx(problem.value, rel=1e-5)


def test_pooled_ridge_solves_its_normal_equations() -> None:
    data = tasks(0)
    w = methods.STL(0.7).fit(data.X, data.y, data.task).coef_
    np.testing.assert_allclose(data.X.T @ (data.X @ w[0] - data.y) + 0.7 * w[0], 0, atol=1e-9)
    assert (w == w[0]).all()


@pytest.mark.parametrize("name", [name for name in CASES if name != "RMTL" and not name.startswith("CMTL")])
def test_the_objective_is_that_of_the_weights(name: str) -> None:
    model, penalty = CASES[name]
    data = tasks(0)
    model.fit(data.X, data.y, data.task)
    W = cp.Variable(model.coef_.shape)
    W.value = model.coef_
    statistics = SufficientStatistics.from_dataset(data.dataset)
    loss = 0.5 * statistics.squared_error(model.coef_).sum()
    assert model.objective_ == pytest.approx(float(loss + penalty(data, W).value), rel=1e-9)

"""The bound is true whatever it is given, equals the dual where that is simple, is tight at the optimum."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ccmtl_core import SufficientStatistics, TaskDataset, TaskGraph, TriangularStatistics, fit
from ccmtl_core.base.types import EPS
from ccmtl_core.solver.certificate import Certificate, ScaledEigen, relative
from ccmtl_core.solver.objective import row_norms
from ccmtl_core.solver.systems.cg import flexible_cg
from tests.core.fusion_problems import Instance, complete, disconnected, instances, random_graph, regular
from tests.core.oracle import optimum

property_test = settings(derandomize=True, max_examples=120)


def assert_true(instance: Instance, W: np.ndarray, certificate: Certificate, least: float) -> None:
    """The bound does not exceed the optimum, and the flows that prove it are in their balls."""
    assert certificate.gap >= 0
    noise = instance.rounding(W)
    assert certificate.objective == pytest.approx(instance.objective(W), rel=1e-12, abs=noise)
    assert certificate.lower_bound <= least + 1e-12 * certificate.objective + noise
    radius = instance.problem.radius
    assert (row_norms(certificate.flows) <= radius * (1 + 1e-9)).all()


@property_test
@given(
    instance=instances(),
    seed=st.integers(0, 2**32),
    near=st.sampled_from([np.inf, 1.0, 1e-3, 1e-8, 0.0]),
    size=st.sampled_from([0.0, 0.1, 1.0, 30.0]),
    spread=st.booleans(),
    tolerance=st.sampled_from([1e-1, 1e-8]),
)
def test_no_flows_make_the_bound_false(
    instance: Instance, seed: int, near: float, size: float, spread: bool, tolerance: float
) -> None:
    rng = np.random.default_rng(seed)
    least, W = optimum(instance)
    W = (
        np.zeros_like(W)
        if near == np.inf
        else W + near * np.abs(W).max(axis=0) * rng.standard_normal(W.shape)
    )
    problem = instance.problem
    U = size * problem.radius[:, None] * rng.standard_normal((len(problem.radius), instance.n_features))
    before = U.copy()
    conductance = problem.radius / (row_norms(problem.differences(W)) + 1e-6) if spread else None
    certificate = instance.certifier.certify(W, U, tolerance, conductance)
    assert_true(instance, W, certificate, least)
    assert np.array_equal(U, before), "the caller's flows are not changed"


@settings(derandomize=True, max_examples=200)
@given(seed=st.integers(0, 2**32), at_zero=st.booleans(), size=st.sampled_from([0.0, 1.0]))
def test_two_tasks_on_scales_far_apart_do_not_make_it_false(seed: int, at_zero: bool, size: float) -> None:
    """Optimal weights far from any that are tried: only then does it matter how far they can be."""
    rng = np.random.default_rng(seed)
    P = int(rng.integers(1, 3))
    feature_scale = 10.0 ** rng.uniform(-4, 4, P)
    X, y = [], []
    for n in rng.integers(1, 3, 2):
        X.append(rng.standard_normal((n, P)) * feature_scale * 10.0 ** rng.uniform(-5, 5))
        y.append(10.0 ** rng.uniform(-2, 4) * rng.standard_normal(n))
    instance = Instance(tuple(X), tuple(y), TaskGraph([[0, 1]], [1], 2), 10.0 ** rng.uniform(-7, 5))
    least, W = optimum(instance)
    W = np.zeros_like(W) if at_zero else instance.statistics.least_squares.weights[::-1].copy()
    U = size * instance.problem.radius * rng.standard_normal((1, P))
    certificate = instance.certifier.certify(W, U, 1e-4)
    assert_true(instance, W, certificate, least)


@property_test
@given(
    instance=instances(),
    rtol=st.sampled_from([0.5, 1e-2, 1e-4, 1e-10]),
    smoothing=st.sampled_from([1.0, 1e-3, 1e-7]),
    spread=st.booleans(),
)
def test_no_inner_solve_makes_the_bound_false(
    instance: Instance, rtol: float, smoothing: float, spread: bool
) -> None:
    least, W = optimum(instance)
    problem, multigrid = instance.problem, instance.multigrid
    typical = float(np.abs(W).max()) or 1.0
    s = np.sqrt(row_norms(problem.differences(W)) ** 2 + (smoothing * typical) ** 2)
    w = problem.radius / s
    multigrid.update(w)
    W = flexible_cg(multigrid.apply, multigrid.precondition, problem.quadratic.xty, rtol=rtol).x
    flows = w[:, None] * problem.differences(W)
    certificate = instance.certifier.certify(W, flows, 1e-6, w if spread else None)
    assert_true(instance, W, certificate, min(least, instance.objective(W)))


@pytest.mark.parametrize("solver", ["newton", "alternating"])
@pytest.mark.parametrize("tolerance", [1e-2, 1e-4, 1e-8])
@settings(derandomize=True, max_examples=25)
@given(instance=instances())
def test_no_fit_claims_too_much(solver: str, tolerance: float, instance: Instance) -> None:
    least, _ = optimum(instance)
    result = fit(
        instance.statistics, fusion_strength=instance.strength, graph=instance.graph, tolerance=tolerance,
        solver=solver,
    )  # fmt: skip
    report = result.report
    bound = report.objective - report.gap * (report.objective if report.objective > 0 else 1.0)
    W = result.model.weights
    noise = instance.rounding(W)
    assert report.objective == pytest.approx(instance.objective(W), rel=1e-12, abs=noise)
    assert bound <= min(least, instance.objective(W)) + 1e-12 * report.objective + noise


@pytest.mark.parametrize("exponent", [10, 18, 20, 21])
@pytest.mark.parametrize("strength", [1.0, 1e6, 1e12])
def test_nearly_collinear_features_do_not_make_it_false(exponent: int, strength: float) -> None:
    """Whole numbers, so that the statistics are exact: (−1, 1) fits every task, and the optimum is 0."""
    rng = np.random.default_rng(0)
    v = 2.0**exponent + rng.integers(0, 2 ** (exponent - 1), 8)
    z = rng.choice([-1.0, 1.0], 8)
    X = tuple(np.array([[a, a + b]]) for a, b in zip(v, z, strict=True))
    instance = Instance(X, tuple(z[:, None]), complete(8), strength)
    assert instance.objective(np.tile([-1.0, 1.0], (8, 1))) == 0.0
    result = fit(instance.statistics, fusion_strength=strength, graph=instance.graph, tolerance=1e-6)
    report = result.report
    bound = report.objective - report.gap * (report.objective if report.objective > 0 else 1.0)
    assert bound <= 1e-9


@pytest.mark.parametrize("P", [1, 3])
def test_is_at_least_the_dual_value_of_its_flows(P: int) -> None:
    rng = np.random.default_rng(P)
    instance = regular(rng, random_graph(rng, 8, 0.4), P).with_strength(2.0)
    problem, gram = instance.problem, instance.statistics.gram
    W = rng.standard_normal((8, P))
    certificate = instance.certifier.certify(W, rng.standard_normal((len(problem.radius), P)), 1e-6)
    rest = problem.quadratic.xty - problem.divergence(certificate.flows)
    dual = 0.5 * (instance.statistics.total_yty - np.einsum("ti,tij,tj->", rest, np.linalg.inv(gram), rest))
    assert certificate.lower_bound >= dual - 1e-9
    assert certificate.gap <= certificate.objective - dual + 1e-9


def test_equals_the_dual_value_near_the_optimum() -> None:
    rng = np.random.default_rng(5)
    instance = regular(rng, random_graph(rng, 8, 0.4), 3).with_strength(2.0)
    problem, gram = instance.problem, instance.statistics.gram
    _, W = optimum(instance)
    W = W + 1e-3 * rng.standard_normal(W.shape)
    w = problem.radius / row_norms(problem.differences(W))
    certificate = instance.certifier.certify(W, w[:, None] * problem.differences(W), 1e-6, w)
    rest = problem.quadratic.xty - problem.divergence(certificate.flows)
    dual = 0.5 * (instance.statistics.total_yty - np.einsum("ti,tij,tj->", rest, np.linalg.inv(gram), rest))
    assert certificate.lower_bound == pytest.approx(dual, rel=1e-10)


@pytest.mark.parametrize("make", [complete, disconnected], ids=["connected", "not connected"])
@pytest.mark.parametrize("empty", [False, True], ids=["all with data", "some empty"])
def test_flows_of_the_optimum_prove_it(make: type, empty: bool) -> None:
    """A loss of zero on some tasks, empty ones among them: their flows must balance exactly."""
    rng = np.random.default_rng(3)
    instance = regular(rng, make(12), 3, n=2).with_strength(0.5)
    if empty:
        X = tuple(x[: 2 * (t % 3 > 0)] for t, x in enumerate(instance.X))
        y = tuple(v[: len(x)] for x, v in zip(X, instance.y, strict=True))
        instance = Instance(X, y, instance.graph, 0.5)
    report = fit(instance.statistics, fusion_strength=0.5, graph=instance.graph, tolerance=1e-10).report
    least, _ = optimum(instance)
    assert report.gap <= 1e-10
    assert report.objective == pytest.approx(least, rel=2e-10)


@pytest.mark.parametrize("kind", [SufficientStatistics, TriangularStatistics])
@pytest.mark.parametrize("decades", [0, 2, 6])
def test_eigenpairs_are_those_of_the_scaled_blocks(
    decades: int, kind: type[SufficientStatistics | TriangularStatistics]
) -> None:
    rng = np.random.default_rng(0)
    A = rng.standard_normal((6, 2, 3)) * 10.0 ** np.array([-decades, 0, decades])
    A[0] = 0.0
    gram = np.einsum("tnp,tnq->tpq", A, A)
    eigen = ScaledEigen.of(kind.from_dataset(TaskDataset.from_arrays(A, np.zeros((6, 2)))).quadratic)
    basis = eigen.scale[:, :, None] * eigen.vectors
    length = np.sqrt(np.diagonal(gram, axis1=1, axis2=2))
    error = np.abs(np.einsum("tpa,ta,tqa->tpq", basis, eigen.values, basis) - gram)
    unit = eigen.scale if decades == 6 else np.tile(length.max(axis=1)[:, None], 3)
    assert (error <= 1e-14 * unit[:, :, None] * unit[:, None, :]).all()
    assert eigen.stretch == pytest.approx(np.linalg.norm(basis, axis=1), rel=1e-14)
    exact = np.linalg.svd(A, compute_uv=False) ** 2
    assert (eigen.largest() >= exact[:, 0] * (1 - 1e-14))[1:].all()
    assert (eigen.smallest() <= 1e-14 * exact[:, 0] * 10.0**-decades)[1:].all(), "two rows, three features"


def test_a_strength_of_zero_leaves_no_gap_at_least_squares() -> None:
    rng = np.random.default_rng(0)
    instance = regular(rng, complete(4), 2).with_strength(0.0)
    W = instance.statistics.least_squares.weights
    certificate = instance.certifier.certify(W, np.zeros((6, 2)), 1e-6)
    assert certificate.gap <= 1e-12 * certificate.objective
    assert not certificate.flows.any()


def test_a_strength_that_rounding_outweighs_costs_its_penalty_and_no_more() -> None:
    """The tasks are singular: what rounding leaves of their residuals must not be taken for a force."""
    instance = regular(np.random.default_rng(2), complete(6), 5, n=3).with_strength(1e-60)
    W = instance.statistics.least_squares.weights
    none = np.zeros((len(instance.problem.head), 5))
    certificate = instance.certifier.certify(W, none, 1e-9)
    penalty = instance.problem.penalty(W)
    assert penalty <= certificate.gap <= penalty + 1e-28
    assert certificate.relative_gap <= 1e-9


def test_a_graph_without_edges() -> None:
    rng = np.random.default_rng(0)
    instance = regular(rng, TaskGraph(np.empty((0, 2)), [], 4), 2)
    W = instance.statistics.least_squares.weights
    certificate = instance.certifier.certify(W, np.zeros((0, 2)), 1e-6)
    assert certificate.gap <= 1e-12 * certificate.objective
    worse = instance.certifier.certify(W + 0.1, np.zeros((0, 2)), 1e-6)
    excess = worse.objective - certificate.objective
    assert excess * (1 - 1e-9) <= worse.gap <= excess * (1 + 1e-6)


def test_the_gap_is_absolute_where_the_objective_is_zero() -> None:
    assert relative(0.25, 0.0, 0.0) == 0.25
    assert relative(0.25, 0.1, 0.2) == 0.25
    assert relative(1.0, 4.0, 0.2) == 0.25
    certificate = Certificate(objective=4.0, gap=1.0, rounding=0.2, flows=np.empty((0, 1)))
    assert (certificate.lower_bound, certificate.relative_gap) == (3.0, 0.25)


@pytest.mark.parametrize("apart", [1e-4, 1e-6, 1e-8, 1e-10, 1e-12])
def test_a_triangular_factor_keeps_the_objective_of_features_that_nearly_agree(apart: float) -> None:
    rng = np.random.default_rng(0)
    X = rng.standard_normal((8, 20, 3))
    X[:, :, 2] = X[:, :, 0] + apart * X[:, :, 2]
    y = X @ [1.0, -1.0, 0.5] + 0.3 * rng.standard_normal((8, 20))
    statistics = TriangularStatistics.from_dataset(TaskDataset.from_arrays(X, y))
    result = fit(statistics, fusion_strength=1.0, n_neighbors=3)
    W, graph, report = result.model.weights.astype(np.longdouble), result.graph, result.report
    rest = np.einsum("tnp,tp->tn", X.astype(np.longdouble), W) - y
    d = W[graph.edges[:, 0]] - W[graph.edges[:, 1]]
    exact = 0.5 * (rest**2).sum() + 0.5 * graph.multiplicity @ np.sqrt((d**2).sum(axis=1))
    # Four reflections make R, a product takes it times w. Each moves a column by up to EPS / 2 of its length,
    # and not all to one side. A residual r that is moved by e has its half square moved by r·e + e²/2.
    size = (np.linalg.norm(X, axis=1) * np.abs(W)).sum(axis=1) + np.linalg.norm(y, axis=1)
    moved = np.sqrt(4 + 1) * EPS / 2 * size
    allowed = moved @ np.sqrt((rest**2).sum(axis=1)) + 0.5 * moved @ moved
    assert abs(report.objective - exact) <= allowed
    assert report.gap <= (1e-4 if apart >= 1e-6 else 1.0)

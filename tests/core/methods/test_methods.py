"""What users of any method rely on: ends of the penalties, order of tasks, convergence, scikit-learn."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from unittest import SkipTest

import numpy as np
import pytest
from sklearn import config_context
from sklearn.base import clone
from sklearn.metrics import r2_score
from sklearn.model_selection import GridSearchCV, StratifiedKFold
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import estimator_checks_generator

from ccmtl_core import (
    DataError,
    ParameterError,
    SufficientStatistics,
    TaskDataset,
    UnknownTaskError,
    pooled_weights,
    single_task_weights,
)
from ccmtl_core.methods import (
    ADMM,
    CCMTL,
    CMTL,
    ITL,
    L21,
    RMTL,
    SRMTL,
    STL,
    BiFactor,
    FuseMTL,
    Shrunk,
    TaskRegressor,
    Trace,
    TriFactor,
)  # fmt: skip
from ccmtl_core.methods.clustered import _Clusters
from ccmtl_core.methods.factors import Factors, _alternate, objective_of
from ccmtl_core.methods.low_rank import _LowRank, _LowRankAndOutliers, _SharedFeatures
from ccmtl_core.methods.proximal import Penalty
from tests.core.methods.small import tasks

METHODS = [
    STL(0.5), ITL(0.5), Shrunk(0.5), L21(2.0), Trace(2.0), RMTL(2.0, 2.0), CMTL(0.5, 0.5, 2), SRMTL(0.5, 2),
    FuseMTL(1.0, 2), ADMM(1.0, 2), CCMTL(1.0, 2), CCMTL(1.0, 2, True, "spread", "mahalanobis"),
    BiFactor(0.1, 0.1, 2), TriFactor(0.1, 0.1, 2, 2),
]  # fmt: skip
IDS = [type(model).__name__ + ("+" if getattr(model, "fit_intercept", False) else "") for model in METHODS]
each_method = pytest.mark.parametrize("model", METHODS, ids=IDS)

Expected = Callable[[SufficientStatistics], np.ndarray]


def zero(statistics: SufficientStatistics) -> np.ndarray:
    return np.zeros((statistics.n_tasks, statistics.n_features))


ENDS: list[tuple[TaskRegressor, Expected]] = [
    (STL(0.0), pooled_weights),
    (STL(1e12), zero),
    (ITL(0.0), single_task_weights),
    (ITL(1e12), zero),
    (Shrunk(0.0), single_task_weights),
    (Shrunk(1e12), pooled_weights),
    (L21(0.0), single_task_weights),
    (L21(1e12), zero),
    (Trace(0.0), single_task_weights),
    (Trace(1e12), zero),
    (RMTL(0.0, 1.0), single_task_weights),
    (RMTL(1e12, 1e12), zero),
    (CMTL(1e-9, 1e-9), single_task_weights),
    (CMTL(1e12, 1e12), zero),
    (CMTL(2.0, 0.25, n_clusters=4), lambda s: ITL(0.5).fit_statistics(s).coef_),  # a ridge alone
    (SRMTL(0.0), single_task_weights),
    (SRMTL(1e9, tol=1e-10), pooled_weights),
    (FuseMTL(0.0), single_task_weights),
    (FuseMTL(1e6, tol=1e-9), pooled_weights),
    (ADMM(0.0), single_task_weights),
    (ADMM(1e6, tol=1e-9), pooled_weights),
    (CCMTL(0.0), single_task_weights),
    (CCMTL(1e6), pooled_weights),
    (BiFactor(0.0, 0.0, 4), single_task_weights),
    (BiFactor(1e12, 1e12, 4), zero),
    (TriFactor(0.0, 0.0, 4, 4, core_strength=0.0), single_task_weights),
    (TriFactor(1e12, 1e12, 4, 4), zero),
]


@pytest.mark.parametrize(
    ("model", "expected"), ENDS, ids=[f"{model}-{expected.__name__}" for model, expected in ENDS]
)
def test_the_ends_of_each_penalty_are_closed_forms(model: TaskRegressor, expected: Expected) -> None:
    statistics = tasks(3, short=False).statistics
    W = model.fit_statistics(statistics).coef_
    np.testing.assert_allclose(W, np.broadcast_to(expected(statistics), W.shape), atol=2e-4)


@each_method
def test_the_order_of_tasks_and_rows_does_not_matter(model: TaskRegressor) -> None:
    data = tasks(4, short=False)
    order = np.random.default_rng(0).permutation(len(data.y))
    first = clone(model).fit(data.X, data.y, data.task)
    second = clone(model).fit(data.X[order], data.y[order], data.task[order])
    assert second.objective_ == pytest.approx(first.objective_, rel=1e-5)
    places = [second.task_ids_.index(name) for name in first.task_ids_]
    np.testing.assert_allclose(second.coef_[places], first.coef_, atol=2e-2)


@each_method
def test_predictions_are_those_of_the_rows_tasks(model: TaskRegressor) -> None:
    data = tasks(5)
    fitted = clone(model).fit(data.X, data.y, data.task.astype(str))
    expected = np.einsum("np,np->n", data.X, fitted.coef_[data.task]) + fitted.intercept_[data.task]
    np.testing.assert_allclose(fitted.predict(data.X, data.task), expected)
    assert fitted.score(data.X, data.y, data.task) > 0.5
    with pytest.raises(UnknownTaskError):
        fitted.predict(data.X[:1], ["elsewhere"])
    with pytest.raises(ValueError, match="needs the task of each row"):
        fitted.predict(data.X)
    with pytest.raises(ValueError, match="1 task ids for 2 rows"):
        fitted.predict(data.X[:2], ["0"])


def test_a_score_is_the_weighted_r2_of_scikit_learn() -> None:
    data = tasks(5)
    fitted = ITL(0.5).fit(data.X, data.y, data.task)
    predicted = fitted.predict(data.X, data.task)
    for v in (None, np.arange(len(data.y))):
        expected = r2_score(data.y, predicted, sample_weight=v)
        assert fitted.score(data.X, data.y, data.task, sample_weight=v) == pytest.approx(expected)
    for bad in (-np.ones(len(data.y)), np.zeros(len(data.y)), np.full(len(data.y), np.nan), [1.0]):
        with pytest.raises(DataError, match="sample_weight must be"):
            fitted.score(data.X, data.y, data.task, sample_weight=bad)
    with pytest.raises(DataError, match="y must be"):
        fitted.score(data.X, data.y[:, None], data.task)


def test_a_pipeline_and_a_search_route_the_tasks() -> None:
    data = tasks(1, short=False)
    folds = list(StratifiedKFold(2).split(data.X, data.task))
    with config_context(enable_metadata_routing=True):
        model = CCMTL(1.0, 2).set_fit_request(tasks=True).set_score_request(tasks=True)
        scaled = make_pipeline(StandardScaler(with_mean=False), model)
        scaled.fit(data.X, data.y, tasks=data.task)
        assert scaled.score(data.X, data.y, tasks=data.task) > 0.5
        search = GridSearchCV(scaled, {"ccmtl__fusion_strength": [0.1, 1e4]}, cv=folds)
        assert search.fit(data.X, data.y, tasks=data.task).best_params_ == {"ccmtl__fusion_strength": 0.1}


@each_method
def test_a_negative_strength_is_refused_by_name(model: TaskRegressor) -> None:
    name = next(iter(model.get_params()))
    with pytest.raises(ValueError):
        clone(model).set_params(**{name: -1.0}).fit_statistics(tasks(0).statistics)


@pytest.mark.parametrize("value", [0, 1.5, 2.0, np.inf, np.nan, True, "2"])
@each_method
def test_what_is_counted_must_be_an_integer_from_1_up(model: TaskRegressor, value: object) -> None:
    for name in model.get_params():
        if name.startswith(("n_", "max_")):
            with pytest.raises(ParameterError, match=f"{name} must be"):
                clone(model).set_params(**{name: value}).fit_statistics(tasks(0).statistics)


@pytest.mark.parametrize("value", [0, np.inf, np.nan, -1e-6, 10**400])
@each_method
def test_a_tolerance_must_be_finite_and_above_0(model: TaskRegressor, value: float) -> None:
    if "tol" in model.get_params():
        with pytest.raises(ParameterError, match="tol must be"):
            clone(model).set_params(tol=value).fit_statistics(tasks(0).statistics)


@pytest.mark.parametrize("ridge", ["much", 0])
def test_strengths_that_do_not_exist_are_refused(ridge: object) -> None:
    with pytest.raises(ParameterError, match="ridge"):
        CMTL(ridge=ridge).fit_statistics(tasks(0).statistics)


@pytest.mark.parametrize("ids", [5, "abc", np.str_("abc"), np.array(5), {"a": 1, "b": 2, "c": 3}])
def test_tasks_that_are_no_list_are_refused(ids: object) -> None:
    X, y = [[1.0], [2.0], [3.0]], [1.0, 2.0, 3.0]
    with pytest.raises(DataError, match="tasks must be a list"):
        ITL().fit(X, y, ids)
    with pytest.raises(DataError, match="tasks must be a list"):
        ITL().fit(X, y).predict(X, ids)


@pytest.mark.parametrize(
    "model", [L21(1.0), RMTL(), CMTL(), FuseMTL(10.0), ADMM(10.0), BiFactor()], ids=lambda m: type(m).__name__
)
def test_too_few_iterations_are_told(model: TaskRegressor) -> None:
    short = clone(model).set_params(max_iter=1, tol=1e-12).fit_statistics(tasks(1).statistics)
    assert not short.converged_


@pytest.mark.parametrize("model", [L21(), CCMTL(), CCMTL(fit_intercept=True)], ids=str)
def test_fits_along_a_grid_are_those_one_by_one(model: TaskRegressor) -> None:
    statistics = tasks(1).statistics
    name = "strength" if isinstance(model, L21) else "fusion_strength"
    grid = [{name: value} for value in (3.0, 0.3)]
    for found, parameters in zip(model.along(statistics, grid, warm=True), grid, strict=True):
        alone = clone(model).set_params(**parameters).fit_statistics(statistics)
        assert found.get_params() == alone.get_params()
        assert found.converged_
        assert found.objective_ == pytest.approx(alone.objective_, rel=1e-5)
        np.testing.assert_allclose(found.coef_, alone.coef_, atol=2e-2)
        np.testing.assert_allclose(found.intercept_, alone.intercept_, atol=2e-2)


def test_all_parameters_of_a_grid_are_used() -> None:
    statistics = tasks(1).statistics
    grid = [
        {"fusion_strength": 3.0, "n_neighbors": 1},
        {"n_neighbors": 1},
        {"fusion_strength": 0.3, "fit_intercept": True},
        {},
    ]
    for found, parameters in zip(CCMTL(2.0).along(statistics, grid), grid, strict=True):
        alone = CCMTL(2.0).set_params(**parameters).fit_statistics(statistics)
        assert found.get_params() == alone.get_params()
        assert found.objective_ == pytest.approx(alone.objective_, rel=1e-5)
        np.testing.assert_allclose(found.intercept_, alone.intercept_, atol=2e-2)


@pytest.mark.parametrize("model", [L21(), Trace(), RMTL(), CMTL()], ids=lambda model: type(model).__name__)
@pytest.mark.parametrize("strength", [1e-2, 1.0, 1e2, 1e4])
def test_features_of_unlike_scales_take_few_steps(model: TaskRegressor, strength: float) -> None:
    data = tasks(0)
    rows = TaskDataset.from_long(data.X * np.array([0.1, 1.0, 10.0, 100.0]), data.y, data.task)
    names = [name for name in model.get_params() if name.endswith("strength")]
    scaled = clone(model).set_params(**dict.fromkeys(names, strength), tol=1e-5, max_iter=500)
    assert scaled.fit_statistics(SufficientStatistics.from_dataset(rows)).converged_


def test_a_start_near_the_solution_saves_steps() -> None:
    statistics = tasks(1).statistics
    for model in (Trace(2.0), ADMM(1.0, 2)):
        cold = clone(model).fit_statistics(statistics)
        warm = clone(model).fit_statistics(statistics, cold.coef_)
        assert warm.n_iter_ <= cold.n_iter_
        assert warm.objective_ == pytest.approx(cold.objective_, rel=1e-5)


@each_method
def test_a_start_of_another_shape_or_not_finite_is_refused(model: TaskRegressor) -> None:
    statistics = tasks(1).statistics
    for start in (np.zeros((2, 2)), np.zeros(4), np.full((6, 4), np.nan), np.full((6, 4), np.inf)):
        with pytest.raises(DataError, match="start must be"):
            clone(model).fit_statistics(statistics, start)


def test_a_start_may_hold_numbers_of_any_type() -> None:
    statistics, whole = tasks(1).statistics, np.arange(24).reshape(6, 4)
    for model in (SRMTL(), FuseMTL(), ADMM(), CCMTL(), Trace()):
        expected = clone(model).fit_statistics(statistics, whole.astype(np.float64))
        for start in (whole.astype(np.float32), np.asfortranarray(whole), whole.tolist()):
            np.testing.assert_array_equal(
                clone(model).fit_statistics(statistics, start).coef_, expected.coef_
            )


@pytest.mark.parametrize("model", [ADMM(), FuseMTL()], ids=str)
@pytest.mark.parametrize("noise", [0.0, 1e-8])
def test_tasks_that_agree_are_solved_although_nothing_is_left_to_pay(
    model: TaskRegressor, noise: float
) -> None:
    X = [[1.0, 2.0], [3.0, 1.0]]
    found = clone(model).fit(X, [1.0, 2.0 + noise], ["a", "b"])
    assert found.converged_
    assert found.n_iter_ < 2000
    assert found.objective_ < 1e-12
    np.testing.assert_allclose(
        found.coef_, np.tile(np.linalg.solve(X, [1.0, 2.0 + noise]), (2, 1)), atol=1e-6
    )


@pytest.mark.parametrize("strength", [1e12, 1e13, 1e14, 1e16, 1e40])
def test_squared_differences_of_any_strength_give_the_pooled_weights(strength: float) -> None:
    statistics = tasks(0, short=False).statistics
    pooled = np.tile(pooled_weights(statistics), (statistics.n_tasks, 1))
    found = SRMTL(strength).fit_statistics(statistics)
    assert found.converged_
    assert found.objective_ <= 0.5 * statistics.squared_error(pooled).sum() * (1 + 1e-12)
    np.testing.assert_allclose(found.coef_, pooled, rtol=1e-9)


PENALTIES: list[Penalty] = [
    _SharedFeatures(0.7), _LowRank(0.7), _LowRankAndOutliers(0.7, 0.5), _Clusters(0.3, 0.5, 2),
]  # fmt: skip


@pytest.mark.parametrize("penalty", PENALTIES, ids=lambda penalty: type(penalty).__name__)
def test_no_point_nearby_beats_a_proximal_step(penalty: Penalty) -> None:
    rng = np.random.default_rng(0)
    Z, step = rng.standard_normal((penalty.n_parts, 5, 3)), 0.8

    def value(V: np.ndarray) -> float:
        return step * penalty.value(V) + 0.5 * float(((V - Z) ** 2).sum())

    V = penalty.proximal(Z, step)
    for size in (1e-1, 1e-3, 1e-5):
        others = [V + size * rng.standard_normal(V.shape) for _ in range(50)]
        assert min(map(value, others)) >= value(V) * (1 - 1e-12)


@pytest.mark.parametrize("is_bi", [True, False], ids=["BiFactor", "TriFactor"])
def test_numerical_gradients_of_the_factors_vanish_and_no_round_raises_the_objective(is_bi: bool) -> None:
    statistics, strengths = tasks(2, short=False).statistics, (0.3, 0.4, 0.2)
    U, values, V = np.linalg.svd(statistics.least_squares.weights, full_matrices=False)
    factors = Factors(V.T[:, :2], None if is_bi else np.eye(2), U[:, :2] * values[:2])
    rounds = [_alternate(statistics, factors, strengths, 0.0, n)[0].objective for n in range(1, 8)]
    assert (np.diff([objective_of(statistics, factors, strengths), *rounds]) <= 0).all()
    model = BiFactor(0.3, 0.4, 2) if is_bi else TriFactor(0.3, 0.4, 2, 2, 0.2)
    found = model.set_params(tol=1e-14, max_iter=5000).fit_statistics(statistics)
    parts = {name: A for name, A in vars(found.factors_).items() if A is not None}
    for name, A in parts.items():
        for place in np.ndindex(A.shape):
            slope = 0.0
            for sign in (1, -1):
                moved = A.copy()
                moved[place] += sign * 1e-5
                changed = replace(found.factors_, **{name: moved})
                slope += sign * objective_of(statistics, changed, strengths)
            assert abs(slope / 2e-5) < 1e-3 * found.objective_


QUICK = {"ITL", "L21", "CCMTL"}


@pytest.mark.parametrize(
    "model",
    [
        pytest.param(type(m)(), id=name, marks=[] if name in QUICK else [pytest.mark.slow])
        for m, name in zip(METHODS, IDS, strict=True)
        if name != "CCMTL+"
    ],
)
@pytest.mark.filterwarnings("ignore")
def test_each_passes_the_checks_of_scikit_learn(model: TaskRegressor) -> None:
    for estimator, check in estimator_checks_generator(model):
        with suppress(SkipTest):  # of libraries that are not installed
            check(estimator)

"""Choices of the model: each is what it says, on rows; none of them is the paper's fit to the bit."""

from __future__ import annotations

from dataclasses import fields
from typing import Any, get_type_hints

import numpy as np
import pytest

from ccmtl_core import (
    DataError,
    ModelChoices,
    ParameterError,
    SufficientStatistics,
    TaskDataset,
    TriangularStatistics,
    fit,
    pooled_weights,
    shrunk_weights,
    single_task_weights,
)
from ccmtl_core.choices.model_choices import ChoiceKeywords, choice_texts, inverse_spread

every_form = pytest.mark.parametrize("form", [SufficientStatistics, TriangularStatistics])


def tasks(seed: int = 0, n_tasks: int = 12, offset: float = 5.0) -> TaskDataset:
    """Three groups of slopes, offsets and scales of each task's own, one task without rows."""
    rng = np.random.default_rng(seed)
    slopes = rng.standard_normal((3, 2))
    X = [rng.standard_normal((int(n), 2)) + 1.0 for n in rng.integers(4, 12, n_tasks)]
    scale = 10.0 ** rng.uniform(-1, 1, n_tasks)
    y = [
        scale[t] * (x @ slopes[t % 3] + offset * rng.standard_normal() + 0.3 * rng.standard_normal(len(x)))
        for t, x in enumerate(X)
    ]
    return TaskDataset.from_arrays([*X, np.empty((0, 2))], [*y, np.empty(0)])


def rows_of(data: TaskDataset) -> list[slice]:
    return [slice(a, b) for a, b in zip(data.offsets[:-1], data.offsets[1:], strict=True)]


def changed_rows(data: TaskDataset, *, intercept: bool, factor: np.ndarray) -> TaskDataset:
    """The rows as the choices see them: centred, and each as long as its loss counts."""
    X, y = data.X.copy(), data.y.copy()
    for t, rows in enumerate(rows_of(data)):
        if intercept and rows.start < rows.stop:
            X[rows] -= X[rows].mean(axis=0)
            y[rows] -= y[rows].mean()
        X[rows] *= np.sqrt(factor[t])
        y[rows] *= np.sqrt(factor[t])
    return TaskDataset(X, y, data.offsets, data.task_ids, data.feature_names)


@every_form
@pytest.mark.parametrize("fit_intercept", [False, True])
@pytest.mark.parametrize("loss_scaling", ["none", "spread"])
def test_a_fit_with_choices_is_the_plain_fit_of_changed_rows(
    form: Any, fit_intercept: bool, loss_scaling: str
) -> None:
    data = tasks()
    statistics = form.from_dataset(data)
    spread = np.array([data.y[rows].std() if rows.start < rows.stop else 0.0 for rows in rows_of(data)])
    median = np.median(spread[spread > 0])
    factor = median / np.maximum(spread, 0.1 * median) if loss_scaling == "spread" else np.ones(len(spread))
    np.testing.assert_allclose(
        inverse_spread(statistics) if loss_scaling == "spread" else factor, factor, rtol=1e-10
    )
    options: dict[str, Any] = {"fusion_strength": 2.0, "n_neighbors": 3, "tolerance": 1e-9}
    chosen = fit(statistics, fit_intercept=fit_intercept, loss_scaling=loss_scaling, **options)
    rows = changed_rows(data, intercept=fit_intercept, factor=factor)
    plain = fit(rows, graph=chosen.graph, **options)
    assert chosen.report.objective == pytest.approx(plain.report.objective, rel=1e-8)
    np.testing.assert_allclose(chosen.model.weights, plain.model.weights, rtol=1e-4, atol=1e-4)
    assert chosen.clusters == plain.clusters
    if not fit_intercept:
        assert not chosen.model.intercept.any()


def test_intercepts_leave_each_task_without_a_mean_error() -> None:
    data = tasks()
    model = fit(data, fusion_strength=1.0, n_neighbors=3, fit_intercept=True).model
    error = model.predict(data.X, [data.task_ids[t] for t in data.task_index]) - data.y
    means = [error[rows].mean() for rows in rows_of(data) if rows.start < rows.stop]
    np.testing.assert_allclose(means, 0.0, atol=1e-9)


def test_a_task_without_rows_predicts_at_the_mean_what_all_rows_have_there() -> None:
    data = tasks()
    model = fit(data, fusion_strength=1e9, n_neighbors=3, fit_intercept=True).model
    mean = data.X.mean(axis=0, keepdims=True)
    assert model.predict(mean, data.task_ids[-1])[0] == pytest.approx(data.y.mean())


def test_adding_a_constant_to_a_task_moves_its_intercept_alone() -> None:
    data = tasks()
    first = rows_of(data)[0]
    y = data.y.copy()
    y[first] += 100.0
    moved = TaskDataset(data.X, y, data.offsets, data.task_ids, data.feature_names)
    options: dict[str, Any] = {"fusion_strength": 1.0, "n_neighbors": 3, "fit_intercept": True}
    before, after = (fit(d, tolerance=1e-10, **options).model for d in (data, moved))
    np.testing.assert_allclose(after.weights, before.weights, atol=1e-5)
    np.testing.assert_allclose((after.intercept - before.intercept)[1:-1], 0.0, atol=1e-4)
    assert after.intercept[0] - before.intercept[0] == pytest.approx(100.0, abs=1e-4)


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("fit_intercept", [False, True])
def test_without_fusion_each_task_is_alone(seed: int, fit_intercept: bool) -> None:
    data = tasks(seed, n_tasks=30)
    narrow = TaskDataset(
        np.hstack([data.X, data.X[:, :1]]), data.y, data.offsets, data.task_ids, ("a", "b", "c")
    )
    choices = ModelChoices(fit_intercept=fit_intercept, n_neighbors=3)
    result = fit(narrow, fusion_strength=0.0, choices=choices, tolerance=1e-9)
    statistics = SufficientStatistics.from_dataset(narrow)
    alone = single_task_weights(statistics.centred if fit_intercept else statistics)
    np.testing.assert_allclose(result.model.weights[:-1], alone[:-1], rtol=1e-9, atol=1e-9)
    assert (result.report.status.value, result.report.solver) == ("converged", "direct")


@every_form
def test_shrinking_runs_from_each_task_alone_to_the_pooled_weights(form: Any) -> None:
    statistics = form.from_dataset(tasks())
    pooled, alone = pooled_weights(statistics), single_task_weights(statistics)
    near, far = shrunk_weights(statistics, 1e-9), shrunk_weights(statistics, 1e9)
    np.testing.assert_allclose(near[:-1], alone[:-1], rtol=1e-4, atol=1e-4)
    np.testing.assert_allclose(near[-1], pooled)
    np.testing.assert_allclose(far, np.broadcast_to(pooled, far.shape), rtol=1e-5, atol=1e-6)
    half = shrunk_weights(statistics, 0.5)
    ridge = 0.5 * np.trace(statistics.gram, axis1=1, axis2=2).mean() / 2
    gradient = np.einsum("tpq,tq->tp", statistics.gram, half) - statistics.xty + ridge * (half - pooled)
    np.testing.assert_allclose(gradient, 0.0, atol=1e-9 * abs(statistics.xty).max())


def test_nothing_to_learn_from_shrinks_to_zero() -> None:
    statistics = SufficientStatistics.from_dataset(
        TaskDataset.from_arrays([np.zeros((3, 2))] * 2, [np.ones(3)] * 2)
    )
    assert shrunk_weights(statistics, 1.0).tolist() == [[0.0, 0.0]] * 2
    assert inverse_spread(statistics).tolist() == [1.0, 1.0]


@pytest.mark.parametrize("shrinkage", [0.0, -1.0, np.nan, np.inf])
def test_a_shrinkage_that_makes_no_sense_is_refused(shrinkage: float) -> None:
    with pytest.raises(ParameterError, match="shrinkage"):
        shrunk_weights(SufficientStatistics.from_dataset(tasks()), shrinkage)


@every_form
def test_scaling_keeps_what_rows_weigh(form: Any) -> None:
    """Tasks of equal noise, every second one with rows that weigh 100: the noise of a row is the same."""
    rng = np.random.default_rng(0)
    X = rng.standard_normal((40, 200, 1))
    y = X[:, :, 0] * rng.choice([-1.0, 1.0], (40, 1)) + rng.standard_normal((40, 200))
    data = TaskDataset.from_arrays(X, y)
    heavy = np.arange(40) % 2 == 1
    weight = np.where(heavy, 100.0, 1.0)[data.task_index]
    statistics = form.from_dataset(data, weight)
    scaled = ModelChoices(loss_scaling="spread").prepare(statistics).statistics
    factor = scaled.yty / statistics.yty
    assert np.median(factor[heavy]) == pytest.approx(1.0, abs=0.05)
    assert np.median(factor[~heavy]) == pytest.approx(1.0, abs=0.05)


def test_choices_by_name_change_those_of_the_object() -> None:
    data = tasks()
    choices = ModelChoices(fit_intercept=True, n_neighbors=3)
    by_name = fit(data, 1.0, fit_intercept=True, n_neighbors=3)
    for other in (fit(data, 1.0, choices=choices), fit(data, 1.0, choices=ModelChoices(True), n_neighbors=3)):
        assert other.model.weights.tobytes() == by_name.model.weights.tobytes()
        assert other.model.intercept.tobytes() == by_name.model.intercept.tobytes()


def test_a_keyword_that_is_no_choice_is_named() -> None:
    wrong: dict[str, Any]
    for wrong, message in (
        ({"fit_intercpt": True}, "no argument or choice 'fit_intercpt'; did you mean fit_intercept?"),
        ({"start": "shrunk"}, "no argument or choice 'start'; the choices are fit_intercept, loss_"),
        ({"choices": {"metric": "mahalanobis"}}, "choices must be ModelChoices, not dict"),
    ):
        with pytest.raises(ParameterError) as caught:
            fit(tasks(), 1.0, **wrong)
        assert message in str(caught.value)


def test_keywords_are_the_fields_of_the_object() -> None:
    assert get_type_hints(ChoiceKeywords) == get_type_hints(ModelChoices)
    assert list(choice_texts()) == [field.name for field in fields(ModelChoices)]
    assert all(text.endswith(".") for text in choice_texts().values())


@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        ({"loss_scaling": "variance"}, "loss_scaling must be one of none, spread; not 'variance'"),
        ({"loss_scaling": "residual"}, "loss_scaling must be one of none, spread; not 'residual'"),
        ({"metric": "cosine"}, "metric must be one of euclidean, mahalanobis; not 'cosine'"),
        ({"fit_intercept": 1}, "fit_intercept must be True or False"),
    ],
)
def test_choices_that_do_not_exist_are_refused(wrong: dict[str, Any], message: str) -> None:
    with pytest.raises(ParameterError, match=message):
        ModelChoices(**wrong)
    with pytest.raises(ParameterError, match=message):
        fit(tasks(), fusion_strength=1.0, **wrong)


def test_statistics_without_sums_can_have_neither_intercept_nor_scaling() -> None:
    whole = SufficientStatistics.from_dataset(tasks())
    bare = SufficientStatistics(
        whole.gram, whole.xty, whole.yty, whole.n_samples, whole.task_ids, whole.feature_names
    )
    assert fit(bare, fusion_strength=1.0).model.weights.shape == (13, 2)
    for choice in ({"fit_intercept": True}, {"loss_scaling": "spread"}):
        with pytest.raises(DataError, match="no sums of x and y"):
            fit(bare, fusion_strength=1.0, **choice)  # type: ignore[arg-type]


def test_digits_that_centring_costs_are_told_in_the_report() -> None:
    rng = np.random.default_rng(0)
    X = [rng.standard_normal((30, 2)) + 1e7 for _ in range(4)]
    y = [x @ [1.0, 2.0] + rng.standard_normal(30) for x in X]
    data = TaskDataset.from_arrays(X, y)
    report = fit(data, fusion_strength=1.0, n_neighbors=2, fit_intercept=True).report
    assert any("Fewer than six digits" in note for note in report.notes)
    exact = TriangularStatistics.from_dataset(data)
    assert not fit(exact, fusion_strength=1.0, n_neighbors=2, fit_intercept=True).report.notes

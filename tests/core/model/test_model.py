"""Predictions whose bits do not depend on the batch; ids, shapes and metadata that are checked."""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from ccmtl_core import CCMTLModel, DataError, TaskDataset, UnknownTaskError, fit
from ccmtl_core.model.ccmtl_model import ROWS_PER_STEP, predict_row, predict_rows

IDS = ("0471", "471", "a/b")


@pytest.fixture
def model() -> CCMTLModel:
    weights = np.random.default_rng(0).standard_normal((len(IDS), 4))
    return CCMTLModel(weights, IDS, ("f0", "f1", "f2", "f3"))


def finite(size: int) -> st.SearchStrategy[np.ndarray]:
    return hnp.arrays(np.float64, size, elements=st.floats(-1e12, 1e12, allow_subnormal=False))


@given(n_features=st.integers(1, 12), n=st.integers(1, 40), data=st.data())
def test_a_row_alone_has_the_bits_it_has_in_a_batch(n_features: int, n: int, data: st.DataObject) -> None:
    weights = data.draw(finite(3 * n_features)).reshape(3, n_features)
    X = data.draw(finite(n * n_features)).reshape(n, n_features)
    row = np.arange(n) % 3
    together = predict_rows(weights, row, X)
    alone = np.concatenate([predict_rows(weights, row[i : i + 1], X[i : i + 1]) for i in range(n)])
    assert together.tobytes() == alone.tobytes()
    assert together.tobytes() == predict_rows(weights, row, np.asfortranarray(X)).tobytes()
    plain = [predict_row(weights[t], x, 0.0) for t, x in zip(row, X.tolist(), strict=True)]
    assert together.tobytes() == np.array(plain).tobytes()


def test_the_arithmetic_is_plain_left_to_right() -> None:
    rng = np.random.default_rng(0)
    weights, X = rng.standard_normal((5, 7)), rng.standard_normal((50, 7))
    row = rng.integers(0, 5, 50)
    for i in range(50):
        total = weights[row[i], 0] * X[i, 0]
        for p in range(1, 7):
            total = total + weights[row[i], p] * X[i, p]
        assert predict_rows(weights, row, X)[i] == total


def test_the_intercept_is_added_last() -> None:
    rng = np.random.default_rng(0)
    weights, X, b = rng.standard_normal((5, 3)), rng.standard_normal((50, 3)), rng.standard_normal(5)
    row = rng.integers(0, 5, 50)
    without = predict_rows(weights, row, X)
    assert predict_rows(weights, row, X, b).tobytes() == (without + b[row]).tobytes()
    assert predict_rows(weights, row, X, np.zeros(5)).tobytes() == without.tobytes()
    plain = [predict_row(weights[t], x, float(b[t])) for t, x in zip(row, X.tolist(), strict=True)]
    assert np.array(plain).tobytes() == (without + b[row]).tobytes()
    assert np.signbit(predict_row(np.array([-0.0]), [1.0], 0.0))  # as predict_rows leaves it
    assert predict_row(np.array([1e200]), [1e200], 0.0) == np.inf
    model = CCMTLModel(weights, tuple("abcde"), ("p", "q", "r"), intercept=b)
    assert model.predict(X, ["abcde"[t] for t in row]).tobytes() == (without + b[row]).tobytes()
    one_by_one = [model.predict(X[i : i + 1], ["abcde"[row[i]]])[0] for i in range(50)]
    assert one_by_one == (without + b[row]).tolist()


def test_an_intercept_is_one_finite_number_per_task() -> None:
    assert CCMTLModel([[1.0]], ("a",), ("x",)).intercept.tolist() == [0.0]
    for wrong in ([1.0, 2.0], [[1.0]], []):
        with pytest.raises(DataError, match=r"intercept must be \(1,\)"):
            CCMTLModel([[1.0]], ("a",), ("x",), intercept=np.array(wrong))
    with pytest.raises(DataError, match="not finite"):
        CCMTLModel([[1.0]], ("a",), ("x",), intercept=np.array([np.nan]))


def test_batches_longer_than_one_step_are_whole() -> None:
    n = 2 * ROWS_PER_STEP + 3
    X = np.random.default_rng(0).standard_normal((n, 2))
    whole = predict_rows(np.array([[1.0, 2.0]]), np.zeros(n, dtype=np.int64), X)
    assert np.array_equal(whole, X[:, 0] + 2.0 * X[:, 1])


def test_overflow_is_infinite_and_silent() -> None:
    assert predict_rows(np.array([[1e200]]), np.array([0]), np.array([[1e200]])).tolist() == [np.inf]


def test_predict_takes_ids_as_text_or_integers_one_or_many() -> None:
    model = CCMTLModel([[1.0], [10.0]], ("7", "07"), ("x",))
    assert model.predict([[1], [2]], ["07", 7]).tolist() == [10, 2]
    assert model.predict([[1], [2]], "07").tolist() == [10, 20]
    assert model.predict([[1], [2]], 7).tolist() == [1, 2]  # type: ignore[arg-type]
    assert model.predict([[1], [2]], np.array([7, 7])).tolist() == [1, 2]  # type: ignore[arg-type]
    assert model.predict(np.empty((0, 1)), []).tolist() == []


def test_unknown_ids_are_refused_with_near_matches(model: CCMTLModel) -> None:
    with pytest.raises(UnknownTaskError, match="unknown task '00471'; near matches: '0471'") as caught:
        model.predict(np.ones((2, 4)), ["471", "00471"])
    assert isinstance(caught.value, KeyError)
    assert caught.value.task_id == "00471"
    with pytest.raises(UnknownTaskError, match=r"^unknown task 'nowhere'$"):
        model.rows("nowhere")


def test_a_long_id_is_not_shown_whole(model: CCMTLModel) -> None:
    with pytest.raises(UnknownTaskError, match=r"^unknown task '0+\.\.\.1+'$") as caught:
        model.predict(np.ones((1, 4)), "0" * 5000 + "1" * 5000)
    assert len(str(caught.value)) < 130
    assert len(caught.value.task_id) == 10_000
    with pytest.raises(DataError, match="text or an integer") as refused:
        model.predict(np.ones((1, 4)), [b"0" * 5000])
    assert len(str(refused.value)) < 200


@pytest.mark.parametrize(
    ("X", "task", "message"),
    [
        (np.ones((1, 3)), "471", r"X must be \(n, 4\)"),
        (np.ones(4), "471", r"X must be \(n, 4\)"),
        (np.ones((2, 4)), ["471"], "1 task ids for 2 rows"),
        ([[1, 2, np.nan, 3]], "471", "row 1, feature 'f2': nan"),
        ([["1", "2", "3", "4"]], "471", "real numbers"),
        (np.ones((1, 4)), [1.5], "text or an integer"),
        (np.ones((1, 4)), b"a", "ids of tasks must be a list, not b'a'"),
        (np.ones((1, 4)), None, "ids of tasks must be a list, not None"),
        (np.ones((1, 4)), 1.5, "ids of tasks must be a list, not 1.5"),
        (np.ones((1, 4)), {"471": 1}, "ids of tasks must be a list, not {"),
        (np.array([["1", "2", "3", "4"]], dtype=object), "471", "real numbers, not str"),
    ],
)
def test_rows_that_do_not_fit_are_refused(model: CCMTLModel, X: object, task: object, message: str) -> None:
    with pytest.raises(DataError, match=message):
        model.predict(X, task)  # type: ignore[arg-type]


def test_the_columns_of_a_table_must_be_the_features_in_their_order(model: CCMTLModel) -> None:
    row = {"f0": [1.0], "f1": [2.0], "f2": [3.0], "f3": [4.0]}
    table = pl.DataFrame(row)
    assert model.predict(table, "471").tolist() == model.predict([[1.0, 2.0, 3.0, 4.0]], "471").tolist()
    swapped = table.select("f0", "f2", "f1", "f3")
    with pytest.raises(DataError, match="column 1 of X is 'f2', and feature 1 is 'f1'"):
        model.predict(swapped, "471")
    with pytest.raises(DataError, match="column 3 of X is 'g', and feature 3 is 'f3'"):
        model.predict(table.rename({"f3": "g"}), "471")
    assert model.predict(swapped.to_numpy(), "471").shape == (1,)


def nested(depth: int) -> dict[str, Any]:
    value: dict[str, Any] = {}
    for _ in range(depth):
        value = {"in": value}
    return value


@pytest.mark.parametrize(
    ("weights", "ids", "names", "metadata", "message"),
    [
        ([[1.0]], ("a", "b"), ("x",), {}, r"weights must be \(2, 1\)"),
        (np.empty((0, 1)), (), ("x",), {}, "not empty"),
        ([[np.nan]], ("a",), ("x",), {}, "not finite"),
        ([[1.0], [1.0]], ("a", "a"), ("x",), {}, "repeated"),
        ([[1.0]], ("a",), ("x",), {"when": np.float64("nan")}, "metadata must be JSON"),
        ([[1.0]], ("a",), ("x",), {"rng": object()}, "metadata must be JSON"),
        ([[1.0]], ("a",), ("x",), 5, "metadata must be JSON"),
        ([[1.0]], ("a",), ("x",), nested(10_000), "metadata must be JSON"),
        ([[1.0]], "a", ("x",), {}, "task ids must be a list, not 'a'"),
        ([[1.0]], ("a",), "x", {}, "feature names must be a list, not 'x'"),
    ],
)
def test_impossible_models_are_refused(
    weights: object, ids: tuple[str, ...], names: tuple[str, ...], metadata: dict[str, object], message: str
) -> None:
    with pytest.raises(DataError, match=message):
        CCMTLModel(weights, ids, names, metadata)  # type: ignore[arg-type]


def test_nobody_can_change_a_model() -> None:
    weights, intercept = np.array([[1.0]]), np.array([2.0])
    model = CCMTLModel(weights, ("a",), ("x",), intercept=intercept)
    fitted = fit(TaskDataset.from_arrays([[[1.0]]] * 2, [[1.0], [2.0]]), fusion_strength=1.0).model
    weights[:] = intercept[:] = 7.0
    assert model.predict([[1.0]], "a").tolist() == [3.0]
    for array in (model.weights, model.intercept, fitted.weights):
        with pytest.raises(ValueError, match="WRITEABLE"):
            array.flags.writeable = True
    again = CCMTLModel(model.weights, ("a",), ("x",), intercept=model.intercept)
    assert np.shares_memory(again.weights, model.weights), "nobody can write there"


def test_metadata_is_a_copy_that_cannot_be_changed() -> None:
    metadata = {"list": [1]}
    model = CCMTLModel([[1.0]], ("a",), ("x",), metadata)
    metadata["list"].append(2)
    assert model.metadata == {"list": [1]}
    with pytest.raises(TypeError):
        model.metadata["new"] = 1  # type: ignore[index]

"""Predictions over the wire are those of ``CCMTLModel.predict`` to the last bit, in either form."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from app.http.errors import MAX_ERRORS, AppError, Fault
from app.http.request_body import EXPLAINED_BYTES
from app.http.struct_forms import form_of
from app.predictions import service
from app.predictions.wire import (
    PredictColumns,
    PredictionColumns,
    Predictions,
    PredictRows,
    decode_predict,
)
from app.registry.service import StoredModel
from ccmtl_core import CCMTLModel

NAMES = ("lag_1", "price in €", "a.b")
IDS = ("0001", "1", " 1", "a/b", "日本茶")
finite = st.floats(allow_nan=False, allow_infinity=False)
moderate = st.floats(-1e150, 1e150)


def served(
    weights: Any, ids: tuple[str, ...] = IDS, names: tuple[str, ...] = NAMES, intercept: Any = None
) -> StoredModel:
    W = np.array(weights, dtype=np.float64)
    b = np.zeros(len(W)) if intercept is None else np.array(intercept, dtype=np.float64)
    rows = {unique_id: row for row, unique_id in enumerate(ids)}
    return StoredModel("m", 3, W, b, rows, names)


def read(form: type[msgspec.Struct], answer: bytes) -> Any:
    return form_of(form).model_validate_json(answer)


def as_rows(ids: list[str], X: Any) -> bytes:
    rows = [
        {"unique_id": unique_id, "features": dict(zip(NAMES, map(float, x), strict=True))}
        for unique_id, x in zip(ids, X, strict=True)
    ]
    return json.dumps({"rows": rows}).encode()


def as_columns(ids: list[str], X: Any) -> bytes:
    columns = {name: [float(x) for x in column] for name, column in zip(NAMES, np.transpose(X), strict=True)}
    return json.dumps({"unique_id": ids, "features": columns}).encode()


def refusal(model: StoredModel, body: bytes | dict[str, Any]) -> Any:
    with pytest.raises((service.Refused, AppError)) as caught:
        service.predict(model, body if isinstance(body, bytes) else json.dumps(body).encode())
    error = caught.value
    return (error.explain() if isinstance(error, service.Refused) else error).problem  # type: ignore[union-attr]


@given(
    weights=arrays(np.float64, (len(IDS), 3), elements=moderate),
    intercept=arrays(np.float64, len(IDS), elements=moderate),
    X=arrays(np.float64, st.tuples(st.integers(1, 9), st.just(3)), elements=moderate),
    data=st.data(),
)
def test_both_forms_equal_the_library_bit_for_bit(
    weights: Any, intercept: Any, X: Any, data: st.DataObject
) -> None:
    ids = data.draw(st.lists(st.sampled_from(IDS), min_size=len(X), max_size=len(X)))
    model = served(weights, intercept=intercept)
    expected = CCMTLModel(weights, IDS, NAMES, intercept=intercept).predict(X, ids).tolist()
    by_row = json.loads(service.predict(model, as_rows(ids, X)))["predictions"]
    by_column = json.loads(service.predict(model, as_columns(ids, X)))
    one_by_one = [
        json.loads(service.predict(model, as_rows(ids[i : i + 1], X[i : i + 1])))["predictions"][0]["yhat"]
        for i in range(len(X))
    ]
    assert list(map(repr, expected)) == list(map(repr, [row["yhat"] for row in by_row]))
    assert list(map(repr, expected)) == list(map(repr, by_column["yhat"]))
    assert list(map(repr, expected)) == list(map(repr, one_by_one))
    assert [row["unique_id"] for row in by_row] == by_column["unique_id"] == ids


@given(finite)
def test_a_float_survives_the_wire(value: float) -> None:
    answer = service.predict(served([[1.0]], ("a",), ("x",)), _one_feature(value))
    assert repr(json.loads(answer)["predictions"][0]["yhat"]) == repr(value)


def _one_feature(value: float) -> bytes:
    return json.dumps({"rows": [{"unique_id": "a", "features": {"x": value}}]}).encode()


def test_the_answers_are_as_documented() -> None:
    model = served(np.full((5, 3), 1e300))
    ids, X = ["1", "unknown", "a/b"], [[1e300] * 3, [0.0] * 3, [1.0, 2.0, 3.0]]
    rows = read(Predictions, service.predict(model, as_rows(ids, X)))
    columns = read(PredictionColumns, service.predict(model, as_columns(ids, X)))
    status = ["not_finite", "unknown_unique_id", "ok"]
    assert [p.status for p in rows.predictions] == columns.status == status
    assert [p.yhat for p in rows.predictions] == columns.yhat == [None, None, 6e300]
    assert rows.model.name == "m"
    assert columns.model.version == 3


def test_one_unknown_product_is_an_error_with_near_matches() -> None:
    for body in (as_rows(["01"], [[0.0] * 3]), as_columns(["01"], [[0.0] * 3])):
        problem = refusal(served(np.ones((5, 3))), body)
        assert (problem.status, problem.code) == (404, "unique_id_not_found")
        assert "0001" in problem.suggestions
        assert "1" in problem.suggestions


def test_an_id_longer_than_any_is_not_searched_for() -> None:
    problem = refusal(served(np.ones((5, 3))), as_rows(["x" * 10**6], [[0.0] * 3]))
    assert problem.suggestions == []
    assert len(problem.detail) < 400


@pytest.mark.parametrize(
    "body",
    [
        b'{"rows": [{"unique_id": "1", "features": {"x": 1, "x": 2}}]}',
        b'{"rows": [{"unique_id": "1", "unique_id": "0001", "features": {"x": 1}}]}',
        b'{"rows": [], "rows": [{"unique_id": "1", "features": {"x": 1}}]}',
        b'{"unique_id": ["1"], "features": {"x": [1], "\\u0078": [2]}}',
        b'{"unique_id": ["1"], "features": {"x": [1]}, "unique_id": ["0001"]}',
    ],
)
def test_a_key_that_stands_twice_is_refused(body: bytes) -> None:
    problem = refusal(served(np.ones((5, 1)), names=("x",)), body)
    assert problem.code == "repeated_key"
    assert "stands 2 times in one object" in problem.detail


def test_a_colon_in_an_id_or_a_feature_is_no_second_key() -> None:
    model = served(np.ones((2, 1)), ids=("a:b", "::"), names=("x:",))
    rows = [{"unique_id": unique_id, "features": {"x:": 2.0}} for unique_id in ("a:b", "::")]
    answer = service.predict(model, json.dumps({"rows": rows}).encode())
    assert [p.yhat for p in read(Predictions, answer).predictions] == [2.0, 2.0]


@pytest.mark.parametrize("token", ["NaN", "Infinity", "-Infinity", "1e999", "-1e999", "null", "true", '"1"'])
def test_what_is_no_finite_number_is_refused_with_its_position(token: str) -> None:
    good, bad = {"lag_1": 1, "price in €": 2, "a.b": 3}, {"lag_1": 1, "price in €": "@", "a.b": 3}
    rows = json.dumps({"rows": [{"unique_id": "1", "features": f} for f in (good, bad)]})
    columns = json.dumps({"unique_id": ["1", "1"], "features": {name: [1, "@"] for name in NAMES[:1]}})
    for body, location in [(rows, "body.rows.1.features.price in €"), (columns, "body.features.lag_1.1")]:
        problem = refusal(served(np.ones((5, 3))), body.replace('"@"', token).encode())
        assert problem.status == 422
        assert [fault.location for fault in problem.errors] == [location]
        assert "nan" not in (problem.errors[0].value or "").lower()


def test_every_non_finite_number_is_named_at_once() -> None:
    body = '{"unique_id": ["1", "1"], "features": {"lag_1": [NaN, 1], "a.b": [1e400, Infinity]}}'
    problem = refusal(served(np.ones((5, 3))), body.encode())
    assert [fault.location for fault in problem.errors] == [
        "body.features.lag_1.0",
        "body.features.a.b.0",
        "body.features.a.b.1",
    ]


def test_every_wrong_feature_is_named() -> None:
    row = {"unique_id": "1", "features": {"lag_1": 1.0, "price": 2.0}}
    problem = refusal(served(np.ones((5, 3))), {"rows": [row, row]})
    assert (problem.status, problem.code, problem.error_count) == (422, "wrong_features", 6)
    assert [fault.location for fault in problem.errors[3:]] == [
        f"body.rows.1.features.{name}" for name in ("price in €", "a.b", "price")
    ]


def test_of_many_wrong_features_the_first_are_told_and_all_are_counted(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    made: list[str] = []

    def counting(**fields: Any) -> Fault:
        made.append(fields["location"])
        return Fault(**fields)

    monkeypatch.setattr(service, "Fault", counting)
    wide = {f"k{i}": 1.0 for i in range(3000)}
    rows = [{"unique_id": "1", "features": {}}] * 2000 + [{"unique_id": "1", "features": wide}]
    problem = refusal(served(np.ones((5, 3))), {"rows": rows})
    assert (problem.error_count, len(problem.errors), len(made)) == (3 * 2001 + 3000, MAX_ERRORS, MAX_ERRORS)
    columns = {name: [1.0, 2.0] for name in wide}
    problem = refusal(served(np.ones((5, 3))), {"unique_id": ["1"], "features": columns})
    assert (problem.error_count, len(problem.errors), len(made)) == (3 + 6000, MAX_ERRORS, 2 * MAX_ERRORS)


@pytest.mark.parametrize(
    ("document", "location", "message"),
    [
        ({"rows": [{"unique_id": "1", "features": {"a.b": 1.0}}, 0]}, "body.rows.1", "Expected `object`"),
        ({"unique_id": ["1"], "features": {"a.b": ["x"]}}, "body.features.*.0", "Expected `float`"),
        ({"unique_id": ["1"], "rows": []}, "body", "give `rows`, or"),
    ],
)
def test_of_a_long_body_the_first_fault_is_told(document: Any, location: str, message: str) -> None:
    body = json.dumps(document).encode() + b" " * EXPLAINED_BYTES
    problem = refusal(served(np.ones((5, 3))), body)
    assert (problem.status, problem.code) == (422, "invalid_request")
    assert "only the first fault is told" in problem.detail
    ((at, said),) = [(fault.location, fault.message) for fault in problem.errors]
    assert at == location
    assert said.startswith(message)


@pytest.mark.parametrize("ending", [b"{", b'{"unique_id": ["\xff"]}', b"}"])
def test_a_long_body_that_is_no_json_is_malformed(ending: bytes) -> None:
    problem = refusal(served(np.ones((5, 3))), b" " * EXPLAINED_BYTES + ending)
    assert (problem.status, problem.code) == (400, "malformed_json")
    assert "only the first fault is told" in problem.detail


def test_rows_beside_columns_are_refused_with_the_form_that_they_belong_to() -> None:
    body = {"rows": [{"unique_id": "1", "features": {"lag_1": 1.0}}], "unique_id": ["1"]}
    said = {fault.location: fault.message for fault in refusal(served(np.ones((5, 1))), body).errors}
    assert said["body.rows"].startswith("goes without `unique_id` and `features`: send rows, or")


def test_columns_of_other_lengths_are_named() -> None:
    columns = {"lag_1": [1.0], "price in €": [1.0, 2.0, 3.0], "a.b": [1.0, 2.0]}
    problem = refusal(served(np.ones((5, 3))), {"unique_id": ["1", "1"], "features": columns})
    assert [(f.location, f.message) for f in problem.errors] == [
        ("body.features.lag_1", "1 values for 2 unique_ids"),
        ("body.features.price in €", "3 values for 2 unique_ids"),
    ]


@pytest.mark.parametrize(
    ("body", "status"),
    [
        (b"", 400),
        (b"{", 400),
        (b"[]", 400),
        (b"1", 400),
        (b'{"rows": [}', 400),
        (b'{"rows": "\xff"}', 400),
        (b"[" * 100_000, 400),
        (b"{}", 422),
        (b'{"rows": []}', 422),
        (b'{"rows": {}}', 422),
        (b'{"rows": [{"unique_id": "1"}]}', 422),
        (b'{"rows": [{"unique_id": 1, "features": {}}]}', 422),
        (b'{"rows": [{"unique_id": "1", "features": {}, "x": 1}]}', 422),
        (b'{"unique_id": [], "features": {}}', 422),
        (b'{"unique_id": ["1"]}', 422),
        (b'{"unique_id": "1", "features": {}}', 422),
        (b'{"unique_id": ["1"], "features": {"lag_1": 1}}', 422),
        (b'{"unique_id": ["1"], "features": {}, "rows": []}', 422),
        (b'{"unique_id": ["\\ud800"], "features": {"lag_1": [1]}}', 400),
    ],
)
def test_other_bodies_are_refused_in_words(body: bytes, status: int) -> None:
    problem = refusal(served(np.ones((5, 3))), body)
    assert problem.status == status
    assert problem.detail
    assert status == 400 or problem.errors
    problem.model_dump_json()


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | finite | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(NAMES), inner, max_size=3),
    max_leaves=6,
)
feature_rows = st.fixed_dictionaries(
    {
        "unique_id": st.text(max_size=3) | json_values,
        "features": st.dictionaries(st.text(), finite) | json_values,
    }
)
bodies = st.one_of(
    st.fixed_dictionaries({"rows": st.lists(feature_rows, max_size=3) | json_values}),
    st.fixed_dictionaries(
        {
            "unique_id": st.lists(st.text(max_size=3), max_size=3) | json_values,
            "features": st.dictionaries(st.text(max_size=3), st.lists(finite, max_size=3)) | json_values,
        }
    ),
)


@given(bodies)
def test_what_is_read_fast_is_what_is_documented(document: dict[str, Any]) -> None:
    body = json.dumps(document).encode()
    form = PredictColumns if "unique_id" in document else PredictRows
    try:
        was_read = isinstance(decode_predict(body), form)
    except msgspec.ValidationError:
        was_read = False
    try:
        form_of(form).model_validate_json(body)
        documented = True
    except ValueError:
        documented = False
    assert was_read == documented

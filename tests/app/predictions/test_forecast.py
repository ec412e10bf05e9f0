"""Forecasts continue the stored history: one step is a prediction, further steps feed on it."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest

from app.http.errors import AppError, Conflict, InvalidContent
from app.http.struct_forms import form_of
from app.predictions import forecast_endpoints, forecasts, service
from app.predictions.wire import MAX_FORECASTS, Forecasts
from app.registry.publication import History
from app.registry.service import StoredModel
from ccmtl_core import CCMTLModel
from ccmtl_core.forecasting import Frequency

IDS = ("0001", "a/b c", "日本茶")


def served(
    weights: Any, lags: Any, frequency: str = "D", last: str = "2001-02-28", intercept: Any = 0.0
) -> StoredModel:
    W, recent = np.array(weights, dtype=np.float64), np.array(lags, dtype=np.float64)
    rows = {unique_id: row for row, unique_id in enumerate(IDS[: len(W)])}
    names = tuple(f"lag_{p + 1}" for p in range(W.shape[1]))
    period = Frequency(frequency).to_period([last] * len(W))
    history = History(recent, period)
    b = np.broadcast_to(np.asarray(intercept, dtype=np.float64), len(W))
    return StoredModel("m", 1, W, b, rows, names, history, Frequency(frequency))


def answers(model: StoredModel, ids: list[str], h: int = 1) -> list[tuple[Any, ...]]:
    answer = forecasts.forecast(model, json.dumps({"unique_id": ids, "h": h}).encode())
    if len(ids) == 1:
        assert answer == forecasts.forecast_one(model, ids[0], h)
    read: Any = form_of(Forecasts).model_validate_json(answer)
    return [(f.unique_id, f.ds, f.yhat, f.status) for f in read.forecasts]


def test_one_step_is_the_prediction_of_the_last_values() -> None:
    rng = np.random.default_rng(0)
    W, lags = rng.normal(size=(3, 5)) / 3, rng.normal(size=(3, 5)) * 1e3
    model = served(W, lags)
    ids = ["日本茶", "0001"]
    expected = CCMTLModel(W, IDS, model.feature_names).predict(lags[[2, 0]], ids)
    assert [yhat for _, _, yhat, _ in answers(model, ids)] == expected.tolist()
    assert [row[:2] for row in answers(model, ids)] == [(i, "2001-03-01") for i in ids]


def test_an_intercept_enters_at_every_step() -> None:
    model = served([[0.5, 0.0], [1.0, 1.0]], [[4.0, 0.0], [5.0, 3.0]], intercept=[1.0, -8.0])
    assert [yhat for _, _, yhat, _ in answers(model, ["a/b c", "0001"], h=3)] == [0, -3, -11, 3, 2.5, 2.25]
    expected = CCMTLModel(model.weights, IDS[:2], model.feature_names, intercept=model.intercept)
    assert [yhat for _, _, yhat, _ in answers(model, ["0001"])] == expected.predict([[4.0, 0.0]], "0001")


def test_further_steps_feed_on_the_ones_before() -> None:
    model = served([[1.0, 1.0]], [[5.0, 3.0]])
    assert answers(model, ["0001"], h=4) == [
        ("0001", "2001-03-01", 8.0, "ok"),
        ("0001", "2001-03-02", 13.0, "ok"),
        ("0001", "2001-03-03", 21.0, "ok"),
        ("0001", "2001-03-04", 34.0, "ok"),
    ]


@pytest.mark.parametrize(
    ("frequency", "last", "expected"),
    [
        ("h", "2000-12-31T22:00", ["2000-12-31T23:00:00", "2001-01-01T00:00:00"]),
        ("D", "2004-02-28", ["2004-02-29", "2004-03-01"]),
        ("W", "2001-01-01", ["2001-01-08", "2001-01-15"]),
        ("MS", "2000-11-01", ["2000-12-01", "2001-01-01"]),
    ],
)
def test_periods_follow_the_calendar(frequency: str, last: str, expected: list[str]) -> None:
    model = served([[1.0]], [[1.0]], frequency, last)
    assert [ds for _, ds, _, _ in answers(model, ["0001"], h=2)] == expected


def test_a_stream_has_all_products_in_the_order_of_the_batch(monkeypatch: pytest.MonkeyPatch) -> None:
    model = served([[1e200], [1.0], [2.0]], [[1e200], [np.nan], [3.0]])
    monkeypatch.setattr(forecasts, "FORECASTS_AT_A_TIME", 4)
    asked = forecasts.asked_of(model, 2, "query")
    parts = list(forecast_endpoints._lines(model, asked, forecasts.forecast_all(model, asked)))
    assert [part.count(b"\n") for part in parts] == [3, 2]
    lines = [json.loads(line) for part in parts for line in part.splitlines()]
    assert (
        lines
        == json.loads(forecasts.forecast(model, json.dumps({"unique_id": IDS, "h": 2}).encode()))["forecasts"]
    )


@pytest.mark.parametrize("name", ["level", "quantiles"])
def test_a_model_of_lags_has_no_ranges(name: str) -> None:
    with pytest.raises(InvalidContent, match="train it with a `horizon`") as caught:
        forecasts.asked_of(served([[1.0]], [[1.0]]), 1, "query", **{name: [0.9]})
    assert [fault.location for fault in caught.value.problem.errors] == [f"query.{name}"]


def test_each_product_of_a_batch_has_its_own_status() -> None:
    model = served([[1e200], [1.0], [2.0]], [[1e200], [np.nan], [3.0]])
    assert answers(model, ["0001", "x", "a/b c", "日本茶"], h=2) == [
        ("0001", "2001-03-01", None, "not_finite"),
        ("0001", "2001-03-02", None, "not_finite"),
        ("x", None, None, "unknown_unique_id"),
        ("a/b c", None, None, "history_too_short"),
        ("日本茶", "2001-03-01", 6.0, "ok"),
        ("日本茶", "2001-03-02", 12.0, "ok"),
    ]


def test_a_batch_in_which_nothing_can_be_answered() -> None:
    model = served([[1.0], [1.0]], [[np.nan], [np.nan]])
    assert [row[3] for row in answers(model, ["x", "0001"])] == ["unknown_unique_id", "history_too_short"]


def test_a_product_without_any_entry_in_the_data_has_no_history() -> None:
    model = served([[1.0], [1.0]], [[np.nan], [1.0]])
    assert model.history is not None
    model.history.last_period[0] = np.iinfo(np.int64).min
    assert [row[3] for row in answers(model, ["0001", "a/b c"])] == ["history_too_short", "ok"]


def refused(model: StoredModel, document: dict[str, Any]) -> Any:
    with pytest.raises((service.Refused, AppError)) as caught:
        forecasts.forecast(model, json.dumps(document).encode())
    error = caught.value
    return (error.explain() if isinstance(error, service.Refused) else error).problem  # type: ignore[union-attr]


def test_one_product_alone_that_has_no_answer_is_an_error() -> None:
    model = served([[1.0, 1.0]], [[np.nan, np.nan]])
    too_short = refused(model, {"unique_id": ["0001"]})
    assert too_short.code == "history_too_short"
    assert (
        '"start": "dataset"' in too_short.detail
    )  # a dataset that fills from each series' start may fall short too
    unknown = refused(model, {"unique_id": ["001"]})
    assert (unknown.status, unknown.suggestions) == (404, ["0001"])


def test_a_model_of_regression_data_cannot_forecast() -> None:
    model = StoredModel("m", 1, np.ones((1, 1)), np.zeros(1), {"a": 0}, ("x",))
    with pytest.raises(Conflict, match="send its features to `predict`"):
        forecasts.forecast_one(model, "a", 1)


@pytest.mark.parametrize(
    ("document", "location"),
    [
        ({"unique_id": []}, "body.unique_id"),
        ({"unique_id": ["a"], "h": 0}, "body.h"),
        ({"unique_id": ["a"], "h": 367}, "body.h"),
        ({"unique_id": ["a"], "h": 1.5}, "body.h"),
        ({"unique_id": [1]}, "body.unique_id.0"),
        ({"unique_id": "a"}, "body.unique_id"),
        ({"h": 1}, "body.unique_id"),
        ({"unique_id": ["a"], "level": [80]}, "body.level"),
        ({"unique_id": ["a"], "level": [100]}, "body.level.0"),
        ({"unique_id": ["a"], "level": list(range(1, 12))}, "body.level"),
        ({"unique_id": ["a"], "level": 80}, "body.level"),
        ({"unique_id": ["a"], "quantiles": [0.1]}, "body.quantiles"),
        ({"unique_id": ["a"], "quantiles": [0.1, 10]}, "body.quantiles.1"),
        ({"unique_id": ["a"], "quantiles": [0.5] * 11}, "body.quantiles"),
    ],
)
def test_faults_are_located(document: dict[str, Any], location: str) -> None:
    problem = refused(served([[1.0]], [[1.0]]), document)
    assert problem.status == 422
    assert [fault.location for fault in problem.errors] == [location]


@pytest.mark.parametrize(
    "body",
    [
        b'{"unique_id": ["0001"], "unique_id": ["a"]}',
        b'{"unique_id": ["0001"], "h": 1, "h": 2}',
        b'{"unique_id": ["a"], "h": 1, "unique_id": ["0001"]}',
    ],
)
def test_a_key_that_stands_twice_is_refused(body: bytes) -> None:
    with pytest.raises(InvalidContent, match="stands 2 times in one object"):
        forecasts.forecast(served([[1.0]], [[1.0]]), body)


def test_an_answer_larger_than_the_limit_is_refused() -> None:
    body = json.dumps({"unique_id": ["0001"] * (MAX_FORECASTS // 366 + 1), "h": 366}).encode()
    with pytest.raises(InvalidContent, match="over the limit"):
        forecasts.forecast(served([[1.0]], [[1.0]]), body)


def test_an_answer_that_would_be_too_long_is_refused() -> None:
    forecasts.check_size(1_000, 1_000, 10)
    with pytest.raises(InvalidContent, match="1001 products times 1000 periods is over the limit of 1000000"):
        forecasts.check_size(1_001, 1_000, 10)
    with pytest.raises(InvalidContent, match=r"times 11 numbers .* is over the limit of 10000000"):
        forecasts.check_size(1_000, 1_000, 11)

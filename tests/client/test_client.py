"""Predictions and forecasts come as tables, the same whether some products are asked for or all."""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl
import pytest
from fastapi.testclient import TestClient
from polars.testing import assert_frame_equal

from ccmtl_client import Client, InvalidContent, MissingLibrary, NotFound
from tests.client.conftest import Told, Working

ROWS = {"unique_id": ["0001", "9999"], "lag_1": [3.0, 1.0], "lag_2": [1.0, 0.0]}


def test_columns_of_lists_are_answered_by_lists(client: Client, shop: str) -> None:
    answer = client.predict(shop, ROWS)
    assert answer["unique_id"] == ["0001", "9999"]
    assert answer["status"] == ["ok", "unknown_unique_id"]
    weights = client.models.weights(shop).row(by_predicate=pl.col("unique_id") == "0001")
    assert answer["yhat"] == [pytest.approx(weights[1] + 3 * weights[2] + weights[3]), None]


def test_a_table_is_answered_by_a_table_in_as_many_requests_as_it_needs(
    client: Client, service: TestClient, shop: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    expected = client.predict(shop, ROWS)
    table = pl.DataFrame(ROWS)
    assert client.predict(shop, table).to_dict(as_series=False) == expected
    monkeypatch.setattr("ccmtl_client.frames.BYTES_AT_A_TIME", 100)
    told = Told(behind=service._transport)
    answer = Client("http://localhost", transport=told).predict(shop, table)
    assert answer.to_dict(as_series=False) == expected
    assert len(told.sent) == 2


def test_numbers_of_numpy_are_sent_and_what_is_not_finite_is_refused_with_its_place(
    client: Client, shop: str
) -> None:
    columns = {name: np.array(values) for name, values in ROWS.items()}
    assert client.predict(shop, columns) == client.predict(shop, ROWS)
    with pytest.raises(InvalidContent) as caught:
        client.predict(shop, {**ROWS, "lag_2": [1.0, np.nan]})
    assert "lag_2" in str(caught.value)
    with pytest.raises(InvalidContent, match="lag_2"):
        client.predict(shop, pl.DataFrame({**ROWS, "lag_2": [1.0, np.nan]}))


def test_an_unknown_model_is_not_found_with_near_matches(client: Client, shop: str) -> None:
    with pytest.raises(NotFound, match="Did you mean 'shop-client'") as caught:
        client.predict("shop-clients", ROWS)
    assert shop in caught.value.suggestions


def test_forecasts_of_some_products_are_those_of_all(client: Client, shop: str) -> None:
    every = client.forecast_all(shop, h=2)
    some = client.forecast(shop, ["0001", "0002"], 2)
    assert_frame_equal(some, every.filter(pl.col("unique_id").is_in(["0001", "0002"])))
    assert some.schema["ds"] == pl.Date
    assert client.forecast(shop, "0001", 2).equals(some.head(2))


def test_hours_and_whole_numbers_are_read_as_such() -> None:
    rows = [
        {"unique_id": "a", "ds": None, "yhat": None, "status": "history_too_short"},
        {"unique_id": "b", "ds": "2025-01-01T05:00:00", "yhat": 1, "status": "ok"},
    ]
    hours = Client("http://service", transport=Told({"forecasts": rows})).forecast("m", ["a", "b"])
    assert hours.schema["ds"] == pl.Datetime("us")
    assert hours["yhat"].to_list() == [None, 1.0]
    rows[1]["ds"] = "-7"
    numbers = Client("http://service", transport=Told({"forecasts": rows})).forecast("m", ["a", "b"])
    assert numbers["ds"].to_list() == [None, -7]


def test_what_must_be_known_is_listed_and_given_as_a_table(client: Client, working: Working) -> None:
    rng = np.random.default_rng(0)
    days = pl.date_range(pl.date(2025, 1, 1), pl.date(2025, 2, 9), eager=True)
    offer = rng.integers(0, 2, (4, 40))
    parts = [
        pl.DataFrame({"unique_id": f"{t}", "ds": days, "y": 10 + 20 * offer[t] + rng.integers(0, 4, 40),
                      "offer": offer[t]})
        for t in range(4)
    ]  # fmt: skip
    definition: dict[str, Any] = {"frequency": "D", "columns": {"future": ["offer"]}}
    client.datasets.upload("offers", pl.concat(parts), definition=definition)
    with working():
        client.train("offers", "offers", horizon=1, fusion_strength=10, fit_intercept=True).wait(timeout=240)
    missing = client.missing_columns("offers", "0")
    assert missing == [{"unique_id": "0", "ds": "2025-02-10", "columns": ["offer"]}]
    with pytest.raises(InvalidContent) as caught:
        client.forecast("offers", "0")
    assert caught.value.code == "missing_columns"
    known = pl.DataFrame({"ds": [days[-1] + (days[-1] - days[-2])], "offer": [1.0]})
    some = client.forecast("offers", ["0", "3"], level=[80], quantiles=[0.9], future=known)
    assert some.columns == ["unique_id", "ds", "yhat", "yhat_lo_80", "yhat_hi_80", "yhat_q_90", "status"]
    assert (some["yhat"] > 20).all()
    every = client.forecast_all("offers", level=[80], quantiles=[0.9], future=known)
    assert_frame_equal(every.filter(pl.col("unique_id").is_in(["0", "3"])), some)


def test_any_request_can_be_sent(client: Client, shop: str) -> None:
    assert client.request("GET", f"/v1/models/{shop}/products", limit=1)["items"] == ["0001"]
    body = {"unique_id": ["0001"], "h": 1}
    assert len(client.request("POST", f"/v1/models/{shop}/forecast", body)["forecasts"]) == 1


def test_a_library_that_is_missing_is_named(service: TestClient, shop: str) -> None:
    client = Client("http://localhost", transport=service._transport, tables="pandas")
    with pytest.raises(MissingLibrary, match='tables="pandas" needs pandas: pip install pandas'):
        client.models.weights(shop)


def test_tables_of_pandas_are_made_of_arrays(
    service: TestClient, shop: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    made: dict[str, Any] = {}
    library = __import__("importlib").import_module
    pandas = type("pandas", (), {"DataFrame": staticmethod(made.update)})
    monkeypatch.setattr(
        "ccmtl_client.frames.importlib.import_module", lambda n: pandas if n == "pandas" else library(n)
    )
    Client("http://localhost", transport=service._transport, tables="pandas").forecast(shop, "0001", 2)
    assert made["unique_id"].tolist() == ["0001", "0001"]
    assert made["ds"].dtype.kind == "M"
    assert made["yhat"].dtype == np.float64

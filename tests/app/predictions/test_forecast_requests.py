"""Forecasts over HTTP by a model with prices, attributes and newer values: one shop, trained once."""

from __future__ import annotations

import io
import json
from collections.abc import Iterator
from datetime import date, timedelta
from typing import Any

import numpy as np
import polars as pl
import pytest
from fastapi import FastAPI
from fastapi.testclient import TestClient

from app.jobs import queue
from app.main import create_app
from app.settings import Settings
from app.training import pipeline

H, N = 3, 50
FIRST = date(2025, 1, 1)
ORDINARY = ("0001", "0002", "a/b", "0004", "0005", "0006")


def sales(first: int = 0, last: int = N, ids: tuple[str, ...] = ORDINARY) -> pl.DataFrame:
    """Sales that an offer raises by 20, of some products and days."""
    rng = np.random.default_rng(3)
    offers = rng.random((len(ORDINARY), 2 * N)) < 0.3
    sold = 10.0 + 20.0 * offers + rng.normal(size=offers.shape)
    days = [FIRST + timedelta(days=d) for d in range(first, last)]
    rows = [ORDINARY.index(name) for name in ids]
    return pl.DataFrame(
        {
            "unique_id": [name for name in ids for _ in days],
            "ds": days * len(ids),
            "y": sold[rows, first:last].ravel().round(3),
            "offer": offers[rows, first:last].ravel().astype(float),
            "kind": ["tea" if row % 2 else "jam" for row in rows for _ in days],
        }
    )


def others() -> pl.DataFrame:
    """A product that sold nothing, one that was only returned, and one that is new."""
    days = [FIRST + timedelta(days=d) for d in range(N)]
    some = [("zero", [0.0] * N), ("returned", [-1.0 - d % 3 for d in range(N)])]
    frames = [
        pl.DataFrame({"unique_id": [name] * N, "ds": days, "y": y, "offer": [0.0] * N, "kind": ["jam"] * N})
        for name, y in some
    ]
    return pl.concat([*frames, sales(N - 2, N, ("0001",)).with_columns(unique_id=pl.lit("thin"))])


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TestClient]:
    app = create_app(Settings(data_dir=tmp_path_factory.mktemp("shop")))
    with TestClient(app, "http://localhost", raise_server_exceptions=False) as client:
        columns = {"future": ["offer"], "attributes": ["kind"]}
        form = {"name": "shop", "kind": "series", "frequency": "D", "columns": columns}
        assert client.post("/v1/datasets", json=form).status_code == 201
        upload(client, pl.concat([sales(), others()]))
        train(app, client)
        yield client


def upload(client: TestClient, rows: pl.DataFrame, mode: str = "full") -> None:
    headers = {"Content-Type": "text/csv"}
    url = f"/v1/datasets/shop/versions?mode={mode}"
    answer = client.post(url, content=rows.write_csv(), headers=headers)
    assert answer.status_code == 201, answer.text


def train(app: FastAPI, client: TestClient) -> None:
    body = {"dataset": "shop", "model": "m", "horizon": H, "fusion_strength": 10.0, "fit_intercept": True}
    answer = client.post("/v1/training-jobs", json=body)
    assert answer.status_code == 202, answer.text
    with app.state.database.write() as session:
        claimed = queue.claim(session, "worker", 60.0, 3)
    assert claimed is not None
    pipeline.run(app.state.database, app.state.storage, claimed, lambda record: None)


def coming(ids: tuple[str, ...] = ORDINARY, offer: float = 1.0, first: int = N) -> dict[str, Any]:
    """What will be known of the days ahead: an offer on the second."""
    days = [str(FIRST + timedelta(days=first + d)) for d in range(H)]
    offers = [offer if d == 1 else 0.0 for d in range(H)]
    return {"unique_id": [i for i in ids for _ in days], "ds": days * len(ids), "offer": offers * len(ids)}


def post(client: TestClient, path: str = "forecast", **body: Any) -> Any:
    answer = client.post(f"/v1/models/m/{path}", json=body)
    assert answer.status_code == 200, answer.text
    return json.loads(answer.text, parse_constant=pytest.fail)


def test_forecasts_follow_an_offer_that_the_request_announces(client: TestClient) -> None:
    found = post(client, unique_id=list(ORDINARY), future=coming(), level=[80])
    assert found["data"] == {"dataset": "shop", "version": 1}
    yhat = np.array([f["yhat"] for f in found["forecasts"]]).reshape(-1, H)
    assert yhat[:, 1].min() > 25.0
    assert yhat[:, [0, 2]].max() < 15.0
    assert all(f["yhat_lo_80"] <= f["yhat"] <= f["yhat_hi_80"] for f in found["forecasts"])


def test_rows_without_an_id_hold_for_all_products(client: TestClient) -> None:
    future = {name: values[:H] for name, values in coming().items() if name != "unique_id"}
    by_product = post(client, unique_id=["0001", "a/b"], future=coming())
    assert post(client, unique_id=["0001", "a/b"], future=future) == by_product


def test_missing_exogenous_future_rows_are_named_and_listed(client: TestClient) -> None:
    listed = client.get("/v1/models/m/missing-columns", params={"h": 2, "unique_id": ["a/b", "0001"]}).json()
    days = ["2025-02-20", "2025-02-21"]
    assert listed["missing"] == [
        {"unique_id": i, "ds": ds, "columns": ["offer"]} for i in ("0001", "a/b") for ds in days
    ]
    answer = client.get("/v1/models/m/forecast", params={"unique_id": "a/b", "h": 2})
    problem = answer.json()
    assert (answer.status_code, problem["code"], problem["error_count"]) == (422, "missing_columns", 1)
    words = "product 'a/b': 'offer' is not known for 2 periods, 2025-02-20 to 2025-02-21"
    assert problem["errors"][0]["message"] == words
    future = {name: values[1:] for name, values in coming(("0001",)).items()}
    some = client.post("/v1/models/m/forecast", json={"unique_id": ["0001"], "future": future})
    assert some.json()["error_count"] == 1
    assert client.get("/v1/models/m/forecasts").json()["code"] == "missing_columns"


@pytest.mark.parametrize(
    ("future", "location"),
    [
        ({"ds": ["2025-02-20"], "price": [1]}, "body.future.price"),
        ({"ds": ["2025-02-20", "20.2.2025"], "offer": [1, 0]}, "body.future.ds.1"),
        ({"ds": ["2025-02-20"], "offer": [1, 0]}, "body.future.ds"),
        ({"ds": ["2025-02-20"], "offer": ["x"]}, "body.future.offer.0"),
        ({"ds": ["2025-02-20"] * 2, "offer": [1, 0]}, "body.future.ds.1"),
        ({"offer": [1]}, "body.future.ds"),
    ],
)
def test_faults_of_future_rows_are_placed(client: TestClient, future: Any, location: str) -> None:
    answer = client.post("/v1/models/m/forecast", json={"unique_id": ["0001"], "future": future})
    assert answer.status_code == 422
    assert location in [fault["location"] for fault in answer.json()["errors"]]


def test_an_all_zero_product_and_one_of_negative_sales_have_finite_forecasts(client: TestClient) -> None:
    found = post(client, unique_id=["zero", "returned"], future=coming(("zero", "returned"), 0.0), level=[95])
    yhat = {
        name: [f["yhat"] for f in found["forecasts"] if f["unique_id"] == name]
        for name in ("zero", "returned")
    }
    assert yhat["zero"] == [0.0] * H
    assert max(yhat["returned"]) < 0.0
    assert all(np.isfinite(f["yhat_hi_95"]) for f in found["forecasts"])


def test_an_id_with_a_slash_is_a_product_like_any_other(client: TestClient) -> None:
    found = post(client, unique_id=["a/b"], future=coming(("a/b",)))
    assert {f["unique_id"] for f in found["forecasts"]} == {"a/b"}


def test_ids_repeated_in_a_request_are_answered_each_time(client: TestClient) -> None:
    found = post(client, unique_id=["0001", "0002", "0001"], future=coming())["forecasts"]
    assert [f["unique_id"] for f in found] == ["0001"] * H + ["0002"] * H + ["0001"] * H
    assert found[:H] == found[-H:]


def test_tens_of_thousands_of_ids_are_answered_in_one_request(client: TestClient) -> None:
    ids = [*ORDINARY, "unknown"] * 4000
    found = post(client, unique_id=ids, h=1, future=coming())["forecasts"]
    assert [f["unique_id"] for f in found] == ids
    assert [f["status"] for f in found[:7]] == ["ok"] * 6 + ["unknown_unique_id"]


def test_products_with_hardly_any_history_are_forecast_from_their_like(client: TestClient) -> None:
    ids = ["thin", "unseen", "week"]
    week = sales(N - 7, N, ("0002",))
    body: dict[str, Any] = {
        "unique_id": [*ids, "0001"],
        "future": coming((*ids, "0001")),
        "attributes": {"unique_id": ["unseen", "week"], "kind": ["jam", None]},
        "history": {
            "unique_id": ["week"] * 7,
            "ds": [str(day) for day in week["ds"]],
            "y": week["y"].to_list(),
        },
    }
    found = post(client, **body)["forecasts"]
    status = {f["unique_id"]: f["status"] for f in found}
    assert status.pop("0001") == "ok"
    assert set(status) == set(ids)
    assert set(status.values()) <= {"from_like", "from_all"}
    assert all(f["yhat"] > 0.0 for f in found)
    assert client.get("/v1/models/m/forecast", params={"unique_id": "unseen"}).status_code == 404


@pytest.mark.parametrize(
    ("part", "code"),
    [
        ({"attributes": {"unique_id": ["0001"], "kind": ["tea"]}}, "product_is_known"),
        ({"attributes": {"unique_id": ["new"], "colour": ["red"]}}, "unknown_attribute"),
        ({"history": {"unique_id": ["new"], "ds": ["2025-01-01"]}}, "invalid_request"),
        ({"attributes": {"unique_id": ["nwe"], "kind": ["tea"]}}, "product_not_asked_for"),
        ({"history": {"unique_id": ["nwe"], "ds": ["2025-01-01"], "y": [1]}}, "product_not_asked_for"),
    ],
)
def test_faults_of_new_products_are_refused(client: TestClient, part: Any, code: str) -> None:
    answer = client.post("/v1/models/m/forecast", json={"unique_id": ["new"], **part})
    assert (answer.status_code, answer.json()["code"]) == (422, code)


@pytest.mark.parametrize("cell", ["NaN", "true", "[]", "1e999"])
def test_a_cell_of_another_type_is_one_fault(client: TestClient, cell: str) -> None:
    body = f'{{"unique_id": ["0001"], "future": {{"ds": ["2025-02-20"], "offer": [{cell}]}}}}'
    answer = client.post("/v1/models/m/forecast", content=body, headers={"Content-Type": "application/json"})
    (fault,) = answer.json()["errors"]
    assert (fault["location"], answer.json()["error_count"]) == ("body.future.offer.0", 1)
    assert fault["message"] == "must be text, a finite number or null"


def test_a_forecast_that_had_to_be_cut_says_so(client: TestClient) -> None:
    body = {"unique_id": ["0001", "0002"], "future": coming()}
    body["future"]["offer"] = [1e14 if name == "0001" else 1.0 for name in body["future"]["unique_id"]]
    found = post(client, **body)["forecasts"]
    assert {f["unique_id"]: f["status"] for f in found} == {"0001": "cut", "0002": "ok"}


@pytest.mark.parametrize(
    ("part", "words"),
    [
        ({"future": {"ds": ["2025-02-20"], "offer": [1e308]}}, "1e+308 at 2025-02-20 is too large"),
        (
            {"history": {"unique_id": ["new"], "ds": ["2025-02-18"], "y": [1e308]}},
            "1e+308 of the product 'new' at 2025-02-18 is too large",
        ),
        (
            {"history": {"unique_id": ["new"], "ds": ["1990-01-01"], "y": [1]}},
            "the history of the product 'new' ends at 1990-01-01",
        ),
    ],
)
def test_numbers_and_dates_far_from_all_others_are_refused_with_their_place(
    client: TestClient, part: dict[str, Any], words: str
) -> None:
    answer = client.post("/v1/models/m/forecast", json={"unique_id": ["new"], **part})
    assert answer.status_code == 422
    assert words in answer.json()["errors"][0]["message"]


def test_a_history_long_after_all_others_is_refused_with_its_date(client: TestClient) -> None:
    late = {"unique_id": ["new"], "ds": ["2030-01-01"], "y": [1]}
    answer = client.post("/v1/models/m/forecast", json={"unique_id": ["new"], "history": late})
    assert (answer.status_code, answer.json()["code"]) == (422, "cannot_forecast")
    assert "the values of 'new' go to 2030-01-01" in answer.json()["detail"]
    assert "bring the others up to date" in answer.json()["detail"]


def test_what_each_feature_adds_sums_to_the_forecast(client: TestClient) -> None:
    body = {"unique_id": ["0002"], "future": coming(("0002",))}
    parts = post(client, "contributions", **body)["contributions"]
    assert [p["yhat"] for p in parts] == [f["yhat"] for f in post(client, **body)["forecasts"]]
    for part in parts:
        whole = sum(part["features"].values()) + part["intercept"] + part["adjustment"]
        assert whole == pytest.approx(part["yhat"])
    assert parts[1]["features"]["future_offer"] > 15.0
    refused = client.post("/v1/models/m/contributions", json={**body, "level": [80]}).json()
    assert refused["errors"][0]["location"] == "body.level"
    assert "not to ranges: leave it out" in refused["errors"][0]["message"]


def test_contributions_explain_the_forecast_of_a_product_with_hardly_any_history(client: TestClient) -> None:
    body: dict[str, Any] = {"unique_id": ["thin", "0002", "thin"], "future": coming(("0002", "thin"))}
    parts = post(client, "contributions", **body)["contributions"]
    forecasts = post(client, **body)["forecasts"]
    assert {f["status"] for f in forecasts} == {"ok", "from_all"}
    names = ("unique_id", "ds", "yhat")
    assert [[p[n] for n in names] for p in parts] == [[f[n] for n in names] for f in forecasts]
    for part in parts:
        whole = sum(part["features"].values()) + part["intercept"] + part["adjustment"]
        assert whole == pytest.approx(part["yhat"])


def test_a_stream_is_lines_of_json_or_arrow_and_totals_are_its_sums(client: TestClient) -> None:
    body = {"level": [80], "quantiles": [0.1], "future": coming((*ORDINARY, "zero", "returned", "thin"))}
    lines = client.post("/v1/models/m/forecasts", json=body)
    assert lines.headers["link"] == '</v1/datasets/shop/versions/1>; rel="via"'
    read = pl.read_ndjson(io.StringIO(lines.text)).with_columns(pl.col("ds").str.to_date())
    kind = "application/vnd.apache.arrow.stream"
    arrow = client.post(
        "/v1/models/m/forecasts", json=body, headers=[("Accept", "text/html"), ("Accept", kind)]
    )
    assert arrow.headers["content-type"] == kind
    assert pl.read_ipc_stream(arrow.content).equals(read)
    assert read["unique_id"].n_unique() == 9
    assert read["yhat_q_10"].equals(read["yhat_lo_80"])
    every = {**body, "quantiles": [p / 100 for p in range(1, 100)]}
    told = pl.read_ndjson(io.StringIO(client.post("/v1/models/m/forecasts", json=every).text))
    assert told["yhat_q_10"].equals(read["yhat_q_10"])
    assert len(told.columns) == len(read.columns) + 98
    refused = client.post("/v1/models/m/forecasts", json=body, headers={"Accept": "text/html"})
    assert refused.status_code == 406
    sums = post(client, "totals", by=["kind"], future=body["future"])["totals"]
    assert [(s["attributes"]["kind"], s["n_products"]) for s in sums[::H]] == [("jam", 6), ("tea", 3)]
    assert sum(s["yhat"] for s in sums) == pytest.approx(read["yhat"].sum())


def test_forecasts_after_an_append_start_from_the_newest_values_without_a_fit(client: TestClient) -> None:
    new = sales(N, N + 9, ("0004",)).with_columns(unique_id=pl.lit("launched"))
    upload(client, pl.concat([sales(N, N + 9), new]), mode="append")
    client.app.state.histories._newest.clear()  # type: ignore[attr-defined]
    first, ids = N + 9, ["0001", "launched", "zero"]
    future = coming(("0001", "launched"), first=first)
    zero = coming(("zero",), 0.0)
    found = post(client, unique_id=ids, future={name: future[name] + zero[name] for name in future})
    assert found["data"] == {"dataset": "shop", "version": 2}
    assert found["model"] == {"name": "m", "version": 1}
    forecasts = {f["unique_id"]: f for f in reversed(found["forecasts"])}
    assert forecasts["0001"]["ds"] == str(FIRST + timedelta(days=first))
    assert forecasts["zero"]["ds"] == str(FIRST + timedelta(days=N))
    assert forecasts["launched"]["status"] in ("from_like", "from_all")


def test_one_discontinued_product_does_not_stop_all_others(client: TestClient) -> None:
    first, ids = N + 9, (*ORDINARY, "launched")  # by the append before, "zero" and "returned" have ended
    listed = client.get("/v1/models/m/missing-columns").json()
    assert set(listed["ended"]) == {"zero", "returned", "thin"}
    assert {row["unique_id"] for row in listed["missing"]} == set(ids)
    future = coming(ids, first=first)
    lines = client.post("/v1/models/m/forecasts", json={"future": future})
    assert lines.status_code == 200, lines.text
    rows = [json.loads(line) for line in lines.text.splitlines()]
    ended = [row for row in rows if row["status"] == "ended"]
    assert {row["unique_id"] for row in ended} == set(listed["ended"])
    assert {(row["ds"], row["yhat"]) for row in ended} == {(None, None)}
    assert len(rows) == len(ended) + H * len(ids)
    sums = post(client, "totals", future=future)["totals"]
    assert [s["n_products"] for s in sums] == [len(ids)] * H
    some = post(client, unique_id=["zero", "0001"], future=future)["forecasts"]
    assert [f["status"] for f in some] == ["ended", *["ok"] * H]
    for path in ("forecast", "contributions"):
        alone = client.post(f"/v1/models/m/{path}", json={"unique_id": ["zero"], "future": future})
        assert (alone.status_code, alone.json()["code"]) == (409, "product_ended")
        assert "'zero' ended at 2025-02-19" in alone.json()["detail"]
    body: dict[str, Any] = {"unique_id": ["thin"], "future": coming(("thin",), first=first)}
    thin = post(client, **body)["forecasts"]
    days = [str(FIRST + timedelta(days=first + d)) for d in range(H)]
    assert [f["ds"] for f in thin] == days  # forecasts from the like start after the newest period of all
    parts = post(client, "contributions", **body)["contributions"]
    assert [(p["ds"], p["yhat"]) for p in parts] == [(f["ds"], f["yhat"]) for f in thin]
    known = post(client, unique_id=["zero"], future=coming(("zero",), 0.0))["forecasts"]
    assert [f["status"] for f in known] == ["ok"] * H

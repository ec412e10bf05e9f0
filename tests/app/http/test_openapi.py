"""The OpenAPI document tells the truth, as far as it can be checked without a request."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
from fastapi import FastAPI
from fastapi.testclient import TestClient

from app.datasets import endpoints as datasets
from app.http.errors import MEDIA_TYPE
from app.http.openapi import _SUMMARIES, PROBLEM
from app.main import create_app
from app.predictions import endpoints as predictions
from app.predictions import forecast_endpoints as forecasts
from app.predictions.wire import decode_forecast, decode_forecast_all, decode_predict, decode_totals
from app.schedules import endpoints as schedules
from app.settings import Settings
from app.training import endpoints as training
from app.webhooks import endpoints as webhooks


@pytest.fixture(scope="module")
def document(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    app: FastAPI = create_app(Settings(data_dir=tmp_path_factory.mktemp("described")))
    assert app.openapi() is app.openapi()
    return app.openapi()


def operations(document: dict[str, Any]) -> list[tuple[str, dict[str, Any]]]:
    return [
        (f"{method.upper()} {path}", operation)
        for path, methods in document["paths"].items()
        for method, operation in methods.items()
    ]


def test_every_error_is_a_problem_document(document: dict[str, Any]) -> None:
    for name, operation in operations(document):
        for status, response in operation["responses"].items():
            if status == "304":
                assert "content" not in response, name
            elif not status.startswith("2"):
                assert response["content"] == {MEDIA_TYPE: {"schema": PROBLEM}}, (name, status)


def test_metrics_and_report_of_a_version_have_schemas(document: dict[str, Any]) -> None:
    schemas = document["components"]["schemas"]
    version = schemas["ModelVersionDetail"]["properties"]
    assert version["report"] == {"$ref": "#/components/schemas/Report"}
    assert {"$ref": "#/components/schemas/Metrics"} in version["metrics"]["anyOf"]
    assert {"status", "gap", "notes", "selection"} <= schemas["Report"]["properties"].keys()
    assert {"rmse_mean_of_tasks", "n_test_rows"} <= schemas["Metrics"]["properties"].keys()


def test_strengths_have_one_name_everywhere(document: dict[str, Any]) -> None:
    names = {
        name for schema in document["components"]["schemas"].values() for name in schema.get("properties", {})
    }
    assert {name for name in names if "strength" in name} == {"fusion_strength", "fusion_strengths"}


def test_every_reference_leads_somewhere_and_every_schema_is_used(document: dict[str, Any]) -> None:
    referred = set(re.findall(r'"#/components/schemas/([^"]+)"', json.dumps(document)))
    assert referred == document["components"]["schemas"].keys()
    assert "#/$defs/" not in json.dumps(document)


def test_operations_have_names_of_their_own_and_say_what_they_do(document: dict[str, Any]) -> None:
    names = [operation["operationId"] for _, operation in operations(document)]
    assert len(set(names)) == len(names)
    for name, operation in operations(document):
        assert re.fullmatch(r"[a-z_]+", operation["operationId"]), name
        assert operation["description"].endswith("."), name


def test_operations_have_headings_of_their_own(document: dict[str, Any]) -> None:
    headings = {operation["operationId"]: operation["summary"] for _, operation in operations(document)}
    assert len(set(headings.values())) == len(headings)
    assert all(len(heading.split()) >= 2 for heading in headings.values())
    assert _SUMMARIES.keys() <= headings.keys()


def test_every_json_body_comes_with_examples(document: dict[str, Any]) -> None:
    n_checked = 0
    for name, operation in operations(document):
        body = operation.get("requestBody", {}).get("content", {}).get("application/json")
        if body is not None:
            assert body["examples"], name
            n_checked += len(body["examples"])
    assert n_checked >= 10


def test_the_examples_of_bodies_are_accepted(tmp_path: Any) -> None:
    """Each in its place, on the shop and the stores that the first of them define."""
    examples = Path(__file__).parents[3] / "examples"
    app = create_app(Settings(data_dir=tmp_path))
    with TestClient(app, "http://localhost") as client:
        for form, file in zip(datasets.EXAMPLES.values(), ("shop.csv", "stores.csv"), strict=True):
            assert client.post("/v1/datasets", json=form).status_code == 201
            url, content = f"/v1/datasets/{form['name']}/versions", (examples / file).read_bytes()
            assert client.post(url, content=content, headers={"Content-Type": "text/csv"}).status_code == 201
        for form in webhooks.EXAMPLES.values():
            assert client.put("/v1/webhooks/planning", json=form).status_code == 201
        for request in training.EXAMPLES.values():
            answer = client.post("/v1/training-jobs", json=request)
            assert answer.status_code == 202, answer.text
        for form in schedules.EXAMPLES.values():
            assert client.put("/v1/schedules/nightly", json=form).status_code in (200, 201)
    for body in predictions.PREDICT_EXAMPLES.values():
        decode_predict(json.dumps(body).encode())
    for body in forecasts.EXAMPLES.values():
        decode_forecast(json.dumps(body).encode())
    for body in forecasts.TOTALS_EXAMPLES.values():
        decode_totals(json.dumps(body).encode())
    for body in forecasts.ALL_EXAMPLES.values():
        decode_forecast_all(json.dumps(body).encode())


def test_every_body_that_is_sent_can_be_too_large_or_of_another_type(document: dict[str, Any]) -> None:
    with_body = [(name, op) for name, op in operations(document) if "requestBody" in op]
    assert len(with_body) > 5
    for name, operation in with_body:
        assert {"400", "413", "415", "422"} <= operation["responses"].keys(), name

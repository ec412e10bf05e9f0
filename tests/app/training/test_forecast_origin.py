"""From where forecasts start, as docs/http.md says it: each product's own end, or with fill the dataset's."""

from __future__ import annotations

from typing import Any

import pytest
from fastapi.testclient import TestClient

from tests.app.training.conftest import Run
from tests.support.training import add_series, job, series_csv


@pytest.fixture
def database_kind() -> str:
    return "sqlite"


@pytest.mark.parametrize(
    ("definition", "expected"),
    [
        ({}, {"a": "2025-01-14", "b": "2025-01-13"}),
        ({"fill": {"method": "zero", "start": "series"}}, {"a": "2025-01-14", "b": "2025-01-14"}),
    ],
)
def test_an_append_to_one_product_moves_the_others_only_with_fill(
    client: TestClient, run: Run, definition: dict[str, Any], expected: dict[str, str]
) -> None:
    add_series(client, content=series_csv("a", "b"), **definition)
    url = "/v1/datasets/sales/versions?mode=append"
    rows = "unique_id,ds,y\na,2025-01-13,1\n"
    assert client.post(url, content=rows, headers={"Content-Type": "text/csv"}).status_code == 201
    assert client.post("/v1/training-jobs", json=job()).status_code == 202
    run()
    answer = client.post("/v1/models/m/forecast", json={"unique_id": ["a", "b"]}).json()
    assert {f["unique_id"]: f["ds"] for f in answer["forecasts"]} == expected


def test_a_version_or_a_job_cannot_be_deleted_alone(client: TestClient) -> None:
    add_series(client)
    job_id = client.post("/v1/training-jobs", json=job()).json()["id"]
    for path in ("datasets/sales/versions/1", f"training-jobs/{job_id}"):
        answer = client.delete(f"/v1/{path}")
        assert (answer.status_code, answer.json()["code"]) == (405, "method_not_allowed")

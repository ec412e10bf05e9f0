"""Weights are exported as Parquet or Arrow, as they are; groups and single tasks are read."""

from __future__ import annotations

from dataclasses import replace
from io import BytesIO

import numpy as np
import polars as pl
import pytest
from fastapi.testclient import TestClient

from app.http.names import ARROW_STREAM, PARQUET
from app.persistence.database import Database
from app.registry import exports
from ccmtl_core import TaskGraph
from tests.support.models import add_version, trained

IDS = ["0001", "a/b", "日本茶", "x", "y"]
WEIGHTS = [[1.0, 2.0], [1.0, 2.0], [-0.5, 1e-300], [3.0, 4.0], [1.0, 2.0]]
MODEL = trained(WEIGHTS, IDS, feature_names=["intercept", "price"], intercept=[0.5, 1.5, 2.5, 3.5, 4.5])
GRAPH = TaskGraph([[0, 1], [1, 2], [1, 4]], [2, 1, 1], n_tasks=5)


@pytest.fixture(scope="module")
def database_kind() -> str:
    return "sqlite"  # what is stored is the same in both


@pytest.fixture(autouse=True)
def _published(database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(exports, "ROWS_AT_A_TIME", 2)
    add_version(database, replace(MODEL, n_samples=np.arange(5) + 10, graph=GRAPH))


def check(frame: pl.DataFrame) -> None:
    assert frame.columns == ["unique_id", "intercept", "weight_intercept", "weight_price"]
    assert frame["unique_id"].to_list() == IDS
    assert frame["intercept"].to_list() == MODEL.intercept.tolist()
    assert frame.drop("unique_id", "intercept").to_numpy().tolist() == WEIGHTS


@pytest.mark.parametrize("accept", ["*/*", PARQUET, f"text/html, {PARQUET};q=0.9"])
def test_weights_are_exported_as_parquet(client: TestClient, accept: str) -> None:
    answer = client.get("/v1/models/sales/weights", headers={"Accept": accept})
    assert answer.headers["content-type"] == PARQUET
    assert answer.headers["content-location"] == "/v1/models/sales/versions/1/weights"
    check(pl.read_parquet(BytesIO(answer.content)))


def test_weights_are_exported_as_one_arrow_stream(client: TestClient) -> None:
    answer = client.get(
        "/v1/models/sales/versions/1/weights", headers=[("Accept", "text/csv"), ("Accept", ARROW_STREAM)]
    )
    assert answer.headers["content-type"] == ARROW_STREAM
    check(pl.read_ipc_stream(BytesIO(answer.content)))


def test_weights_are_exported_as_nothing_else(client: TestClient) -> None:
    answer = client.get("/v1/models/sales/weights", headers={"Accept": "text/csv"})
    assert (answer.status_code, answer.json()["code"]) == (406, "not_acceptable")


def test_groups_of_equal_weights_are_listed(client: TestClient, database: Database) -> None:
    page = client.get("/v1/models/sales/clusters").json()
    assert page.pop("model") == {"name": "sales", "version": 1}
    assert page == {
        "n_tasks": 5,
        "n_clusters": 1,
        "n_alone": 2,
        "items": [{"cluster": 0, "n_tasks": 3, "unique_ids": ["0001", "a/b", "y"]}],
        "next_cursor": None,
    }
    add_version(database, trained([[1.0]] * 3 + [[2.0]] * 2 + [[3.0]] * 2, [*"abcdefg"]))
    first = client.get("/v1/models/sales/versions/2/clusters", params={"limit": 2}).json()
    second = client.get(
        "/v1/models/sales/versions/2/clusters", params={"limit": 2, "cursor": first["next_cursor"]}
    ).json()
    assert [c["unique_ids"] for page in (first, second) for c in page["items"]] == [
        [*"abc"],
        [*"de"],
        [*"fg"],
    ]
    assert second["next_cursor"] is None


def test_the_tasks_of_a_group_come_in_pages(client: TestClient) -> None:
    first = client.get("/v1/models/sales/products", params={"cluster": 0, "limit": 2}).json()
    assert first == {"items": ["0001", "a/b"], "next_cursor": "2"}
    second = client.get("/v1/models/sales/products", params={"cluster": 0, "limit": 2, "cursor": 2}).json()
    assert second == {"items": ["y"], "next_cursor": None}
    assert client.get("/v1/models/sales/products", params={"cluster": 1}).json()["items"] == []


def test_one_task_is_read_with_its_neighbours(client: TestClient) -> None:
    task = client.get("/v1/models/sales/tasks", params={"unique_id": "a/b"}).json()
    assert task == {
        "model": {"name": "sales", "version": 1},
        "unique_id": "a/b",
        "weights": {"intercept": 1.0, "price": 2.0},
        "intercept": 1.5,
        "n_samples": 11,
        "cluster": 0,
        "n_in_cluster": 3,
        "n_neighbors": 3,
        "neighbors": [
            {"unique_id": "0001", "mutual": True, "same_cluster": True},
            {"unique_id": "日本茶", "mutual": False, "same_cluster": False},
            {"unique_id": "y", "mutual": False, "same_cluster": True},
        ],
    }
    alone = client.get("/v1/models/sales/tasks", params={"unique_id": "x"}).json()
    assert (alone["cluster"], alone["n_in_cluster"], alone["neighbors"]) == (None, 1, [])


def test_a_version_from_before_the_graph_was_kept_has_none(client: TestClient, database: Database) -> None:
    add_version(database, MODEL)
    task = client.get("/v1/models/sales/versions/2/tasks", params={"unique_id": "x"}).json()
    assert (task["n_samples"], task["neighbors"], task["n_neighbors"]) == (None, None, None)


def test_an_unknown_task_gets_near_matches(client: TestClient) -> None:
    answer = client.get("/v1/models/sales/tasks", params={"unique_id": "001"})
    assert (answer.status_code, answer.json()["suggestions"]) == (404, ["0001"])

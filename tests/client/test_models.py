"""Versions are listed, served by aliases, rolled back, exported and deleted."""

from __future__ import annotations

from pathlib import Path

import httpx2
import polars as pl
import pytest
from fastapi.testclient import TestClient

from ccmtl_client import Client, Conflict
from tests.client.conftest import Told, Working

LOST = httpx2.ReadError("reset")


@pytest.fixture(scope="module")
def two(client: Client, shop: str, sold: str, working: Working) -> str:
    """The model with a second version."""
    with working():
        client.train(sold, shop, lags=2, fusion_strength=2).wait(timeout=240)
    return shop


def test_versions_are_listed_promoted_and_rolled_back(client: Client, two: str) -> None:
    assert [version["version"] for version in client.models.versions(two)] == [2, 1]
    assert client.models.aliases(two) == {}
    client.models.promote(two, 1, "store")
    assert client.models.promote(two, 2, "store")["previous_version"] == 1
    assert client.models.get(f"{two}@store")["version"] == 2
    assert client.models.rollback(two, "store")["version"] == 1
    assert client.models.aliases(two) == {"store": 1}
    with pytest.raises(Conflict):
        client.models.rollback(two, "store")
    with pytest.raises(Conflict):
        client.models.delete(f"{two}/versions/1")


def test_a_rollback_whose_answer_was_lost_is_done_once(
    client: Client, service: TestClient, two: str, pauses: list[float]
) -> None:
    client.models.promote(two, 2, "lost")
    client.models.promote(two, 1, "lost")
    told = Told(None, LOST, behind=service._transport)
    assert Client("http://localhost", transport=told).models.rollback(two, "lost")["version"] == 2
    assert [request.method for request in told.sent] == ["GET", "POST", "POST", "GET"]


def test_weights_come_as_a_table_and_as_a_file(client: Client, two: str, tmp_path: Path) -> None:
    table = client.models.weights(f"{two}/versions/1")
    path = client.models.save_weights(f"{two}/versions/1", tmp_path / "weights.parquet")
    assert table.shape == (30, 4)
    assert pl.read_parquet(path).equals(table)
    assert list(tmp_path.iterdir()) == [path]


def test_a_file_whose_connection_ends_is_written_anew_and_else_not_at_all(
    client: Client, service: TestClient, two: str, tmp_path: Path, pauses: list[float]
) -> None:
    told = Told(httpx2.Response(200, stream=Half()), behind=service._transport)
    again = Client("http://localhost", transport=told)
    path = again.models.save_weights(two, tmp_path / "weights.parquet")
    assert pl.read_parquet(path).height == 30
    never = Client("http://localhost", transport=Told(httpx2.Response(200, stream=Half())), retry_for=0)
    with pytest.raises(Exception, match="No answer"):
        never.models.save_weights(two, tmp_path / "other.parquet")
    assert list(tmp_path.iterdir()) == [path]


class Half(httpx2.SyncByteStream):
    """A body that ends in the middle."""

    def __iter__(self):  # type: ignore[no-untyped-def]
        yield b"PAR1"
        raise LOST


def test_a_model_is_listed_and_deleted(client: Client, two: str) -> None:
    assert two in [model["name"] for model in client.models.list()]
    assert client.models.promote(two, 1)["alias"] == "production"
    for alias in client.models.aliases(two):
        client.models.promote(two, 1, alias)
    client.models.delete(f"{two}/versions/2")
    assert [version["version"] for version in client.models.versions(two)] == [1]

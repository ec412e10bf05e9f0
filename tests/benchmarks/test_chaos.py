"""The check after blows finds what is lost or changed; a few blows leave everything as it was accepted."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from fastapi.testclient import TestClient

from app.main import create_app
from app.settings import Settings
from benchmarks.chaos.__main__ import chaos
from benchmarks.chaos.load import Predicted, Record, Sent
from benchmarks.chaos.verdict import lost_or_changed

ROWS = [("a", "2024-01-01", 1.0), ("a", "2024-01-02", 2.0)]
MORE = [("a", "2024-01-03", 3.0)]


def text(rows: list[tuple[str, str, float]]) -> str:
    return "unique_id,ds,y\n" + "".join(f"{one},{day},{y:g}\n" for one, day, y in rows)


@pytest.fixture
def stored(tmp_path: Path) -> tuple[Settings, Record]:
    """A dataset with a version and an append, and what a client has of them."""
    settings = Settings(data_dir=tmp_path)
    with TestClient(create_app(settings), base_url="http://127.0.0.1") as client:
        client.post("/v1/datasets", json={"name": "shop", "kind": "series", "frequency": "D"})
        for mode, rows in (("full", ROWS), ("append", MORE)):
            sent = {"content": text(rows), "headers": {"Content-Type": "text/csv"}}
            assert client.post(f"/v1/datasets/shop/versions?mode={mode}", **sent).status_code == 201
    return settings, Record([Sent("shop", ROWS, False, 1), Sent("shop", MORE, True, None)])


def test_what_was_accepted_is_found(stored: tuple[Settings, Record]) -> None:
    settings, record = stored
    assert list(lost_or_changed(settings, record, may_be_full=False)) == []


def test_what_is_lost_changed_or_too_much_is_told(stored: tuple[Settings, Record]) -> None:
    settings, record = stored
    record.uploads.append(Sent("shop", ROWS, False, 3))
    record.uploads[0] = replace(record.uploads[0], rows=MORE)
    record.jobs["key"] = ("job_1", "m")
    record.predictions.append(Predicted("m", 1, "a", (1.0,), 2.0))
    assert sorted(lost_or_changed(settings, record, may_be_full=False)) == [
        "job job_1 was accepted and is lost",
        "version 1 of dataset shop has other rows than were sent",
        "version 1 of dataset shop is none of the accepted files",
        "version 1 of m has answered and is not stored",
        "version 3 of dataset shop was accepted and is lost",
    ]
    for segment in settings.data_dir.glob("segments/*/*.parquet"):
        segment.write_bytes(b"")
    told = list(lost_or_changed(settings, record, may_be_full=False))
    assert any("has changed on disk" in what for what in told)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("database", "blow"), [("sqlite", "kill -9 of both APIs"), ("postgresql", "kill -9 of PostgreSQL")]
)
def test_a_few_blows_leave_everything_as_it_was_accepted(database: str, blow: str) -> None:
    assert chaos(database, seed=1, minutes=0, only=[blow], within=240) == []

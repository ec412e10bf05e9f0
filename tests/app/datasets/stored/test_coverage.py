"""What is stored beside a version says of its rows what reading them would say, and is never lost."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from fastapi.testclient import TestClient
from hypothesis import given
from hypothesis import strategies as st
from sqlalchemy import delete, select

from app.datasets.stored.coverage import Coverage, coverage_of, find_coverage, find_summary
from app.datasets.stored.frames import LoadedPanel, load
from app.datasets.upload import upload
from app.persistence.database import Database
from app.persistence.models import DatasetCoverage, DatasetVersion
from app.persistence.storage import Storage
from app.settings import Settings
from tests.app.datasets.conftest import Shop
from tests.app.datasets.stored.test_frames import newest_id
from tests.support.examples import FEW

entries = st.sets(st.tuples(st.sampled_from("abc"), st.integers(1, 20)), min_size=1, max_size=20)
FILLS = [None, {"method": "zero", "start": "dataset"}, {"method": "zero", "start": "series"}]
SALES = {"name": "sales", "kind": "series", "frequency": "D", "aggregation": "sum"}


def tables(coverage: Coverage | None) -> list[Any]:
    assert coverage is not None
    return [coverage.sizes.tolist(), None if coverage.runs is None else coverage.runs.tolist()]


def read_again(shop: Shop, name: str) -> Coverage:
    data = load(shop.app.state.database, shop.app.state.storage, newest_id(shop, name))
    return coverage_of(data.panel if isinstance(data, LoadedPanel) else data)


def stored(shop: Shop, name: str) -> Coverage | None:
    with shop.app.state.database.read() as session:
        return find_coverage(session, newest_id(shop, name))


def forget(database: Database) -> None:
    """Make all versions such as they were before there was a coverage."""
    with database.write() as session:
        session.execute(delete(DatasetCoverage))


def series_csv(pairs: set[tuple[str, int]]) -> str:
    return "unique_id,ds,y\n" + "".join(f"{name},2000-01-{day:02d},1\n" for name, day in pairs)


def rows_csv(pairs: set[tuple[str, int]]) -> str:
    return "unique_id,y,x\n" + "".join(f"{name},{number},1\n" for name, number in pairs)


@FEW
@given(fill=st.sampled_from(FILLS), first=entries, second=entries)
def test_the_coverage_of_series_is_what_reading_them_would_say(
    shop: Shop, fill: dict[str, str] | None, first: set[tuple[str, int]], second: set[tuple[str, int]]
) -> None:
    name = shop.series(aggregation="sum", fill=fill)
    shop.accepted(name, series_csv(first))
    assert tables(stored(shop, name)) == tables(read_again(shop, name))
    if shop.upload(name, series_csv(second), mode="append", overlap="accept").status_code == 201:
        assert tables(stored(shop, name)) == tables(read_again(shop, name))


@FEW
@given(first=entries, second=entries)
def test_the_coverage_of_rows_is_what_reading_them_would_say(
    shop: Shop, first: set[tuple[str, int]], second: set[tuple[str, int]]
) -> None:
    name = shop.regression(["x"])
    shop.accepted(name, rows_csv(first))
    if shop.upload(name, rows_csv(second), mode="append", overlap="accept").status_code == 201:
        assert tables(stored(shop, name)) == tables(read_again(shop, name))


@FEW
@given(first=entries, second=entries, kind=st.sampled_from(["series", "regression"]))
def test_an_append_to_a_version_from_before_there_was_a_coverage_is_the_same(
    shop: Shop, first: set[tuple[str, int]], second: set[tuple[str, int]], kind: str
) -> None:
    answers = []
    for is_old in (False, True):
        name = shop.series(aggregation="mean") if kind == "series" else shop.regression(["x"])
        text = series_csv if kind == "series" else rows_csv
        shop.accepted(name, text(first))
        if is_old:
            forget(shop.app.state.database)
        answer = shop.upload(name, text(second), mode="append", overlap="accept").json()
        answers.append(answer.get("report", answer.get("code")))
    assert answers[0] == answers[1]


def send(client: TestClient, text: str, **params: Any) -> int:
    headers = {"content-type": "text/csv"}
    answer = client.post("/v1/datasets/sales/versions", content=text, headers=headers, params=params)
    return answer.status_code


def parts(database: Database) -> dict[int, set[str]]:
    query = select(DatasetVersion.number, DatasetCoverage.part)
    query = query.join(DatasetCoverage, DatasetCoverage.dataset_version_id == DatasetVersion.id)
    found: dict[int, set[str]] = {}
    with database.read() as session:
        for number, part in session.execute(query):
            found.setdefault(number, set()).add(part)
    return found


def test_every_version_keeps_what_training_asks_and_the_newest_what_appends_ask(
    client: TestClient, database: Database
) -> None:
    client.post("/v1/datasets", json=SALES)
    for mode in ("full", "append", "full"):
        assert send(client, series_csv({("a", len(parts(database)) + 1)}), mode=mode) == 201
    asked = {"sizes", "runs"}
    assert parts(database) == {1: asked, 2: asked, 3: {*asked, "series", "times"}}
    assert client.delete("/v1/datasets/sales").status_code == 204
    assert parts(database) == {}


def test_a_version_and_its_coverage_stand_or_fall_together(
    client: TestClient, database: Database, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    client.post("/v1/datasets", json=SALES)
    assert send(client, series_csv({("a", 1)})) == 201
    before = parts(database)

    def fail(*arguments: Any) -> None:
        raise RuntimeError("the process is gone")

    monkeypatch.setattr(upload, "drop_summary", fail)
    assert send(client, series_csv({("a", 2)}), mode="append") == 500
    assert parts(database) == before
    assert client.get("/v1/datasets/sales").json()["newest_version"] == 1
    assert len(list(settings.data_dir.rglob("*.parquet"))) == 1


def test_an_append_reads_no_rows_of_the_versions_before(
    client: TestClient, database: Database, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    client.post("/v1/datasets", json=SALES)
    assert send(client, series_csv({("a", 1), ("b", 3)})) == 201

    def fail(*arguments: Any) -> None:
        raise AssertionError("a segment was read")

    monkeypatch.setattr(Storage, "verified_segment", fail)
    assert send(client, series_csv({("a", 2)}), mode="append") == 201
    with database.read() as session:
        newest = session.scalars(select(DatasetVersion.id).where(DatasetVersion.number == 2)).one()
        summary = find_summary(session, newest)
    assert summary is not None
    first = int(np.datetime64("2000-01-01").astype(int))
    assert summary.series.rows() == [("a", first, 2), ("b", first + 2, 1)]

"""Files, bytes and tables become versions of datasets, once each."""

from __future__ import annotations

from datetime import date
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Literal

import httpx2
import numpy as np
import polars as pl
import pytest
from fastapi.testclient import TestClient

from ccmtl_client import Client, Conflict, InvalidContent, Progress
from tests.client.conftest import SHOP, Told, problem
from tests.support.pandas_table import NA, Frame

DAILY = {"frequency": "D"}
DAYS = [date(2025, 1, day) for day in (1, 2)]


class Column:
    """What is used of a column of pandas."""

    def __init__(self, values: Any, tz: str | None = None) -> None:
        self.dtype, self._values = SimpleNamespace(tz=tz), np.asarray(values)

    def to_numpy(self) -> Any:
        return self._values


def pandas_frame(**columns: Any) -> Frame:
    return Frame({name: v if isinstance(v, Column) else Column(v) for name, v in columns.items()})


def test_a_file_is_streamed_with_progress_in_bytes(client: Client) -> None:
    seen: list[Progress] = []
    outcome = client.datasets.upload("file", SHOP, definition=DAILY, progress=seen.append)
    assert (outcome["version"], outcome["report"]["rows"]) == (1, 1680)
    assert [(step.done, step.total) for step in seen][-1] == (SHOP.stat().st_size,) * 2
    assert seen[-1].task == "checking"


def test_the_body_is_sent_piece_by_piece_with_its_length(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ccmtl_client.datasets.PIECE_BYTES", 4)
    path = tmp_path / "a.csv"
    path.write_bytes(b"0123456789")
    told = Told({"version": 1})
    seen: list[Progress] = []
    Client("http://service", transport=told).datasets.upload("a", path, progress=seen.append)
    assert [step.done for step in seen] == [4, 8, 10]
    assert told.sent[0].headers["Content-Length"] == "10"
    assert "Transfer-Encoding" not in told.sent[0].headers
    assert told.sent[0].content == b"0123456789"


@pytest.mark.parametrize("table", [
    pl.DataFrame({"unique_id": ["01", "01"], "ds": DAYS, "y": [1.5, 2.0]}),
    pandas_frame(unique_id=np.array(["01", "01"], dtype=object), ds=np.array(DAYS, dtype="M8[ns]"),
                 y=[1.5, 2.0]),
    b"unique_id,ds,y\n01,2025-01-01,1.5\n01,2025-01-02,2\n",
    {"unique_id": ["01", "01"], "ds": DAYS, "y": [1.5, 2.0]},
], ids=["polars", "pandas", "bytes", "mapping"])  # fmt: skip
def test_tables_of_all_kinds_are_uploaded(table: Any, client: Client, request: pytest.FixtureRequest) -> None:
    name = request.node.callspec.id
    report = client.datasets.upload(name, table, definition=DAILY)["report"]
    assert (report["rows"], report["first"], report["last"]) == (2, "2025-01-01", "2025-01-02")
    assert client.datasets.get(name)["newest_version"] == 1


def test_what_pandas_has_no_value_for_is_missing_and_not_guessed(client: Client) -> None:
    y = np.array([1.0, NA], dtype=object)
    table = pandas_frame(unique_id=np.array(["a", "a"], dtype=object), ds=np.array(DAYS, "M8[ns]"), y=y)
    with pytest.raises(InvalidContent) as caught:
        client.datasets.upload("missing", table, definition=DAILY)
    assert [(fault["row"], fault["column"]) for fault in caught.value.faults] == [(2, "y")]


def test_what_is_no_table_is_refused(client: Client) -> None:
    with pytest.raises(TypeError, match="a table of polars, pandas or Arrow is needed, not a int"):
        client.datasets.upload("shop", 7)
    with pytest.raises(TypeError, match="column 'ds' has times in a zone"):
        client.datasets.upload("shop", pandas_frame(ds=Column([0], "Europe/Berlin")))
    with pytest.raises(FileNotFoundError):
        client.datasets.upload("shop", "no-such.csv")


def test_a_dataset_is_defined_once_and_not_otherwise(client: Client) -> None:
    first = client.datasets.create("twice", frequency="D", fill={"method": "zero"})
    assert client.datasets.create("twice", frequency="D", fill={"method": "zero"}) == first
    with pytest.raises(Conflict):
        client.datasets.create("twice", frequency="W")
    with pytest.raises(InvalidContent) as caught:
        client.datasets.create("unheard", frequency="often")
    assert [fault["location"] for fault in caught.value.faults] == ["body.frequency"]


def test_what_is_known_of_a_file_is_stated(client: Client) -> None:
    content = "unique_id|ds|y\na|2025-01-01|1,5\n".encode("utf-16")
    stated = {"delimiter": "|", "decimal": ",", "encoding": "utf-16"}
    dry = client.datasets.upload("stated", content, definition=DAILY, dry_run=True, **stated)
    assert dry["version"] is None
    assert dry["report"]["dialect"]["decimal"]["origin"] == "stated"
    assert client.datasets.get("stated")["newest_version"] is None


@pytest.mark.parametrize("mode", ["full", "append"])
def test_an_upload_whose_answer_was_lost_is_stored_once(
    client: Client, service: TestClient, pauses: list[float], mode: Literal["full", "append"]
) -> None:
    name = f"lost-{mode}"
    client.datasets.upload(name, b"unique_id,ds,y\na,2025-01-01,1\n", definition=DAILY)
    lost = Told(httpx2.ReadError("reset"), behind=service._transport)
    flaky = Client("http://localhost", transport=lost)
    more = b"unique_id,ds,y\na,2025-01-02,2\n"
    outcome = flaky.datasets.upload(name, more, mode=mode)
    assert (outcome["version"], outcome["report"]["rows"]) == (2, 1)
    assert [version["version"] for version in client.datasets.versions(name)] == [2, 1]
    assert len(pauses) == 1
    with pytest.raises(Conflict, match="already_appended"):  # a second delivery by another call
        client.datasets.upload(name, more, mode="append")


def test_an_upload_that_is_sent_again_begins_anew(pauses: list[float], tmp_path: Path) -> None:
    path = tmp_path / "a.csv"
    path.write_bytes(b"0123456789")
    told = Told(httpx2.WriteError("broken pipe"), problem(503, "database_unavailable"), {"version": 1})
    Client("http://service", transport=told).datasets.upload("a", path)
    assert [request.content for request in told.sent] == [b"0123456789"] * 3


def test_a_dataset_is_listed_and_deleted(client: Client) -> None:
    client.datasets.create("gone", "regression", columns={"features": ["price"]})
    assert "gone" in [dataset["name"] for dataset in client.datasets.list()]
    client.datasets.delete("gone")
    assert "gone" not in [dataset["name"] for dataset in client.datasets.list()]

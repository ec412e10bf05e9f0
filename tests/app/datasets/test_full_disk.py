"""A data folder that is full or cannot be used: an answer that says so, and nothing left behind."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import polars as pl
import pytest

from app.datasets.segments import write_segment
from app.storage import Storage
from tests.app.datasets.conftest import Shop

ROWS = "unique_id,ds,y\na,2024-01-01,1\na,2024-01-02,2\n"
ANSWERS = {
    errno.ENOSPC: (507, "storage_full"),
    errno.EDQUOT: (507, "storage_full"),
    errno.EROFS: (503, "storage_unavailable"),
    errno.EACCES: (503, "storage_unavailable"),
}


@pytest.mark.parametrize("number", ANSWERS)
@pytest.mark.parametrize("step", ["receive", "write", "commit"])
def test_a_folder_that_cannot_be_written_is_named(
    shop: Shop, monkeypatch: pytest.MonkeyPatch, step: str, number: int
) -> None:
    def fail(*arguments: object, **options: object) -> None:
        raise OSError(number, os.strerror(number))

    name = shop.series()
    before = shop.files()
    owner, attribute = {
        "receive": ("app.datasets.body.BodyFile", "write"),
        "write": (pl.DataFrame, "write_parquet"),
        "commit": (Storage, "commit"),
    }[step]
    if isinstance(owner, str):
        monkeypatch.setattr(f"{owner}.{attribute}", fail)
    else:
        monkeypatch.setattr(owner, attribute, fail)
    answer = shop.upload(name, ROWS)
    assert (answer.status_code, answer.json()["code"]) == ANSWERS[number], answer.text
    assert answer.headers["content-type"] == "application/problem+json"
    assert shop.files() == before
    assert shop.client.get(f"/v1/datasets/{name}").json()["newest_version"] is None


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="the system has no /dev/full")
def test_the_writer_of_segments_tells_a_full_disk() -> None:
    with pytest.raises(OSError) as caught:
        write_segment(pl.DataFrame({"y": range(1000)}), Path("/dev/full"))
    assert caught.value.errno == errno.ENOSPC

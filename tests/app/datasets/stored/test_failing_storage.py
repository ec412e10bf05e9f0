"""A data folder that is full or cannot be used: an answer that says so, and nothing left behind."""

from __future__ import annotations

import errno
import os
from pathlib import Path

import polars as pl
import pytest

from app.datasets.repository import segments_of
from app.datasets.stored.segment_file import write_segment
from app.persistence.storage import Storage
from ccmtl_core.base.system_errors import naming_system_errors
from tests.app.datasets.conftest import Shop
from tests.app.datasets.stored.test_coverage import forget

ROWS = "unique_id,ds,y\na,2024-01-01,1\na,2024-01-02,2\n"
ANSWERS = {
    errno.ENOSPC: (507, "storage_full"),
    errno.EDQUOT: (507, "storage_full"),
    errno.EROFS: (503, "storage_unavailable"),
    errno.EFBIG: (507, "storage_full"),
    errno.EACCES: (503, "storage_unavailable"),
    errno.ENOENT: (503, "storage_unavailable"),
    errno.EMFILE: (503, "storage_unavailable"),
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
        "receive": ("app.datasets.receive.BodyFile", "write"),
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
    assert answer.headers.get("retry-after") == ("5" if answer.status_code == 503 else None)
    assert shop.files() == before
    assert shop.client.get(f"/v1/datasets/{name}").json()["newest_version"] is None


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="the system has no /dev/full")
def test_the_writer_of_segments_tells_a_full_disk() -> None:
    with pytest.raises(OSError) as caught:
        write_segment(pl.DataFrame({"y": range(1000)}), Path("/dev/full"))
    assert caught.value.errno == errno.ENOSPC


@pytest.mark.parametrize("failure", [pl.exceptions.ComputeError, OSError])
@pytest.mark.parametrize("number", [errno.EIO, errno.ENOSPC])
def test_a_disk_that_fails_is_not_taken_for_a_fault_of_the_file(
    shop: Shop, monkeypatch: pytest.MonkeyPatch, failure: type[Exception], number: int
) -> None:
    def fail(*arguments: object, **options: object) -> pl.DataFrame:
        raise failure(f"{os.strerror(number)} (os error {number}): /some/file")

    name = shop.series()
    monkeypatch.setattr(pl.LazyFrame, "collect", fail)
    answer = shop.upload(name, ROWS)
    expected = ANSWERS.get(number, (503, "storage_unavailable"))
    assert (answer.status_code, answer.json()["code"]) == expected, answer.text


@pytest.mark.parametrize("failure", [pl.exceptions.ComputeError, OSError])
def test_a_disk_that_fails_under_a_stored_version_is_named(
    shop: Shop, monkeypatch: pytest.MonkeyPatch, failure: type[Exception]
) -> None:
    def fail(*arguments: object, **options: object) -> pl.DataFrame:
        raise failure("Input/output error (os error 5)")

    name = shop.series()
    shop.accepted(name, ROWS)
    forget(shop.app.state.database)  # else the stored version is not read
    monkeypatch.setattr(pl, "read_parquet", fail)
    answer = shop.upload(name, "unique_id,ds,y\na,2024-01-03,1\n", mode="append")
    assert (answer.status_code, answer.json()["code"]) == (503, "storage_unavailable")


def test_a_reader_that_fails_without_the_system_keeps_its_own_error() -> None:
    with pytest.raises(pl.exceptions.ComputeError, match="no such thing"), naming_system_errors():
        raise pl.exceptions.ComputeError("no such thing")
    with pytest.raises(FileNotFoundError) as caught, naming_system_errors():
        open("/no/such/file")  # noqa: SIM115
    assert caught.value.filename == "/no/such/file"


def test_a_stored_file_that_was_changed_is_named_with_the_remedy(shop: Shop) -> None:
    name = shop.series()
    shop.accepted(name, "unique_id,ds,y\ndamaged,2024-01-01,1\ndamaged,2024-01-02,2\n")
    version = shop.client.get(f"/v1/datasets/{name}/versions/1").json()["id"]
    with shop.app.state.database.read() as session:
        digest = segments_of(session, version)[0].sha256
    path = shop.app.state.storage.segment_path(digest)
    intact = path.read_bytes()
    path.write_bytes(intact[:-1])
    forget(shop.app.state.database)  # else the stored version is not read
    answer = shop.upload(name, "unique_id,ds,y\na,2024-01-03,1\n", mode="append")
    path.write_bytes(intact)
    assert (answer.status_code, answer.json()["code"]) == (500, "dataset_damaged"), answer.text
    assert "upload the data again" in answer.json()["detail"]

"""Bodies that are compressed, cut off, too large or not what their headers say; and clients that go away."""

from __future__ import annotations

import asyncio
import gzip
import io
import json
import zipfile
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import pytest
import zstandard

from app.datasets import receive as receiving
from app.datasets.receive import EXPANSION_FROM, Bounds, receive
from app.http.errors import PayloadTooLarge
from app.http.request_body import decoder_for
from tests.app.datasets.conftest import Shop

TEXT = b"unique_id,ds,y\n" + b"".join(b"a%d,2000-01-01,%d\n" % (i, i) for i in range(2000))
ENCODE = {"gzip": gzip.compress, "zstd": zstandard.compress}


@pytest.mark.parametrize("encoding", ["gzip", "x-gzip", "zstd", "identity", "GZIP"])
def test_an_encoded_body_is_decoded(shop: Shop, encoding: str) -> None:
    encode = ENCODE.get(encoding.lower().removeprefix("x-"), bytes)
    assert shop.accepted(shop.series(), encode(TEXT), encoding=encoding)["rows"] == 2000


@pytest.mark.parametrize("encoding", ["gzip", "zstd"])
def test_several_members_are_one_file(shop: Shop, encoding: str) -> None:
    body = b"".join(ENCODE[encoding](part) for part in (TEXT[:777], b"", TEXT[777:]))
    assert shop.accepted(shop.series(), body, encoding=encoding)["rows"] == 2000


@pytest.mark.parametrize("encoding", ["gzip", "zstd"])
@pytest.mark.parametrize("missing", [1, 4, 100])
def test_a_cut_off_encoded_body_is_refused(shop: Shop, encoding: str, missing: int) -> None:
    body = ENCODE[encoding](TEXT)[:-missing]
    problem = shop.refused(shop.series(), body, status=400, encoding=encoding)
    assert problem["code"] == "upload_cut_off"


@pytest.mark.parametrize("encoding", ["gzip", "zstd"])
def test_a_body_that_is_not_encoded_as_it_says_is_refused(shop: Shop, encoding: str) -> None:
    for body in (TEXT, ENCODE[encoding](TEXT) + b"garbage"):
        problem = shop.refused(shop.series(), body, status=400, encoding=encoding)
        assert problem["code"] == "undecodable_body"


@pytest.mark.parametrize("encoding", ["gzip", "zstd"])
def test_a_bomb_is_stopped_at_the_limit(shop: Shop, encoding: str) -> None:
    body = ENCODE[encoding](b"0" * 300_000_000)
    assert len(body) < 1_000_000
    problem = shop.refused(shop.series(), body, status=413, encoding=encoding)
    assert problem["code"] == "upload_too_large"


@pytest.mark.parametrize("encoding", ["gzip", "zstd"])
def test_a_bomb_is_stopped_by_how_much_it_expands(tmp_path: Path, encoding: str) -> None:
    async def body() -> AsyncIterator[bytes]:
        packed = ENCODE[encoding](b"0" * 300_000_000)
        yield packed

    path, bounds = tmp_path / "upload", Bounds(max_bytes=10**12, max_expansion=200)
    with pytest.raises(PayloadTooLarge, match="more than 200 times its size"):
        asyncio.run(receive(body(), None, path, decoder_for(encoding), bounds))
    assert path.stat().st_size <= EXPANSION_FROM + 2**25


@pytest.mark.parametrize("packing", ["gzip", "zstd", "zip"])
def test_a_packed_file_is_stopped_by_how_much_it_expands(
    shop: Shop, monkeypatch: pytest.MonkeyPatch, packing: str
) -> None:
    text = b"unique_id,ds,y\n" + 100_000 * b"a,2024-01-01,1\n"
    with zipfile.ZipFile(archive := io.BytesIO(), "w", zipfile.ZIP_DEFLATED) as opened:
        opened.writestr("sales.csv", text)
    packed = archive.getvalue() if packing == "zip" else ENCODE[packing](text)
    monkeypatch.setattr(receiving, "EXPANSION_FROM", 1000)
    problem = shop.refused(shop.series(), packed, status=413)
    assert problem["code"] == "expands_too_much"
    allowing = shop.app.state.settings.model_copy(update={"max_expansion": len(text)})
    monkeypatch.setitem(shop.app.state._state, "settings", allowing)
    assert shop.refused(shop.series(), packed)["errors"][0]["code"] == "duplicate_period"


def test_an_encoded_body_that_holds_nothing_is_an_empty_file(shop: Shop) -> None:
    for encoding, encode in ENCODE.items():
        problem = shop.refused(shop.series(), encode(b""), encoding=encoding)
        assert problem["errors"][0]["code"] == "empty_file"
        problem = shop.refused(shop.series(), b"", encoding=encoding)
        assert problem["errors"][0]["code"] == "empty_file"


def test_empty_frames_without_end_count_towards_the_limit(shop: Shop) -> None:
    body = gzip.compress(b"") * 450_000
    assert shop.refused(shop.series(), body, status=413, encoding="gzip")["code"] == "upload_too_large"


def test_a_streamed_body_needs_no_length(shop: Shop) -> None:
    def pieces() -> Iterator[bytes]:
        for start in range(0, len(TEXT), 100):
            yield TEXT[start : start + 100]

    answer = shop.upload(shop.series(), pieces())
    assert answer.status_code == 201
    assert answer.json()["report"]["rows"] == 2000


def test_a_body_over_the_limit_is_refused_by_its_length_and_by_its_bytes(shop: Shop) -> None:
    body = b"x" * (8 * 1024**2 + 1)
    assert shop.refused(shop.series(), body, status=413)["code"] == "upload_too_large"
    name = shop.series()
    answer = shop.upload(name, iter([body[:1000]] * 9000))
    assert answer.status_code == 413
    assert shop.client.get(f"/v1/datasets/{name}").json()["newest_version"] is None


@pytest.mark.parametrize(
    "content_type", ["application/json", "text/plain", "", "text/csvx", "multipart/form-data"]
)
def test_another_content_type_is_refused_with_those_that_are_read(shop: Shop, content_type: str) -> None:
    problem = shop.refused(shop.series(), TEXT, content_type, status=415)
    assert problem["code"] == "unsupported_media_type"
    assert "text/csv" in problem["detail"]


@pytest.mark.parametrize(
    "content_type", ["text/csv; charset=utf-8", "TEXT/CSV; header=present", 'text/csv;charset="UTF-8"']
)
def test_parameters_of_the_content_type_are_understood(shop: Shop, content_type: str) -> None:
    assert shop.accepted(shop.series(), TEXT, content_type)["rows"] == 2000


def test_another_charset_is_refused(shop: Shop) -> None:
    problem = shop.refused(shop.series(), TEXT, "text/csv; charset=no-such", status=415)
    assert problem["code"] == "unsupported_charset"


def test_a_charset_is_the_encoding(shop: Shop) -> None:
    text = "unique_id,ds,y\nCafé,2024-01-01,1\n".encode("windows-1252")
    assert shop.accepted(shop.series(), text, "text/csv; charset=windows-1252")["rows"] == 1


@pytest.mark.parametrize("encoding", ["br", "deflate", "gzip, gzip", "gzip,zstd"])
def test_another_encoding_is_refused(shop: Shop, encoding: str) -> None:
    problem = shop.refused(shop.series(), TEXT, status=415, encoding=encoding)
    assert problem["code"] == "unsupported_content_encoding"


def test_what_is_read_is_named_to_programs_too(shop: Shop) -> None:
    name = shop.series()
    assert shop.upload(name, TEXT, encoding="deflate").headers["accept-encoding"] == "gzip, zstd, identity"
    named = shop.upload(name, TEXT, "text/plain").headers["accept"].split(", ")
    assert {"text/csv", "application/vnd.apache.parquet"} <= set(named)
    answer = shop.client.post("/v1/datasets", content=b"a", headers={"Content-Type": "text/csv"})
    assert (answer.status_code, answer.headers["accept"]) == (415, "application/json")


def test_an_unknown_dataset_is_refused_with_near_matches(shop: Shop) -> None:
    name = shop.series()
    answer = shop.upload(name + "x", TEXT)
    assert answer.status_code == 404
    assert name in answer.json()["suggestions"]


def asgi_upload(shop: Shop, name: str, messages: list[dict[str, Any]], headers: dict[str, str]) -> Any:
    """Send raw messages to the application, as a server would; return (status, problem)."""
    scope = {
        "type": "http",
        "asgi": {"version": "3.0"},
        "http_version": "1.1",
        "method": "POST",
        "scheme": "http",
        "path": f"/v1/datasets/{name}/versions",
        "raw_path": f"/v1/datasets/{name}/versions".encode(),
        "query_string": b"",
        "root_path": "",
        "headers": [(k.encode(), v.encode()) for k, v in {"content-type": "text/csv", **headers}.items()],
        "client": ("test", 1),
        "server": ("test", 80),
    }
    sent: list[Any] = []

    async def receive() -> Any:
        return messages.pop(0) if messages else {"type": "http.disconnect"}

    async def send(message: Any) -> None:
        sent.append(message)

    asyncio.run(shop.app(scope, receive, send))
    body = b"".join(m.get("body", b"") for m in sent)
    return sent[0]["status"], json.loads(body)


def body_message(body: bytes, more: bool) -> dict[str, Any]:
    return {"type": "http.request", "body": body, "more_body": more}


@pytest.mark.parametrize("after", [0, 1, len(TEXT) // 2, len(TEXT)])
def test_a_client_that_disconnects_leaves_nothing_behind(shop: Shop, after: int) -> None:
    name, before = shop.series(), shop.files()
    status, problem = asgi_upload(shop, name, [body_message(TEXT[:after], more=True)], {})
    assert (status, problem["code"]) == (400, "upload_cut_off")
    assert shop.files() == before
    assert shop.client.get(f"/v1/datasets/{name}").json()["newest_version"] is None


@pytest.mark.parametrize("declared", [len(TEXT) + 1, len(TEXT) - 1])
def test_a_body_of_another_length_than_announced_is_refused(shop: Shop, declared: int) -> None:
    name, before = shop.series(), shop.files()
    headers = {"content-length": str(declared)}
    status, problem = asgi_upload(shop, name, [body_message(TEXT, more=False)], headers)
    assert (status, problem["code"]) == (400, "upload_cut_off")
    assert f"{len(TEXT)} of {declared} bytes" in problem["detail"]
    assert shop.files() == before


def test_a_length_that_is_no_number_is_refused(shop: Shop) -> None:
    status, problem = asgi_upload(
        shop, shop.series(), [body_message(TEXT, more=False)], {"content-length": "many"}
    )
    assert (status, problem["code"]) == (400, "invalid_content_length")

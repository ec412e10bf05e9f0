"""What attackers and broken clients send: each is refused with a 4xx, and the process is well afterwards."""

from __future__ import annotations

import gzip
import io
import json
import socket
import zipfile
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from urllib.parse import quote

import httpx2
import polars as pl
import pytest
import zstandard
from fastapi import FastAPI
from fastapi.testclient import TestClient

from app.main import create_app
from app.persistence.database import Database
from app.settings import Settings
from tests.support.models import add_version, trained
from tests.support.processes import PATIENCE
from tests.support.served import Address, served

MOST = 2 * 1024**2
GOOD = b"unique_id,ds,y\na,2025-01-01,1\nb,2025-01-01,2\n"
CSV, PARQUET = "text/csv", "application/vnd.apache.parquet"
ANY, LINES = "application/octet-stream", "application/x-ndjson"
STREAM = "application/vnd.apache.arrow.stream"


@pytest.fixture(scope="module")
def app(tmp_path_factory: pytest.TempPathFactory) -> FastAPI:
    folder = tmp_path_factory.mktemp("hostile")
    return create_app(Settings(data_dir=folder, max_upload_bytes=MOST, max_request_bytes=MOST))


@pytest.fixture(scope="module")
def client(app: FastAPI) -> Iterator[TestClient]:
    with TestClient(app, "http://localhost", raise_server_exceptions=False) as client:
        answer = client.post("/v1/datasets", json={"name": "shop", "kind": "series", "frequency": "D"})
        assert answer.status_code == 201, answer.text
        database: Database = app.state.database
        add_version(database, trained([[1.0]], ["a"]), "m")
        yield client


@pytest.fixture(autouse=True)
def _well_afterwards(client: TestClient, app: FastAPI) -> Iterator[None]:
    folder: Path = app.state.settings.data_dir
    before = set(folder.rglob("*"))
    yield
    assert client.get("/readyz").status_code == 200
    assert {path for path in folder.rglob("*") if "ccmtl.db" not in path.name} <= before


DEEP = 100_000
JSON_BODIES = {
    "nothing": b"",
    "cut off": b'{"name": "x", "kind"',
    "a NUL": b"\x00",
    "NULs in a text": b'{"name": "a\x00b", "kind": "series"}',
    "an escaped NUL": b'{"name": "a\\u0000b", "kind": "series", "frequency": "D"}',
    "half a surrogate pair": b'{"name": "\\ud800", "kind": "series", "frequency": "D"}',
    "bytes that are no UTF-8": b'{"name": "\xff\xfe"}',
    "two encodings": b'{"name": "\xc3\xa9\xe9"}',
    "UTF-16": '{"name": "x"}'.encode("utf-16"),
    "UTF-32": '{"name": "x"}'.encode("utf-32"),
    "deep lists": b"[" * DEEP,
    "deep lists that end": b'{"rows": ' + b"[" * DEEP + b"]" * DEEP + b"}",
    "deep objects": b'{"a":' * DEEP + b"1" + b"}" * DEEP,
    "a number of many digits": b'{"rows": ' + b"9" * 100_000 + b"}",
    "numbers that JSON has not": b'{"rows": [{"unique_id": "a", "features": {"lag_1": NaN}}]}',
    "infinity": b'{"rows": [{"unique_id": "a", "features": {"lag_1": -Infinity}}]}',
    "more than a float holds": b'{"rows": [{"unique_id": "a", "features": {"lag_1": 1e999}}]}',
    "a key twice": b'{"name": "x", "name": "y"}',
    "no object": b'"x"',
    "wrong types": b'{"name": [], "kind": {}, "rows": 1, "unique_id": 2, "dataset": true, "version": {}}',
    "very many keys": b"{" + b",".join(b'"%d":0' % i for i in range(20_000)) + b"}",
    "two documents": b"{}{}",
    "script": b"<script>alert(1)</script>",
    "XML that grows": b'<!DOCTYPE x [<!ENTITY a "a"><!ENTITY b "&a;&a;">]><x>&b;</x>',
    "a pickle": b"\x80\x04cos\nsystem\n(S'true'\ntR.",
}
JSON_PLACES = [
    ("post", "/v1/datasets"),
    ("post", "/v1/training-jobs"),
    ("post", "/v1/keys"),
    ("post", "/v1/models/m/predict"),
    ("post", "/v1/models/m/forecast"),
    ("post", "/v1/models/m/forecasts"),
    ("post", "/v1/models/m/totals"),
    ("post", "/v1/models/m/contributions"),
    ("put", "/v1/models/m/aliases/stable"),
    ("put", "/v1/webhooks/planning"),
    ("patch", "/v1/webhooks/planning"),
    ("put", "/v1/schedules/nightly"),
    ("patch", "/v1/schedules/nightly"),
    ("post", "/v2/models/m/infer"),
    ("post", "/v1/models/m/invocations"),
]


@pytest.mark.parametrize("body", JSON_BODIES.values(), ids=JSON_BODIES)
def test_json_that_is_none_or_means_nothing(client: TestClient, body: bytes) -> None:
    for method, path in JSON_PLACES:
        answer = client.request(method, path, content=body, headers={"Content-Type": "application/json"})
        assert 400 <= answer.status_code < 500, (path, answer.status_code, answer.text[:500])
        assert answer.headers["content-type"] == "application/problem+json"
        problem = json.loads(answer.text, parse_constant=lambda name: pytest.fail(f"{name} in an answer"))
        assert problem["code"]
        assert len(answer.content) < 100_000


@pytest.mark.parametrize(("method", "path"), JSON_PLACES)
def test_a_body_over_the_limit(client: TestClient, method: str, path: str) -> None:
    body = b'{"name": "' + b"x" * MOST + b'"}'
    answer = client.request(method, path, content=body, headers={"Content-Type": "application/json"})
    assert (answer.status_code, answer.json()["code"]) == (413, "body_too_large")


TRICKS = [
    "../../etc/passwd",
    "..\\..\\windows",
    "/etc/passwd",
    "....//",
    "a\x00b",
    "' OR '1'='1",
    "x'; DROP TABLE dataset; --",
    "1 UNION SELECT * FROM api_key",
    "{{7*7}}",
    "${jndi:ldap://127.0.0.1/x}",
    "$(touch /tmp/x)",
    "`id`",
    "%s%s%s%n",
    "\r\nSet-Cookie: a=b",
    "<script>alert(1)</script>",
    "con",
    "a" * 10_000,
    "‮txt.exe",
    "😀" * 50,
    ".",
    "",
]


@pytest.mark.parametrize("trick", TRICKS)
def test_names_that_play_tricks(client: TestClient, trick: str) -> None:
    quoted = quote(trick, safe="")
    for path in (
        f"/v1/datasets/x{quoted}",
        f"/v1/models/x{quoted}",
        f"/v1/models/x{quoted}/versions",
        f"/v1/training-jobs/x{quoted}",
        f"/v1/keys/x{quoted}",
        f"/v1/webhooks/x{quoted}",
        f"/v1/webhooks/x{quoted}/deliveries",
        f"/v1/schedules/x{quoted}",
        f"/v1/models/m/aliases/x{quoted}",
        f"/v1/models/m/tasks?unique_id=x{quoted}",
        f"/v2/models/x{quoted}",
        f"/docs/files/x{quoted}",
        f"/v1/models?cursor={quoted}x",
        f"/v1/training-jobs?state={quoted}x",
        f"/v1/models/m/forecast?unique_id=x{quoted}",
    ):
        answer = client.get(path)
        assert 400 <= answer.status_code < 500, (path, answer.status_code, answer.text[:300])
        assert answer.headers["content-type"] == "application/problem+json"
        assert "set-cookie" not in answer.headers
        assert "49" not in answer.json()["detail"]
    for method, path, body in (
        ("put", f"/v1/webhooks/{quoted}", {"url": "https://shop.example/", "events": ["job.failed"]}),
        (
            "put",
            f"/v1/schedules/{quoted}",
            {"daily": "02:30", "training": {"dataset": trick, "model": trick}},
        ),
        ("post", "/v1/training-jobs", {"dataset": trick, "model": trick, "horizon": 1}),
        ("put", "/v1/webhooks/w", {"url": trick, "events": ["job.failed"]}),
    ):
        if trick in ("con", "") and method == "put":  # a plain word, or another address
            continue
        answer = client.request(method, path, json=body)
        assert 400 <= answer.status_code < 500, (path, answer.status_code, answer.text[:300])
    made = client.post("/v1/datasets", json={"name": trick, "kind": "series", "frequency": "D"})
    if made.status_code == 201:  # a plain word after all
        assert trick == "con"
        assert client.delete(f"/v1/datasets/{quoted}").status_code == 204
    else:
        assert made.status_code == 422


def test_every_method_that_is_not_there_is_named_with_those_that_are(client: TestClient) -> None:
    for method in ("OPTIONS", "PATCH", "TRACE", "PROPFIND"):
        answer = client.request(method, "/v1/datasets/shop")
        assert answer.status_code == 405, method
        assert answer.headers["allow"] == "GET, HEAD, DELETE"
    assert client.get("/v1/nothing").json()["code"] == "route_not_found"


@cache
def bomb(encode: str) -> bytes:
    plain = b"unique_id,ds,y\n" + b"a,2025-01-01,1\n" * (60 * MOST // 15)
    return gzip.compress(plain) if encode == "gzip" else zstandard.compress(plain)


def archive(*members: tuple[str, bytes]) -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as zipped:
        for name, content in members:
            zipped.writestr(name, content)
    return file.getvalue()


def workbook(sheet: bytes) -> bytes:
    kind = b'<Types><Override PartName="/xl/workbook.xml" ContentType="application/x"/></Types>'
    named = b'<workbook><sheets><sheet name="S" sheetId="1"/></sheets></workbook>'
    members = ("[Content_Types].xml", kind), ("xl/workbook.xml", named), ("xl/worksheets/sheet1.xml", sheet)
    return archive(*members)


def arrow(frame: pl.DataFrame, *, stream: bool) -> bytes:
    file = io.BytesIO()
    frame.write_ipc_stream(file) if stream else frame.write_ipc(file)
    return file.getvalue()


def parquet(frame: pl.DataFrame) -> bytes:
    file = io.BytesIO()
    frame.write_parquet(file, compression="uncompressed")
    return file.getvalue()


SALES = pl.DataFrame({"unique_id": ["a"], "ds": ["2025-01-01"], "y": [1.0], "yy": [2.0]})
File = tuple[bytes | Callable[[], bytes], str, str | None]
FILES: dict[str, File] = {
    "nothing": (b"", CSV, None),
    "a NUL": (b"\x00", CSV, None),
    "NULs among rows": (GOOD + b"a,2025-01-02,\x001\n", CSV, None),
    "two encodings": (GOOD + "é,2025-01-02,1\n".encode("latin-1") + "é,2025-01-02,1\n".encode(), CSV, None),
    "a million columns": (b",".join(b"%d" % i for i in range(280_000)) + b"\n", CSV, None),
    "a million columns without names": (b"," * 1_000_000 + b"\n1\n", CSV, None),
    "a row of many cells": (GOOD + b"," * 1_000_000 + b"\n", CSV, None),
    "one long cell": (GOOD + b"a" * 1_500_000 + b",2025-01-02,1\n", CSV, None),
    "a quote that does not end": (GOOD + b'"a,2025-01-02,1\n' * 1000, CSV, None),
    "wrong types": (b"unique_id,ds,y\n" + b"a,b,c\n" * 1000, CSV, None),
    "numbers that are none": (GOOD + b"a,2025-01-02,nan\nb,2025-01-02,-inf\nb,2025-01-03,1e999\n", CSV, None),
    "dates beyond all": (GOOD + b"a,99999-01-01,1\nb,-2025-01-01,1\na,0000-00-00,1\n", CSV, None),
    "a gzip bomb": (lambda: bomb("gzip"), CSV, "gzip"),
    "a zstd bomb": (lambda: bomb("zstd"), CSV, "zstd"),
    "a bomb in a bomb": (lambda: gzip.compress(bomb("gzip")), CSV, "gzip"),
    "a bomb in an archive": (lambda: archive(("a.csv", b"a,2025-01-01,1\n" * (MOST // 4))), ANY, None),
    "bombs in archives in archives": (
        lambda: archive(*((f"{n}.zip", archive(("a.csv", b"a" * 2 * MOST))) for n in range(3))),
        ANY,
        None,
    ),
    "an archive of very many files": (lambda: archive(*((f"{n}.csv", b"") for n in range(1001))), ANY, None),
    "an archive that is cut off": (archive(("a.csv", GOOD))[:-20], ANY, None),
    "a workbook that is a bomb": (lambda: workbook(b"<row/>" * MOST), ANY, None),
    "a workbook that is cut off": (workbook(b"<row/>" * 100)[:-30], ANY, None),
    "lines of JSON that are deep": (b'{"unique_id": ' + b"[" * DEEP + b"]" * DEEP + b"}\n", LINES, None),
    "lines of JSON that are cut off": (b'{"unique_id": "a", "ds"', LINES, None),
    "lines of JSON with a NUL": (b'{"unique_id": "a\\u0000", "ds": "2025-01-01", "y": 1}\n', LINES, None),
    "lines of JSON of other types": (b'{"unique_id": {"$gt": ""}, "ds": [], "y": {}}\n', LINES, None),
    "Arrow that is cut off": (arrow(SALES, stream=False)[:-20], ANY, None),
    "an Arrow stream that is cut off": (arrow(SALES, stream=True)[:-150], STREAM, None),
    "an Arrow stream of nonsense": (b"\xff\xff\xff\xff\xf0\xff\xff\x7f" + b"\x00" * 64, STREAM, None),
    "gzip that is cut off": (gzip.compress(GOOD)[:-5], CSV, "gzip"),
    "zstd that is cut off": (zstandard.compress(GOOD)[:-2], CSV, "zstd"),
    "no gzip": (GOOD, CSV, "gzip"),
    "gzip with changed bytes": (
        gzip.compress(GOOD)[:12] + b"\xff\xff" + gzip.compress(GOOD)[14:],
        CSV,
        "gzip",
    ),
    "an encoding of its own": (GOOD, CSV, "br"),
    "two encodings at once": (GOOD, CSV, "gzip, zstd"),
    "another type": (GOOD, "application/x-python-pickle", None),
    "no type": (GOOD, "", None),
    "a charset that is none": (GOOD, "text/csv; charset=none-such", None),
    "Parquet that is cut off": (parquet(SALES)[:-9], PARQUET, None),
    "Parquet with a footer of nothing": (b"PAR1" + b"\xff" * 8 + b"PAR1", PARQUET, None),
    "Parquet with changed bytes": (
        parquet(SALES).replace(b"unique_id", b"uniqu\xff\xfe\x00d"),
        PARQUET,
        None,
    ),
    "Parquet with a column twice": (parquet(SALES.rename({"yy": "zy"})).replace(b"zy", b"ds"), PARQUET, None),
    "over the limit": (GOOD + b"a,2025-01-02,1\n" * (MOST // 14), CSV, None),
}


def upload(client: TestClient, file: File) -> httpx2.Response:
    content, kind, encoding = file
    headers = {"Content-Type": kind, **({} if encoding is None else {"Content-Encoding": encoding})}
    made = content if isinstance(content, bytes) else content()
    return client.post("/v1/datasets/shop/versions", content=made, headers=headers)


@pytest.mark.parametrize("file", FILES.values(), ids=FILES)
def test_files_that_do_harm(client: TestClient, file: File) -> None:
    answer = upload(client, file)
    assert 400 <= answer.status_code < 500, (answer.status_code, answer.text[:500])
    assert answer.headers["content-type"] == "application/problem+json"
    assert answer.json()["code"]
    assert len(answer.content) < 100_000


@pytest.mark.parametrize("name", ["../evil.csv", "/tmp/evil.csv", "a/../../../evil.csv", "..\\evil.csv"])
def test_names_in_an_archive_lead_nowhere(client: TestClient, app: FastAPI, name: str) -> None:
    content = archive((name, GOOD), ("other.csv", b"x,y\n1,2\n"))
    path, headers = "/v1/datasets/shop/versions?dry_run=true", {"Content-Type": ANY}
    assert client.post(path, content=content, headers=headers).status_code in (200, 422)
    asked = client.post(f"{path}&member=../../../etc/passwd", content=content, headers=headers)
    assert asked.status_code == 422
    folder: Path = app.state.settings.data_dir
    assert not list(folder.parent.rglob("evil.csv"))
    assert not Path("/tmp/evil.csv").exists()


@pytest.mark.parametrize("trick", [t for t in TRICKS if t and "\0" not in t and len(t) < 500])
def test_ids_are_text_and_nothing_else(client: TestClient, trick: str) -> None:
    """What plays tricks as a name is a product like any other in a file."""
    text = io.BytesIO()
    pl.DataFrame({"unique_id": [trick] * 2, "ds": ["2025-01-01"] * 2, "y": [1, 2]}).write_csv(text)
    answer = client.post(
        "/v1/datasets/shop/versions?dry_run=true", content=text.getvalue(), headers={"Content-Type": CSV}
    )
    assert answer.status_code == 422
    assert {fault["code"] for fault in answer.json()["errors"]} == {"duplicate_period"}


def test_two_parquet_columns_of_one_name_are_named(client: TestClient) -> None:
    answer = upload(client, FILES["Parquet with a column twice"])
    (fault,) = answer.json()["errors"]
    assert (fault["code"], fault["column"]) == ("repeated_column", "ds")


START = b"POST /v1/datasets HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
CHUNKED = START + b"Transfer-Encoding: chunked\r\n\r\n"
WIRE = {
    "garbage": b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + b"\x00" * 100,
    "no request": b"\r\n\r\n\r\n",
    "a version that is none": b"GET /healthz HTTP/9.9\r\nHost: localhost\r\n\r\n",
    "a length below zero": START + b"Content-Length: -5\r\n\r\n{}",
    "a length that is none": START + b"Content-Length: ten\r\n\r\n{}",
    "two lengths": START + b"Content-Length: 2\r\nContent-Length: 20\r\n\r\n{}",
    "length and chunks": START + b"Content-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    "a chunk's size that is none": CHUNKED + b"xyz\r\n{}\r\n0\r\n\r\n",
    "a chunk's size below zero": CHUNKED + b"-2\r\n{}\r\n0\r\n\r\n",
    "a chunk's size of many digits": CHUNKED + b"F" * 40 + b"\r\n{}",
    "a chunk that goes on": CHUNKED + b"2\r\n{}}}}}}\r\n0\r\n\r\n",
    "a header without a name": b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n: y\r\n\r\n",
    "a header over lines": b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nX: a\r\n b\r\n\r\n",
    "a NUL in a header": b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nX: a\x00b\r\n\r\n",
    "a path of a megabyte": b"GET /" + b"a" * 1024**2 + b" HTTP/1.1\r\nHost: localhost\r\n\r\n",
    "a header of a megabyte": b"GET /v1/nothing HTTP/1.1\r\nHost: localhost\r\nX: "
    + b"a" * 1024**2
    + b"\r\n\r\n",
    "a hundred thousand headers": b"GET /v1/nothing HTTP/1.1\r\nHost: localhost\r\n"
    + b"X: a\r\n" * 100_000
    + b"\r\n",
    "less than was announced": START + b"Content-Length: 1000\r\n\r\n{}",
    "chunks that do not end": CHUNKED + b"2\r\n{}\r\n",
}
UNFINISHED = {"no request", "less than was announced", "chunks that do not end"}


@pytest.fixture(scope="module")
def address(client: TestClient, app: FastAPI) -> Iterator[Address]:
    """The same application behind a real server."""
    with served(app) as address:
        yield address


@pytest.mark.parametrize("name", WIRE)
def test_bytes_that_are_no_request(address: Address, name: str) -> None:
    """Each is answered with a 4xx, and empty lines with the end of the connection; none is obeyed."""
    answer = _answer(address, WIRE[name], is_whole=name not in UNFINISHED)
    if name == "no request":
        assert answer == b""
    else:
        assert answer.startswith(b"HTTP/1.1 4")
        assert b"content-type: application/problem+json" in answer
    alive = _answer(address, b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
    assert alive.startswith(b"HTTP/1.1 200")


@pytest.mark.parametrize(
    "begun", [b"Content-Length: 1000\r\n\r\nunique_id", b"Transfer-Encoding: chunked\r\n\r\n2\r\nun\r\n"]
)
def test_an_upload_that_is_cut_off_is_told_so(address: Address, begun: bytes) -> None:
    start = b"POST /v1/datasets/shop/versions HTTP/1.1\r\nHost: localhost\r\nContent-Type: text/csv\r\n"
    answer = _answer(address, start + begun, is_whole=False)
    assert answer.startswith(b"HTTP/1.1 400")
    assert b'"code":"upload_cut_off"' in answer


def test_a_websocket_is_answered_as_the_plain_request(address: Address) -> None:
    wish = b"Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Key: eA==\r\n"
    answer = _answer(address, b"GET /v1/nothing HTTP/1.1\r\nHost: localhost\r\n" + wish + b"\r\n")
    assert answer.startswith(b"HTTP/1.1 404")
    assert b'"code":"route_not_found"' in answer


def _answer(address: Address, sent: bytes, *, is_whole: bool = True) -> bytes:
    """The first bytes of the answer; none where the connection ends."""
    with socket.create_connection(address, timeout=PATIENCE) as connection:
        try:
            connection.sendall(sent)
            if not is_whole:
                connection.shutdown(socket.SHUT_WR)
            return connection.recv(65536)
        except (ConnectionResetError, BrokenPipeError):
            return b""


@pytest.mark.parametrize("path", ["/v1/datasets/", "/v1/models/m/", "/docs/"])
def test_a_slash_at_the_end_leads_nowhere_that_the_client_named(client: TestClient, path: str) -> None:
    answer = client.get(path, headers={"Host": "shop.example"}, follow_redirects=False)
    assert (answer.status_code, answer.json()["code"]) == (404, "route_not_found")
    assert "slash" in answer.json()["detail"]

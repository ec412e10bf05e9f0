"""JSON bodies are read up to a limit, and what is wrong with one is said at once."""

from __future__ import annotations

import asyncio
import gzip
import json
from collections.abc import Callable
from typing import Any

import pytest
import zstandard
from fastapi import Request
from pydantic import BaseModel, ConfigDict

from app.http import request_body
from app.http.errors import MAX_ERRORS, BadRequest, InvalidContent, PayloadTooLarge, UnsupportedMediaType
from app.http.names import hint
from app.http.request_body import (
    EXPLAINED_BYTES,
    documented_body,
    explain,
    first_fault,
    parse_json_object,
    read_json_body,
)


class Leaf(BaseModel):
    model_config = ConfigDict(strict=True, extra="forbid")
    size: int


class Tree(BaseModel):
    model_config = ConfigDict(strict=True, extra="forbid")
    leaves: list[Leaf]


def read(
    messages: list[dict[str, Any]],
    limit: int = 10,
    content_type: str | None = None,
    encoding: str | None = None,
    announced: str | None = None,
) -> bytes:
    async def receive() -> dict[str, Any]:
        return messages.pop(0)

    given = {"content-type": content_type, "content-encoding": encoding, "content-length": announced}
    headers = [(name.encode(), value.encode()) for name, value in given.items() if value is not None]
    return asyncio.run(read_json_body(Request({"type": "http", "headers": headers}, receive), limit))


def part(body: bytes, more: bool = True) -> dict[str, Any]:
    return {"type": "http.request", "body": body, "more_body": more}


@pytest.mark.parametrize(
    "content_type", [None, "application/json", "Application/JSON; charset=utf-8", "application/ld+json"]
)
def test_a_body_arrives_in_parts(content_type: str | None) -> None:
    assert read([part(b"{}"), part(b"  "), part(b"", more=False)], content_type=content_type) == b"{}  "


def test_a_body_is_refused_as_soon_as_it_is_too_long() -> None:
    messages = [part(b"123456"), part(b"123456"), part(b"never read")]
    with pytest.raises(PayloadTooLarge, match="over the limit of 10 bytes"):
        read(messages)
    assert messages == [part(b"never read")]


def test_a_body_that_is_announced_as_too_long_is_refused_unread() -> None:
    messages = [part(b"never read")]
    with pytest.raises(PayloadTooLarge, match="over the limit of 10 bytes"):
        read(messages, announced="11")
    assert messages == [part(b"never read")]
    assert read([part(b"0123456789", more=False)], announced="10") == b"0123456789"


def test_a_body_that_is_cut_off_is_refused() -> None:
    with pytest.raises(BadRequest, match="cut off"):
        read([part(b"{"), {"type": "http.disconnect"}])


@pytest.mark.parametrize(("encoding", "encode"), [("gzip", gzip.compress), ("zstd", zstandard.compress)])
def test_a_compressed_body_is_decompressed_up_to_the_limit(
    encoding: str, encode: Callable[[bytes], bytes]
) -> None:
    body = encode(b"{}" + 6 * b" ")
    assert read([part(body[:9]), part(body[9:], more=False)], limit=100, encoding=encoding) == b"{}      "
    with pytest.raises(PayloadTooLarge, match="after decompression"):
        read([part(encode(10_000_000 * b" "), more=False)], limit=100_000, encoding=encoding)
    for faulty in (b"{}", body[:-3]):
        with pytest.raises(BadRequest, match="not what its `Content-Encoding` says"):
            read([part(faulty, more=False)], limit=100, encoding=encoding)
    with pytest.raises(UnsupportedMediaType, match="'br'"):
        read([], encoding="br")


def test_another_type_is_refused_before_reading() -> None:
    with pytest.raises(UnsupportedMediaType, match="'text/csv'"):
        read([], content_type="text/csv")


@pytest.mark.parametrize(
    ("body", "kind"),
    [
        (b"[]", "array"),
        (b'"a"', "string"),
        (b"true", "boolean"),
        (b"null", "null or number"),
        (b"1", "number"),
    ],
)
def test_only_an_object_is_a_request(body: bytes, kind: str) -> None:
    with pytest.raises(BadRequest, match=kind):
        parse_json_object(body)


@pytest.mark.parametrize(
    ("body", "key", "times"),
    [
        (b'{"a": 1, "b": 2, "a": 1}', "a", 2),
        (b'{"x": [{}, {"b": {"c": 1}, "b": 2, "b": 3}]}', "b", 3),
        (b'{"\\u0061": 1, "a": 2}', "a", 2),
        (b'{"\\ud800": 1, "\\ud800": 2}', "?", 2),
        (b'{"' + 300 * b"k" + b'": 1, "' + 300 * b"k" + b'": 2}', 200 * "k", 2),
    ],
)
def test_a_key_that_stands_twice_is_refused_by_name(body: bytes, key: str, times: int) -> None:
    with pytest.raises(InvalidContent) as caught:
        parse_json_object(body)
    problem = caught.value.problem
    assert (problem.status, problem.code, problem.error_count) == (422, "repeated_key", 1)
    assert problem.detail == f"The key {key!r} stands {times} times in one object."
    assert explain(body, Tree, "").problem == problem


def test_the_same_key_in_two_objects_is_no_fault() -> None:
    assert parse_json_object(b'{"a": {"a": 1}, "b": [{"a": 2}, {"a": 3}]}')["b"] == [{"a": 2}, {"a": 3}]


def test_every_fault_is_explained_with_its_place() -> None:
    problem = explain(b'{"leaves": [{"size": 1}, {"size": "1"}, {}], "x": 1}', Tree, "").problem
    assert (problem.status, problem.code, problem.error_count) == (422, "invalid_request", 3)
    assert [fault.location for fault in problem.errors] == [
        "body.leaves.1.size",
        "body.leaves.2.size",
        "body.x",
    ]


@pytest.mark.parametrize(
    ("body", "location", "message"),
    [
        (b'{"leaves": [], "leafs": 1}', "body.leafs", "did you mean 'leaves'?"),
        (b'{"leaves": [{"size": 1}, {"size": 1, "siez": 1}]}', "body.leaves.1.siez", "did you mean 'size'?"),
        (b'{"leaves": [], "x": 1}', "body.x", "there are: leaves"),
    ],
)
def test_an_unknown_field_comes_with_what_may_be_meant(body: bytes, location: str, message: str) -> None:
    (fault,) = explain(body, Tree, "").problem.errors
    assert (fault.location, fault.message) == (location, f"there is no such field; {message}")


def test_of_many_faults_the_first_are_described_and_all_are_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    described: list[str] = []

    def counting(name: str, known: Any) -> str:
        described.append(name)
        return hint(name, known)

    monkeypatch.setattr(request_body, "hint", counting)
    body = json.dumps({"leaves": [], **{f"k{i}": 1 for i in range(5000)}}).encode()
    problem = explain(body, Tree, "").problem
    assert problem.error_count == 5000
    assert len(problem.errors) == len(described) == MAX_ERRORS
    assert problem.detail == "The request has 5,000 faults; see `errors`."
    assert problem.errors[-1].message == "there is no such field; there are: leaves"


@pytest.mark.parametrize(
    ("reason", "malformed", "code", "location"),
    [
        (
            "Expected `int`, got `str` - at `$.rows[12].features[...]`",
            False,
            "invalid_request",
            "rows.12.features.*",
        ),
        ("Object contains unknown field `k`", False, "invalid_request", ""),
        ("JSON is malformed: invalid character (byte 7)", True, "malformed_json", None),
    ],
)
def test_the_first_fault_of_a_long_body_is_told_with_its_place(
    reason: str, malformed: bool, code: str, location: str | None
) -> None:
    problem = first_fault(reason, malformed=malformed).problem
    assert problem.code == code
    assert f"over {EXPLAINED_BYTES} bytes only the first fault" in problem.detail
    if location is None:
        assert "(byte 7)" in problem.detail
    else:
        assert [fault.location for fault in problem.errors] == [f"body.{location}".rstrip(".")]


def test_half_a_surrogate_pair_does_not_break_the_answer() -> None:
    for body in (
        b'{"leaves": [], "\\ud800": 1}',
        b'{"leaves": "\\udfff"}',
        b'{"leaves": [{"size": "\\ud800"}]}',
    ):
        problem = explain(body, Tree, "").problem
        assert problem.model_dump_json()
        assert problem.error_count == 1


def test_what_the_form_does_not_find_is_told_as_it_is() -> None:
    problem = explain(b'{"leaves": []}', Tree, "something else is wrong").problem
    assert (problem.status, problem.code) == (400, "malformed_json")
    assert "something else is wrong" in problem.detail


def test_a_documented_body_needs_no_other_place() -> None:
    body = documented_body(Tree, examples={})["requestBody"]
    schema = body["content"]["application/json"]["schema"]
    assert schema["properties"]["leaves"]["items"]["properties"]["size"]["type"] == "integer"
    assert "$" not in str(documented_body(Tree, Leaf, examples={}))
    assert (
        len(
            documented_body(Tree, Leaf, examples={})["requestBody"]["content"]["application/json"]["schema"][
                "anyOf"
            ]
        )
        == 2
    )

"""The OpenAPI document tells the truth, as far as it can be checked without a request."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
from fastapi import FastAPI

from app.errors import MEDIA_TYPE
from app.main import create_app
from app.openapi import PROBLEM
from app.settings import Settings


@pytest.fixture
def document(tmp_path: Any) -> dict[str, Any]:
    app: FastAPI = create_app(Settings(data_dir=tmp_path))
    assert app.openapi() is app.openapi()
    return app.openapi()


def operations(document: dict[str, Any]) -> list[tuple[str, dict[str, Any]]]:
    return [
        (f"{method.upper()} {path}", operation)
        for path, methods in document["paths"].items()
        for method, operation in methods.items()
    ]


def test_every_error_is_a_problem_document(document: dict[str, Any]) -> None:
    for name, operation in operations(document):
        for status, response in operation["responses"].items():
            if not status.startswith("2"):
                assert response["content"] == {MEDIA_TYPE: {"schema": PROBLEM}}, (name, status)


def test_every_reference_leads_somewhere_and_every_schema_is_used(document: dict[str, Any]) -> None:
    referred = set(re.findall(r'"#/components/schemas/([^"]+)"', json.dumps(document)))
    assert referred == document["components"]["schemas"].keys()


def test_operations_have_names_of_their_own_and_say_what_they_do(document: dict[str, Any]) -> None:
    names = [operation["operationId"] for _, operation in operations(document)]
    assert len(set(names)) == len(names)
    for name, operation in operations(document):
        assert re.fullmatch(r"[a-z_]+", operation["operationId"]), name
        assert operation["description"].endswith("."), name


def test_every_body_that_is_sent_can_be_too_large_or_of_another_type(document: dict[str, Any]) -> None:
    with_body = [(name, op) for name, op in operations(document) if "requestBody" in op]
    assert len(with_body) > 5
    for name, operation in with_body:
        assert {"400", "413", "415", "422"} <= operation["responses"].keys(), name

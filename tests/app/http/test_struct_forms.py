"""A struct and the model made of it accept the same bodies."""

from __future__ import annotations

import json
from typing import Annotated, Any

import msgspec
import pytest
from msgspec import Meta

from app.http.struct_forms import form_of


class Part(msgspec.Struct):
    """A part."""

    x: float


class Whole(msgspec.Struct, forbid_unknown_fields=True):
    """A whole."""

    parts: Annotated[list[Part], Meta(min_length=1, description="Its parts.")]
    h: Annotated[int, Meta(ge=1, le=9)] | None = None


@pytest.mark.parametrize(
    ("document", "accepted"),
    [
        ({"parts": [{"x": 1}], "h": 9}, True),
        ({"parts": [{"x": 1, "y": 2}]}, True),
        ({"parts": []}, False),
        ({"parts": [{"x": "1"}]}, False),
        ({"parts": [{"x": 1}], "h": 10}, False),
        ({"parts": [{"x": 1}], "other": 1}, False),
        ({}, False),
    ],
)
def test_the_model_of_a_struct_accepts_what_the_struct_does(document: Any, accepted: bool) -> None:
    body = json.dumps(document).encode()
    for read, refused in (
        (form_of(Whole).model_validate_json, ValueError),
        (msgspec.json.Decoder(Whole).decode, msgspec.ValidationError),
    ):
        try:
            read(body)
            was_read = True
        except refused:
            was_read = False
        assert was_read == accepted


def test_descriptions_and_limits_are_in_the_schema() -> None:
    schema = form_of(Whole).model_json_schema()
    assert schema["description"] == "A whole."
    assert schema["properties"]["parts"]["description"] == "Its parts."
    assert schema["properties"]["parts"]["minItems"] == 1
    assert schema["properties"]["h"]["anyOf"][0]["maximum"] == 9

"""Say in words what the library that checks requests finds wrong with them."""

from __future__ import annotations

import difflib
import json
import math
import re
from collections.abc import Iterable, Mapping
from typing import Any

from app.http.errors import Fault
from app.http.names import IN_WORDS

_OF_TYPES = {
    "missing": "is missing",
    "literal_error": "must be {expected}",
    "enum": "must be {expected}",
    **dict.fromkeys(("list_type", "set_type", "frozen_set_type", "tuple_type"), "must be a list"),
    **dict.fromkeys(("dict_type", "model_type", "model_attributes_type"), "must be an object"),
    **dict.fromkeys(("string_type", "string_unicode"), "must be text"),
    **dict.fromkeys(
        ("int_type", "int_parsing", "int_from_float", "int_parsing_size"), "must be a whole number"
    ),
    **dict.fromkeys(("float_type", "float_parsing"), "must be a number"),
    **dict.fromkeys(("bool_type", "bool_parsing"), "must be true or false"),
    "finite_number": "must be a finite number",
    "greater_than": "must be more than {gt}",
    "greater_than_equal": "must be {ge} or more",
    "less_than": "must be less than {lt}",
    "less_than_equal": "must be {le} or less",
    "too_short": "must have {min_length} or more entries",
    "too_long": "must have {max_length} or fewer entries",
    "string_too_short": "must have {min_length} or more characters",
    "string_too_long": "must have {max_length} or fewer characters",
    **dict.fromkeys(
        ("datetime_type", "datetime_parsing", "datetime_from_date_parsing", "timezone_aware"),
        "must be a time with its zone, such as 2026-01-31T12:00:00Z",
    ),
}
"""What replaces the sentences of the library that checks requests, by its names of what is wrong."""


def faults_of(errors: Iterable[Mapping[str, Any]], *prefix: str) -> list[Fault]:
    """Turn pydantic's ``errors()`` into faults, located below ``prefix``."""
    return [
        Fault(
            code=error.get("type"),
            message=_in_words(error),
            location=_encodable(".".join(map(str, (*prefix, *error["loc"])))),
            value=_printable(error.get("input")),
        )
        for error in errors
    ]


def _in_words(error: Mapping[str, Any]) -> str:
    context, given = error.get("ctx", {}), error.get("input")
    template = IN_WORDS.get(context.get("pattern"))
    if re.match("[A-Z][a-z]+ should |Field required|Unable to parse ", error["msg"]):
        template = template or _OF_TYPES.get(error.get("type", ""))
    message: str = (
        template.format(**context) if template else re.sub("^[A-Z][a-z]+ should ", "must ", error["msg"])
    )
    known = re.findall("'([^']+)'", context.get("expected", ""))
    near = difflib.get_close_matches(str(given), known, n=1)
    hint = f"; did you mean {near[0]!r}?" if near else ""
    return message.removeprefix("Value error, ") + hint


def _printable(value: Any) -> str | None:
    # A rejected NaN or infinity is never echoed: JSON has no such numbers and clients choke on them.
    if not isinstance(value, str | int | float) or (isinstance(value, float) and not math.isfinite(value)):
        return None
    return _encodable((json.dumps(value) if isinstance(value, bool) else str(value))[:200])


def _encodable(text: str) -> str:
    # JSON can carry half of a surrogate pair; UTF-8 cannot.
    return text.encode("utf-8", "replace").decode()

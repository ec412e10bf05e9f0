"""Messages of the library, with its options as a request or a dataset's definition calls them."""

from __future__ import annotations

import json
from typing import Any
from urllib.parse import quote

from app.reading.stated import OF_SHAPE, OF_TEXT
from ccmtl_core.base.display import with_options

_PLAIN = ",;.:'/|~*"
"""What an address may have as it is, beside letters and digits."""
_MORE = {
    "missing_column": ". If the file calls it otherwise, say so in the `columns` of the dataset",
    "no_line_breaks": ". `curl -d @FILE` takes them out: send the file with `--data-binary @FILE`",
}
"""What a sender can do about a fault, by its code."""


def in_request(text: str, code: str = "") -> str:
    """Return the message of a fault with the parameters of an upload, and the fields of a definition.

    Examples
    --------
    >>> in_request("state `delimiter=';'`, choose `fill='zero'`")
    'state `delimiter=;`, choose `"fill": {"method": "zero"}`'
    """
    return with_options(text, _called) + _MORE.get(code, "")


def _called(name: str, value: Any) -> str | None:
    if value is None:
        return None
    if name in OF_TEXT | OF_SHAPE:
        return f"`{name}={quote(str(value), safe=_PLAIN)}`"
    field = {"method": value} if name == "fill" else value
    return f"`{json.dumps(name)}: {json.dumps(field, ensure_ascii=False)}`"

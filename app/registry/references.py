"""What ``{model}`` of a path refers to: ``name``, ``name@alias`` or ``name/versions/3``."""

from __future__ import annotations

import re

from app.http.errors import Fault, InvalidContent

_NUMBER = re.compile("[1-9][0-9]{0,9}", re.ASCII)
MAX_NUMBER = 2**31 - 1


def split_version(model: str) -> tuple[str, int | None]:
    """Return the name, with its alias if it has one, and the number of the version, if one is named.

    Examples
    --------
    >>> split_version("shop"), split_version("shop@production"), split_version("shop/versions/3")
    (('shop', None), ('shop@production', None), ('shop', 3))
    """
    name, slash, number = model.partition("/versions/")
    if not slash:
        return name, None
    if not _NUMBER.fullmatch(number) or int(number) > MAX_NUMBER:
        message = "must be a whole number in plain digits, such as 1"
    elif "@" in name:
        message = "give an alias or a version, not both"
    else:
        return name, int(number)
    fault = Fault(message=message, location="path.version", value=number[:200])
    raise InvalidContent("invalid_request", "The request has 1 fault; see `errors`.", errors=[fault])


def split_alias(name: str) -> tuple[str, str | None]:
    """Return the model's name and the alias, None for the newest version.

    Examples
    --------
    >>> split_alias("shop@production"), split_alias("shop")
    (('shop', 'production'), ('shop', None))
    """
    base, at, alias = name.partition("@")
    return base, alias if at else None

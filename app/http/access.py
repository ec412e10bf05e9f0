"""Who sends a request, and whether the key that it brings has the scope that an endpoint asks for.

Every endpoint names its scope by ``dependencies=[requires(Scope.…)]``, on its router or its own. From then on
``request.state.workspace`` is the caller's, and :data:`app.http.dependencies.DatabaseDep` sees nothing else.
"""

from __future__ import annotations

import ipaddress
from enum import StrEnum
from functools import cache, lru_cache
from typing import Any, NamedTuple, Protocol
from urllib.parse import urlsplit

from fastapi import Request, Security
from fastapi.concurrency import run_in_threadpool
from fastapi.openapi.models import HTTPBearer
from fastapi.openapi.models import SecurityBase as SecurityModel
from fastapi.security.base import SecurityBase
from starlette.datastructures import Headers

from app.http.errors import BadRequest, Forbidden, Unauthorized
from app.http.parameters import check_queries

CHALLENGE = {"WWW-Authenticate": "Bearer"}
_FORWARDED = {"forwarded", "x-forwarded-for", "x-forwarded-proto", "x-forwarded-host", "x-real-ip"}
_ONE_VALUE = ("Authorization", "Content-Type", "Idempotency-Key")


class Scope(StrEnum):
    """What a key allows."""

    DATA = "data"
    TRAIN = "train"
    PREDICT = "predict"
    ADMIN = "admin"


class Caller(NamedTuple):
    """Who sends a request: the workspace, the scopes, and the id of the key, None where there are no keys."""

    workspace: str
    scopes: frozenset[str]
    key_id: str | None
    requests_per_minute: int | None = None


class Callers(Protocol):
    """What knows the keys."""

    def peek(self, authorization: str | None) -> Caller | None:
        """Return who sends this header, or None where the database has to be asked; raise Unauthorized."""

    def find(self, authorization: str | None) -> Caller:
        """Return who sends this header, or raise Unauthorized; may ask the database."""


class Limits(Protocol):
    """What counts the requests of keys."""

    def take(self, key_id: str, requests_per_minute: int | None) -> None:
        """Count a request, or raise TooManyRequests."""


class _Requirement(SecurityBase):
    """The dependency of an endpoint on a scope."""

    def __init__(self, scope: Scope) -> None:
        self.scope = scope
        self.scheme_name = "key"
        self.model: SecurityModel = HTTPBearer(
            bearerFormat="ccmtl_…",
            description="A key that `ccmtl keys create` printed. None is needed while there are no keys.",
        )

    async def __call__(self, request: Request) -> None:
        """Note the caller's workspace, or refuse the request."""
        await admit(request, self.scope)


async def admit(request: Request, scope: Scope) -> None:
    """Note the workspace of a caller that has ``scope``, or refuse the request."""
    callers: Callers = request.app.state.callers
    sent = request.headers.raw
    headers = dict(sent)
    if len(headers) < len(sent):
        _refuse_contradictions(sent)
    given = headers.get(b"authorization")
    authorization = None if given is None else given.decode("latin-1")
    caller = callers.peek(authorization)
    if caller is None:
        caller = await run_in_threadpool(callers.find, authorization)
    if caller.key_id is not None:
        limits: Limits = request.app.state.rates
        limits.take(caller.key_id, caller.requests_per_minute)
    elif _is_from_elsewhere(request.headers):
        raise Unauthorized(
            "key_missing",
            "The service has no API keys, and answers its own machine alone, as localhost or 127.0.0.1: "
            "not what a proxy forwards, nor pages of other sites. `ccmtl keys create NAME` makes a key.",
            headers=CHALLENGE,
        )
    if scope not in caller.scopes:
        raise Forbidden(
            "scope_missing",
            f"This needs a key with the scope {scope.value!r}; yours has {_listed(caller.scopes)}.",
        )
    request.state.workspace = caller.workspace
    await check_queries(request)


async def is_still_let_in(request: Request) -> bool:
    """Whether the key of a request that takes long to answer is neither revoked nor expired meanwhile."""
    callers: Callers = request.app.state.callers
    authorization = request.headers.get("authorization")
    try:
        return bool(callers.peek(authorization) or await run_in_threadpool(callers.find, authorization))
    except Unauthorized:
        return False


@cache
def requires(scope: Scope) -> Any:
    """Return the dependency that lets an endpoint answer only callers whose key has ``scope``.

    It also refuses query parameters that the endpoint does not have.

    Parameters
    ----------
    scope
        The scope; the OpenAPI document names it too.

    Returns
    -------
    Any
        What stands in ``dependencies`` of a router or an endpoint, once for each endpoint.

    Examples
    --------
    >>> from fastapi import APIRouter
    >>> router = APIRouter(prefix="/v1/shops", dependencies=[requires(Scope.DATA)])
    """
    return Security(_Requirement(scope), scopes=[scope.value])


def _refuse_contradictions(headers: list[tuple[bytes, bytes]]) -> None:
    """Refuse two keys, and two different values where one is meant: a proxy may go by the other."""
    for name in _ONE_VALUE:
        values = [value for key, value in headers if key == name.lower().encode()]
        if len(values) > 1 and (name == "Authorization" or len(set(values)) > 1):
            raise BadRequest("repeated_header", f"The header {name} stands {len(values)} times; send one.")


def _is_from_elsewhere(headers: Headers) -> bool:
    """Whether a proxy or a browser's page of another site sends this.

    A page may let its own name mean this machine, and then is no other site for the browser; so the name that
    a request was sent to has to be this machine's too.
    """
    if not _FORWARDED.isdisjoint(headers) or headers.get("sec-fetch-site") == "cross-site":
        return True
    host, origin = headers.get("host"), headers.get("origin")
    return bool(host and not _is_here(f"http://{host}")) or (origin is not None and not _is_here(origin))


@lru_cache(maxsize=64)
def _is_here(url: str) -> bool:
    try:
        name = urlsplit(url).hostname or ""
        return name == "localhost" or ipaddress.ip_address(name).is_loopback
    except ValueError:  # another name, or no address at all
        return False


def _listed(scopes: frozenset[str]) -> str:
    return ", ".join(map(repr, sorted(scopes))) or "none"

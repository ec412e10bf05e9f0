"""What endpoints get by FastAPI's dependencies: settings, database, storage, models, the body."""

from __future__ import annotations

from typing import Annotated, Any, Protocol

from fastapi import Depends, Request

from app.http.request_body import MAX_FORM_BYTES, read_json_body
from app.persistence.database import Database
from app.persistence.storage import Storage
from app.settings import Settings


class KeysInMemory(Protocol):
    """The keys in memory as their endpoints need them."""

    def forget(self) -> None:
        """Read the keys anew before the next request is answered."""


def from_state(name: str) -> Any:
    """Return the dependency on what the application keeps in its state under ``name``."""

    async def kept(request: Request) -> Any:
        return getattr(request.app.state, name)

    return Depends(kept)


def of_workspace(name: str) -> Any:
    """Return the dependency on that part of what ``name`` is which the caller's workspace may use.

    It fails where an endpoint has no ``requires(…)``.
    """

    async def part(request: Request) -> Any:
        return getattr(request.app.state, name).of(request.state.workspace)

    return Depends(part)


SettingsDep = Annotated[Settings, from_state("settings")]
DatabaseDep = Annotated[Database, of_workspace("database")]
CallersDep = Annotated[KeysInMemory, from_state("callers")]
StorageDep = Annotated[Storage, from_state("storage")]


async def read_form(request: Request, settings: SettingsDep) -> bytes:
    """Return the body of a request that brings no data, unread: parsing it is work for a thread."""
    return await read_json_body(request, min(MAX_FORM_BYTES, settings.max_request_bytes))

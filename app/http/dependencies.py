"""What endpoints get by FastAPI's dependencies: settings, database, storage, models, the body."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import Depends, Request

from app.http.request_body import MAX_FORM_BYTES, read_json_body
from app.persistence.database import Database
from app.persistence.storage import Storage
from app.settings import Settings


def from_state(name: str) -> Any:
    """Return the dependency on what the application keeps in its state under ``name``."""

    async def kept(request: Request) -> Any:
        return getattr(request.app.state, name)

    return Depends(kept)


SettingsDep = Annotated[Settings, from_state("settings")]
DatabaseDep = Annotated[Database, from_state("database")]
StorageDep = Annotated[Storage, from_state("storage")]


async def read_form(request: Request, settings: SettingsDep) -> bytes:
    """Return the body of a request that brings no data, unread: parsing it is work for a thread."""
    return await read_json_body(request, min(MAX_FORM_BYTES, settings.max_request_bytes))

"""What endpoints get by FastAPI's dependencies: settings, database, storage, models, the body."""

from __future__ import annotations

from typing import Annotated, Any, Protocol

from fastapi import Depends, Request

from app.http.request_body import MAX_FORM_BYTES, read_json_body
from app.persistence.database import Database
from app.persistence.storage import Storage
from app.settings import Settings


class ModelsInMemory(Protocol):
    """The cache of models as the registry needs it, which may not import the slice of predictions."""

    def forget(self, name: str, version: int | None = None) -> None:
        """Drop this version, or all versions of the model."""


def _from_state(name: str) -> Any:
    """Return the dependency on what the application keeps in its state under ``name``."""

    async def kept(request: Request) -> Any:
        return getattr(request.app.state, name)

    return Depends(kept)


SettingsDep = Annotated[Settings, _from_state("settings")]
DatabaseDep = Annotated[Database, _from_state("database")]
StorageDep = Annotated[Storage, _from_state("storage")]
ModelsDep = Annotated[ModelsInMemory, _from_state("models")]


async def read_form(request: Request, settings: SettingsDep) -> bytes:
    """Return the body of a request that brings no data, unread: parsing it is work for a thread."""
    return await read_json_body(request, min(MAX_FORM_BYTES, settings.max_request_bytes))

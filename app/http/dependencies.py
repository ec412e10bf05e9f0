"""What endpoints get by FastAPI's dependencies: settings, database, storage, models, the body."""

from __future__ import annotations

from typing import Annotated, Protocol

from fastapi import Depends, Request

from app.http.request_body import MAX_FORM_BYTES, read_json_body
from app.persistence.database import Database
from app.persistence.storage import Storage
from app.settings import Settings


class ModelsInMemory(Protocol):
    """The cache of models as the registry needs it, which may not import the slice of predictions."""

    def forget(self, name: str, version: int | None = None) -> None:
        """Drop this version, or all versions of the model."""


def _settings(request: Request) -> Settings:
    settings: Settings = request.app.state.settings
    return settings


def _database(request: Request) -> Database:
    database: Database = request.app.state.database
    return database


def _storage(request: Request) -> Storage:
    storage: Storage = request.app.state.storage
    return storage


def _models(request: Request) -> ModelsInMemory:
    models: ModelsInMemory = request.app.state.models
    return models


async def read_form(request: Request) -> bytes:
    """Return the body of a request that brings no data, unread: parsing it is work for a thread."""
    return await read_json_body(request, min(MAX_FORM_BYTES, _settings(request).max_request_bytes))


SettingsDep = Annotated[Settings, Depends(_settings)]
DatabaseDep = Annotated[Database, Depends(_database)]
StorageDep = Annotated[Storage, Depends(_storage)]
ModelsDep = Annotated[ModelsInMemory, Depends(_models)]

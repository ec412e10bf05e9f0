"""What endpoints are handed: the parts that ``create_app`` keeps in ``app.state``."""

from __future__ import annotations

from typing import Annotated

from fastapi import Depends, Request

from app.database import Database
from app.settings import Settings
from app.storage import Storage


def _settings(request: Request) -> Settings:
    settings: Settings = request.app.state.settings
    return settings


def _database(request: Request) -> Database:
    database: Database = request.app.state.database
    return database


def _storage(request: Request) -> Storage:
    storage: Storage = request.app.state.storage
    return storage


SettingsDep = Annotated[Settings, Depends(_settings)]
DatabaseDep = Annotated[Database, Depends(_database)]
StorageDep = Annotated[Storage, Depends(_storage)]

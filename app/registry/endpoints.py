"""HTTP in, JSON out: reading models and their versions."""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter

from app.dependencies import DatabaseDep
from app.errors import Problem
from app.parameters import Cursor, Limit, ModelName, NumberCursor, VersionNumber
from app.registry import service
from app.registry.schemas import ModelDetail, ModelPage, ModelVersionDetail, ModelVersionPage

router = APIRouter(prefix="/v1/models", tags=["models"])

UNKNOWN: dict[int | str, dict[str, Any]] = {
    404: {"model": Problem, "description": "No such model or version; near matches are suggested."}
}


@router.get("", operation_id="list_models")
def list_models(database: DatabaseDep, limit: Limit = 50, cursor: Cursor = None) -> ModelPage:
    """List the models by name."""
    with database.read() as session:
        return service.list_models(session, limit, cursor)


@router.get("/{name}", operation_id="read_model", responses=UNKNOWN)
def read_model(name: ModelName, database: DatabaseDep) -> ModelDetail:
    """Read a model and its newest version."""
    with database.read() as session:
        return service.read_model(session, name)


@router.get("/{name}/versions", operation_id="list_model_versions", responses=UNKNOWN)
def list_versions(
    name: ModelName,
    database: DatabaseDep,
    limit: Limit = 50,
    cursor: NumberCursor = None,
) -> ModelVersionPage:
    """List a model's versions, newest first."""
    with database.read() as session:
        return service.list_versions(session, name, limit, cursor)


@router.get("/{name}/versions/{version}", operation_id="read_model_version", responses=UNKNOWN)
def read_version(name: ModelName, version: VersionNumber, database: DatabaseDep) -> ModelVersionDetail:
    """Read one version: its metrics, configuration, solver report and the data that it was trained on."""
    with database.read() as session:
        return service.read_version(session, name, version)

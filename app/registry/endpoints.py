"""Endpoints that read and delete models and their versions."""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter

from app.http.dependencies import DatabaseDep, ModelsDep
from app.http.errors import Problem
from app.http.parameters import Limit, ModelName, NameCursor, NumberCursor, VersionNumber
from app.registry import service
from app.registry.schemas import ModelDetail, ModelPage, ModelVersionDetail, ModelVersionPage

router = APIRouter(prefix="/v1/models", tags=["models"])

UNKNOWN: dict[int | str, dict[str, Any]] = {
    404: {"model": Problem, "description": "No such model or version; near matches are suggested."}
}


@router.get("", operation_id="list_models")
def list_models(database: DatabaseDep, limit: Limit = 50, cursor: NameCursor = None) -> ModelPage:
    """List the models by name."""
    with database.read() as session:
        return service.list_models(session, limit, cursor)


@router.get("/{name}", operation_id="read_model", responses=UNKNOWN)
def read_model(name: ModelName, database: DatabaseDep) -> ModelDetail:
    """Read a model and its newest version."""
    with database.read() as session:
        return service.read_model(session, name)


@router.delete(
    "/{name}",
    operation_id="delete_model",
    status_code=204,
    responses={**UNKNOWN, 409: {"model": Problem, "description": "An unfinished job trains it."}},
)
def delete_model(name: ModelName, database: DatabaseDep, models: ModelsDep) -> None:
    """Delete a model with all its versions; later versions of the name count on from the last."""
    with database.write() as session:
        service.remove(session, name)
    models.forget(name)


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


@router.delete(
    "/{name}/versions/{version}", operation_id="delete_model_version", status_code=204, responses=UNKNOWN
)
def delete_version(name: ModelName, version: VersionNumber, database: DatabaseDep, models: ModelsDep) -> None:
    """Delete one version; after the newest, the one before it is the newest; no number is given again."""
    with database.write() as session:
        service.remove_version(session, name, version)
    models.forget(name, version)

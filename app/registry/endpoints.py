"""Endpoints that read and delete models and their versions."""

from __future__ import annotations

from fastapi import APIRouter

from app.http.dependencies import DatabaseDep, ModelsDep
from app.http.errors import refusals
from app.http.parameters import Limit, ModelName, NameCursor, NumberCursor, VersionNumber
from app.registry import service
from app.registry.schemas import ModelDetail, ModelPage, ModelVersionDetail, ModelVersionPage, ProductPage

router = APIRouter(prefix="/v1/models", tags=["models"])

UNKNOWN = refusals({404: "No such model or version; near matches are suggested."})


@router.get("")
def list_models(database: DatabaseDep, limit: Limit = 50, cursor: NameCursor = None) -> ModelPage:
    """List the models by name."""
    with database.read() as session:
        return service.list_models(session, limit, cursor)


@router.get("/{name}", responses=UNKNOWN)
def read_model(name: ModelName, database: DatabaseDep) -> ModelDetail:
    """Read a model and its newest version."""
    with database.read() as session:
        return service.read_model(session, name)


@router.delete(
    "/{name}", status_code=204, responses=UNKNOWN | refusals({409: "An unfinished job trains it."})
)
def delete_model(name: ModelName, database: DatabaseDep, models: ModelsDep) -> None:
    """Delete a model with all its versions; later versions of the name count on from the last."""
    with database.write() as session:
        service.remove(session, name)
    models.forget(name)


@router.get("/{name}/versions", responses=UNKNOWN)
def list_model_versions(
    name: ModelName, database: DatabaseDep, limit: Limit = 50, cursor: NumberCursor = None
) -> ModelVersionPage:
    """List a model's versions, newest first."""
    with database.read() as session:
        return service.list_versions(session, name, limit, cursor)


@router.get("/{name}/versions/{version}", responses=UNKNOWN)
def read_model_version(name: ModelName, version: VersionNumber, database: DatabaseDep) -> ModelVersionDetail:
    """Read one version: its metrics, configuration, solver report and the data that it was trained on."""
    with database.read() as session:
        return service.read_version(session, name, version)


@router.get("/{name}/products", responses=UNKNOWN)
def list_products(
    name: ModelName, database: DatabaseDep, limit: Limit = 50, cursor: NumberCursor = None
) -> ProductPage:
    """List the products, or tasks, of a model's newest version."""
    with database.read() as session:
        return service.list_products(session, name, None, limit, cursor)


@router.get("/{name}/versions/{version}/products", responses=UNKNOWN)
def list_version_products(
    name: ModelName,
    version: VersionNumber,
    database: DatabaseDep,
    limit: Limit = 50,
    cursor: NumberCursor = None,
) -> ProductPage:
    """List the products, or tasks, of one version."""
    with database.read() as session:
        return service.list_products(session, name, version, limit, cursor)


@router.delete("/{name}/versions/{version}", status_code=204, responses=UNKNOWN)
def delete_model_version(
    name: ModelName, version: VersionNumber, database: DatabaseDep, models: ModelsDep
) -> None:
    """Delete one version; after the newest, the one before it is the newest; no number is given again."""
    with database.write() as session:
        service.remove_version(session, name, version)
    models.forget(name, version)

"""Endpoints that read models, name their versions by aliases, and delete them."""

from __future__ import annotations

from typing import Annotated, Any, Protocol

from fastapi import APIRouter, Depends, Query, Request, Response
from fastapi.responses import StreamingResponse

from app.http.access import Scope, requires
from app.http.answers import etag_matches
from app.http.dependencies import DatabaseDep, of_workspace, read_form
from app.http.errors import NotAcceptable, refusals
from app.http.names import ARROW_STREAM, PARQUET
from app.http.parameters import (
    PLAIN_DIGITS,
    AliasName,
    Limit,
    ModelName,
    ModelPath,
    NameCursor,
    NewAliasName,
    NumberCursor,
    VersionNumber,
)
from app.http.request_body import BODY_REFUSALS, checked_form, documented_body
from app.registry import aliases, service, tasks
from app.registry.exports import FileAnswer, arrow_stream, parquet_file
from app.registry.references import split_version
from app.registry.schemas import (
    AliasDetail,
    AliasList,
    AliasRequest,
    ClusterPage,
    ModelDetail,
    ModelPage,
    ModelVersionDetail,
    ModelVersionPage,
    ProductPage,
    TaskDetail,
)
from app.registry.service import StoredModel

router = APIRouter(prefix="/v1/models", tags=["models"])


class ModelsInMemory(Protocol):
    """The cache of models as the registry needs it, which may not import the slice of predictions."""

    def get(self, name: str, version: int | None) -> StoredModel:
        """Return a version that is ready to predict."""

    def forget(self, name: str, version: int | None = None) -> None:
        """Drop this version, all versions of the model, or what an alias names."""


ModelsDep = Annotated[ModelsInMemory, of_workspace("models")]
UniqueId = Annotated[str, Query(min_length=1, description="The product or task, exactly as it was uploaded.")]
ClusterNumber = Annotated[
    int | None,
    PLAIN_DIGITS,
    Query(ge=0, le=2**31 - 1, description="Only those of this group of `/clusters`."),
]

READING = [requires(Scope.PREDICT)]
CHANGING = [requires(Scope.TRAIN)]
UNKNOWN = refusals({404: "No such model, version or alias; near matches are suggested."})
SERVED = refusals({409: "An alias names it, or an unfinished job trains it."})
EXAMPLES: dict[str, Any] = {"Serve version 1": {"version": 1}}
WEIGHTS: dict[str, Any] = {
    "response_class": StreamingResponse,
    "responses": {
        200: {
            "description": "A row for each task: `unique_id`, `intercept`, and `weight_…` of each feature. "
            "`Content-Location` names the version.",
            "content": {
                kind: {"schema": {"type": "string", "format": "binary"}} for kind in (PARQUET, ARROW_STREAM)
            },
        },
        **UNKNOWN,
        **refusals({406: "`Accept` names neither Parquet nor an Arrow stream."}),
    },
}


def loaded(model: ModelPath, models: ModelsDep) -> StoredModel:
    """Return the version that the path refers to, in memory."""
    return models.get(*split_version(model))


LoadedDep = Annotated[StoredModel, Depends(loaded)]


@router.get("", dependencies=READING)
def list_models(database: DatabaseDep, limit: Limit = 50, cursor: NameCursor = None) -> ModelPage:
    """List the models by name."""
    with database.read() as session:
        return service.list_models(session, limit, cursor)


@router.get("/{model:model}", responses=UNKNOWN, dependencies=READING)
def read_model(model: ModelPath, database: DatabaseDep) -> ModelDetail | ModelVersionDetail:
    """Read a model and its newest version, or one version.

    Of a version there are its metrics, configuration, solver report, the data that it was trained on, the job
    and the code that trained it, and the aliases that name it.
    """
    with database.read() as session:
        return service.read_selected(session, *split_version(model))


@router.delete("/{name}", status_code=204, responses=UNKNOWN | SERVED, dependencies=CHANGING)
def delete_model(name: ModelName, database: DatabaseDep, models: ModelsDep) -> None:
    """Delete a model with all its versions; later versions of the name count on from the last."""
    with database.write() as session:
        service.remove(session, name)
    models.forget(name)


@router.get("/{name}/versions", responses=UNKNOWN, dependencies=READING)
def list_model_versions(
    name: ModelName, database: DatabaseDep, limit: Limit = 50, cursor: NumberCursor = None
) -> ModelVersionPage:
    """List a model's versions, newest first."""
    with database.read() as session:
        return service.list_versions(session, name, limit, cursor)


@router.delete(
    "/{name}/versions/{version}", status_code=204, responses=UNKNOWN | SERVED, dependencies=CHANGING
)
def delete_model_version(
    name: ModelName, version: VersionNumber, database: DatabaseDep, models: ModelsDep
) -> None:
    """Delete one version; after the newest, the one before it is the newest; no number is given again."""
    with database.write() as session:
        service.remove_version(session, name, version)
    models.forget(name, version)


@router.get("/{model:model}/products", responses=UNKNOWN, dependencies=READING)
def list_products(
    model: ModelPath,
    database: DatabaseDep,
    models: ModelsDep,
    limit: Limit = 50,
    cursor: NumberCursor = None,
    cluster: ClusterNumber = None,
) -> ProductPage:
    """List the products, or tasks, of a version, or those of one group."""
    name, version = split_version(model)
    if cluster is not None:
        return tasks.list_members(models.get(name, version), cluster, limit, cursor)
    with database.read() as session:
        return service.list_products(session, name, version, limit, cursor)


@router.get("/{model:model}/clusters", responses=UNKNOWN, dependencies=READING)
def list_clusters(model: LoadedDep, limit: Limit = 50, cursor: NumberCursor = None) -> ClusterPage:
    """List the groups of tasks that share their weights exactly, the largest first."""
    return tasks.list_clusters(model, limit, cursor)


@router.get("/{model:model}/tasks", responses=UNKNOWN, dependencies=READING)
def read_task(model: LoadedDep, database: DatabaseDep, unique_id: UniqueId) -> TaskDetail:
    """Read one task: its weights, its group, the tasks that it was drawn to, the samples that it had."""
    with database.read() as session:
        return tasks.read_task(session, model, unique_id)


@router.get("/{model:model}/weights", dependencies=READING, **WEIGHTS)
def export_weights(model: LoadedDep, request: Request) -> Response:
    """Export the weights of all tasks as Parquet, or as an Arrow stream if `Accept` asks for that."""
    location = request.url_for("export_weights", model=f"{model.name}/versions/{model.version}").path
    accepted = ", ".join(request.headers.getlist("accept")) or "*/*"
    kind = ARROW_STREAM if ARROW_STREAM in accepted else PARQUET
    etag = f'W/"{model.name}-{model.version}-{kind.rpartition(".")[2]}"'  # a version never changes
    headers = {"Content-Location": location, "Vary": "Accept", "ETag": etag}
    if etag_matches(request.headers.get("if-none-match"), etag):
        return Response(status_code=304, headers=headers)
    if kind == ARROW_STREAM:
        return StreamingResponse(arrow_stream(model), media_type=ARROW_STREAM, headers=headers)
    if not any(kind in accepted for kind in (PARQUET, "*/*", "application/*")):
        raise NotAcceptable("not_acceptable", f"There are {PARQUET} and {ARROW_STREAM}; accept one of them.")
    return FileAnswer(parquet_file(model), media_type=PARQUET, headers=headers)


@router.get("/{name}/aliases", responses=UNKNOWN, dependencies=READING)
def list_aliases(name: ModelName, database: DatabaseDep) -> AliasList:
    """List the aliases of a model and the versions that they name."""
    with database.read() as session:
        return aliases.list_aliases(session, name)


@router.get("/{name}/aliases/{alias}", responses=UNKNOWN, dependencies=READING)
def read_alias(name: ModelName, alias: AliasName, database: DatabaseDep) -> AliasDetail:
    """Read which version an alias names, and which it named before."""
    with database.read() as session:
        return aliases.read_alias(session, name, alias)


@router.put(
    "/{name}/aliases/{alias}",
    responses=UNKNOWN | BODY_REFUSALS,
    openapi_extra=documented_body(AliasRequest, examples=EXAMPLES),
    dependencies=CHANGING,
)
def set_alias(
    name: ModelName,
    alias: NewAliasName,
    body: Annotated[bytes, Depends(read_form)],
    database: DatabaseDep,
    models: ModelsDep,
) -> AliasDetail:
    """Let an alias name a version, from the next request on; other processes follow within a second."""
    asked = checked_form(AliasRequest, body)
    with database.write() as session:
        detail = aliases.set_alias(session, name, alias, asked.version)
    models.forget(f"{name}@{alias}")
    return detail


@router.post(
    "/{name}/aliases/{alias}/rollback",
    responses=UNKNOWN | refusals({409: "There is no version to go back to."}),
    dependencies=CHANGING,
)
def roll_back_alias(
    name: ModelName, alias: AliasName, database: DatabaseDep, models: ModelsDep
) -> AliasDetail:
    """Let an alias name the version that it named before; a second time is refused."""
    with database.write() as session:
        detail = aliases.roll_back(session, name, alias)
    models.forget(f"{name}@{alias}")
    return detail


@router.delete("/{name}/aliases/{alias}", status_code=204, responses=UNKNOWN, dependencies=CHANGING)
def delete_alias(name: ModelName, alias: AliasName, database: DatabaseDep, models: ModelsDep) -> None:
    """Delete an alias; the version that it names stays."""
    with database.write() as session:
        aliases.delete_alias(session, name, alias)
    models.forget(f"{name}@{alias}")

"""Endpoints of datasets, their versions, and uploads, which are streamed to disk."""

from __future__ import annotations

import difflib
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Header, Path, Query, Request, Response
from fastapi.concurrency import run_in_threadpool
from pydantic import ValidationError

from app.datasets import repository, service
from app.datasets.reading.options import reading_options
from app.datasets.receive import Bounds, receive
from app.datasets.schemas import (
    DatasetDetail,
    DatasetPage,
    FileType,
    OverlapPolicy,
    RegressionForm,
    SeriesForm,
    UploadMode,
    UploadOutcome,
    VersionDetail,
    VersionPage,
)
from app.datasets.upload.apart import APART_FROM_BYTES, add_version_apart, add_version_here, is_large
from app.datasets.upload.ingest import Upload
from app.http.access import Scope, requires
from app.http.dependencies import DatabaseDep, SettingsDep, StorageDep, read_form
from app.http.errors import Fault, InvalidContent, refusals
from app.http.invalid_requests import faults_of
from app.http.names import NO_NUL
from app.http.parameters import IdempotencyKey, Limit, NameCursor, NumberCursor, VersionNumber
from app.http.request_body import (
    BODY_REFUSALS,
    content_encoding_of,
    decoder_for,
    documented_body,
    faults_in_body,
    parse_json_object,
    refusal_of,
)
from app.persistence.database import Database
from ccmtl_core.tables import ReadOptions

router = APIRouter(prefix="/v1/datasets", tags=["datasets"], dependencies=[requires(Scope.DATA)])

DatasetName = Annotated[str, Path(max_length=200, pattern=NO_NUL, description="The dataset's name.")]

UNKNOWN = refusals({404: "No such dataset or version; near matches are suggested."})
IN_USE = refusals({409: "An unfinished job or a model version uses it."})
FORM_REFUSALS = BODY_REFUSALS | refusals(
    {409: "The name is taken.", 422: "The definition has faults; each is listed with its place."}
)
UPLOAD_ANSWERS: dict[int | str, dict[str, Any]] = {
    200: {"model": UploadOutcome, "description": "The answer to a dry run: the file is acceptable."},
    **UNKNOWN,
    **refusals(
        {
            400: "The body was cut off, or is not encoded as it says.",
            409: "Rows of the file were appended before, or may have been (see `overlap`); or another upload "
            "came first; or the Idempotency-Key belongs to another upload.",
            413: "The body is over the limit, after decompression; or reading it took too long "
            "(`upload_takes_too_long`).",
            415: "A content type or encoding that is not read here.",
            422: "The file has faults; each is listed with its row and column.",
        }
    ),
}
EXAMPLES: dict[str, Any] = {
    "Daily sales, nothing sold where there is no row": {
        "name": "shop",
        "kind": "series",
        "frequency": "D",
        "columns": {"unique_id": "unique_id", "ds": "ds", "y": "y"},
        "duplicates": "sum",
        "fill": {"method": "zero", "start": "dataset"},
    },
    "Rows of features of one's own": {
        "name": "stores",
        "kind": "regression",
        "columns": {"unique_id": "store", "y": "sales", "features": ["price", "promotion"]},
    },
}
_BINARY = {"schema": {"type": "string", "format": "binary"}}
UPLOAD_BODY = {
    "requestBody": {
        "required": True,
        "description": "A table with a header: text of any delimiter and encoding, Parquet, Arrow, lines of "
        "JSON, or a workbook; also in gzip, zstd or zip. What it is, its content tells.",
        "content": {file_type.value: _BINARY for file_type in FileType},
    }
}


def _form(body: Annotated[bytes, Depends(read_form)]) -> SeriesForm | RegressionForm:
    document = parse_json_object(body)
    if document.get("kind") not in ("series", "regression"):
        raise _no_such_kind(document)
    shape = SeriesForm if document["kind"] == "series" else RegressionForm
    try:
        return shape.model_validate(document)
    except ValidationError as error:
        raise refusal_of(shape, error) from None


def _other_faults(document: dict[str, Any]) -> list[Fault]:
    """What else is wrong with a definition without a kind: of regression data if it names features."""
    columns = document.get("columns")
    of_rows = isinstance(columns, dict) and "features" in columns
    shape, kind = (RegressionForm, "regression") if of_rows else (SeriesForm, "series")
    try:
        shape.model_validate({**document, "kind": kind})
    except ValidationError as error:
        return faults_in_body(shape, error)
    return []


def _no_such_kind(document: dict[str, Any]) -> InvalidContent:
    message, kind = "must be 'series' or 'regression'", document.get("kind")
    if "kind" not in document:
        faults = [Fault(message=message, location="body.kind"), *_other_faults(document)]
        return InvalidContent("invalid_request", "The kind of the dataset is missing.", errors=faults)
    near = difflib.get_close_matches(kind, ["series", "regression"], n=1) if isinstance(kind, str) else []
    message += "".join(f"; did you mean {name!r}?" for name in near)
    faults = faults_of([{"msg": message, "loc": ["kind"], "input": kind}], "body")
    return InvalidContent(
        "invalid_request", "There is no such kind of dataset; see `errors`.", errors=faults, suggestions=near
    )


@router.post(
    "",
    status_code=201,
    responses=FORM_REFUSALS,
    openapi_extra=documented_body(SeriesForm, RegressionForm, examples=EXAMPLES),
)
def create_dataset(
    form: Annotated[SeriesForm | RegressionForm, Depends(_form)], database: DatabaseDep, response: Response
) -> DatasetDetail:
    """Define a dataset: its kind, its files' columns, and what becomes of repeated and absent periods."""
    with database.write() as session:
        created = service.create(session, form)
    response.headers["Location"] = f"/v1/datasets/{created.name}"
    return created


@router.get("")
def list_datasets(database: DatabaseDep, limit: Limit = 50, cursor: NameCursor = None) -> DatasetPage:
    """List the datasets by name."""
    with database.read() as session:
        return service.list_datasets(session, limit, cursor)


@router.get("/{name}", responses=UNKNOWN)
def read_dataset(name: DatasetName, database: DatabaseDep) -> DatasetDetail:
    """Read a dataset's definition and the number of its newest version."""
    with database.read() as session:
        return service.read(session, name)


@router.delete("/{name}", status_code=204, responses=UNKNOWN | IN_USE)
def delete_dataset(name: DatasetName, database: DatabaseDep, storage: StorageDep) -> None:
    """Delete a dataset with its versions, and the finished jobs on it that left no model."""
    service.remove(database, storage, name)


@router.post("/{name}/versions", status_code=201, responses=UPLOAD_ANSWERS, openapi_extra=UPLOAD_BODY)
async def upload_dataset_version(
    name: DatasetName,
    request: Request,
    response: Response,
    database: DatabaseDep,
    storage: StorageDep,
    settings: SettingsDep,
    options: Annotated[ReadOptions, Depends(reading_options)],
    mode: Annotated[
        UploadMode,
        Query(description="`full`: the version is this file; `append`: the newest one and this file."),
    ] = UploadMode.FULL,
    overlap: Annotated[
        OverlapPolicy,
        Query(
            description="What becomes of an append with rows that the dataset may have already: in periods "
            "that their series has values in, or of a regression all rows of an earlier upload. `refuse`; "
            "`accept`: they are new, and are aggregated with those before, or stand beside them."
        ),
    ] = OverlapPolicy.REFUSE,
    dry_run: Annotated[bool, Query(description="Validate and report; store nothing.")] = False,
    idempotency_key: Annotated[
        IdempotencyKey | None,
        Header(description="The same key with the same upload returns the version that it made before."),
    ] = None,
    content_encoding: Annotated[  # for the reference; of several lines it has one
        str | None, Header(description="`gzip`, `zstd` or `identity`.")
    ] = None,
) -> UploadOutcome:
    """Upload a file as the next version; its faults are reported all at once, and then nothing is stored."""
    decoder = decoder_for(content_encoding_of(request))
    await run_in_threadpool(_require, database, name)
    bounds = Bounds(settings.max_upload_bytes, settings.max_expansion)
    state = request.app.state
    processes = state.reader_processes
    with storage.incoming() as path:
        body = processes.begin_after(APART_FROM_BYTES, request.stream())
        await receive(body, request.headers.get("content-length"), path, decoder, bounds)
        upload = Upload(path, options, mode, overlap, dry_run, idempotency_key)
        outcome = None
        if not await run_in_threadpool(is_large, path):
            async with state.places_here:
                outcome = await run_in_threadpool(add_version_here, database, storage, name, upload, bounds)
        if outcome is None:
            workspace = request.state.workspace
            async with state.places_apart:
                outcome = await run_in_threadpool(
                    add_version_apart, processes, settings, workspace, name, upload
                )
    if outcome.version is None:
        response.status_code = 200
    else:
        response.headers["Location"] = f"/v1/datasets/{name}/versions/{outcome.version}"
    return outcome


@router.get("/{name}/versions", responses=UNKNOWN)
def list_dataset_versions(
    name: DatasetName, database: DatabaseDep, limit: Limit = 50, cursor: NumberCursor = None
) -> VersionPage:
    """List a dataset's versions, newest first."""
    with database.read() as session:
        return service.list_versions(session, name, limit, cursor)


@router.get("/{name}/versions/{version}", responses=UNKNOWN)
def read_dataset_version(name: DatasetName, version: VersionNumber, database: DatabaseDep) -> VersionDetail:
    """Read one version and the report of its upload."""
    with database.read() as session:
        return service.read_version(session, name, version)


def _require(database: Database, name: str) -> None:
    with database.read() as session:
        repository.find_dataset(session, name)

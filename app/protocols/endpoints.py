"""Endpoints of the Open Inference Protocol (``/v2``) and of MLflow (``/invocations``)."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated, Any

from fastapi import APIRouter, Header, Query, Request, Response
from fastapi.concurrency import run_in_threadpool
from pydantic import BaseModel, Field

from app.http.access import Scope, requires
from app.http.errors import UnsupportedMediaType, refusals
from app.http.health import ReadinessDep, Ready
from app.http.names import NO_NUL
from app.http.parameters import ModelPath
from app.http.request_body import BODY_REFUSALS, documented_body, media_type_of, read_body
from app.http.struct_forms import form_of
from app.predictions.cache import loaded
from app.predictions.service import Matrix
from app.predictions.tables import UNIQUE_ID, predict_table
from app.predictions.wire import RowStatus, encode, without_nan
from app.protocols.invocations import table_of_csv, table_of_json
from app.protocols.tensors import FEATURES, InferRequest, InferResponse, read_request, response, table_of
from app.registry.service import StoredModel
from app.version import VERSION

router = APIRouter()
PREDICTING = [requires(Scope.PREDICT)]
OPEN_INFERENCE, MLFLOW = "open inference protocol", "mlflow"
BINARY_LENGTH = "Inference-Header-Content-Length"
REFUSED = refusals({404: "No such model, version or alias.", 422: "The request has faults."})
INFER_EXAMPLES: dict[str, Any] = {
    "A week's values of a model with 7 lags": {
        "inputs": [
            {"name": UNIQUE_ID, "shape": [1], "datatype": "BYTES", "data": ["0001"]},
            {"name": FEATURES, "shape": [1, 7], "datatype": "FP64", "data": [3, 0, 1, 0, 2, 1, 4]},
        ]
    }
}
_ROW = {"unique_id": "001", "price": 5.95, "promotion": 1}
INVOCATIONS_EXAMPLES: dict[str, Any] = {
    "dataframe_split": {"dataframe_split": {"columns": list(_ROW), "data": [list(_ROW.values())]}},
    "dataframe_records": {"dataframe_records": [_ROW]},
    "instances": {"instances": [_ROW]},
    "inputs": {"inputs": {name: [value] for name, value in _ROW.items()}},
}


class ServerLive(BaseModel):
    """The process answers."""

    live: bool


class ServerMetadata(BaseModel):
    """What the server is."""

    name: str
    version: str
    extensions: list[str]


class TensorMetadata(BaseModel):
    """One input or output; -1 is a length that the request chooses."""

    name: str
    datatype: str
    shape: list[int]


class ModelMetadata(BaseModel):
    """The inputs and outputs of a model."""

    name: str
    versions: list[str] = Field(description="The version that answers.")
    platform: str
    inputs: list[TensorMetadata]
    outputs: list[TensorMetadata]
    feature_names: list[str] = Field(description="The columns of the input `features`, in their order.")


class ModelReady(BaseModel):
    """The model can answer."""

    name: str
    ready: bool


class Invoked(BaseModel):
    """The predictions, row by row."""

    predictions: list[float | None] = Field(description="null unless the row's status is `ok`.")
    status: list[RowStatus]


class InvocationsRequest(BaseModel):
    """A table with the column `unique_id` and one for each feature, in exactly one of four forms."""

    dataframe_split: dict[str, list[Any]] | None = None
    dataframe_records: list[dict[str, Any]] | None = None
    instances: list[dict[str, Any]] | None = None
    inputs: dict[str, list[Any]] | list[dict[str, Any]] | None = None


@router.get("/v2/health/live", tags=[OPEN_INFERENCE])
async def infer_server_live() -> ServerLive:
    """Answer as long as the process runs."""
    return ServerLive(live=True)


@router.get("/v2/health/ready", tags=[OPEN_INFERENCE], responses=refusals({503: "It cannot serve requests."}))
def infer_server_ready(readiness: ReadinessDep) -> Ready:
    """Answer 200 when requests can be served, 503 when not; as `/readyz`."""
    return readiness.check()


@router.get("/v2", tags=[OPEN_INFERENCE])
async def infer_server_metadata() -> ServerMetadata:
    """Name the server and the extensions of the protocol that it knows."""
    return ServerMetadata(name="ccmtl", version=VERSION, extensions=["binary_tensor_data"])


@router.get("/v2/models/{model:model}", tags=[OPEN_INFERENCE], responses=REFUSED, dependencies=PREDICTING)
async def infer_model_metadata(model: ModelPath, request: Request) -> ModelMetadata:
    """Describe the inputs and outputs of a model."""
    found = await loaded(request, model)
    inputs = [
        TensorMetadata(name=UNIQUE_ID, datatype="BYTES", shape=[-1]),
        TensorMetadata(name=FEATURES, datatype="FP64", shape=[-1, len(found.feature_names)]),
    ]
    outputs = [
        TensorMetadata(name="yhat", datatype="FP64", shape=[-1]),
        TensorMetadata(name="status", datatype="BYTES", shape=[-1]),
    ]
    return ModelMetadata(
        name=found.name,
        versions=[str(found.version)],
        platform="ccmtl",
        inputs=inputs,
        outputs=outputs,
        feature_names=list(found.feature_names),
    )


@router.get(
    "/v2/models/{model:model}/ready", tags=[OPEN_INFERENCE], responses=REFUSED, dependencies=PREDICTING
)
async def infer_model_ready(model: ModelPath, request: Request) -> ModelReady:
    """Load the model, unless it is in memory, and say that it can answer."""
    found = await loaded(request, model)
    return ModelReady(name=found.name, ready=True)


@router.post(
    "/v2/models/{model:model}/infer",
    tags=[OPEN_INFERENCE],
    dependencies=PREDICTING,
    responses={200: {"model": form_of(InferResponse)}, **REFUSED, **BODY_REFUSALS},
    openapi_extra=documented_body(form_of(InferRequest), examples=INFER_EXAMPLES),
)
async def infer(
    model: ModelPath,
    request: Request,
    json_length: Annotated[
        int | None,
        Header(alias=BINARY_LENGTH, ge=0, description="Where binary tensors begin in the body, in bytes."),
    ] = None,
) -> Response:
    """Predict rows of features that come as tensors, in JSON or as binary data."""
    if json_length is None:
        _expect(request, "application/json", "application/octet-stream", "")
    body = await _body(request)
    found = await loaded(request, model)
    return await run_in_threadpool(_infer, found, body, json_length)


@router.post(
    "/v1/models/{model:model}/invocations",
    tags=[MLFLOW],
    dependencies=PREDICTING,
    responses={200: {"model": Invoked}, **REFUSED, **BODY_REFUSALS},
    openapi_extra=documented_body(InvocationsRequest, examples=INVOCATIONS_EXAMPLES),
)
async def invoke_model(model: ModelPath, request: Request) -> Response:
    """Predict the rows of a table as MLflow's scoring server does; CSV is taken too."""
    return await _invoked(model, request)


@router.post(
    "/invocations",
    tags=[MLFLOW],
    dependencies=PREDICTING,
    responses={200: {"model": Invoked}, **REFUSED, **BODY_REFUSALS},
    openapi_extra=documented_body(InvocationsRequest, examples=INVOCATIONS_EXAMPLES),
)
async def invoke(
    request: Request,
    model: Annotated[
        str,
        Query(min_length=1, max_length=300, pattern=NO_NUL, description="The model, as in `/v1/models/…`."),
    ],
) -> Response:
    """Predict the rows of a table as MLflow's scoring server does; `model` names the model."""
    return await _invoked(model, request)


async def _invoked(model: str, request: Request) -> Response:
    kind = _expect(request, "application/json", "text/csv")
    read = table_of_csv if kind == "text/csv" else table_of_json
    body = await _body(request)
    found = await loaded(request, model)
    return await run_in_threadpool(_invoke, found, body, read)


def _infer(model: StoredModel, body: bytes, json_length: int | None) -> Response:
    asked, binary = read_request(body, json_length)
    content, length = response(asked, model, *predict_table(model, *table_of(asked, binary, model)))
    if length is None:
        return Response(content, media_type="application/json")
    return Response(content, media_type="application/octet-stream", headers={BINARY_LENGTH: str(length)})


def _invoke(
    model: StoredModel, body: bytes, read: Callable[[bytes, StoredModel], tuple[list[str], Matrix]]
) -> Response:
    yhat, status = predict_table(model, *read(body, model))
    content = encode({"predictions": without_nan(yhat), "status": status})
    return Response(content, media_type="application/json")


def _expect(request: Request, *kinds: str) -> str:
    kind = media_type_of(request)
    if kind not in kinds:
        raise UnsupportedMediaType(
            "unsupported_media_type",
            f"The body is {kind!r}; send {' or '.join(filter(None, kinds))}.",
            headers={"Accept": ", ".join(filter(None, kinds))},
        )
    return kind


async def _body(request: Request) -> bytes:
    return await read_body(request, request.app.state.settings.max_request_bytes)

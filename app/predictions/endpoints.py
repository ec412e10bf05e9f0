"""Endpoints for predictions, which stores call thousands of times a minute.

A small request to a model in memory is answered on the event loop, because handing it to a thread would take
longer than answering it. Everything that may take longer goes to a thread.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from functools import partial
from typing import Any

from fastapi import APIRouter, Request, Response
from fastapi.concurrency import run_in_threadpool
from fastapi.routing import APIRoute

from app.http.access import Scope, requires
from app.http.errors import refusals
from app.http.names import ARROW_STREAM
from app.http.parameters import ModelPath
from app.http.request_body import BODY_REFUSALS, documented_body, media_type_of, read_body, read_json_body
from app.http.struct_forms import form_of
from app.predictions import service
from app.predictions.cache import in_memory, loaded
from app.predictions.tables import predict_arrow
from app.predictions.wire import (
    PredictColumns,
    PredictionColumns,
    Predictions,
    PredictRows,
)
from app.registry.service import StoredModel

router = APIRouter(
    prefix="/v1/models/{model:model}", tags=["predictions"], dependencies=[requires(Scope.PREDICT)]
)

SMALL_BODY_BYTES = 16 * 1024

REFUSALS = refusals(
    {
        404: "No such model or version, or the one product asked for is unknown; near matches are suggested. "
        "Of several products each has a `status` of its own.",
        422: "The request has faults; each is listed with its position.",
    }
)
_LAGS = {f"lag_{p}": value for p, value in enumerate([3, 0, 1, 0, 2, 1, 4], start=1)}
PREDICT_EXAMPLES: dict[str, Any] = {
    "Rows, of a model with 7 lags": {"rows": [{"unique_id": "0001", "features": _LAGS}]},
    "The same as columns": {
        "unique_id": ["0001", "0002"],
        "features": {name: [value, 1] for name, value in _LAGS.items()},
    },
    "A row of regression data": {"rows": [{"unique_id": "001", "features": {"price": 5.95, "promotion": 1}}]},
}
PREDICT: dict[str, Any] = {
    "responses": {
        200: {"model": form_of(Predictions) | form_of(PredictionColumns)},
        **REFUSALS,
        **BODY_REFUSALS,
    },
    "openapi_extra": documented_body(
        form_of(PredictRows), form_of(PredictColumns), examples=PREDICT_EXAMPLES
    ),
}


class QuickRoute(APIRoute):
    """Answers requests to models in memory by the dependencies and the endpoint alone.

    FastAPI's own handling of parameters takes as long as a prediction. Its dependencies must need the request
    and nothing else.
    """

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        """Return what answers a request."""
        by_parameters = super().get_route_handler()
        guards: list[Any] = [guard.dependency for guard in self.dependencies]

        async def handle(request: Request) -> Response:
            for guard in guards:
                await guard(request)
            found = in_memory(request, request.path_params["model"])
            if found is None:
                return await by_parameters(request)
            return await _predicted(request, found)

        return handle


async def predict(model: ModelPath, request: Request) -> Response:
    """Predict rows of features: JSON, rows or columns, or an Arrow stream with `unique_id` and the features.

    An Arrow stream is answered by one with the columns `unique_id`, `yhat` and `status`.
    """
    return await _predicted(request, model)


router.add_api_route("/predict", predict, methods=["POST"], route_class_override=QuickRoute, **PREDICT)


async def _predicted(request: Request, model: str | StoredModel) -> Response:
    is_arrow = media_type_of(request) == ARROW_STREAM
    read = read_body if is_arrow else read_json_body
    body = await read(request, request.app.state.settings.max_request_bytes)
    found = await loaded(request, model) if isinstance(model, str) else model
    if is_arrow:
        return Response(await run_in_threadpool(predict_arrow, found, body), media_type=ARROW_STREAM)
    return await respond(partial(service.predict, found, body), small=len(body) <= SMALL_BODY_BYTES)


async def respond(answer: Callable[[], bytes], *, small: bool) -> Response:
    """Answer at once what is small, and all else in a thread."""
    try:
        content = answer() if small else await run_in_threadpool(answer)
    except service.Refused as refused:
        raise await run_in_threadpool(refused.explain) from None
    return Response(content, media_type="application/json")

"""Correct what FastAPI's OpenAPI document says about errors.

FastAPI documents every error body as ``application/json`` and invents its own for faulty parameters; the
service answers all of them as ``application/problem+json`` (see ``app.http.errors``).
"""

from __future__ import annotations

from typing import Any

from fastapi import FastAPI

from app.http.errors import MEDIA_TYPE

PROBLEM = {"$ref": "#/components/schemas/Problem"}
FASTAPI_ERROR = {"$ref": "#/components/schemas/HTTPValidationError"}
FASTAPI_SCHEMAS = ("HTTPValidationError", "ValidationError")
_SUMMARIES = {
    "upload_dataset_version": "Upload a file as a new dataset version",
    "watch_training_job": "Watch training job (server-sent events)",
    "predict": "Predict from features",
    "forecast": "Forecast one product",
    "forecast_all_knowing": "Forecast all, with what will be known",
    "forecast_needs": "List what forecasts need to know",
    "forecast_batch": "Forecast many products",
    "read_model": "Read model and its newest version, or one version",
    "set_alias": "Promote: let an alias name a version",
    "roll_back_alias": "Roll back: let an alias name the version before",
    "delete_model": "Delete model with all its versions",
    "put_schedule": "Make or change a schedule",
    "put_webhook": "Make or change a webhook",
    "rotate_webhook_secret": "Give a webhook a new secret",
    "test_webhook": "Send a test to a webhook",
    "redeliver_webhook_delivery": "Send a delivery again",
    "infer": "Predict tensors",
    "invoke": "Predict a table with the model named in the query",
    "invoke_model": "Predict a table",
    "get_metrics": "Metrics of this process, for Prometheus",
    "ping": "Answer with a constant",
    "get_liveness": "Does the process answer?",
    "get_readiness": "Can the process serve requests?",
}
ANY_OTHER = {
    "description": "Any other error; 503 while the database is away, 500 when the service failed.",
    "content": {MEDIA_TYPE: {"schema": PROBLEM}},
}


class DocumentedAPI(FastAPI):
    """A FastAPI application whose OpenAPI document shows problem documents as they are sent."""

    def openapi(self) -> dict[str, Any]:
        """Return the OpenAPI document, built once."""
        if self.openapi_schema is None:
            document = super().openapi()
            for operations in document["paths"].values():
                for method, operation in operations.items():
                    if method == "get":
                        operation["responses"]["304"] = NOT_MODIFIED
                    operation["summary"] = summary(operation["operationId"])
                    _correct(operation["responses"])
            for name in FASTAPI_SCHEMAS:
                document["components"]["schemas"].pop(name, None)
        return super().openapi()


NOT_MODIFIED = {"description": "What would be sent has the entity tag that `If-None-Match` names; no body."}


def summary(operation_id: str) -> str:
    """Return the heading of an operation: its id in words, or a better one where that is poor."""
    return _SUMMARIES.get(operation_id, operation_id.replace("_", " ").capitalize())


def _correct(responses: dict[str, Any]) -> None:
    for response in responses.values():
        schemas = [content.get("schema") for content in response.get("content", {}).values()]
        if schemas in ([PROBLEM], [FASTAPI_ERROR]):
            response["content"] = {MEDIA_TYPE: {"schema": PROBLEM}}
    responses["default"] = ANY_OTHER

"""FastAPI's description of the routes goes in; one that tells the truth about errors comes out.

FastAPI documents every error body as ``application/json`` and invents its own for faulty parameters; the
service answers all of them as ``application/problem+json`` (see ``app.errors``).
"""

from __future__ import annotations

from typing import Any

from fastapi import FastAPI

from app.errors import MEDIA_TYPE

PROBLEM = {"$ref": "#/components/schemas/Problem"}
FASTAPI_ERROR = {"$ref": "#/components/schemas/HTTPValidationError"}
FASTAPI_SCHEMAS = ("HTTPValidationError", "ValidationError")
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
                for operation in operations.values():
                    _correct(operation["responses"])
            for name in FASTAPI_SCHEMAS:
                document["components"]["schemas"].pop(name, None)
        return super().openapi()


def _correct(responses: dict[str, Any]) -> None:
    for response in responses.values():
        schemas = [content.get("schema") for content in response.get("content", {}).values()]
        if schemas in ([PROBLEM], [FASTAPI_ERROR]):
            response["content"] = {MEDIA_TYPE: {"schema": PROBLEM}}
    responses["default"] = ANY_OTHER

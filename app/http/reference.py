"""Serve the API reference at ``/docs``, and at ``/`` links to it and everything else.

FastAPI's own page loads its script and style from the internet and stays blank where that cannot be reached;
this one loads files that lie on this machine.
"""

from __future__ import annotations

import base64
import hashlib
import re
from pathlib import Path

import fastapi_offline
from fastapi import FastAPI, Request
from fastapi.openapi.docs import get_swagger_ui_html
from fastapi.responses import HTMLResponse, JSONResponse
from fastapi.staticfiles import StaticFiles

from app.http.errors import Fault, InvalidContent

FILES = Path(fastapi_offline.__file__).parent / "static"
PAGE, FOLDER = "/docs", "/docs/files"
LINKS = {
    "reference": PAGE,
    "openapi": "/openapi.json",
    "health": "/healthz",
    "datasets": "/v1/datasets",
    "training_jobs": "/v1/training-jobs",
    "models": "/v1/models",
    "schedules": "/v1/schedules",
    "webhooks": "/v1/webhooks",
}
"""Where a caller can go on from ``/``."""


def add_reference(app: FastAPI) -> None:
    """Serve ``/``, the page of ``app``, which must have none of FastAPI's, and the files that it needs."""
    app.mount(FOLDER, StaticFiles(directory=FILES))
    app.add_route(PAGE, _page, include_in_schema=False)
    app.add_route("/", _links, include_in_schema=False)


def _root(request: Request) -> str:
    """The path under which a proxy shows this service."""
    root: str = request.scope.get("root_path", "")
    return root.rstrip("/")


async def _links(request: Request) -> JSONResponse:
    if names := list(request.query_params):
        fault = Fault(message="there are no parameters here", location=f"query.{names[0]}")
        raise InvalidContent("unknown_parameter", "The request has an unknown parameter.", errors=[fault])
    return JSONResponse({name: _root(request) + path for name, path in LINKS.items()})


async def _page(request: Request) -> HTMLResponse:
    app: FastAPI = request.app
    root = _root(request)
    page = get_swagger_ui_html(
        openapi_url=f"{root}{app.openapi_url}",
        title=f"{app.title} reference",
        swagger_js_url=f"{root}{FOLDER}/swagger-ui-bundle.js",
        swagger_css_url=f"{root}{FOLDER}/swagger-ui.css",
        swagger_favicon_url=f"{root}{FOLDER}/favicon.png",
    )
    scripts = re.findall(rb"<script>(.*?)</script>", bytes(page.body), re.DOTALL)
    page.headers["Content-Security-Policy"] = _policy(scripts)
    return page


def _policy(scripts: list[bytes]) -> str:
    """What the page may load and run: files of this service, and the scripts that stand in it."""
    hashes = [base64.b64encode(hashlib.sha256(script).digest()).decode() for script in scripts]
    allowed = " ".join(f"'sha256-{each}'" for each in hashes)
    return (
        f"default-src 'none'; script-src 'self' {allowed}; style-src 'self' 'unsafe-inline'; "
        "img-src 'self' data:; connect-src 'self'; base-uri 'none'; form-action 'none'; "
        "frame-ancestors 'none'"
    )

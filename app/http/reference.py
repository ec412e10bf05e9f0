"""The API goes in; its reference at ``/docs`` comes out, from files of this machine: it needs no internet.

FastAPI's own page takes script and style from a public content network, and stays blank without it.
"""

from __future__ import annotations

from pathlib import Path

import fastapi_offline
from fastapi import FastAPI, Request
from fastapi.openapi.docs import get_swagger_ui_html
from fastapi.responses import HTMLResponse
from fastapi.staticfiles import StaticFiles

FILES = Path(fastapi_offline.__file__).parent / "static"
PAGE, FOLDER = "/docs", "/docs/files"


def add_reference(app: FastAPI) -> None:
    """Serve the page of ``app``, which must have none of FastAPI's, and the files that it needs."""
    app.mount(FOLDER, StaticFiles(directory=FILES))
    app.add_route(PAGE, _page, include_in_schema=False)


async def _page(request: Request) -> HTMLResponse:
    app: FastAPI = request.app
    root = request.scope.get("root_path", "").rstrip("/")
    return get_swagger_ui_html(
        openapi_url=f"{root}{app.openapi_url}",
        title=f"{app.title} reference",
        swagger_js_url=f"{root}{FOLDER}/swagger-ui-bundle.js",
        swagger_css_url=f"{root}{FOLDER}/swagger-ui.css",
        swagger_favicon_url=f"{root}{FOLDER}/favicon.png",
    )

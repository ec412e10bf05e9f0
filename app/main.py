"""``create_app(settings)`` puts the API together: state, routers, error handlers; ``serve_api`` runs it."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from importlib.metadata import version

from fastapi import FastAPI

from app import health
from app.database import Database
from app.errors import install_error_handlers
from app.schema import prepare
from app.settings import Settings
from app.storage import Storage


def create_app(settings: Settings) -> FastAPI:
    """Return the API on ``settings``; its database is made ready when the app starts."""
    app = FastAPI(
        title="CCMTL",
        version=version("ccmtl"),
        summary="Forecasts for tens of thousands of products, trained together.",
        lifespan=_lifespan,
    )
    app.state.settings = settings
    app.state.database = Database(settings)
    app.state.storage = Storage(settings.data_dir)
    install_error_handlers(app)
    app.include_router(health.router)
    return app


@asynccontextmanager
async def _lifespan(app: FastAPI) -> AsyncIterator[None]:
    prepare(app.state.database)
    yield
    app.state.database.dispose()

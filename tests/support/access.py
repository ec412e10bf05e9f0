"""Keys for tests: clients that send one, and the workspaces that these belong to."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from fastapi import FastAPI

from app.access import service
from app.access.schemas import KeyForm
from app.http.access import Scope


def key_header(
    app: FastAPI, workspace: str = "default", scopes: Collection[str] = frozenset(Scope), **form: Any
) -> dict[str, str]:
    """Make a key, and return the header that sends it."""
    wanted = KeyForm(name="test", scopes=frozenset(map(Scope, scopes)), **form)
    with app.state.database.of(workspace).write() as session:
        made = service.create(session, wanted, app.state.key_hash)
    app.state.callers.forget()
    return {"Authorization": f"Bearer {made.key}"}

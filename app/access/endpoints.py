"""Endpoints of the keys of the caller's workspace."""

from __future__ import annotations

from typing import Annotated, Any

from fastapi import APIRouter, Depends, Path, Query, Response
from pydantic import ValidationError

from app.access import service
from app.access.keys import KeyHash
from app.access.schemas import KeyDetail, KeyForm, KeyPage, NewKeyDetail
from app.http.access import Scope, requires
from app.http.dependencies import CallersDep, DatabaseDep, from_state, read_form
from app.http.errors import refusals
from app.http.names import KEY_CURSOR, NO_NUL
from app.http.parameters import Limit
from app.http.request_body import BODY_REFUSALS, documented_body, parse_json_object, refusal_of

router = APIRouter(prefix="/v1/keys", tags=["keys"], dependencies=[requires(Scope.ADMIN)])

KeyHashDep = Annotated[KeyHash, from_state("key_hash")]
KeyId = Annotated[str, Path(max_length=200, pattern=NO_NUL, description="The key's id.")]
KeyCursor = Annotated[str | None, Query(pattern=KEY_CURSOR, description="`next_cursor` of the page before.")]

UNKNOWN = refusals({404: "No such key."})
REFUSALS = BODY_REFUSALS | refusals({422: "The request has faults; each is listed with its place."})
EXAMPLES: dict[str, Any] = {
    "A key for tills, which only predict": {"name": "tills", "scopes": ["predict"]},
    "A key that ends": {
        "name": "nightly",
        "scopes": ["data", "train"],
        "expires_at": "2099-12-31T00:00:00Z",
        "requests_per_minute": 600,
    },
}


def _form(body: Annotated[bytes, Depends(read_form)]) -> KeyForm:
    document = parse_json_object(body)
    try:
        return KeyForm.model_validate(document)
    except ValidationError as error:
        raise refusal_of(KeyForm, error) from None


@router.post(
    "", status_code=201, responses=REFUSALS, openapi_extra=documented_body(KeyForm, examples=EXAMPLES)
)
def create_key(
    form: Annotated[KeyForm, Depends(_form)],
    database: DatabaseDep,
    key_hash: KeyHashDep,
    callers: CallersDep,
    response: Response,
) -> NewKeyDetail:
    """Make a key for this workspace; the answer is the only one that shows it."""
    with database.write() as session:
        made = service.create(session, form, key_hash)
    callers.forget()
    response.headers["Location"] = f"/v1/keys/{made.id}"
    response.headers["Cache-Control"] = "no-store"
    return made


@router.get("")
def list_keys(database: DatabaseDep, limit: Limit = 50, cursor: KeyCursor = None) -> KeyPage:
    """List the keys of this workspace, revoked and expired ones too."""
    with database.read() as session:
        return service.list_keys(session, limit, cursor)


@router.get("/{key_id}", responses=UNKNOWN)
def read_key(key_id: KeyId, database: DatabaseDep) -> KeyDetail:
    """Read what a key allows, and when it was last used."""
    with database.read() as session:
        return service.read(session, key_id)


@router.delete("/{key_id}", status_code=204, responses=UNKNOWN)
def revoke_key(key_id: KeyId, database: DatabaseDep, callers: CallersDep) -> None:
    """Revoke a key: this API process refuses it at once, others within five seconds."""
    with database.write() as session:
        service.revoke(session, key_id)
    callers.forget()

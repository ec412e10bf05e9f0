"""Names for versions, such as ``production``: read, set, set back and delete them."""

from __future__ import annotations

from sqlalchemy.orm import Session

from app.http.errors import Conflict
from app.persistence.base import utc_now
from app.persistence.models import Model, ModelAlias
from app.registry import repository
from app.registry.schemas import AliasDetail, AliasList
from app.registry.service import lock, newest_number, no_alias, no_version


def list_aliases(session: Session, name: str) -> AliasList:
    """Return all aliases of the model, by name."""
    newest_number(session, name)  # raises where there is no such model
    return AliasList(items=[_detail(name, *row) for row in repository.list_aliases(session, name)])


def read_alias(session: Session, name: str, alias: str) -> AliasDetail:
    """Return what the alias names, and what it named before."""
    found = repository.find_alias(session, name, alias)
    if found is None:
        raise no_alias(session, name, alias)
    return _detail(name, *found)


def set_alias(session: Session, name: str, alias: str, number: int) -> AliasDetail:
    """Let the alias name version ``number`` from now on, and remember the one that it named."""
    model = lock(session, name)
    version_id = repository.version_id(session, model.id, number)
    if version_id is None:
        raise no_version(session, name, number)
    stored = session.get(ModelAlias, (model.id, alias))
    if stored is None:
        session.add(ModelAlias(model_id=model.id, name=alias, model_version_id=version_id))
    elif stored.model_version_id != version_id:
        _move(stored, version_id)
    session.flush()
    return read_alias(session, name, alias)


def roll_back(session: Session, name: str, alias: str) -> AliasDetail:
    """Let the alias name the version that it named before.

    A second time there is nothing to go back to, so that a request sent twice does not bring back the version
    that was taken away.
    """
    stored = _locked(session, lock(session, name), name, alias)
    if stored.previous_version_id is None:
        raise Conflict(
            "nothing_to_roll_back_to",
            f"The alias {alias!r} of the model {name!r} has no version to go back to: it named none "
            "before, was rolled back already, or that version was deleted. Set it to a version by PUT.",
        )
    _move(stored, stored.previous_version_id)
    stored.previous_version_id = None
    session.flush()
    return read_alias(session, name, alias)


def delete_alias(session: Session, name: str, alias: str) -> None:
    """Delete the alias; the version stays."""
    session.delete(_locked(session, lock(session, name), name, alias))


def _move(stored: ModelAlias, version_id: str) -> None:
    stored.previous_version_id, stored.model_version_id = stored.model_version_id, version_id
    stored.changed_at = utc_now()


def _locked(session: Session, model: Model, name: str, alias: str) -> ModelAlias:
    stored = session.get(ModelAlias, (model.id, alias))
    if stored is None:
        raise no_alias(session, name, alias)
    return stored


def _detail(name: str, alias: ModelAlias, number: int, previous: int | None) -> AliasDetail:
    return AliasDetail(
        model=name, alias=alias.name, version=number, previous_version=previous, changed_at=alias.changed_at
    )

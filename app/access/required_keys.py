"""Decide whether the service may start without keys."""

from __future__ import annotations

import logging

from sqlalchemy import make_url

from app.access import repository
from app.persistence.database import Database
from app.processes.cannot_start import CannotStart
from app.processes.listener import is_loopback
from app.settings import Settings, variable

logger = logging.getLogger(__name__)

_KNOWN_PASSWORDS = {"ccmtl", "changeme", "change-me", "password", "postgres", "secret"}


def require_keys(database: Database, settings: Settings) -> None:
    """Raise CannotStart if the service could be used by whoever reaches it from another machine.

    On an address that only this machine reaches, say in the log that there are no keys.
    """
    with database.read() as session:
        has_keys = repository.has_keys(session)
    if is_loopback(settings.host):
        if not has_keys:
            logger.warning(
                "there are no API keys: whoever reaches %s on this machine may do everything; "
                "`ccmtl keys create NAME` makes the first",
                settings.host,
            )
        return
    reached = f"{variable('host')}: other machines reach {settings.host}"
    if not has_keys:
        raise CannotStart(
            f"{reached}, and there are no API keys yet: make the first with `ccmtl keys create NAME`, or "
            "listen on 127.0.0.1."
        )
    if settings.secret_key is not None and len(set(settings.secret_key.get_secret_value())) < 8:
        raise CannotStart(
            f"{reached}, and {variable('secret_key')} can be guessed: unset it, or set it to what "
            "`openssl rand -hex 32` prints, and make the keys anew."
        )
    if make_url(settings.resolved_database_url).password in _KNOWN_PASSWORDS:
        raise CannotStart(
            f"{reached}, and the password in {variable('database_url')} can be guessed: change it with "
            "`ALTER ROLE … PASSWORD …` to what `openssl rand -hex 24` prints."
        )

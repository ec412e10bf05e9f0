"""Tell from the header of a request who sends it, without asking the database for each."""

from __future__ import annotations

import hmac
import logging
import math
import threading
import time
from collections.abc import Callable
from datetime import UTC, datetime
from typing import NamedTuple

from sqlalchemy.exc import OperationalError

from app.access import repository
from app.access.keys import KeyHash, id_of
from app.http.access import CHALLENGE, Caller, Scope
from app.http.errors import ServiceUnavailable, Unauthorized
from app.persistence.base import DEFAULT_WORKSPACE
from app.persistence.database import Database
from app.persistence.models import ApiKey

logger = logging.getLogger(__name__)

REFRESH_SECONDS = 1.0
"""Keys are read anew when a request finds them older: so soon is a revoked one refused everywhere."""
RETRY_SECONDS = 0.1
"""A request with an unknown key has them read anew already then: it may have been created just now."""
PATIENCE = 1.0
"""Seconds that such a request waits for another that reads them."""
EVERYBODY = Caller(DEFAULT_WORKSPACE, frozenset(Scope), None)
"""Who sends a request while there are no keys."""


class _Known(NamedTuple):
    caller: Caller
    digest: str
    expires_at: datetime | None


class KnownCallers:
    """All keys in memory, at most ``REFRESH_SECONDS`` old while the database answers.

    Without any key, callers are everybody if ``open_without_keys``, which must hold for loopback alone.
    """

    def __init__(
        self,
        database: Database,
        key_hash: KeyHash,
        *,
        open_without_keys: bool,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._database = database
        self._hash = key_hash
        self._open_without_keys = open_without_keys
        self._clock = clock
        self._known: dict[str, _Known] = {}
        self._is_open = False
        self._tried_at = -math.inf
        self._has_read = False
        self._is_stale = True
        self._used: dict[str, datetime] = {}
        self._reading = threading.Lock()

    def peek(self, authorization: str | None) -> Caller | None:
        """Return who sends this header if that is known without asking the database, else None."""
        if self._clock() - self._tried_at > REFRESH_SECONDS or self._is_stale:
            return None
        return self._caller(authorization)

    def find(self, authorization: str | None) -> Caller:
        """Return who sends this header, or raise Unauthorized."""
        self._refresh(REFRESH_SECONDS, wait=self._is_stale)
        caller = self._caller(authorization)
        if caller is None:
            self._refresh(RETRY_SECONDS, wait=True)
            caller = self._caller(authorization)
        if caller is None and not self._has_read:
            raise ServiceUnavailable("database_unavailable", "The database does not answer; try again.")
        if caller is None:
            raise _refusal(authorization)
        return caller

    def forget(self) -> None:
        """Read the keys anew before the next request is answered."""
        self._is_stale = True

    def note_uses(self) -> None:
        """Store when keys were used since the last call."""
        used, self._used = self._used, {}
        if used:
            with self._database.write() as session:
                repository.note_uses(session, used)

    def _refresh(self, max_age: float, *, wait: bool) -> None:
        """Read the keys anew if that was not tried within ``max_age`` seconds.

        While one request reads them, others go on with the old ones, for as long as the database is silent.
        """
        if not self._reading.acquire(timeout=PATIENCE if wait else 0):
            return
        try:
            if self._clock() - self._tried_at > max_age or self._is_stale:
                self._tried_at = self._clock()
                self._read()
        except OperationalError as error:
            if not self._has_read:
                self._is_stale = True
                raise
            logger.warning("the database does not answer; keys stay as they were: %s", error.orig)
        finally:
            self._reading.release()

    def _read(self) -> None:
        self._is_stale = False
        with self._database.read() as session:
            keys = repository.all_keys(session)
        self._known = {key.id: _known(key) for key in keys if key.revoked_at is None}
        self._is_open = self._open_without_keys and not keys
        self._has_read = True

    def _caller(self, authorization: str | None) -> Caller | None:
        if self._is_open:
            return EVERYBODY
        scheme, _, text = (authorization or "").partition(" ")
        known = self._known.get(id_of(text) or "")
        if scheme.lower() != "bearer" or known is None:
            return None
        if not hmac.compare_digest(known.digest, self._hash(text)):
            return None
        now = datetime.now(UTC)
        if known.expires_at is not None and known.expires_at <= now:
            return None
        assert known.caller.key_id is not None
        self._used[known.caller.key_id] = now
        return known.caller


def _known(key: ApiKey) -> _Known:
    caller = Caller(key.workspace, frozenset(key.scopes), key.id, key.requests_per_minute)
    return _Known(caller, key.digest, key.expires_at)


def _refusal(authorization: str | None) -> Unauthorized:
    how = "send it as `Authorization: Bearer ccmtl_…`"
    if authorization is None:
        code, detail = "key_missing", f"This needs a key; {how}."
    else:
        code = "key_invalid"
        detail = f"The key is unknown, revoked or expired, or not sent as it must be; {how}."
    return Unauthorized(code, detail, headers=CHALLENGE)

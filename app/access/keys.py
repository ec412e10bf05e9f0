"""API keys as text: how one is made, taken apart, and turned into the keyed hash that is stored."""

from __future__ import annotations

import os
import re
import secrets
from hashlib import sha256
from pathlib import Path
from typing import NamedTuple

from app.settings import Settings, make_folder

ID_BYTES = 6
SECRET_BYTES = 32
_KEY = re.compile(r"ccmtl_([0-9a-f]{12})_[A-Za-z0-9_-]{43}", re.ASCII)
_SECRET_FILE = "secret_key"


class NewKey(NamedTuple):
    """A key that was just made: its id, which is no secret, and all of it, which is never stored."""

    id: str
    text: str


def new_key() -> NewKey:
    """Return a key with 256 random bits.

    Returns
    -------
    NewKey
        The id, and the text that callers send.

    Examples
    --------
    >>> key = new_key()
    >>> id_of(key.text) == key.id
    True
    """
    key_id = secrets.token_hex(ID_BYTES)
    return NewKey(key_id, f"ccmtl_{key_id}_{secrets.token_urlsafe(SECRET_BYTES)}")


def id_of(text: str) -> str | None:
    """Return the id that stands in a key, None if ``text`` is not of a key's form."""
    found = _KEY.fullmatch(text)
    return None if found is None else found[1]


class KeyHash:
    """The keyed hash of keys, HMAC-SHA-256 (RFC 2104).

    Whoever reads the database alone can neither use a key nor find out whether a guess is one. Both hashes
    are begun with the secret once: :mod:`hmac` takes 6 to 17 µs for what takes one here, at each prediction.
    """

    def __init__(self, secret: bytes) -> None:
        block = (secret if len(secret) <= 64 else sha256(secret).digest()).ljust(64, b"\0")
        self._inner = sha256(bytes(byte ^ 0x36 for byte in block))
        self._outer = sha256(bytes(byte ^ 0x5C for byte in block))

    def __call__(self, text: str) -> str:
        """Return the hash of a key, in hexadecimal."""
        inner, outer = self._inner.copy(), self._outer.copy()
        inner.update(text.encode())
        outer.update(inner.digest())
        return outer.hexdigest()


def secret_of(settings: Settings) -> bytes:
    """Return what keys are hashed with: the setting, or the secret of the data folder, made if need be."""
    if settings.secret_key is not None:
        return settings.secret_key.get_secret_value().encode()
    make_folder(settings.data_dir, "data_dir")
    path = settings.data_dir / _SECRET_FILE
    if not path.exists():
        _make(path)
    return path.read_bytes()


def _make(path: Path) -> None:
    """Write a random secret, whole or not at all; that of another process that is quicker stays."""
    draft = path.with_name(f"{path.name}.{secrets.token_hex(8)}")
    with os.fdopen(os.open(draft, os.O_CREAT | os.O_EXCL | os.O_WRONLY, 0o600), "wb") as file:
        file.write(secrets.token_hex(SECRET_BYTES).encode())
        file.flush()
        os.fsync(file.fileno())
    try:
        path.hardlink_to(draft)
    except FileExistsError:
        pass
    finally:
        draft.unlink()

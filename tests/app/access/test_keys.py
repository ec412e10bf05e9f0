from __future__ import annotations

import hmac
import stat
from pathlib import Path

import pytest
from pydantic import SecretStr

from app.access.keys import KeyHash, id_of, new_key, secret_of
from app.settings import Settings


def test_keys_differ_and_name_their_id() -> None:
    keys = [new_key() for _ in range(100)]
    assert len({key.text for key in keys}) == len({key.id for key in keys}) == 100
    assert all(id_of(key.text) == key.id for key in keys)
    assert {len(key.text) for key in keys} == {6 + 12 + 1 + 43}  # 43 characters are 256 bits


@pytest.mark.parametrize(
    "change", [str.upper, str.strip, lambda key: key + "A", lambda key: key[:-1], lambda key: f" {key}"]
)
def test_what_is_not_of_the_form_of_a_key_names_none(change: object) -> None:
    key = new_key().text
    changed = change(key)  # type: ignore[operator]
    assert id_of(changed) == (id_of(key) if changed == key else None)


def test_the_digest_needs_the_secret() -> None:
    key = new_key().text
    for secret in (b"a", b"a" * 64, b"a" * 65):
        one = KeyHash(secret)
        assert one(key) == one(key) == hmac.digest(secret, key.encode(), "sha256").hex()
        assert one(key) != KeyHash(b"b")(key)


def test_the_secret_of_a_data_folder_is_made_once_for_its_owner_alone(tmp_path: Path) -> None:
    settings = Settings(data_dir=tmp_path / "var")
    secret = secret_of(settings)
    assert (len(secret), secret_of(settings)) == (64, secret)
    (file,) = (tmp_path / "var").iterdir()
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert secret_of(Settings(data_dir=tmp_path / "other")) != secret


def test_a_secret_that_is_set_is_taken(tmp_path: Path) -> None:
    settings = Settings(data_dir=tmp_path / "var", secret_key=SecretStr("0123456789abcdef" * 2))
    assert secret_of(settings) == b"0123456789abcdef" * 2
    assert not (tmp_path / "var").exists()

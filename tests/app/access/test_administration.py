"""What ``ccmtl keys`` shows of keys."""

from __future__ import annotations

from datetime import timedelta

import pytest
from sqlalchemy import update

from app.access import administration
from app.persistence.base import utc_now
from app.persistence.database import Database
from app.persistence.models import ApiKey
from app.settings import Settings


@pytest.fixture
def database_kind() -> str:
    return "sqlite"


def test_expired_keys_are_marked(settings: Settings, database: Database) -> None:
    for name in ("lasting", "over", "running"):
        days = None if name == "lasting" else 1.0
        administration.create(settings, name, "default", ["predict"], days, None)
    with database.write() as session:
        session.execute(
            update(ApiKey).where(ApiKey.name == "over").values(expires_at=utc_now() - timedelta(days=1))
        )
    lines = administration.listed(settings, None)[1:]
    assert ["(expired)" in line for line in lines] == [False, True, False]

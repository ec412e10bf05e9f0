from __future__ import annotations

from pathlib import Path

import pytest
from pydantic import ValidationError

from app.settings import Settings


def test_a_child_process_reads_the_same_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    given = Settings(
        data_dir=Path("/somewhere else/ü"),
        database_url="postgresql+psycopg://u:p%40ss@h/d",
        port=0,
        workers=3,
        job_lease_seconds=2.5,
        access_log=True,
        log_level="debug",
    )
    for name, value in given.environment().items():
        monkeypatch.setenv(name, value)
    assert Settings() == given


def test_default_database_is_a_file_in_the_data_folder(tmp_path: Path) -> None:
    settings = Settings(data_dir=tmp_path)
    assert settings.is_sqlite
    assert settings.resolved_database_url == f"sqlite:///{tmp_path}/ccmtl.db"
    assert not Settings(database_url="postgresql+psycopg://h/d").is_sqlite


@pytest.mark.parametrize(
    ("name", "value"),
    [("PORT", "70000"), ("WORKERS", "-1"), ("JOB_LEASE_SECONDS", "0"), ("LOG_LEVEL", "loud"), ("PORT", "x")],
)
def test_a_value_out_of_bounds_is_refused(monkeypatch: pytest.MonkeyPatch, name: str, value: str) -> None:
    monkeypatch.setenv(f"CCMTL_{name}", value)
    with pytest.raises(ValidationError, match=name.lower()):
        Settings()


def test_the_variables_of_the_tests_are_no_settings(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CCMTL_TEST_POSTGRES_URL", "postgresql://h/d")
    assert Settings() == Settings()


@pytest.mark.parametrize(
    "url",
    [
        "x",
        "mysql://h/d",
        "postgresql+asyncpg://h/d",
        "sqlite+other://",
        "postgresql+psycopg://h:port/d",
        "postgresql+psycopg://u:p@ss:1@h:1:2/d",
        "://",
    ],
)
def test_a_database_url_that_cannot_be_used_is_refused(url: str) -> None:
    with pytest.raises(ValidationError, match=r"database_url[\s\S]*must be a URL such as"):
        Settings(database_url=url)

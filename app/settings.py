"""The settings of the service, read from environment variables that begin with ``CCMTL_``."""

from __future__ import annotations

import os
import re
from functools import cached_property
from pathlib import Path
from typing import Any, Literal

from pydantic import Field, SecretStr, field_validator, model_validator
from pydantic_core import ErrorDetails, PydanticCustomError
from pydantic_settings import BaseSettings, SettingsConfigDict
from sqlalchemy import make_url
from sqlalchemy.exc import ArgumentError

from app.http.names import hint
from app.processes.cannot_start import CannotStart

PREFIX = "CCMTL_"
_SHORTEST_KEY = 32
_OF_THE_TESTS = "test_"
_DRIVERS = {"sqlite", "sqlite+pysqlite", "postgresql", "postgresql+psycopg"}


class Settings(BaseSettings):
    """The settings; a variable of an unknown name or with an unusable value stops the start."""

    model_config = SettingsConfigDict(env_prefix=PREFIX, frozen=True, extra="forbid")

    data_dir: Path = Field(
        Path("var"), description="Folder for dataset files and, by default, the SQLite database."
    )
    database_url: str | None = Field(
        None, description="SQLAlchemy URL; default: SQLite in data_dir. postgresql+psycopg://… in production."
    )
    host: str = Field("127.0.0.1", description="Address the API listens on.")
    port: int = Field(8000, ge=0, le=65535, description="Port the API listens on; 0: a free one.")
    secret_key: SecretStr | None = Field(
        None,
        description="What API keys are hashed with, at least 32 characters, the same for all processes; "
        "default: random, in the file `secret_key` in data_dir.",
    )
    requests_per_minute: int | None = Field(
        None,
        ge=1,
        description="Requests that each API process answers a key in a minute, unless it names a number.",
    )
    log_level: Literal["debug", "info", "warning", "error"] = Field(
        "info", description="The least severe log line written."
    )
    log_format: Literal["text", "json"] = Field(
        "text", description="Log lines as text, or each as a JSON object."
    )
    metrics_need_key: bool = Field(
        False, description="Answer `/metrics` only to a key with the scope `admin`, once there are keys."
    )
    access_log: bool = Field(
        False,
        description="Write a log line for every HTTP request, without what is no parameter of its path.",
    )
    workers: int = Field(1, ge=0, le=64, description="Worker processes that `ccmtl serve` keeps running.")
    job_lease_seconds: float = Field(
        10.0, ge=1, le=3600, description="A job whose worker is silent for this long is taken over."
    )
    job_poll_seconds: float = Field(
        0.5, ge=0.05, le=60, description="How often an idle worker looks for a job."
    )
    job_max_attempts: int = Field(
        3,
        ge=1,
        le=20,
        description="A job whose process died this often is failed; one whose worker fell silent, five times "
        "as often.",
    )
    job_max_seconds: float | None = Field(
        None,
        gt=0,
        description="A run of a job that takes longer is ended, and the job failed (`time_limit`).",
    )
    job_max_memory_mb: int | None = Field(
        None,
        ge=1,
        description="A job whose process takes more memory, in MiB, is failed (`memory_limit`). Linux only.",
    )
    dask_scheduler: str | None = Field(
        None,
        description="Dask scheduler whose workers fit the folds of jobs, such as tcp://scheduler:8786; "
        "default: the machine of the job fits them.",
    )
    max_queued_jobs: int = Field(
        1000, ge=1, description="Training jobs that may wait in a workspace; more are answered 429."
    )
    webhook_private_addresses: bool = Field(
        False,
        description="Webhooks may go to addresses of this machine and of private networks, and by http.",
    )
    max_upload_bytes: int = Field(
        4 * 1024**3, ge=1024, description="Largest accepted dataset upload, in bytes, after decompression."
    )
    max_expansion: int = Field(
        200,
        ge=2,
        description="A compressed upload that unpacks to more than 256 MiB and to more than so many times "
        "its size is refused.",
    )
    upload_max_seconds: float | None = Field(
        None,
        gt=0,
        description="Reading a large upload may take so long, else it is ended; default: 15 minutes and 4 "
        "seconds for each MB.",
    )
    max_request_bytes: int = Field(
        16 * 1024**2,
        ge=1024,
        description="Largest accepted JSON request body, in bytes; definitions and training "
        "requests are accepted up to 1048576 at most.",
    )
    model_cache_bytes: int = Field(
        2 * 1024**3, ge=1, description="Memory for weights kept ready to predict, in bytes."
    )

    @model_validator(mode="before")
    @classmethod
    def _with_unknown_names(cls, values: dict[str, Any]) -> dict[str, Any]:
        """Add variables that begin with the prefix but are no setting, so that they are refused."""
        names = [name.lower() for name in os.environ]
        own = [name.removeprefix(PREFIX.lower()) for name in names if name.startswith(PREFIX.lower())]
        unknown = [
            name for name in own if name not in cls.model_fields and not name.startswith(_OF_THE_TESTS)
        ]
        return {**values, **dict.fromkeys(unknown, "")}

    @field_validator("*", mode="before")
    @classmethod
    def _given(cls, value: Any) -> Any:
        # An empty host would mean every address of the machine, an empty folder the current one.
        if value == "":
            raise PydanticCustomError("empty", "is empty; give a value, or unset it for its default")
        return value

    @field_validator("database_url")
    @classmethod
    def _readable(cls, database_url: str | None) -> str | None:
        try:
            driver = make_url(database_url).drivername if database_url is not None else "sqlite"
        except (ArgumentError, ValueError):
            driver = ""
        if driver not in _DRIVERS:
            raise ValueError(
                "must be a URL such as sqlite:////folder/ccmtl.db or postgresql+psycopg://host/name"
            )
        return database_url

    @field_validator("secret_key")
    @classmethod
    def _long_enough(cls, key: SecretStr | None) -> SecretStr | None:
        if key is not None and len(key) < _SHORTEST_KEY:
            raise ValueError(f"must have {_SHORTEST_KEY} or more characters, not {len(key)}")
        return key

    @field_validator("dask_scheduler")
    @classmethod
    def _with_port(cls, address: str | None) -> str | None:
        if address is not None and not re.fullmatch("(tcp|tls)://[^ /]+:[0-9]+", address):
            raise ValueError("must be an address such as tcp://scheduler:8786")
        return address

    @cached_property
    def resolved_database_url(self) -> str:
        """The database in use: the configured one, or the SQLite file in ``data_dir``."""
        return self.database_url or f"sqlite:///{self.data_dir.absolute() / 'ccmtl.db'}"

    @property
    def is_sqlite(self) -> bool:
        """Whether the database is SQLite."""
        return self.resolved_database_url.startswith("sqlite")

    def environment(self) -> dict[str, str]:
        """Return the environment variables that give a child process these same settings."""
        values = self.model_dump(mode="json", exclude_none=True)
        if self.secret_key is not None:
            values["secret_key"] = self.secret_key.get_secret_value()
        return {variable(name): str(value) for name, value in values.items()}


def explained(fault: ErrorDetails) -> str:
    """Return one line about a faulty variable, without a value that may hold a password."""
    field = str(fault["loc"][0])
    if fault["type"] == "extra_forbidden":
        near = hint(field.upper(), map(str.upper, Settings.model_fields), PREFIX)
        return f"{variable(field)}: there is no such setting; {near}"
    given = (
        ""
        if field in ("database_url", "secret_key") or not fault["input"]
        else f" (given: {fault['input']!r})"
    )
    return f"{variable(field)}: {fault['msg'].removeprefix('Value error, ')}{given}"


def make_folder(folder: Path, field: str) -> None:
    """Make the folder that the setting ``field`` names, and those above it, or raise CannotStart."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        file = next(filter(os.path.isfile, (folder, *folder.parents)), None)
        reason = (
            f"{file} is a file, not a folder" if file else f"{folder} cannot be created: {error.strerror}"
        )
        raise CannotStart(f"{variable(field)}: {reason}") from error


def variable(field: str) -> str:
    """Return the environment variable that gives a field its value."""
    return PREFIX + field.upper()

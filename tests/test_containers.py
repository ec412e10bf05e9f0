"""The image and the compose file hand the service only settings that it has, and commands that it knows."""

import re
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml

from app.commands.cli import COMMANDS
from app.settings import Settings, variable

ROOT = Path(__file__).parents[1]
DOCKERFILE = (ROOT / "Dockerfile").read_text()
COMPOSE = yaml.safe_load((ROOT / "docker-compose.yml").read_text())
VERSION = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["version"]
SETTINGS = {variable(name) for name in Settings.model_fields}
OURS: dict[str, dict[str, Any]] = {
    name: service for name, service in COMPOSE["services"].items() if "build" in service
}


def in_the_image() -> dict[str, str]:
    """The settings that the Dockerfile gives a value."""
    return dict(re.findall(r"\b(CCMTL_\w+)=(\S+)", DOCKERFILE))


def handed_on(service: dict[str, Any]) -> set[str]:
    """The variables of a service that take their value from ``.env`` or the shell, or are left out."""
    return {name for name, value in service["environment"].items() if value is None}


def test_the_image_sets_settings_that_exist(monkeypatch: pytest.MonkeyPatch) -> None:
    for name, value in in_the_image().items():
        monkeypatch.setenv(name, value)
    settings = Settings()
    assert (str(settings.data_dir), settings.host) == ("/var/lib/ccmtl", "0.0.0.0")


@pytest.mark.parametrize("name", OURS)
def test_a_service_can_be_given_every_setting_that_the_files_do_not_fix(name: str) -> None:
    service = OURS[name]
    fixed = {key for key, value in service["environment"].items() if value is not None} - {"PGPASSWORD"}
    assert fixed == {"CCMTL_DATABASE_URL"}
    assert handed_on(service) | fixed | in_the_image().keys() | {"CCMTL_WORKERS"} == SETTINGS
    # One that is left out would take the image's own value away.
    assert not handed_on(service) & in_the_image().keys()


def test_the_services_together_are_those_of_the_command() -> None:
    assert all(len(service["command"]) == 1 for service in OURS.values())
    assert (
        {service["command"][0] for service in OURS.values()}
        == {"migrate", "api", "worker"}
        <= COMMANDS.keys()
    )


def test_the_port_published_is_the_one_listened_on() -> None:
    (published,) = OURS["api"]["ports"]
    assert published == f"127.0.0.1:${{CCMTL_PORT:-8000}}:{in_the_image()['CCMTL_PORT']}"


def test_data_is_kept_where_the_image_keeps_it() -> None:
    assert all(s["volumes"] == [f"data:{in_the_image()['CCMTL_DATA_DIR']}"] for s in OURS.values())


def test_image_and_documentation_carry_the_version() -> None:
    assert {service["image"] for service in OURS.values()} == {f"ccmtl:{VERSION}"}
    page = (ROOT / "docs" / "operations.md").read_text()
    assert set(re.findall(r"ccmtl:(\d[\w.]*)", page)) == {VERSION}


def test_what_the_image_copies_is_in_the_build_context() -> None:
    allowed = {
        line.removeprefix("!")
        for line in (ROOT / ".dockerignore").read_text().split()
        if line.startswith("!")
    }
    copied = [
        source.rstrip("/")
        for line in re.findall(r"^COPY (?!--from)(.+)$", DOCKERFILE, re.MULTILINE)
        for source in line.split()[:-1]
    ]
    assert copied
    assert set(copied) == allowed
    assert all((ROOT / source).exists() for source in copied)

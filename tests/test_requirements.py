"""requirements/*.txt pin what pyproject.toml asks for, the whole closure of it, and nothing else."""

import re
import tomllib
from importlib.metadata import distribution
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
RUNTIME = [Requirement(line) for line in PROJECT["dependencies"]]
EXTRAS = [Requirement(line) for group in PROJECT["optional-dependencies"].values() for line in group]


def pinned(name: str) -> list[Requirement]:
    return [Requirement(line) for line in (ROOT / "requirements" / name).read_text().splitlines()]


def pins_here(name: str) -> dict[str, Requirement]:
    """The pins that apply to the running interpreter, by canonical name."""
    return {
        canonicalize_name(pin.name): pin
        for pin in pinned(name)
        if pin.marker is None or pin.marker.evaluate()
    }


def closure(roots: list[Requirement]) -> set[str]:
    """Names of everything that installing ``roots`` brings here, read from what is installed."""
    found: set[str] = set()
    todo = [(canonicalize_name(r.name), extra) for r in roots for extra in ("", *r.extras)]
    seen: set[tuple[str, str]] = set()
    while todo:
        name, extra = todo.pop()
        if (name, extra) in seen:
            continue
        seen.add((name, extra))
        found.add(name)
        for line in distribution(name).requires or ():
            needed = Requirement(line)
            if needed.marker is None or needed.marker.evaluate({"extra": extra}):
                todo += [(canonicalize_name(needed.name), e) for e in ("", *needed.extras)]
    return found


@pytest.mark.parametrize("name", ["runtime.txt", "dev.txt", "uv.txt"])
def test_every_line_is_an_exact_pin_and_names_no_index(name: str) -> None:
    for line in (ROOT / "requirements" / name).read_text().splitlines():
        assert re.fullmatch(r"[A-Za-z0-9._-]+==[^ @/]+( ; [^:/@]+)?", line), line


@pytest.mark.parametrize(
    ("name", "wanted"), [("runtime.txt", RUNTIME), ("dev.txt", RUNTIME + EXTRAS)], ids=["runtime", "dev"]
)
def test_every_dependency_is_pinned_to_a_version_that_pyproject_accepts(
    name: str, wanted: list[Requirement]
) -> None:
    pins = pinned(name)
    for requirement in wanted:
        versions = [
            next(iter(pin.specifier)).version
            for pin in pins
            if canonicalize_name(pin.name) == canonicalize_name(requirement.name)
        ]
        assert versions, f"{requirement.name} is not pinned in {name}: run `make lock`"
        assert all(v in requirement.specifier for v in versions), (requirement, versions)


@pytest.mark.parametrize(
    ("name", "roots"), [("runtime.txt", RUNTIME), ("dev.txt", RUNTIME + EXTRAS)], ids=["runtime", "dev"]
)
def test_the_pins_are_the_closure_of_the_dependencies(name: str, roots: list[Requirement]) -> None:
    assert set(pins_here(name)) == closure(roots), "run `make lock`"


def test_the_two_files_agree() -> None:
    dev = pinned("dev.txt")
    everywhere = {f"{pin.name}{pin.specifier}" for pin in dev if pin.marker is None}
    missing = {str(pin) for pin in pinned("runtime.txt")} - {str(pin) for pin in dev}
    assert {pin for pin in missing if pin.partition(";")[0].strip() not in everywhere} == set()


def test_what_runs_here_is_what_is_pinned() -> None:
    installed = {name: distribution(name).version for name in pins_here("dev.txt")}
    assert installed == {
        name: next(iter(pin.specifier)).version for name, pin in pins_here("dev.txt").items()
    }, "run `make check`: it brings the environment up to date"

"""Setting up returns at once while the environment fits, and heals one that does not follow the checkout."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from scripts.guide_blocks import ROOT


@pytest.fixture
def made(tmp_path: Path) -> Path:
    """An environment with the mark of one that fits, and an interpreter that says when it makes another."""
    python = tmp_path / "python"
    python.write_text(f'#!/bin/sh\n[ "$2" = venv ] && echo made anew && exit 1\nexec {sys.executable} "$@"\n')
    python.chmod(0o755)
    venv = tmp_path / "venv"
    venv.mkdir()
    files = "pyproject.toml requirements/*.txt"
    fits = f'printf %s "$(cat {files} | cksum) $({sys.executable} --version) $PWD runtime"'
    mark = subprocess.run(["sh", "-c", fits], cwd=ROOT, capture_output=True, check=True).stdout
    (venv / ".made-by-ccmtl").write_bytes(mark)
    return venv


def set_up(venv: Path, level: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "VENV": str(venv), "PYTHON": str(venv.with_name("python"))}
    command = ["sh", "scripts/setup.sh", level]
    return subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True, check=False)


def test_an_environment_that_fits_is_left_alone(made: Path) -> None:
    done = set_up(made, "runtime")
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_a_frozen_copy_of_the_packages_is_replaced(made: Path) -> None:
    """As ``pip install '.[distributed]'`` makes one: the checkout's later changes would have no effect."""
    (made / "lib" / "python3.11" / "site-packages" / "ccmtl_core").mkdir(parents=True)
    done = set_up(made, "runtime")
    assert "Creating the virtual environment" in done.stdout
    assert "made anew" in done.stderr


def test_an_environment_of_others_is_not_touched(made: Path) -> None:
    (made / ".made-by-ccmtl").unlink()
    done = set_up(made, "runtime")
    assert done.returncode == 1
    assert "was not made by this Makefile" in done.stderr
    assert made.exists()


def test_the_commands_keep_compiled_modules_whatever_the_environment_says() -> None:
    rule = f"include Makefile\nsay:\n\t@{sys.executable} -c 'import sys; print(sys.dont_write_bytecode)'\n"
    command = ["make", "--silent", "--file", "-", "say"]
    environment = {**os.environ, "PYTHONDONTWRITEBYTECODE": "1"}
    done = subprocess.run(command, input=rule, cwd=ROOT, env=environment, capture_output=True, text=True)
    assert (done.stdout, done.stderr) == ("False\n", "")

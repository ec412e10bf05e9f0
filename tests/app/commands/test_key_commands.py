"""Keys from the command line, and a service that other machines reach only with keys."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import httpx2
import pytest

from tests.support.forked import forked_ccmtl
from tests.support.processes import PATIENCE


def test_a_key_is_made_listed_and_revoked(tmp_path: Path) -> None:
    folder = {"CCMTL_DATA_DIR": str(tmp_path)}
    made = forked_ccmtl("keys", "create", "tills", "--scopes", "predict", "--workspace", "north", **folder)
    assert made.returncode == 0, made.stderr
    (key,) = made.stdout.splitlines()
    key_id = key.split("_")[1]
    assert made.stderr == f"Key {key_id} of the workspace 'north' allows: predict. Keep it now:\n"
    listed = forked_ccmtl("keys", "list", **folder).stdout
    assert key not in listed
    assert listed.splitlines()[1].split() == [key_id, "north", "tills", "predict"]
    assert forked_ccmtl("keys", "list", "--workspace", "south", **folder).stdout.count("\n") == 1
    assert forked_ccmtl("keys", "revoke", key_id, **folder).returncode == 0
    assert len(forked_ccmtl("keys", "list", **folder).stdout.splitlines()[1].split()) == 6


def test_what_is_wrong_with_a_key_is_said_at_once(tmp_path: Path) -> None:
    done = forked_ccmtl("keys", "create", "no name", "--scopes", "all", CCMTL_DATA_DIR=str(tmp_path))
    assert done.returncode == 1
    assert done.stderr.startswith("name: must be 1 to 100 characters")
    assert "scopes.0: must be 'data', 'train', 'predict' or 'admin'" in done.stderr
    for days in ("0", "-1", "nan"):
        done = forked_ccmtl("keys", "create", "till", "--days", days, CCMTL_DATA_DIR=str(tmp_path))
        assert done.returncode == 2
        assert "must be more than 0" in done.stderr
    done = forked_ccmtl("keys", "revoke", "0" * 12, CCMTL_DATA_DIR=str(tmp_path))
    assert (done.returncode, done.stderr) == (
        1,
        "There is no key '000000000000'. `ccmtl keys list` lists them.\n",
    )


@pytest.mark.parametrize("command", ["serve", "api"])
def test_other_machines_are_not_served_without_keys(command: str, tmp_path: Path) -> None:
    given = {"CCMTL_DATA_DIR": str(tmp_path), "CCMTL_HOST": "0.0.0.0", "CCMTL_PORT": "0"}
    done = forked_ccmtl(command, **given)
    assert done.returncode == 1
    assert done.stderr.splitlines()[-1] == (
        "CCMTL_HOST: other machines reach 0.0.0.0, and there are no API keys yet: make the first with "
        "`ccmtl keys create NAME`, or listen on 127.0.0.1."
    )


@pytest.mark.parametrize(
    ("variable", "value"),
    [("CCMTL_SECRET_KEY", "change" * 6), ("CCMTL_SECRET_KEY", "0" * 40)],
)
def test_other_machines_are_not_served_with_a_secret_that_can_be_guessed(
    variable: str, value: str, tmp_path: Path
) -> None:
    given = {"CCMTL_DATA_DIR": str(tmp_path), "CCMTL_HOST": "0.0.0.0", "CCMTL_PORT": "0", variable: value}
    assert forked_ccmtl("keys", "create", "first", **given).returncode == 0
    done = forked_ccmtl("api", **given)
    assert done.returncode == 1
    assert "CCMTL_SECRET_KEY can be guessed" in done.stderr
    assert "openssl rand -hex 32" in done.stderr
    assert value not in done.stderr


def test_with_a_key_every_address_is_served(tmp_path: Path) -> None:
    given = {"CCMTL_DATA_DIR": str(tmp_path), "CCMTL_HOST": "0.0.0.0", "CCMTL_PORT": "0"}
    key = forked_ccmtl("keys", "create", "first", **given).stdout.strip()
    command = [sys.executable, "-m", "app.commands.cli", "api"]
    with subprocess.Popen(command, env={**os.environ, **given}, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        url = next(line for line in process.stderr if "listening on" in line).rpartition(" ")[2].strip()
        url = url.replace("0.0.0.0", "127.0.0.1") + "/v1/models"
        assert httpx2.get(url, timeout=PATIENCE).status_code == 401
        with_key = {"Authorization": f"Bearer {key}"}
        assert httpx2.get(url, timeout=PATIENCE, headers=with_key).status_code == 200
        process.terminate()
        rest = process.stderr.read()
    assert process.returncode == 0, rest

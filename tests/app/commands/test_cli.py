from __future__ import annotations

import json
import os
import re
import signal
import socket
import subprocess
import sys
import time
import tomllib
from importlib.metadata import version
from pathlib import Path

import httpx2
import pytest
from typer.testing import CliRunner

from app.commands import entry
from app.commands.cli import COMMANDS, NamedCommand, cli
from app.persistence.database import Database
from app.persistence.schema import require_current
from app.settings import Settings
from tests.conftest import postgres_database
from tests.support.forked import forked_ccmtl
from tests.support.processes import PATIENCE


def ccmtl(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "app.commands.cli", *arguments],
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        timeout=PATIENCE,
    )


def test_help_names_every_command() -> None:
    done = ccmtl("--help")
    assert done.returncode == 0
    for command in ("serve", "api", "worker", "migrate", "fit"):
        assert f" {command} " in done.stdout


def test_the_help_of_each_command_is_that_of_its_function() -> None:
    for name, (_, line) in COMMANDS.items():
        assert NamedCommand(name).imported().help.partition("\n")[0] == line


@pytest.mark.parametrize("command", COMMANDS)
def test_help_breaks_no_word_in_a_narrow_terminal(command: str) -> None:
    narrow, wide = (forked_ccmtl(command, "--help", COLUMNS=columns).stdout for columns in ("60", "250"))
    assert len(narrow.splitlines()[0]) <= 60
    assert wide.startswith("Usage: ")
    assert sorted(re.sub(r"-\n +", "-", narrow).split()) == sorted(wide.split())


def test_the_version_is_the_distribution_s() -> None:
    done = ccmtl("--version")
    assert (done.returncode, done.stdout) == (0, f"ccmtl {version('ccmtl')}\n")


IMPORTING = """
import json, sys
from typer.testing import CliRunner
from app.commands.cli import cli
for command in json.loads(sys.argv[1]):
    CliRunner().invoke(cli, command)
    print(json.dumps(sorted({name.partition(".")[0] for name in sys.modules})))
"""


def imported_after(commands: list[list[str]], **environment: str) -> dict[str, set[str]]:
    """The top packages that one process has imported after each of the commands that it runs."""
    done = subprocess.run(
        [sys.executable, "-c", IMPORTING, json.dumps(commands)],
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        timeout=PATIENCE,
    )
    imported = map(set, map(json.loads, done.stdout.splitlines()))
    return {" ".join(command): names for command, names in zip(commands, imported, strict=True)}


def test_help_does_not_wait_for_libraries_that_it_does_not_need() -> None:
    helps = [["--help"], *([command, "--help"] for command in COMMANDS)]
    first, *others = imported_after(helps).items()
    assert not first[1] & {"numba", "polars", "pydantic", "sqlalchemy"}
    for command, imported in others:
        assert not imported & {"ccmtl_core", "numba", "numpy", "polars"}, command


def test_a_wrong_command_line_does_not_wait_for_the_library() -> None:
    wrong = [
        "fit shop.csv --fusion-strength much --task a --target b --features c",
        "fit shop.csv --fusion-strength 1 --metric cosine",
        "forecast m.npz shop.csv --horizon 0",
        "predict shop.csv m.npz",
        "statistics-sql --dialect none",
    ]
    for command, imported in imported_after([line.split() for line in wrong]).items():
        assert not imported & {"ccmtl_core", "numba", "numpy", "polars"}, command


@pytest.mark.parametrize("arguments", [["-h"], *([command, "-h"] for command in COMMANDS)])
def test_the_short_option_h_is_help_everywhere(arguments: list[str]) -> None:
    done = CliRunner().invoke(cli, arguments)
    assert (done.exit_code, done.stderr) == (0, "")
    assert "-h, --help" in done.stdout


def test_a_wrong_setting_is_found_before_the_service_is_imported() -> None:
    commands = [["serve"], ["api"], ["worker"], ["migrate"]]
    for command, imported in imported_after(commands, CCMTL_PORT="x").items():
        assert not imported & {"alembic", "ccmtl_core", "fastapi", "numba"}, command


def test_no_folder_for_compiled_code_is_needed_to_start() -> None:
    done = ccmtl("--help", NUMBA_CACHE_LOCATOR_CLASSES="ZipCacheLocator")  # which no unpacked file suits
    assert done.returncode == 0, done.stderr


def test_migrate_makes_an_empty_database_current(empty_database_url: str) -> None:
    done = forked_ccmtl("migrate", CCMTL_DATABASE_URL=empty_database_url)
    assert (done.returncode, done.stdout) == (0, "The database is up to date.\n"), done.stderr
    database = Database(Settings(database_url=empty_database_url))
    require_current(database)
    database.dispose()


@pytest.mark.parametrize("database_kind", ["postgresql"])
@pytest.mark.parametrize("command", ["serve", "api", "worker"])
def test_postgresql_without_tables_is_refused_with_the_remedy(
    empty_database_url: str, command: str, tmp_path: Path
) -> None:
    done = forked_ccmtl(command, CCMTL_DATABASE_URL=empty_database_url, CCMTL_DATA_DIR=str(tmp_path))
    assert done.returncode == 1
    assert "run `ccmtl migrate`" in done.stderr
    assert "Traceback" not in done.stderr


def test_a_database_url_that_cannot_be_used_is_named_without_its_password() -> None:
    done = forked_ccmtl("migrate", CCMTL_DATABASE_URL="mysql://shop:hush@host/shop")
    assert done.returncode == 1
    assert done.stderr.startswith("CCMTL_DATABASE_URL: ")
    assert "postgresql+psycopg://host/name" in done.stderr
    assert "hush" not in done.stderr
    assert len(done.stderr.splitlines()) == 1


def test_a_database_that_is_not_there_is_named() -> None:
    done = forked_ccmtl("migrate", CCMTL_DATABASE_URL="postgresql+psycopg://nobody@127.0.0.1:1/none")
    assert done.returncode == 1
    assert done.stderr.startswith("The database cannot be used: ")
    assert "Traceback" not in done.stderr


def test_a_setting_out_of_bounds_is_named() -> None:
    done = forked_ccmtl("serve", CCMTL_PORT="70000", CCMTL_WORKERS="many")
    assert done.returncode == 1
    assert [line.partition(":")[0] for line in done.stderr.splitlines()] == ["CCMTL_PORT", "CCMTL_WORKERS"]


def test_a_setting_that_does_not_exist_is_named_with_near_matches_without_its_value() -> None:
    given = {"CCMTL_DATABSE_URL": "postgresql://shop:hush@host/shop", "ccmtl_zz": "1", "CCMTL_PORT": "x"}
    done = forked_ccmtl("worker", **given)
    assert done.returncode == 1
    assert "hush" not in done.stderr
    port, database_url, other = done.stderr.splitlines()
    assert port.startswith("CCMTL_PORT: ")
    assert database_url == "CCMTL_DATABSE_URL: there is no such setting; did you mean 'CCMTL_DATABASE_URL'?"
    assert other.startswith("CCMTL_ZZ: there is no such setting; there are: CCMTL_DATA_DIR, CCMTL_")


@pytest.mark.parametrize("name", ["CCMTL_DATABASE_URL", "CCMTL_DATA_DIR", "CCMTL_HOST"])
def test_an_empty_setting_is_not_taken_for_its_default(name: str) -> None:
    done = forked_ccmtl("api", **{name: ""})
    assert done.returncode == 1
    assert done.stderr == f"{name}: is empty; give a value, or unset it for its default\n"


@pytest.mark.parametrize("command", ["serve", "api", "worker"])
def test_a_data_folder_that_is_a_file_stops_the_start(tmp_path: Path, command: str) -> None:
    (tmp_path / "file").touch()
    done = forked_ccmtl(command, CCMTL_DATA_DIR=str(tmp_path / "file"))
    assert done.returncode == 1
    assert done.stderr == f"CCMTL_DATA_DIR: {tmp_path / 'file'} is a file, not a folder\n"


def test_a_database_file_that_cannot_be_opened_is_named(tmp_path: Path) -> None:
    (tmp_path / "ccmtl.db").mkdir()
    done = forked_ccmtl("migrate", CCMTL_DATA_DIR=str(tmp_path))
    reason = "The database cannot be used: unable to open database file"
    assert done.stderr == f"{reason}: {tmp_path / 'ccmtl.db'} (CCMTL_DATA_DIR)\n"
    url = f"sqlite:///{tmp_path / 'none' / 'x.db'}"
    assert (
        f"{tmp_path / 'none' / 'x.db'} (CCMTL_DATABASE_URL)"
        in forked_ccmtl("migrate", CCMTL_DATABASE_URL=url).stderr
    )


@pytest.mark.parametrize("command", ["serve", "api"])
def test_a_taken_port_is_found_out_at_once(tmp_path: Path, command: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        done = forked_ccmtl(command, "--port", port, CCMTL_DATA_DIR=str(tmp_path))
    assert done.returncode == 1
    (line,) = done.stderr.splitlines()
    assert line.startswith(f"Cannot listen on 127.0.0.1, port {port}: another program listens there")
    assert "--port or CCMTL_PORT" in line


@pytest.mark.parametrize(
    ("host", "reason"),
    [("192.0.2.7", "no address of this machine"), ("nowhere.invalid", "there is no such host")],
)
def test_a_host_that_is_not_this_machine_is_named(tmp_path: Path, host: str, reason: str) -> None:
    done = forked_ccmtl("serve", "--host", host, "--port", "0", CCMTL_DATA_DIR=str(tmp_path))
    assert done.returncode == 1
    (line,) = done.stderr.splitlines()
    assert reason in line
    assert "--host or CCMTL_HOST" in line


@pytest.mark.parametrize(
    ("command", "encoding"),
    [
        ("serve", "SQL_ASCII"),
        ("api", "SQL_ASCII"),
        ("worker", "SQL_ASCII"),
        ("migrate", "SQL_ASCII"),
        ("migrate", "LATIN1"),
    ],
)
def test_a_database_that_is_not_utf8_is_refused_with_the_remedy(
    postgres_url: str, command: str, encoding: str, tmp_path: Path
) -> None:
    with postgres_database(postgres_url, "template0", f"ENCODING '{encoding}'") as url:
        done = forked_ccmtl(command, CCMTL_DATABASE_URL=url, CCMTL_DATA_DIR=str(tmp_path))
    assert done.returncode == 1
    assert f"encoding {encoding}" in done.stderr
    assert "createdb --encoding=UTF8" in done.stderr
    assert "Traceback" not in done.stderr
    assert len(done.stderr.splitlines()) == 1


@pytest.mark.parametrize(
    ("command", "stop"),
    [
        (["serve", "--workers", "0"], signal.SIGTERM),
        (["api"], signal.SIGINT),
    ],
)
def test_listening_is_said_once_callers_are_answered_and_a_stop_ends_well(
    command: list[str], stop: signal.Signals, tmp_path: Path
) -> None:
    arguments = [sys.executable, "-m", "app.commands.cli", *command, "--port", "0"]
    environment = {**os.environ, "CCMTL_DATA_DIR": str(tmp_path)}
    with subprocess.Popen(arguments, env=environment, stderr=subprocess.PIPE, text=True) as process:
        assert process.stderr is not None
        lines = []
        for line in process.stderr:
            lines.append(line)
            if "listening on http://127.0.0.1:" in line:
                break
        assert "Application startup complete" in "".join(lines)
        url = lines[-1].rpartition(" ")[2].strip()
        assert httpx2.get(f"{url}/healthz", timeout=PATIENCE).status_code == 200
        process.send_signal(stop)
        rest = process.stderr.read()
        assert process.wait(PATIENCE) == 0, rest
    assert "Traceback" not in rest


@pytest.mark.parametrize(
    "arguments",
    [
        "--help",
        "statistics-sql --table t --task a --target y --features x --dialect duckdb",
        "fit examples/stores.csv --task store --target sales --features price --fusion-strength 1",
    ],
)
def test_output_that_cannot_be_written_is_one_sentence(arguments: str) -> None:
    done = forked_ccmtl(*arguments.split(), stdout="/dev/full")
    told = [line for line in done.stderr.splitlines() if not line.startswith("Compiling")]
    assert told == ["Standard output cannot be written: No space left on device"]
    assert done.returncode == 1


@pytest.mark.parametrize(
    ("module", "arguments"), [("typer", ["--help"]), ("numba", ["predict", "m.npz", "shop.csv"])]
)
def test_an_interrupt_during_the_imports_ends_the_command_quietly(
    module: str, arguments: list[str], tmp_path: Path
) -> None:
    slow = "import pathlib, time\npathlib.Path('importing').touch()\ntime.sleep(60)\n"
    (tmp_path / f"{module}.py").write_text(slow)
    path = os.pathsep.join([str(tmp_path), str(Path.cwd())])
    command = [sys.executable, "-m", "app.commands.entry", *arguments]
    with subprocess.Popen(
        command, cwd=tmp_path, env={**os.environ, "PYTHONPATH": path}, stderr=subprocess.PIPE, text=True
    ) as process:
        while not (tmp_path / "importing").exists():
            assert process.poll() is None
            time.sleep(0.01)
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=PATIENCE)
    assert (process.returncode, errors) == (130, "")


def test_the_command_begins_where_it_is_said_to() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "app.commands.entry", "--help"],
        capture_output=True,
        text=True,
        timeout=PATIENCE,
    )
    assert done.returncode == 0, done.stderr
    assert " statistics-sql " in done.stdout
    begins = tomllib.loads(Path("pyproject.toml").read_text())["project"]["scripts"]["ccmtl"]
    assert begins == f"{entry.main.__module__}:main"

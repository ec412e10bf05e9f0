"""The commands that README.md and docs/http.md print work as they stand, in order, against a real service."""

import os
import re
import shutil
import sqlite3
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest

from examples.local_service import LocalService
from tests.support.postgres import client_programs, postgres_server
from tests.support.processes import PATIENCE

ROOT = Path(__file__).parents[2]
SETTING_UP = re.compile(r"^(git|make|docker|export|ccmtl)\b", re.MULTILINE)

pytestmark = pytest.mark.skipif(
    shutil.which("curl") is None, reason="the commands are curl's, which is missing here"
)

# A command that must be refused shows its answer on standard error, away from those that must not be.
REFUSED = r"""refused() {
    command curl --write-out "\nstatus %{http_code}" "$@" | tee /dev/stderr | grep -q "^status 4"
}"""


def blocks(page: str) -> list[tuple[str, bool]]:
    """Shell blocks of a page that talk to the service, each with whether it is to be refused."""
    found = re.findall(r"^```sh( refused)?\n(.*?)^```", (ROOT / page).read_text(), re.MULTILINE | re.DOTALL)
    return [(text, bool(refused)) for refused, text in found if not SETTING_UP.search(text)]


@pytest.fixture
def service(tmp_path: Path) -> Iterator[LocalService]:
    with LocalService(tmp_path, preferred_port=0) as service:
        yield service


def script(page: str, service: LocalService) -> str:
    """The whole page as one bash program."""
    lines = ["set -euo pipefail", REFUSED]
    for text, refused in blocks(page):
        lines += ['curl() { refused "$@"; }' if refused else 'curl() { command curl "$@"; }', text]
    program = "\n".join(lines).replace("http://127.0.0.1:8000", service.url)
    return program.replace(".venv/bin/", f"{Path(sys.executable).parent}/")


def python_of(page: str, folder: Path, url: str = "") -> str:
    """What the Python of a page prints, run as one program in a folder with the examples."""
    (folder / "examples").symlink_to(ROOT / "examples")
    found = re.findall(r"^```python\n(.*?)^```", (ROOT / page).read_text(), re.MULTILINE | re.DOTALL)
    examples = [example for example in found if "scheduler:" not in example]  # a cluster of machines
    program = "\n".join(examples).replace("http://127.0.0.1:8000", url)
    run = subprocess.run(
        [sys.executable, "-W", "error", "-c", program],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )
    assert run.returncode == 0, run.stderr
    return run.stdout


def test_the_python_example_runs_as_it_stands(tmp_path: Path) -> None:
    assert float(python_of("README.md", tmp_path).split()[0]) <= 1e-4, "the gap"


def test_the_guide_s_program_runs_as_it_stands(tmp_path: Path, service: LocalService) -> None:
    forecasts = python_of("docs/http.md", tmp_path, service.url).splitlines()
    assert [line.split()[0] for line in forecasts] == [
        *(f"2025-10-{day}" for day in range(27, 32)),
        "2025-11-01",
        "2025-11-02",
    ]


def test_the_python_page_runs_as_it_stands(tmp_path: Path) -> None:
    printed = python_of("docs/python.md", tmp_path)
    assert "converged" in printed
    assert "yhat" in printed
    assert (tmp_path / "stores.npz").exists()


def run_in(folder: Path, commands: str) -> str:
    """What bash says to the commands, in a folder in place of the repository's root."""
    command = ["bash", "-euc", commands]
    path = {**os.environ, "PYTHONPATH": str(ROOT)}
    run = subprocess.run(
        command, cwd=folder, env=path, capture_output=True, text=True, timeout=PATIENCE, check=False
    )
    assert run.returncode == 0, run.stdout + run.stderr
    return run.stdout


def test_the_page_on_scale_runs_as_it_stands(tmp_path: Path) -> None:
    python_of("docs/scale.md", tmp_path)
    text = (ROOT / "docs" / "scale.md").read_text()
    (commands,) = re.findall(r"^```sh\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
    commands = commands.replace("$PWD/.venv/bin", str(Path(sys.executable).parent))
    for _ in range(2):
        assert re.search(r"^tasks +24$", run_in(tmp_path, commands), re.MULTILINE)


def test_sqlite_is_backed_up_again_and_restored(tmp_path: Path) -> None:
    """The lines of docs/operations.md that are for SQLite and its folder."""
    lines = [line.strip() for line in (ROOT / "docs" / "operations.md").read_text().splitlines()]
    starts = "mkdir -p backup", 'python3 -c "import sqlite3', 'tar --create --file="backup/'
    backup = "\n".join(line for line in lines if line.startswith(starts))
    starts = "mkdir -p var", "rm -f var", "tar --extract"
    restore = "\n".join(line for line in lines if line.startswith(starts))
    assert (backup.count("\n"), restore.count("\n")) == (2, 2)
    (tmp_path / "var" / "incoming").mkdir(parents=True)
    (tmp_path / "var" / "upload").write_text("kept")
    for value in (1, 2):
        with closing(sqlite3.connect(tmp_path / "var" / "ccmtl.db", isolation_level=None)) as database:
            database.execute("CREATE TABLE IF NOT EXISTS t (x)")
            database.execute("INSERT INTO t VALUES (?)", [value])
            now = run_in(tmp_path, f"{backup}\necho $now").strip()
        time.sleep(1.1)  # the names are of seconds
    assert len(list((tmp_path / "backup").iterdir())) == 4
    shutil.rmtree(tmp_path / "var")
    run_in(tmp_path, f"now={now}\n{restore}")
    with closing(sqlite3.connect(tmp_path / "var" / "ccmtl.db")) as database:
        assert database.execute("SELECT x FROM t").fetchall() == [(1,), (2,)]
    assert sorted(path.name for path in (tmp_path / "var").iterdir()) == ["ccmtl.db", "upload"]


def test_postgresql_is_set_up_backed_up_and_restored(tmp_path: Path) -> None:
    """The lines of docs/operations.md that are for PostgreSQL, whose clients come with the server."""
    lines = [line.strip() for line in (ROOT / "docs" / "operations.md").read_text().splitlines()]
    role, database, url, migrate, backup, restore = (
        next(line for line in lines if line.startswith(start))
        for start in (
            'sudo -u postgres psql -c "CREATE ROLE', 'sudo -u postgres psql -c "CREATE DATABASE',
            "export CCMTL_DATABASE_URL", "ccmtl migrate", "pg_dump", "pg_restore",
        )
    )  # fmt: skip
    count = "sudo -u postgres psql --tuples-only -d ccmtl -c 'SELECT count(*) FROM alembic_version'"
    with postgres_server() as server:
        folder = server.partition("host=")[2]
        here = f"""
            PATH={client_programs()}:$PATH
            sudo() {{ shift 2; PGHOST={folder} PGUSER=postgres "$@"; }}
            ccmtl() {{ {sys.executable} -m app.commands.cli "$@"; }}
            mkdir -p backup && now=then
        """
        drop = "sudo -u postgres psql -c 'DROP DATABASE ccmtl'"
        steps = [role, database, url, migrate, backup, drop, database, restore, count]
        commands = "\n".join(steps).replace("@localhost/ccmtl", f"@/ccmtl?host={folder}")
        assert run_in(tmp_path, here + commands).split()[-1] == "1"


@pytest.mark.parametrize("page", ["README.md", "docs/http.md"])
def test_the_commands_work_as_they_stand(page: str, service: LocalService) -> None:
    run = subprocess.run(
        ["bash", "-c", script(page, service)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )
    assert run.returncode == 0, run.stdout + run.stderr
    assert '"yhat"' in run.stdout
    assert "error_count" not in run.stdout, "a problem document answers a command that should work"
    if page == "README.md":
        assert errors_quoted() == errors_of(service)


def errors_quoted() -> list[str]:
    """The errors that README.md quotes for its first forecast."""
    text = " ".join((ROOT / "README.md").read_text().split())
    (quoted,) = re.findall(
        r"RMSE (\S+), one plain model for all products (\S+), a plain one for each (\S+)\. .*?"
        r"same intercepts and scaling these two have (\S+) and (\S+): ",
        text,
    )
    return list(quoted)


def errors_of(service: LocalService) -> list[str]:
    """The same as the service tells them."""
    rmse = rmse_of(service, "shop")
    names = ("ccmtl", "pooled", "single_task", "pooled_same_choices", "single_task_same_choices")
    return [f"{rmse[name]:.2f}" for name in names]


def rmse_of(service: LocalService, model: str) -> dict[str, float]:
    errors: dict[str, float] = service.get(f"/v1/models/{model}")["newest"]["metrics"]["rmse_mean_of_tasks"]
    return errors

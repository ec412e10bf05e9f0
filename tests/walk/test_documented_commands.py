"""The commands that README.md and docs/http.md print work as they stand, in order, against a real service."""

import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from examples.local_service import LocalService

ROOT = Path(__file__).parents[2]
SETTING_UP = re.compile(r"^(git|make|docker|export|createdb|ccmtl)\b", re.MULTILINE)

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


def test_the_python_example_runs_as_it_stands() -> None:
    (example,) = re.findall(
        r"^```python\n(.*?)^```", (ROOT / "README.md").read_text(), re.MULTILINE | re.DOTALL
    )
    run = subprocess.run(
        [sys.executable, "-c", example], cwd=ROOT, capture_output=True, text=True, timeout=120, check=False
    )
    assert run.returncode == 0, run.stderr
    assert float(run.stdout.split()[0]) <= 1e-4, "the gap"


@pytest.mark.parametrize("page", ["README.md", "docs/http.md"])
def test_the_commands_work_as_they_stand(page: str, service: LocalService) -> None:
    run = subprocess.run(
        ["bash", "-c", script(page, service)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert run.returncode == 0, run.stdout + run.stderr
    assert '"yhat"' in run.stdout
    assert "error_count" not in run.stdout, "a problem document answers a command that should work"
    if page == "README.md":
        assert errors_quoted() == errors_of(service)


def errors_quoted() -> list[str]:
    """The three errors that README.md quotes for its first forecast."""
    text = " ".join((ROOT / "README.md").read_text().split())
    (quoted,) = re.findall(
        r"RMSE (\S+), one model for all products (\S+), each product alone (\S+)\. Your own", text
    )
    return list(quoted)


def errors_of(service: LocalService) -> list[str]:
    """The same as the service tells them."""
    rmse = service.get("/v1/models/shop")["newest"]["metrics"]["rmse_mean_of_tasks"]
    return [f"{rmse[name]:.2f}" for name in ("ccmtl", "pooled", "single_task")]

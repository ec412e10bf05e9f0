"""What the guides print works as it stands, in order, against a real service; see scripts/walk_guides.py."""

import json
import re
import shutil
import subprocess
import sys

import pytest

from scripts.guide_blocks import DATABASES, PAGES, ROOT, blocks_of
from scripts.walk_guides import walk

pytestmark = pytest.mark.skipif(
    shutil.which("curl") is None, reason="the commands are curl's, which is missing here"
)


def printed(*pages: str, database: str = "sqlite") -> list[str]:
    """What the blocks of the pages that were run print, in order."""
    return [done.output for done in walk(pages, database, print) if not done.block.skipped]


def test_the_readme_runs_and_its_forecasts_survive_backup_and_restore() -> None:
    pages = "README.md", "docs/operations.md"
    _, answers, model, forecasts, program, *operations = printed(*pages, database="postgresql")
    assert forecasts_in((ROOT / "README.md").read_text()) == pytest.approx(
        forecasts_in(answers)[:6], abs=0.01
    )
    assert errors_quoted() == errors_told(model)
    assert "2025-10-27" in forecasts
    assert float(program.split()[0]) <= 1e-4, "the gap"
    assert '"yhat"' in operations[-1]


def forecasts_in(text: str) -> list[float]:
    """The forecasts and the ends of their ranges in the text, in order."""
    return [float(number) for number in re.findall(r'"yhat(?:_lo_80|_hi_80)?": ?([-\d.]+)', text)]


def errors_quoted() -> list[str]:
    """The errors that README.md quotes for its first forecast."""
    text = " ".join((ROOT / "README.md").read_text().split())
    (quoted,) = re.findall(
        r"from day to day: (\S+)\. The value a week before has (\S+), "
        r"the mean of the last eight days (\S+)\. .*?"
        r"one model for all products had (\S+) and the fused ones (\S+): ",
        text,
    )
    return list(quoted)


def errors_told(model: str) -> list[str]:
    """The same as the service tells them."""
    newest = json.loads(model)["newest"]
    errors, chosen = newest["metrics"]["errors"], newest["report"]["forecaster"]
    told = [errors[name] for name in ("ccmtl", "seasonal_naive", "window_average")]
    (pooled,) = {tried["rivals"]["pooled"] for tried in chosen["tried"]}
    return [f"{error:.3f}" for error in (*told, pooled, chosen["error"])]


@pytest.mark.landing
def test_the_http_guide_and_the_client_page_work_as_they_stand() -> None:
    (program,) = [
        i for i, block in enumerate(blocks_of(["docs/http.md"])) if "import json, urllib" in block.text
    ]
    outputs = printed("docs/http.md", "docs/client.md")
    days = [*(f"2025-10-{day}" for day in range(27, 32)), "2025-11-01", "2025-11-02"]
    assert [line.split()[0] for line in outputs[program].splitlines()] == days
    assert "kiosk/versions/1" in "".join(outputs)
    assert "not a number" in outputs[-1]


@pytest.mark.landing
def test_the_python_page_runs_as_it_stands() -> None:
    outputs = "".join(printed("docs/python.md"))
    assert "converged" in outputs
    assert "yhat" in outputs


@pytest.mark.slow
def test_the_page_on_scale_runs_as_it_stands_and_again() -> None:
    outputs = "".join(printed("docs/scale.md", "docs/scale.md"))
    assert len(re.findall(r"^tasks +24$", outputs, re.MULTILINE)) == 2


@pytest.mark.slow
@pytest.mark.timeout(3600)
def test_one_program_goes_through_all_guides_on_both_databases() -> None:
    command = [sys.executable, "-m", "scripts.walk_guides"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    for page in PAGES:
        for database in DATABASES:
            blocks = [block for block in blocks_of([page]) if block.belongs_to(database)]
            skipped = sum(bool(block.skipped) for block in blocks)
            assert f"{page:20}  {database:10}  {len(blocks) - skipped:5}  {skipped:7}" in done.stdout

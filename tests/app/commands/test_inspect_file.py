"""``ccmtl inspect``: the report in words and as JSON, and its exit codes."""

from __future__ import annotations

import json
from datetime import date
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from app.commands.cli import cli
from app.commands.option_names import in_command
from ccmtl_core.inspection import inspect

RETURNS = "product,day,sold\n" + "".join(f"007,{day:02d}/03/2024,{day - 3}\n" for day in range(1, 21))


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "sales.csv"
    path.write_text(RETURNS)
    return path


def run(*arguments: object) -> Result:
    return CliRunner().invoke(cli, ["inspect", *map(str, arguments)])


def test_the_report_is_told_in_words(file: Path) -> None:
    found = run(file, "--negatives", "clip")
    assert found.exit_code == 0
    assert "%d/%m/%Y" in found.stdout
    assert "'13/03/2024' is no %m/%d/%Y" in found.stdout
    assert "20 rows: 20 used, 0 merged, 2 values changed (negatives)" in found.stdout
    assert "note negative_values 2 rows" in found.stdout
    assert found.stdout.endswith("Usable.\n")


def test_json_is_the_report_of_the_library(file: Path) -> None:
    report = inspect(file, today=date.today()).worded(in_command)
    assert "choose --negatives clip" in report.findings[0].message
    assert json.loads(run(file, "--json").stdout) == json.loads(json.dumps(report.to_dict()))


def test_what_cannot_be_used_yet_ends_with_code_1(file: Path) -> None:
    file.write_text(RETURNS + "007,20/03/2024,5\n")
    found = run(file)
    assert found.exit_code == 1
    assert "error duplicate_period 1 row, decided by --duplicates" in found.stdout
    said = " ".join(found.stdout.split())
    assert "choose --duplicates sum, --duplicates mean or --duplicates last" in said
    assert "Not usable yet: 1 of these is an error" in found.stdout


def test_other_columns_with_cells_that_fit_are_counted(tmp_path: Path) -> None:
    path = tmp_path / "kinds.csv"
    rows = "".join(f"a,2024-03-{d:02d},{d},x,red\n" for d in range(1, 20))
    path.write_text("product,day,sold,kind,colour\n" + rows)
    evidence = inspect(path).traits["unique_id"].evidence
    assert evidence == "its name, and cells that fit, as 2 other columns have"


def test_an_empty_number_names_the_option_that_leaves_its_row_out(file: Path) -> None:
    days = "".join(f"7,2024-03-{day:02d},{day},2\n" for day in range(1, 20))
    file.write_text(f"product,day,sold,price\n{days}7,2024-03-20,,2\n")
    said = run(file).stdout
    assert "error empty_number 1 row, decided by --missing" in said
    assert "the number is empty: write one, or choose --missing absent" in " ".join(said.split())
    assert run(file, "--missing", "absent").stdout.endswith("Usable.\n")


def test_a_file_that_is_not_there_is_told_apart_from_a_wrong_option(file: Path) -> None:
    assert run(file.parent / "none.csv").exit_code == 1
    assert run(file, "--ds-format", "%Q").exit_code == 2

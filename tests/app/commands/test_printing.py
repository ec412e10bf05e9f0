"""Control characters of data reach no terminal, and stand in JSON and in files as they are."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from app.commands import printing
from app.commands.cli import cli
from app.commands.option_names import in_command
from ccmtl_core.inspection import inspect

ID = "A\x1b[31m\x07\x9b1m"
SHOWN = "A\\x1b[31m\\x07\\x9b1m"


def run(path: Path, *options: str) -> Result:
    return CliRunner().invoke(cli, ["inspect", str(path), *options])


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "sales.csv"
    rows = "".join(f"{ID},2024-01-{day:02},{day - 3}\n" for day in range(1, 20))
    path.write_text(f"product,day,sold\n{rows}{ID},2024-01-20,\x1bx\n")
    return path


def test_control_characters_of_ids_and_cells_are_written_out(file: Path) -> None:
    said = run(file).stdout
    assert not {"\x1b", "\x07", "\x9b"} & set(said)
    assert SHOWN in said
    assert "\\x1bx" in said


def test_json_holds_them_exactly(file: Path) -> None:
    said = run(file, "--json").stdout
    assert not {"\x1b", "\x07", "\x9b"} & set(said)
    assert json.loads(said) == json.loads(json.dumps(inspect(file).worded(in_command).to_dict()))


def test_control_characters_of_what_is_said_beside_are_written_out(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    printing.messages_console().print(f"no column {ID}", markup=False, soft_wrap=True)
    assert capsys.readouterr().err == f"no column {SHOWN}\n"
    (tmp_path / "a\x1bb").mkdir()
    found = run(tmp_path / "a\x1bb")
    assert "a\\x1bb is a folder" in found.stderr
    assert "\x1b" not in found.stderr


@pytest.mark.parametrize(("is_terminal", "shown"), [(False, ID), (True, SHOWN)])
def test_data_is_exact_unless_a_terminal_shows_it(
    is_terminal: bool, shown: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(sys.stdout, "isatty", lambda: is_terminal)
    printing.print_data(f"unique_id\n{ID}\n")
    assert capsys.readouterr().out == f"unique_id\n{shown}\n"

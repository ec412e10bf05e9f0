"""The process that decodes a Parquet file before the service or a command does."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import polars as pl


def test_it_starts_without_the_service_and_the_library(tmp_path: Path) -> None:
    """Their imports take longer than most files, and each upload of Parquet waits for them."""
    pl.DataFrame({"y": [1.0]}).write_parquet(tmp_path / "file")
    command = [sys.executable, "-X", "importtime", "-m", "app.reading.parquet_child"]
    arguments = ["whole", str(2**40), str(tmp_path / "file"), "y"]
    done = subprocess.run([*command, *arguments], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    imported = {line.rpartition("|")[2].strip().partition(".")[0] for line in done.stderr.splitlines()}
    assert "polars" in imported
    assert imported.isdisjoint({"ccmtl_core", "fastapi", "sqlalchemy", "numba"})

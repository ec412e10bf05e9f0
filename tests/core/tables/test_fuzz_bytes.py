"""Whatever the bytes, a file is read with an account of each row, or refused.

``python -m benchmarks.fuzz_files --minutes 60`` looks for longer.
"""

from __future__ import annotations

import tempfile
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings

from ccmtl_core.tables import ReadOptions
from tests.support.file_fuzz import FILES, OPTIONS, SEEDS, check


@given(content=FILES, options=OPTIONS)
@settings(max_examples=40, deadline=None, suppress_health_check=list(HealthCheck))
def test_any_bytes_are_read_with_an_account_or_refused(content: bytes, options: ReadOptions) -> None:
    with tempfile.TemporaryDirectory() as folder:
        check(Path(folder) / "file", content, options)


@pytest.mark.parametrize("seed", SEEDS, ids=map(str, range(len(SEEDS))))
def test_the_files_that_are_changed_are_read(seed: bytes, tmp_path: Path) -> None:
    check(tmp_path / "file", seed, ReadOptions())

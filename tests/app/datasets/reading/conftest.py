"""All files are read in this process: that large ones are read alike in one apart, its own tests show."""

from __future__ import annotations

import sys

import pytest

from app.datasets.upload import apart


@pytest.fixture(autouse=True)
def _read_here(monkeypatch: pytest.MonkeyPatch) -> None:
    for limit in ("APART_FROM_BYTES", "PACKED_FROM_BYTES"):
        monkeypatch.setattr(apart, limit, sys.maxsize)

"""All files are read in this process: that large ones are read alike in one apart, its own tests show."""

from __future__ import annotations

import sys

import pytest

from app.commands import guard
from app.datasets.upload import apart, ingest
from app.reading.parquet_probe import Decoding


@pytest.fixture(autouse=True)
def _read_here(monkeypatch: pytest.MonkeyPatch) -> None:
    for limit in ("APART_FROM_BYTES", "PACKED_FROM_BYTES"):
        monkeypatch.setattr(apart, limit, sys.maxsize)


@pytest.fixture
def not_decoded_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    """Start no process to decode a file of columns first: for tests of what is read, not of that process."""
    for module in (guard, ingest):
        monkeypatch.setattr(module, "decoded_apart", lambda *arguments, **limits: Decoding.DONE)

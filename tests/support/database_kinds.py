"""On which kinds of database a test runs, quickly and among the slow ones."""

from __future__ import annotations

import pytest


def quickly_on(kind: str) -> pytest.MarkDecorator:
    """Let a test run on this kind of database, and on the other one among the slow tests."""
    other = {"sqlite": "postgresql", "postgresql": "sqlite"}[kind]
    kinds = [kind, pytest.param(other, marks=pytest.mark.slow)]
    return pytest.mark.parametrize("database_kind", kinds, indirect=True, scope="module")

"""Every example in a docstring of the core runs and prints what it says."""

from __future__ import annotations

import doctest
import importlib
import pkgutil

import pytest

import ccmtl_core

MODULES = sorted(
    module.name for module in pkgutil.walk_packages(ccmtl_core.__path__, prefix=f"{ccmtl_core.__name__}.")
)


@pytest.mark.parametrize("name", MODULES)
def test_examples(name: str) -> None:
    module = importlib.import_module(name)
    results = doctest.testmod(module, extraglobs={"np": importlib.import_module("numpy")})
    assert results.failed == 0

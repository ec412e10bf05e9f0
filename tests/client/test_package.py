"""The package is light to import, and its examples run."""

from __future__ import annotations

import doctest
import importlib
import json
import subprocess
import sys

from fastapi.testclient import TestClient

from ccmtl_client import Client
from tests.client.conftest import Working

PROBE = """
import sys, time
start = time.process_time()
import ccmtl_client
print(__import__("json").dumps([time.process_time() - start, sorted(sys.modules)]))
"""
HEAVY = {"app", "ccmtl_core", "fastapi", "numba", "numpy", "pandas", "polars", "pyarrow", "rich", "scipy"}


def test_the_import_is_quick_and_brings_no_heavy_library() -> None:
    seconds = []
    for _ in range(3):
        ran = subprocess.run([sys.executable, "-c", PROBE], capture_output=True, text=True, check=True)
        took, modules = json.loads(ran.stdout)
        assert HEAVY.isdisjoint(modules)
        seconds.append(took)
    assert min(seconds) < 0.3


def test_examples(service: TestClient, client: Client, working: Working) -> None:
    names = {"client": client, "Client": lambda url, api_key: Client(url, api_key)}
    order = [
        "datasets",
        "jobs",
        "models",
        "schedules",
        "webhooks",
        "client",
    ]  # each uses what those before have made
    for name in order:
        module = importlib.import_module(f"ccmtl_client.{name}")
        with working():
            results = doctest.testmod(module, extraglobs=names)
        assert results.attempted > 0
        assert results.failed == 0


def test_it_says_what_to_install_where_its_library_is_missing() -> None:
    code = "import sys; sys.modules['httpx2'] = None; import ccmtl_client"
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert "ccmtl_client needs httpx2: pip install httpx2" in ran.stderr

"""Thousands of requests that Schemathesis makes up from the OpenAPI document, sound and unsound ones.

Every answer is one that the document describes, none of them 5xx.
"""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from app.access import service as access
from app.access.keys import KeyHash, secret_of
from app.access.schemas import KeyForm
from app.http.access import Scope
from app.persistence.database import Database
from tests.support.models import add_version, trained
from tests.support.service import create_daily_dataset, running_service, upload_csv

CHECKS = "not_a_server_error,status_code_conformance,content_type_conformance,response_schema_conformance"
THERE = """
[parameters]
"path.name" = ["sales", "none"]
"path.webhook" = ["planning", "none"]
"path.schedule" = ["nightly", "none"]
"path.model" = ["sales", "sales@stable", "sales/versions/1", "none"]
"query.model" = ["sales", "none"]
"query.unique_id" = ["a", "none"]
"""
LEAST_CASES = 2000


@pytest.mark.slow
@pytest.mark.timeout(3600)
def test_no_request_that_can_be_made_up_is_answered_5xx_or_as_is_not_documented(tmp_path: Path) -> None:
    (tmp_path / "schemathesis.toml").write_text(THERE)
    n_cases = 0
    with running_service(tmp_path, workers=0) as service:
        create_daily_dataset(service.client, "sales")
        upload_csv(service.client, "sales", Path("examples/shop.csv").read_bytes())
        database = Database(service.settings)
        add_version(database, trained([[1.0, 2.0]], ["a"]))
        with database.write() as session:
            form = KeyForm(name="all", scopes=frozenset(Scope))
            key = access.create(session, form, KeyHash(secret_of(service.settings))).key
        database.dispose()
        with_key = {"Authorization": f"Bearer {key}"}
        alias = "/v1/models/sales/aliases/stable"
        assert service.client.put(alias, json={"version": 1}, headers=with_key).status_code == 200
        webhook = {"url": "https://shop.example/", "events": ["job.failed"]}
        schedule = {"daily": "02:30", "training": {"dataset": "sales", "model": "sales", "horizon": 2}}
        for path, form in (("webhooks/planning", webhook), ("schedules/nightly", schedule)):
            assert service.client.put(f"/v1/{path}", json=form, headers=with_key).status_code == 201
        # What is deleted cannot be asked for any more: deletions come last.
        for chosen in (["--exclude-method", "DELETE"], ["--include-method", "DELETE"]):
            command = [
                sys.executable, "-m", "schemathesis.cli", "run", f"{service.client.base_url}/openapi.json",
                *chosen, "--exclude-operation-id", "watch_training_job", "--checks", CHECKS,
                "--max-examples", "60", "--phases", "examples,fuzzing",
                "--header", f"Authorization: Bearer {key}", "--request-timeout", "60",
                "--continue-on-failure", "--seed", "1",
            ]  # fmt: skip
            done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
            assert done.returncode == 0, done.stdout[-20_000:] + done.stderr[-2_000:]
            n_cases += sum(map(int, re.findall(r"(\d+) generated", done.stdout)))
        assert service.client.get("/readyz").status_code == 200
        assert " ERROR " not in service.log
    assert n_cases >= LEAST_CASES

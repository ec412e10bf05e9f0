"""Every operation of the OpenAPI document is tried with keys of another workspace and of other scopes.

An operation that this file does not know how to call fails it: say below what it needs.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any, NamedTuple

import httpx2
import pytest
from fastapi import FastAPI
from fastapi.testclient import TestClient

from app.http.access import Scope
from app.main import create_app
from app.settings import Settings
from tests.support.access import key_header
from tests.support.models import add_version, trained

OPEN = {
    "ping",
    "get_metrics",
    "get_liveness",
    "get_readiness",
    "infer_server_live",
    "infer_server_ready",
    "infer_server_metadata",
}
"""Operations about the process, which need no key."""
THEIRS, ABSENT, NEAR = "their-shop", "absent-one", "their-shap"
"""Names of what the other workspace has, of what nobody has, and of what is like the first."""
DATASET = {"name": THEIRS, "kind": "regression", "columns": {"features": ["price"]}}
TRAINING = {"dataset": THEIRS, "model": THEIRS, "fusion_strength": 1}
ROWS = {"rows": [{"unique_id": "a", "features": {"price": 1.0}}]}
CSV = b"unique_id,y,price\n" + b"".join(f"a,{i},{i}.5\n".encode() for i in range(9))

BODIES: dict[str, Any] = {
    "create_dataset": DATASET,
    "upload_dataset_version": CSV,
    "create_training_job": TRAINING,
    "predict": ROWS,
    "forecast_batch": {"unique_id": ["a"]},
    "forecast_all_knowing": {"h": 1},
    "explain_forecasts": {"unique_id": ["a"]},
    "total_forecasts": {"h": 1},
    "set_alias": {"version": 1},
    "infer": {
        "inputs": [
            {"name": "unique_id", "shape": [1], "datatype": "BYTES", "data": ["a"]},
            {"name": "features", "shape": [1, 1], "datatype": "FP64", "data": [1.0]},
        ]
    },
    "invoke": {"instances": [{"unique_id": "a", "price": 1.0}]},
    "invoke_model": {"instances": [{"unique_id": "a", "price": 1.0}]},
    "create_key": {"name": "another", "scopes": ["predict"]},
    "put_webhook": {"url": f"https://{THEIRS}.example/", "events": ["job.failed"]},
    "put_schedule": {"daily": "02:30", "training": TRAINING},
    "switch_webhook": {"enabled": False},
    "switch_schedule": {"enabled": False},
}
"""A sound body for each operation that takes one."""
QUERIES = {"unique_id": "a"}
"""A value for each query parameter that must be given."""
STREAMS = {"watch_training_job"}
"""Operations whose answer ends with the thing that is watched."""
ADDS = {"create_dataset", "create_key", "put_webhook"}
"""Operations that name nothing that is there: they succeed, whatever others have."""


class Operation(NamedTuple):
    name: str
    method: str
    path: str
    scope: str | None
    parameters: tuple[str, ...]


def operations(document: dict[str, Any]) -> list[Operation]:
    return [
        Operation(
            operation["operationId"],
            method,
            path,
            next((scope for each in operation.get("security", []) for scope in each["key"]), None),
            tuple(p["name"] for p in operation.get("parameters", []) if p["in"] == "path" or p["required"]),
        )
        for path, methods in document["paths"].items()
        for method, operation in methods.items()
    ]


class World:
    """An API with a workspace that has one of everything, and another that has nothing."""

    def __init__(self, app: FastAPI, client: TestClient) -> None:
        self.app, self.client = app, client
        self.operations = {operation.name: operation for operation in operations(app.openapi())}
        self.closed = {name: o for name, o in self.operations.items() if name not in OPEN}
        self.theirs, self.ours, self.adding = (key_header(app, name) for name in ("theirs", "ours", "adding"))
        named = {"name": THEIRS}
        assert self.call("create_dataset", self.theirs, named).status_code == 201
        assert self.call("upload_dataset_version", self.theirs, named).status_code == 201
        job = self.call("create_training_job", self.theirs, named)
        assert job.status_code == 202, job.text
        model = trained([[1.0]], ["a"], feature_names=["price"])
        add_version(app.state.database.of("theirs"), model, THEIRS, dataset=THEIRS)
        path = {"name": THEIRS, "alias": "stable"}
        assert self.call("set_alias", self.theirs, path).status_code == 200
        key_id = self.call("list_keys", self.theirs, {}).json()["items"][0]["id"]
        own = {**named, "webhook": THEIRS, "schedule": THEIRS}
        for made in ("put_webhook", "put_schedule"):
            assert self.call(made, self.theirs, own).status_code == 201
        sent = self.call("test_webhook", self.theirs, own).json()["id"]
        shared = {"version": "1", "alias": "stable"}
        ids = {"job_id": job.json()["id"], "key_id": key_id, "delivery_id": sent}
        self.there = {**own, **shared, "model": THEIRS, **ids}
        nowhere = {"job_id": "job_" + 24 * "0", "key_id": 12 * "0", "delivery_id": "dlv_" + 24 * "0"}
        others = dict.fromkeys(("name", "webhook", "schedule", "model"), ABSENT)
        self.absent = {**others, **shared, **nowhere}

    def call(self, operation: str, headers: dict[str, str], values: dict[str, str]) -> httpx2.Response:
        _, method, path, _, parameters = self.operations[operation]
        needed = [name for name in parameters if f"{{{name}}}" not in path]
        headers = {**headers, "X-Request-Id": "same"}
        params = {name: values[name] if name in values else QUERIES[name] for name in needed}
        body = BODIES.get(operation)
        content = body if isinstance(body, bytes) else None if body is None else json.dumps(body).encode()
        if content is not None:
            content = content.replace(THEIRS.encode(), values.get("name", THEIRS).encode())
            headers = {**headers, "Content-Type": "text/csv" if content is body else "application/json"}
        return self.client.request(
            method, path.format(**values), params=params, content=content, headers=headers
        )

    def all_that_can_be_read(self) -> dict[str, str]:
        """What the holder of the other workspace's key gets of each thing there."""
        reads = [name for name, o in self.closed.items() if o.method == "get" and name not in STREAMS]
        return {name: self.call(name, self.theirs, self.there).text for name in reads}


@pytest.fixture(scope="module")
def world(tmp_path_factory: pytest.TempPathFactory) -> Iterator[World]:
    app = create_app(Settings(data_dir=tmp_path_factory.mktemp("world")))
    with TestClient(app, "http://localhost", raise_server_exceptions=False) as client:
        yield World(app, client)


def test_every_operation_can_be_called_here(world: World) -> None:
    known = world.there.keys() | QUERIES.keys()
    unknown = {o.name: set(o.parameters) - known for o in world.operations.values()}
    assert {name: lacking for name, lacking in unknown.items() if lacking} == {}, "give these a value above"
    with_body = {
        operation["operationId"]
        for methods in world.app.openapi()["paths"].values()
        for operation in methods.values()
        if "requestBody" in operation
    }
    assert with_body == BODIES.keys(), "give each operation that takes a body a sound one above"


def test_what_another_workspace_has_is_answered_as_what_nobody_has(world: World) -> None:
    before = world.all_that_can_be_read()
    for name in world.closed:
        key = world.adding if name in ADDS else world.ours
        theirs, absent = (world.call(name, key, values) for values in (world.there, world.absent))
        named = dict.fromkeys(("name", "model", "webhook", "schedule"), NEAR)
        near = world.call(name, key, {**world.absent, **named})
        if name in ADDS:
            assert (theirs.status_code, absent.status_code) == (201, 201), (name, theirs.text)
        else:
            text = absent.text
            for parameter in ("name", "job_id", "key_id", "delivery_id"):
                text = text.replace(world.absent[parameter], world.there[parameter])
            assert (theirs.status_code, theirs.text) == (absent.status_code, text), name
            assert theirs.status_code in (200, 404), name
        for secret in (THEIRS, *(world.there[each] for each in ("job_id", "key_id", "delivery_id"))):
            assert secret not in absent.text + near.text, name
    assert world.all_that_can_be_read() == before


@pytest.mark.parametrize("form", ["{}@stable", "{}/versions/1", "{}@none", "{}/versions/2"])
def test_every_form_of_a_reference_to_a_model_is_answered_as_of_nobody(world: World, form: str) -> None:
    for name in [name for name, operation in world.closed.items() if "model" in operation.parameters]:
        theirs, absent = (world.call(name, world.ours, {"model": form.format(m)}) for m in (THEIRS, ABSENT))
        assert (theirs.status_code, theirs.text) == (404, absent.text.replace(ABSENT, THEIRS)), name


def test_who_has_it_gets_it(world: World) -> None:
    """So that the test before this one compares with something."""
    for name, answer in world.all_that_can_be_read().items():
        if "forecast" not in name:  # the model there has no history
            found = (THEIRS, '"a"', '"theirs"', "PAR1")
            assert any(each in answer for each in found), (name, answer)


def test_an_idempotency_key_is_of_its_workspace(world: World) -> None:
    jobs = []
    for headers in [key_header(world.app, name) for name in ("first", "second")]:
        world.call("create_dataset", headers, {})
        world.call("upload_dataset_version", headers, {"name": THEIRS})
        with_key = {**headers, "Idempotency-Key": "1"}
        jobs += [world.call("create_training_job", with_key, {}).json() for _ in range(2)]
    assert [job["id"] == jobs[0]["id"] for job in jobs] == [True, True, False, False]
    assert jobs[2]["id"] == jobs[3]["id"]
    assert {job["jobs_ahead"] for job in jobs} == {0}, "the number would tell of the jobs of others"


def test_every_operation_but_those_about_the_process_states_its_scope(world: World) -> None:
    assert {name for name, o in world.operations.items() if o.scope not in set(Scope)} == OPEN


def test_an_operation_needs_its_scope_and_no_other(world: World) -> None:
    alone = {scope: key_header(world.app, "ours", {scope}) for scope in Scope}
    others = {scope: key_header(world.app, "ours", set(Scope) - {scope}) for scope in Scope}
    for name, operation in world.closed.items():
        scope = Scope(str(operation.scope))
        refused = world.call(name, others[scope], world.absent)
        assert (refused.status_code, refused.json()["code"]) == (403, "scope_missing"), name
        assert world.call(name, alone[scope], world.absent).status_code not in (401, 403), name
        without = world.call(name, {}, world.absent)
        assert (without.status_code, without.json()["code"]) == (401, "key_missing"), name
        assert without.headers["www-authenticate"] == "Bearer"

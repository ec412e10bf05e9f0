"""Refusals say in words what is wanted, and what to set or to do."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from fastapi.testclient import TestClient
from pydantic import TypeAdapter, ValidationError

from app.http.invalid_requests import faults_of
from app.http.names import IN_WORDS
from app.http.request_body import SwitchForm
from app.persistence.database import Database
from app.persistence.storage import Storage
from app.processes.cannot_start import CannotStart
from app.settings import Settings, explained
from tests.support.training import add_series, job


@pytest.fixture
def database_kind() -> str:
    return "sqlite"


def fault(answer: Any, location: str) -> dict[str, Any]:
    assert answer.status_code == 422, answer.text
    (found,) = [fault for fault in answer.json()["errors"] if fault["location"] == location]
    result: dict[str, Any] = found
    return result


def test_a_name_that_breaks_the_pattern_is_told_the_characters(client: TestClient) -> None:
    add_series(client)
    dataset = client.post("/v1/datasets", json={"name": "my shop", "kind": "series", "frequency": "D"})
    model = client.post("/v1/training-jobs", json=job(model="ümodel"))
    for answer, location in ((dataset, "body.name"), (model, "body.model")):
        message = fault(answer, location)["message"]
        assert "A to Z, a to z, 0 to 9, dot, dash and underscore" in message
        assert "[" not in message
    nul = fault(client.get("/v1/training-jobs?model=%00"), "query.model")["message"]
    assert nul == "must not contain the character NUL"


@pytest.mark.parametrize(
    ("field", "value", "code", "said"),
    [
        ("frequency", "M", "enum", "must be 'h', 'D', 'W', 'MS', 'B', "),
        (
            "duplicates",
            "sums",
            "literal_error",
            "must be 'error', 'sum', 'mean' or 'last'; did you mean 'sum'?",
        ),
        ("ds_format", 5, "string_type", "must be text"),
    ],
)
def test_what_a_field_of_a_dataset_may_be_is_said_in_words(
    client: TestClient, field: str, value: object, code: str, said: str
) -> None:
    form = {"name": "shop", "kind": "series", "frequency": "D", field: value}
    found = fault(client.post("/v1/datasets", json=form), f"body.{field}")
    assert found["code"] == code
    assert found["message"].startswith(said)


@pytest.mark.parametrize(
    ("wanted", "location", "code", "said"),
    [
        ({"lags": 367}, "lags", "less_than_equal", "must be 366 or less"),
        ({"lags": 0}, "lags", "greater_than_equal", "must be 1 or more"),
        ({"lags": "4"}, "lags", "int_type", "must be a whole number"),
        ({"fit_intercept": "yes"}, "fit_intercept", "bool_type", "must be true or false"),
        (
            {"metric": "mahalonobis"},
            "metric",
            "literal_error",
            "must be 'euclidean' or 'mahalanobis'; did you mean 'mahalanobis'?",
        ),
    ],
)
def test_what_a_field_of_a_training_may_be_is_said_in_words(
    client: TestClient, wanted: dict[str, Any], location: str, code: str, said: str
) -> None:
    add_series(client)
    found = fault(client.post("/v1/training-jobs", json=job(**wanted)), f"body.{location}")
    assert (found["code"], found["message"]) == (code, said)


def test_an_object_is_asked_for_where_one_is_wanted(client: TestClient) -> None:
    form = {"name": "shop", "kind": "series", "frequency": "D", "fill": "zero"}
    message = fault(client.post("/v1/datasets", json=form), "body.fill")["message"]
    assert message == 'must be an object, for example {"method": "zero", "start": "dataset"}'


@pytest.mark.parametrize(
    ("form", "location", "word"),
    [
        (
            {"kind": "series", "frequency": "D", "columns": {"features": ["x"]}},
            "columns.features",
            "`columns` names what is known of periods to come",
        ),
        ({"kind": "series", "frequency": "D", "features": ["x"]}, "features", "kind 'regression'"),
        ({"kind": "regression", "columns": {"features": ["x"], "ds": "t"}}, "columns.ds", "kind 'series'"),
        ({"kind": "regression", "columns": {"features": ["x"]}, "fill": None}, "fill", "kind 'series'"),
    ],
)
def test_a_field_of_the_other_kind_is_called_that(
    client: TestClient, form: dict[str, Any], location: str, word: str
) -> None:
    answer = client.post("/v1/datasets", json={"name": "shop", **form})
    assert word in fault(answer, f"body.{location}")["message"]


@pytest.mark.parametrize(
    ("method", "path", "methods"),
    [
        ("PATCH", "datasets/shop", "GET and DELETE"),
        ("PUT", "datasets", "GET and POST"),
        ("DELETE", "training-jobs/x", "GET"),
        ("GET", "models/x/predict", "POST"),
    ],
)
def test_a_method_that_there_is_not_is_answered_with_those_that_there_are(
    client: TestClient, method: str, path: str, methods: str
) -> None:
    answer = client.request(method, f"/v1/{path}")
    assert (answer.status_code, answer.json()["code"]) == (405, "method_not_allowed")
    assert answer.headers["allow"] == methods.replace(" and ", ", ").replace("GET", "GET, HEAD")
    detail = answer.json()["detail"]
    assert detail.startswith(f"There is no {method} here, only {methods}.")
    assert ("definition" in detail) == (method in ("PUT", "PATCH"))


@pytest.mark.parametrize("sent", ["application/x-www-form-urlencoded", "text/plain", ""])
def test_another_type_is_answered_with_the_header_to_send(client: TestClient, sent: str) -> None:
    add_series(client)
    for path, kept in (("datasets/sales/versions", "text/csv"), ("training-jobs", "application/json")):
        answer = client.post(f"/v1/{path}", content=b"x", headers={"content-type": sent})
        assert answer.status_code == 415
        assert f"-H 'Content-Type: {kept}'" in answer.json()["detail"]


def test_a_missing_field_comes_with_an_example(client: TestClient) -> None:
    add_series(client)
    asked = job()
    del asked["fusion_strength"]
    answer = client.post("/v1/training-jobs", json=asked)
    assert fault(answer, "body.fusion_strength")["message"] == (
        "is missing; of series give a `horizon` instead, how many periods ahead to forecast, which lets it "
        'be chosen, for example 7; else a number or "auto"'
    )
    form = client.post("/v1/datasets", json={"name": "shop", "kind": "series"})
    assert fault(form, "body.frequency")["message"] == 'is missing, for example "D"'


def test_a_truth_value_is_echoed_as_json(client: TestClient) -> None:
    add_series(client)
    assert fault(client.post("/v1/training-jobs", json=job(lags=True)), "body.lags")["value"] == "true"


def test_a_number_of_folds_that_nobody_sent_is_called_the_default(client: TestClient) -> None:
    add_series(client)
    asked = job(fusion_strength="auto", lags=7)
    found = fault(client.post("/v1/training-jobs", json=asked), "body.n_folds")
    assert found["message"].endswith("`n_folds` is 5, the default, and can be as small as 2")
    assert found["value"] == "5"
    sent = fault(client.post("/v1/training-jobs", json={**asked, "n_folds": 4}), "body.n_folds")
    assert sent["message"].endswith("`n_folds` is 4, and can be as small as 2")


@pytest.mark.parametrize("path", ["datasets", "models", "training-jobs", "keys", "webhooks", "schedules"])
def test_a_cursor_that_no_page_gave_is_refused(client: TestClient, path: str) -> None:
    found = fault(client.get(f"/v1/{path}?cursor=abc"), "query.cursor")
    assert found["message"].startswith("must be `next_cursor` of the page before")
    assert found["value"] == "abc"


def test_an_unknown_path_leads_to_the_reference(client: TestClient) -> None:
    answer = client.get("/v3")
    assert (answer.status_code, answer.json()["code"]) == (404, "route_not_found")
    assert "/docs" in answer.json()["detail"]


@pytest.mark.parametrize(
    ("setting", "value", "begins"),
    [
        ("database_url", "x", "CCMTL_DATABASE_URL: must be a URL"),
        ("secret_key", "changeme", "CCMTL_SECRET_KEY: must have 32 or more characters, not 8"),
        ("dask_scheduler", "host:1", "CCMTL_DASK_SCHEDULER: must be an address such as tcp://scheduler:8786"),
    ],
)
def test_a_setting_is_refused_in_plain_words(setting: str, value: str, begins: str) -> None:
    with pytest.raises(ValidationError) as refused:
        Settings.model_validate({setting: value})
    (line,) = map(explained, refused.value.errors())
    assert line.startswith(begins)
    assert "changeme" not in line


@pytest.mark.parametrize("opened", [lambda s: Storage(s.data_dir), Database])
@pytest.mark.parametrize("below", ["", "x", "x/y"])
def test_a_data_folder_that_is_a_file_is_named_with_the_variable(
    tmp_path: Path, opened: Any, below: str
) -> None:
    file = tmp_path / "file"
    file.touch()
    with pytest.raises(CannotStart) as refused:
        opened(Settings(data_dir=file / below))
    assert str(refused.value) == f"CCMTL_DATA_DIR: {file} is a file, not a folder"


@pytest.mark.parametrize("opened", [lambda s: Storage(s.data_dir), Database])
def test_a_data_folder_that_cannot_be_made_is_named_with_the_variable(tmp_path: Path, opened: Any) -> None:
    folder = tmp_path / ("x" * 300)
    with pytest.raises(CannotStart, match=f"^CCMTL_DATA_DIR: {folder}.* cannot be created: "):
        opened(Settings(data_dir=folder))


@pytest.mark.parametrize(
    ("field", "value", "said"),
    [
        ("name", "", "must be 1 to 100 characters"),
        ("scopes", [], "must have 1 or more entries"),
        ("expires_at", "tomorrow", "must be a time with its zone"),
        ("expires_at", "2999-01-01T00:00:00", "must be a time with its zone"),
    ],
)
def test_what_a_field_of_a_key_may_be_is_said_in_words(
    client: TestClient, field: str, value: object, said: str
) -> None:
    form = {"name": "till", "scopes": ["predict"], field: value}
    assert fault(client.post("/v1/keys", json=form), f"body.{field}")["message"].startswith(said)


def _patterns_in(node: Any) -> set[str]:
    if isinstance(node, list):
        return {pattern for item in node for pattern in _patterns_in(item)}
    if not isinstance(node, dict):
        return set()
    own = {node["pattern"]} if isinstance(node.get("pattern"), str) else set()
    return own | _patterns_in(list(node.values()))


def test_every_pattern_of_a_request_is_said_in_words(client: TestClient) -> None:
    assert _patterns_in(client.get("/openapi.json").json()) <= IN_WORDS.keys()


@pytest.mark.parametrize(
    ("value_type", "sent", "said"),
    [
        (dict[str, int], "x", "must be an object"),
        (SwitchForm, "x", "must be an object"),
        (list[int], "x", "must be a list"),
        (set[int], "x", "must be a list"),
        (frozenset[int], "x", "must be a list"),
        (int, "9" * 5000, "must be a whole number"),
        (bytes, 1, "must be a valid bytes"),
    ],
)
def test_the_library_that_checks_requests_is_never_quoted(value_type: Any, sent: Any, said: str) -> None:
    with pytest.raises(ValidationError) as refused:
        TypeAdapter(value_type).validate_python(sent)
    assert [fault.message for fault in faults_of(refused.value.errors())] == [said]


def test_how_long_a_parameter_may_be_is_said_in_words(client: TestClient) -> None:
    answer = client.get("/v1/models/m/forecast", params={"unique_id": ""})
    assert fault(answer, "query.unique_id")["message"] == "must have 1 or more characters"

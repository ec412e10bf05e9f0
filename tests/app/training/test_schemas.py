"""Training requests: each field that cannot be used is named, with every other."""

from __future__ import annotations

import json
from typing import Any

import pytest
from fastapi.testclient import TestClient

from app.persistence.database import Database
from app.training.schemas import TrainingJobRequest
from ccmtl_core import ModelChoices
from ccmtl_core.choices.model_choices import choice_texts
from tests.support.training import (
    add_regression,
    add_series,
    job,
    locations,
    n_jobs,
    post,
)


@pytest.fixture
def database_kind() -> str:
    return "sqlite"


def test_of_many_faults_the_first_are_listed_and_all_are_counted(client: TestClient) -> None:
    add_series(client)
    document = {**job(lags=100), **{f"k{i}": 1 for i in range(5000)}}
    n_faults = 5000 + 1
    for body, status in ((document, 422), ({**document, "dataset": "other"}, 404)):
        answer = post(client, body)
        assert answer.status_code == status
        listed = answer.json()
        assert (len(listed["errors"]), listed["error_count"]) == (100, n_faults if status == 422 else 5000)


FAULTS: list[tuple[dict[str, Any], str]] = [
    ({"fusion_strength": -1}, "body.fusion_strength"),
    ({"fusion_strength": 1e-101}, "body.fusion_strength"),
    ({"fusion_strength": [0, 1e-101]}, "body.fusion_strength"),
    ({"fusion_strength": "1"}, "body.fusion_strength"),
    ({"fusion_strength": True}, "body.fusion_strength"),
    ({"fusion_strength": None}, "body.fusion_strength"),
    ({"fusion_strength": "Auto"}, "body.fusion_strength"),
    ({"fusion_strength": []}, "body.fusion_strength"),
    ({"fusion_strength": [1]}, "body.fusion_strength"),
    ({"fusion_strength": [1, 1.0]}, "body.fusion_strength"),
    ({"fusion_strength": [1, -1]}, "body.fusion_strength"),
    ({"fusion_strength": [1, "2"]}, "body.fusion_strength"),
    ({"fusion_strength": [1, True]}, "body.fusion_strength"),
    ({"fusion_strength": list(range(101))}, "body.fusion_strength"),
    ({"fusion_strength": "auto", "folds": "random"}, "body.folds"),
    ({"fusion_strength": "auto", "folds": "weekly"}, "body.folds"),
    ({"fusion_strength": "auto", "n_folds": 1}, "body.n_folds"),
    ({"fusion_strength": "auto", "n_folds": 21}, "body.n_folds"),
    ({"rule": "worst"}, "body.rule"),
    ({"fusion_strength": "auto", "n_folds": 4}, "body.n_folds"),
    ({"fit_intercept": 1}, "body.fit_intercept"),
    ({"loss_scaling": "variance"}, "body.loss_scaling"),
    ({"loss_scaling": "residual"}, "body.loss_scaling"),
    ({"start": "shrunk"}, "body.start"),
    ({"metric": "cosine"}, "body.metric"),
    ({"n_neighbors": 0}, "body.n_neighbors"),
    ({"n_neighbors": 2.5}, "body.n_neighbors"),
    ({"lags": 0}, "body.lags"),
    ({"lags": 367}, "body.lags"),
    ({"lags": 12}, "body.lags"),
    ({"accept_gaps": 1}, "body.accept_gaps"),
    ({"holdout": 0}, "body.holdout"),
    ({"holdout": 1}, "body.holdout"),
    ({"lags": 11}, "body.holdout"),
    ({"tolerance": 0}, "body.tolerance"),
    ({"tolerance": 1}, "body.tolerance"),
    ({"refit": "yes"}, "body.refit"),
    ({"model": "a/b"}, "body.model"),
    ({"model": ""}, "body.model"),
    ({"version": 0}, "body.version"),
    ({"version": 2**40}, "body.version"),
    ({"dataset": "a\0b"}, "body.dataset"),
    ({"dataset": 3}, "body.dataset"),
    ({"strength": 1}, "body.strength"),
    ({"\ud800": 1}, "body"),
    ({"dataset": "\ud800"}, "body.dataset"),
    ({"model": "\ud800"}, "body.model"),
]


def test_each_fault_is_located(client: TestClient, database: Database) -> None:
    add_series(client)
    for fields, location in FAULTS:
        answer = post(client, job(**fields))
        assert (answer.status_code, answer.json()["code"]) == (422, "invalid_training_request")
        assert locations(answer) == [location]
    assert n_jobs(database) == 0


def test_an_unknown_field_comes_with_its_near_match(client: TestClient) -> None:
    add_series(client)
    (fault,) = post(client, job(n_neighbours=3)).json()["errors"]
    assert fault["location"] == "body.n_neighbours"
    assert fault["message"] == "there is no such field; did you mean 'n_neighbors'?"


@pytest.mark.parametrize("token", ["NaN", "Infinity", "-Infinity", "1e999"])
def test_numbers_that_are_none_are_refused_and_not_echoed(client: TestClient, token: str) -> None:
    add_series(client)
    body = json.dumps(job(fusion_strength=12345)).replace("12345", token)
    answer = client.post("/v1/training-jobs", content=body, headers={"Content-Type": "application/json"})
    assert answer.status_code == 422
    assert locations(answer) == ["body.fusion_strength"]
    assert answer.json()["errors"][0]["value"] is None


def test_all_faults_come_at_once(client: TestClient) -> None:
    add_regression(client)
    body = {"dataset": "rows", "fusion_strength": -1, "holdout": 0.1, "lags": 3, "tolerance": 5, "extra": 1}
    answer = post(client, body)
    assert answer.status_code == 422
    assert sorted(locations(answer)) == [
        "body.extra",
        "body.fusion_strength",
        "body.holdout",
        "body.lags",
        "body.model",
        "body.tolerance",
    ]
    assert answer.json()["error_count"] == 6


def test_a_choice_that_was_taken_out_is_said_to_be(client: TestClient) -> None:
    add_series(client)
    (fault,) = post(client, job(start="shrunk")).json()["errors"]
    assert fault["message"] == "there is no such choice any more: it made no model better; leave it out"
    (fault,) = post(client, job(loss_scaling="residual")).json()["errors"]
    assert "'none' or 'spread'" in fault["message"]


@pytest.mark.parametrize("field", [{"folds": "rolling"}, {"n_folds": 5}, {"rule": "best"}])
def test_one_strength_leaves_nothing_to_choose(client: TestClient, field: dict[str, Any]) -> None:
    add_series(client)
    answer = post(client, job(fusion_strength=2.0, **field))
    assert answer.status_code == 422
    (fault,) = answer.json()["errors"]
    assert fault["location"] == f"body.{next(iter(field))}"
    assert fault["message"].startswith(
        "says how one of several strengths is chosen, and `fusion_strength` is one"
    )
    assert post(client, job(fusion_strength=2.0, folds=None)).status_code == 202


def test_the_reference_says_of_choices_what_the_library_says() -> None:
    properties = TrainingJobRequest.model_json_schema()["properties"]
    for name, text in choice_texts().items():
        assert properties[name]["description"] == text
        assert properties[name]["default"] == getattr(ModelChoices(), name)

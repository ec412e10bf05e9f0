"""Refusals say what is wrong and where, and have a class by which they are caught."""

from __future__ import annotations

import pickle
from typing import Any

import httpx2
import pytest

import ccmtl_client
from ccmtl_client import ApiError, Client, InvalidContent, JobFailed, ServiceUnavailable
from tests.client.conftest import Told, problem


def refused(answer: httpx2.Response) -> ApiError:
    with pytest.raises(ApiError) as caught:
        Client("http://service", transport=Told(answer), retry_for=0).datasets.get("shop")
    return caught.value


@pytest.mark.parametrize(("status", "name"), [(400, "BadRequest"), (401, "Unauthorized"), (403, "Forbidden"),
                                              (404, "NotFound"), (409, "Conflict"), (413, "PayloadTooLarge"),
                                              (415, "BadRequest"), (422, "InvalidContent"),
                                              (429, "TooManyRequests"), (431, "BadRequest"),
                                              (503, "ServiceUnavailable"), (507, "ServiceFailed"),
                                              (418, "ApiError")])  # fmt: skip
def test_each_family_has_a_class(status: int, name: str) -> None:
    error = refused(problem(status, "a_code", suggestions=["shops"], request_id="r1"))
    assert type(error) is getattr(ccmtl_client, name)
    assert (error.status, error.code, error.detail) == (status, "a_code", "What is wrong.")
    assert (error.suggestions, error.request_id) == (["shops"], "r1")


@pytest.mark.parametrize("spoiled", [{"errors": None}, {"errors": ["x"]}, {"error_count": "many"},
                                     {"suggestions": None}])  # fmt: skip
def test_what_is_no_problem_document_is_told_by_its_status(spoiled: dict[str, Any]) -> None:
    assert refused(problem(422, "a_code", **spoiled)).code == "http_422"


def test_the_message_has_the_first_faults_with_their_places_and_counts_the_others() -> None:
    faults: list[dict[str, Any]] = [
        {"message": "not a number", "row": 3, "column": "y", "value": "many"},
        {"message": "is missing", "location": "body.frequency", "row": None, "column": None, "value": None},
        *({"message": f"fault {n}"} for n in range(3, 101)),
    ]
    error = refused(problem(422, "invalid_upload", errors=faults, error_count=250))
    lines = str(error).splitlines()
    assert lines[:3] == [
        "422 invalid_upload: What is wrong.",
        "  row 3, column 'y': not a number (given: 'many')",
        "  body.frequency: is missing",
    ]
    assert lines[-1] == "  and 240 more"
    assert len(lines) == 12
    assert (len(error.faults), error.fault_count) == (100, 250)


@pytest.mark.parametrize(("body", "told"), [("<h1>Bad gateway</h1>", "<h1>Bad gateway</h1>"),
                                            ("", "Bad Gateway"), ("[1]", r"\[1\]")])  # fmt: skip
def test_the_refusal_of_a_proxy_is_told_as_it_is(body: str, told: str) -> None:
    with pytest.raises(ServiceUnavailable, match=f"^502 http_502: {told}$"):
        raise refused(httpx2.Response(502, text=body))


def test_errors_can_be_pickled() -> None:
    error = pickle.loads(pickle.dumps(refused(problem(422, "invalid_upload", errors=[{"message": "no"}]))))
    assert type(error) is InvalidContent
    assert str(error) == "422 invalid_upload: What is wrong.\n  no"


def test_a_failed_job_says_why_and_a_cancelled_one_that_it_was() -> None:
    status: dict[str, Any] = {"id": "job_1", "state": "failed", "error": {"code": "c", "detail": "No room."}}
    assert str(JobFailed(status)) == "The training job job_1 failed: No room. (c)"
    status |= {"state": "cancelled", "error": None}
    assert str(JobFailed(status)) == "The training job job_1 was cancelled."

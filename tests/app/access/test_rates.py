from __future__ import annotations

import pytest
from fastapi.testclient import TestClient

from app.access.rates import Rates
from app.http.errors import TooManyRequests
from app.main import create_app
from app.settings import Settings
from tests.support.access import key_header
from tests.support.clock import Clock


def taken(rates: Rates, key_id: str, rate: int | None, times: int) -> int:
    """How many of so many requests are let through."""
    n = 0
    for _ in range(times):
        try:
            rates.take(key_id, rate)
        except TooManyRequests:
            continue
        n += 1
    return n


def test_a_minutes_requests_come_at_once_and_then_as_time_passes() -> None:
    clock = Clock()
    rates = Rates(None, clock)
    assert taken(rates, "a", 60, 100) == 60
    clock.now += 2.0
    assert taken(rates, "a", 60, 100) == 2
    clock.now += 3600.0
    assert taken(rates, "a", 60, 100) == 60
    assert taken(rates, "b", 60, 100) == 60, "each key has its own"


def test_the_next_request_is_let_through_when_it_was_said() -> None:
    clock = Clock()
    rates = Rates(2, clock)
    assert taken(rates, "a", None, 3) == 2
    with pytest.raises(TooManyRequests) as refused:
        rates.take("a", None)
    assert refused.value.headers == {"Retry-After": "30"}
    clock.now += 29.0
    assert taken(rates, "a", None, 1) == 0
    clock.now += 1.0
    assert taken(rates, "a", None, 1) == 1


def test_without_a_number_nothing_is_counted() -> None:
    assert taken(Rates(None), "a", None, 1000) == 1000


def test_a_key_over_its_limit_is_told_when_to_come_again(tmp_path_factory: pytest.TempPathFactory) -> None:
    app = create_app(Settings(data_dir=tmp_path_factory.mktemp("rates")))
    with TestClient(app, "http://localhost") as client:
        limited, free = key_header(app, requests_per_minute=1), key_header(app)
        assert client.get("/v1/models", headers=limited).status_code == 200
        answer = client.get("/v1/models", headers=limited)
        assert (answer.status_code, answer.json()["code"]) == (429, "too_many_requests")
        assert 1 <= int(answer.headers["retry-after"]) <= 60
        assert client.get("/v1/models", headers=free).status_code == 200

"""Webhooks over HTTP: made, changed, listed and deleted."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from fastapi.testclient import TestClient

from app.main import create_app
from app.settings import Settings
from app.webhooks.service import MOST

FORM = {"url": "https://shop.example/hooks", "events": ["job.failed"]}


@pytest.fixture(scope="module")
def shared_client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[TestClient]:
    """The API as it is by default, on SQLite."""
    app = create_app(Settings(data_dir=tmp_path_factory.mktemp("webhooks")))
    with TestClient(app, "http://localhost") as client:
        yield client


@pytest.fixture
def client(shared_client: TestClient) -> Iterator[TestClient]:
    yield shared_client
    for webhook in shared_client.get("/v1/webhooks").json()["items"]:
        shared_client.delete(f"/v1/webhooks/{webhook['name']}")


def test_a_webhook_is_made_changed_and_deleted(client: TestClient) -> None:
    made = client.put("/v1/webhooks/planning", json=FORM)
    assert (made.status_code, made.headers["location"]) == (201, "/v1/webhooks/planning")
    assert made.headers["cache-control"] == "no-store"
    assert made.json()["secret"].startswith("whsec_")
    shown = {**made.json(), "secret": None}
    assert client.get("/v1/webhooks/planning").json() == shown
    assert client.get("/v1/webhooks").json()["items"] == [shown]
    changed = client.put("/v1/webhooks/planning", json={**FORM, "enabled": False})
    assert (changed.status_code, changed.json()) == (200, {**shown, "enabled": False})
    assert client.post("/v1/webhooks/planning/test").json()["code"] == "webhook_disabled"
    assert client.patch("/v1/webhooks/planning", json={"enabled": True}).json() == shown
    assert client.patch("/v1/webhooks/planning", json={"url": "x"}).status_code == 422
    assert client.patch("/v1/webhooks/none", json={"enabled": True}).status_code == 404
    assert client.delete("/v1/webhooks/planning").status_code == 204
    missing = client.delete("/v1/webhooks/planning")
    assert (missing.status_code, missing.json()["code"]) == (404, "webhook_not_found")


def test_a_name_that_is_made_again_has_another_secret(client: TestClient) -> None:
    secrets = set()
    for _ in range(2):
        secrets.add(client.put("/v1/webhooks/planning", json=FORM).json()["secret"])
        client.delete("/v1/webhooks/planning")
    assert len(secrets) == 2


@pytest.mark.parametrize(
    ("change", "location", "said"),
    [
        ({"url": "shop.example"}, "body.url", "https://shop.example/hooks"),
        ({"url": "ftp://shop.example/"}, "body.url", "https://shop.example/hooks"),
        ({"url": "https://user:word@shop.example/"}, "body.url", "password"),
        ({"url": "https://shop.example/#a"}, "body.url", "'#'"),
        ({"url": "http://shop.example/"}, "body.url", "https://"),
        ({"url": "https://127.1/"}, "body.url", "private network"),
        ({"url": "https://0x7f000001/"}, "body.url", "private network"),
        ({"url": "https://[::ffff:10.0.0.1]/"}, "body.url", "private network"),
        ({"url": "https://shop.example/" + "x" * 2001}, "body.url", "2000"),
        ({"url": "https://shop.example/\r\nX: y"}, "body.url", r"'\r' (character 22)"),
        ({"url": "https://shop.example/hooks\n"}, "body.url", r"'\n' (character 27)"),
        ({"url": " https://shop.example/"}, "body.url", "' ' (character 1)"),
        ({"url": "https://shop.example/\x7f"}, "body.url", r"'\x7f'"),
        ({"url": "https://shop\u00ad.example/"}, "body.url", r"'\xad'"),
        ({"url": "https:\\\\shop.example"}, "body.url", r"'\\' (character 7)"),
        ({"url": "https:///shop.example"}, "body.url", "https://shop.example/hooks"),
        ({"url": "https:shop.example"}, "body.url", "https://shop.example/hooks"),
        ({"url": "https://@shop.example/"}, "body.url", "user name"),
        ({"url": "https://shop.example/#"}, "body.url", "'#'"),
        ({"url": "https://shop.example:0/"}, "body.url", "port 0"),
        ({"url": "https://shop..example/"}, "body.url", "'shop..example' cannot be one"),
        ({"url": "https://shop.example./"}, "body.url", "cannot be one"),
        ({"url": "https://*.example/"}, "body.url", "cannot be one"),
        ({"url": f"https://{'x' * 64}.example/"}, "body.url", "63"),
        ({"url": "https://" + ".".join(["x" * 60] * 5)}, "body.url", "253"),
        ({"events": []}, "body.events", "1 or more"),
        ({"events": ["job.fialed"]}, "body.events.0", "job.failed"),
        ({"enabled": 1}, "body.enabled", "true or false"),
        ({"secret": "whsec_"}, "body.secret", "no such field"),
    ],
)
def test_what_a_webhook_may_not_be_is_told(
    client: TestClient, change: dict[str, Any], location: str, said: str
) -> None:
    answer = client.put("/v1/webhooks/planning", json={**FORM, **change})
    assert answer.status_code == 422, answer.text
    (fault,) = answer.json()["errors"]
    assert fault["location"] == location
    assert said in fault["message"]


@pytest.mark.parametrize(
    ("given", "sent_to"),
    [
        ("HTTPS://Shop.Example:443", "https://shop.example/"),
        ("https://bücher.example/ü?q=ä", "https://xn--bcher-kva.example/%C3%BC?q=%C3%A4"),
        ("https://a_b.example:8443/x%20y", "https://a_b.example:8443/x%20y"),
        ("https://[2001:4860:4860::8888]/", "https://[2001:4860:4860::8888]/"),
        ("https://93.184.215.14/", "https://93.184.215.14/"),
    ],
)
def test_an_address_is_told_as_it_is_sent_to(client: TestClient, given: str, sent_to: str) -> None:
    answer = client.put("/v1/webhooks/planning", json={**FORM, "url": given})
    assert (answer.status_code, answer.json()["url"]) == (201, sent_to)


def test_there_is_a_limit_of_webhooks(client: TestClient) -> None:
    for n in range(MOST):
        assert client.put(f"/v1/webhooks/w{n:02d}", json=FORM).status_code == 201
    refused = client.put("/v1/webhooks/another", json=FORM)
    assert (refused.status_code, refused.json()["code"]) == (409, "too_many_webhooks")
    assert client.put("/v1/webhooks/w00", json=FORM).status_code == 200
    page = client.get("/v1/webhooks", params={"limit": 2}).json()
    rest = client.get("/v1/webhooks", params={"cursor": page["next_cursor"]}).json()
    assert [w["name"] for w in page["items"] + rest["items"]] == [f"w{n:02d}" for n in range(MOST)]


def test_deliveries_come_in_pages_newest_first(client: TestClient) -> None:
    client.put("/v1/webhooks/planning", json=FORM)
    ids = [client.post("/v1/webhooks/planning/test").json()["id"] for _ in range(3)]
    path = "/v1/webhooks/planning/deliveries"
    page = client.get(path, params={"limit": 2}).json()
    rest = client.get(path, params={"cursor": page["next_cursor"]}).json()
    assert [d["id"] for d in page["items"] + rest["items"]] == ids[::-1]
    assert client.get(path, params={"state": "failed"}).json()["items"] == []
    assert client.get(path, params={"cursor": "dlv_none"}).status_code == 422
    unknown = client.get(f"{path}/dlv_none")
    assert (unknown.status_code, unknown.json()["code"]) == (404, "delivery_not_found")
    client.put("/v1/webhooks/other", json=FORM)
    assert client.get(f"/v1/webhooks/other/deliveries/{ids[0]}").status_code == 404

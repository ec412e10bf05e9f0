"""Webhooks are made, paused, tested and asked what became of deliveries."""

from __future__ import annotations

import pytest

from ccmtl_client import Client, Conflict, InvalidContent, NotFound

URL = "https://shop.example/hooks"


def test_a_webhook_is_made_changed_paused_and_deleted(client: Client) -> None:
    made = client.webhooks.put("stock", URL, ["job.failed"])
    changed = client.webhooks.put("stock", URL, ["job.failed", "version.published"])
    assert changed == {**made, "events": ["job.failed", "version.published"], "secret": None}
    assert "stock" in [webhook["name"] for webhook in client.webhooks.list()]
    assert client.webhooks.pause("stock") == {**changed, "enabled": False}
    with pytest.raises(Conflict):
        client.webhooks.test("stock")
    assert client.webhooks.resume("stock") == client.webhooks.get("stock") == changed
    assert client.webhooks.rotate_secret("stock")["secret"] not in (None, made["secret"])
    client.webhooks.delete("stock")
    with pytest.raises(NotFound):
        client.webhooks.get("stock")


def test_deliveries_are_listed_and_sent_again(client: Client) -> None:
    client.webhooks.put("again", URL, ["job.failed"])
    first = client.webhooks.test("again")
    assert [each["id"] for each in client.webhooks.deliveries("again", state="pending")] == [first["id"]]
    assert list(client.webhooks.deliveries("again", state="failed")) == []
    assert client.webhooks.redeliver("again", first["id"])["event_id"] == first["event_id"]
    with pytest.raises(NotFound):
        client.webhooks.redeliver("again", "dlv_none")


def test_an_address_inside_is_refused(client: Client) -> None:
    with pytest.raises(InvalidContent, match="private network"):
        client.webhooks.put("inside", "https://10.0.0.1/", ["job.failed"])

"""Signatures are those of the standard: its own library and the guide's recipe accept them."""

from __future__ import annotations

import time

import pytest
from standardwebhooks import Webhook, WebhookVerificationError

from app.access.keys import KeyHash
from app.webhooks.signing import secret_of_webhook, signature
from tests.support.receiver import published_recipe

SERVICE = KeyHash(b"a secret of the service")
BODY = b'{"type":"job.failed","data":{"error":"M\\u00fcll"}}'


def signed(*secrets: str, age: float = 0) -> dict[str, str]:
    timestamp = int(time.time() - age)
    return {
        "webhook-id": "evt_1",
        "webhook-timestamp": str(timestamp),
        "webhook-signature": " ".join(signature(secret, "evt_1", timestamp, BODY) for secret in secrets),
    }


def test_the_library_of_the_standard_accepts_what_is_signed() -> None:
    old, new = (secret_of_webhook(SERVICE, "wh_1", number) for number in (1, 2))
    for secret in (old, new):
        Webhook(secret).verify(BODY, signed(new, old))
    with pytest.raises(WebhookVerificationError):
        Webhook(old).verify(BODY, signed(new))


def test_the_recipe_of_the_guide_accepts_what_is_genuine_and_nothing_else() -> None:
    is_genuine = published_recipe()
    secret, other = (secret_of_webhook(SERVICE, name, 1) for name in ("wh_1", "wh_2"))
    assert is_genuine(secret, signed(secret), BODY)
    assert is_genuine(secret, signed(other, secret), BODY)
    assert not is_genuine(secret, signed(other), BODY)
    assert not is_genuine(secret, signed(secret), BODY + b" ")
    assert not is_genuine(secret, signed(secret) | {"webhook-id": "evt_2"}, BODY)
    assert not is_genuine(secret, signed(secret, age=3600), BODY)
    later = signed(secret, age=3600) | {"webhook-timestamp": str(int(time.time()))}
    assert not is_genuine(secret, later, BODY)


def test_secrets_differ_by_service_webhook_and_number() -> None:
    secrets = [
        secret_of_webhook(service, webhook, number)
        for service in (SERVICE, KeyHash(b"another"))
        for webhook in ("wh_1", "wh_2")
        for number in (1, 2)
    ]
    assert len(set(secrets)) == 8
    assert all(secret.startswith("whsec_") and len(secret) == 50 for secret in secrets)

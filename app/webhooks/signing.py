"""Secrets of webhooks and the signatures made with them, as Standard Webhooks has both."""

from __future__ import annotations

import hmac
from base64 import b64decode, b64encode

from app.access.keys import KeyHash

PREFIX = "whsec_"


def secret_of_webhook(service: KeyHash, webhook_id: str, number: int) -> str:
    """Return the secret with this number of a webhook, made of the secret of the service.

    So the database alone, or its backup, does not tell it.
    """
    return PREFIX + b64encode(bytes.fromhex(service(f"webhook {webhook_id} {number}"))).decode()


def signature(secret: str, message_id: str, timestamp: int, body: bytes) -> str:
    """Return what stands in the header ``webhook-signature`` for one secret.

    Parameters
    ----------
    secret
        As the receiver knows it, with its prefix.
    message_id
        The header ``webhook-id``.
    timestamp
        The header ``webhook-timestamp``: seconds since 1970.
    body
        The body, byte for byte as it is sent.

    Returns
    -------
    str
        The version of the scheme and an HMAC-SHA-256 in base64.

    Examples
    --------
    >>> signature("whsec_" + 32 * "A", "evt_1", 1700000000, b"{}")
    'v1,48roMzMozBa0y9GY6W+3OUs/G/ve9mXwQEyceR2g0tA='
    """
    key = b64decode(secret.removeprefix(PREFIX))
    digest = hmac.digest(key, f"{message_id}.{timestamp}.".encode() + body, "sha256")
    return f"v1,{b64encode(digest).decode()}"

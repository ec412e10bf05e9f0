"""Webhooks: where the events of a workspace are sent to, signed, until they arrive."""

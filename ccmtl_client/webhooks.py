"""Webhooks: addresses that the service tells what happens, and what became of each delivery."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from urllib.parse import quote

from ccmtl_client.datasets import delete
from ccmtl_client.wire import Answer, Wire


class Webhooks:
    """The webhooks of the service: ``client.webhooks``; they take a key with the scope ``admin``."""

    def __init__(self, wire: Wire) -> None:
        self._wire = wire

    def put(self, name: str, url: str, events: Iterable[str], *, enabled: bool = True) -> Answer:
        """Make a webhook, or change address and events of the one of this name.

        Parameters
        ----------
        name : str
            Its name.
        url : str
            Where events are sent to, by POST: an https address of the internet, unless the operator allows
            others.
        events : iterable of str
            Which ones, as ``["job.failed", "version.published"]``.
        enabled : bool
            False: nothing is sent until :meth:`resume`.

        Returns
        -------
        dict
            The webhook. ``secret`` is what deliveries are signed with, and is shown when a webhook is made
            and not again; if that answer is lost, :meth:`rotate_secret` makes another.

        Raises
        ------
        InvalidContent
            There is no such event, or the address may not be sent to.

        Examples
        --------
        >>> made = client.webhooks.put("planning", "https://shop.example/hooks", ["job.failed"])
        >>> made["secret"][:6]
        'whsec_'
        """
        body = {"url": url, "events": list(events), "enabled": enabled}
        put: Answer = self._wire.call("PUT", _path(name), json=body)
        return put

    def get(self, name: str) -> Answer:
        """Return a webhook; ``disabled_because`` says why the service sends no more. Or raise NotFound."""
        found: Answer = self._wire.call("GET", _path(name))
        return found

    def list(self) -> Iterator[Answer]:
        """Yield all webhooks by name."""
        return self._wire.pages("/v1/webhooks")

    def pause(self, name: str) -> Answer:
        """Send nothing to a webhook, and return it; what happens meanwhile is not kept for it."""
        return self._switch(name, enabled=False)

    def resume(self, name: str) -> Answer:
        """Send to a webhook again, also one that the service has disabled, and return it."""
        return self._switch(name, enabled=True)

    def delete(self, name: str) -> None:
        """Delete a webhook with its deliveries, also those that have not arrived."""
        delete(self._wire, _path(name))

    def rotate_secret(self, name: str) -> Answer:
        """Return the webhook with a new ``secret``; for a day the one before signs too."""
        rotated: Answer = self._wire.call("POST", f"{_path(name)}/rotate-secret")
        return rotated

    def test(self, name: str) -> Answer:
        """Let the event ``webhook.test`` be sent once, and return its delivery."""
        delivery: Answer = self._wire.call("POST", f"{_path(name)}/test")
        return delivery

    def deliveries(self, name: str, *, state: str | None = None) -> Iterator[Answer]:
        """Yield what was sent in the last month, newest first, with each attempt.

        Parameters
        ----------
        name : str
            The webhook.
        state : {"pending", "delivered", "failed"}, optional
            Only deliveries in this state.

        Yields
        ------
        dict
            ``id``, ``event``, ``state``, ``next_attempt_at``, ``log`` (the attempts) and ``body``.

        Examples
        --------
        >>> made = client.webhooks.put("orders", "https://shop.example/hooks", ["job.failed"])
        >>> client.webhooks.test("orders")["event"]
        'webhook.test'
        >>> [delivery["state"] for delivery in client.webhooks.deliveries("orders")]
        ['pending']
        """
        return self._wire.pages(f"{_path(name)}/deliveries", state=state)

    def redeliver(self, name: str, delivery_id: str) -> Answer:
        """Let a delivery be sent again, whatever became of it, and return it.

        Parameters
        ----------
        name, delivery_id : str
            The webhook, and the ``id`` of the delivery.

        Returns
        -------
        dict
            The delivery, which waits. Receivers know it again by its ``webhook-id``.

        Raises
        ------
        Conflict
            The webhook is disabled; :meth:`resume` enables it.
        """
        path = f"{_path(name)}/deliveries/{quote(delivery_id, safe='')}/redeliver"
        delivery: Answer = self._wire.call("POST", path)
        return delivery

    def _switch(self, name: str, *, enabled: bool) -> Answer:
        switched: Answer = self._wire.call("PATCH", _path(name), json={"enabled": enabled})
        return switched


def _path(name: str) -> str:
    return f"/v1/webhooks/{quote(name, safe='')}"

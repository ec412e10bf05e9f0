"""Schedules: trainings that the service starts by itself, each day or by a cron expression."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any
from urllib.parse import quote

from ccmtl_client.datasets import delete
from ccmtl_client.wire import Answer, Wire


class Schedules:
    """The schedules of the service: ``client.schedules``.

    ``client.jobs.list(schedule="nightly")`` yields the jobs of one.
    """

    def __init__(self, wire: Wire) -> None:
        self._wire = wire

    def put(
        self,
        name: str,
        training: Mapping[str, Any],
        *,
        daily: str | None = None,
        cron: str | None = None,
        time_zone: str = "UTC",
        enabled: bool = True,
    ) -> Answer:
        """Make a schedule, or change the one of this name as a whole.

        Parameters
        ----------
        name : str
            Its name.
        training : mapping
            What :meth:`Client.train` takes: ``dataset``, ``model``, and the rest of the request.
        daily, cron : str, optional
            One of both: a time of each day, as ``"02:30"``, or a cron expression, as ``"0 4 * * MON"``.
        time_zone : str
            By whose clocks, as ``"Europe/Berlin"``.
        enabled : bool
            False: it rests until :meth:`resume`.

        Returns
        -------
        dict
            The schedule, with ``next_run_at``.

        Raises
        ------
        InvalidContent
            The training cannot work, or the time is none; ``faults`` has every reason.

        Examples
        --------
        >>> training = {"dataset": "shop", "model": "shop", "horizon": 7}
        >>> client.schedules.put("nightly", training, daily="02:30", time_zone="Europe/Berlin")["cron"]
        '30 2 * * *'
        """
        body = {"training": training, "daily": daily, "cron": cron, "time_zone": time_zone}
        put: Answer = self._wire.call("PUT", _path(name), json={**body, "enabled": enabled})
        return put

    def get(self, name: str) -> Answer:
        """Return a schedule, with ``next_run_at`` and what became of ``last_run``, or raise NotFound."""
        found: Answer = self._wire.call("GET", _path(name))
        return found

    def list(self) -> Iterator[Answer]:
        """Yield all schedules by name."""
        return self._wire.pages("/v1/schedules")

    def pause(self, name: str) -> Answer:
        """Let a schedule rest, and return it; jobs that it has started go on."""
        return self._switch(name, enabled=False)

    def resume(self, name: str) -> Answer:
        """Let a schedule go on from its next time, and return it; times that came meanwhile are left out."""
        return self._switch(name, enabled=True)

    def delete(self, name: str) -> None:
        """Delete a schedule; jobs that it has started go on."""
        delete(self._wire, _path(name))

    def _switch(self, name: str, *, enabled: bool) -> Answer:
        switched: Answer = self._wire.call("PATCH", _path(name), json={"enabled": enabled})
        return switched


def _path(name: str) -> str:
    return f"/v1/schedules/{quote(name, safe='')}"

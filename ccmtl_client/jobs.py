"""Training jobs: a handle that waits, follows and cancels."""

from __future__ import annotations

import math
import random
import time
from collections.abc import Iterator
from typing import Any
from urllib.parse import quote

from ccmtl_client.errors import Conflict, JobFailed, WaitedTooLong
from ccmtl_client.progress import Show, of_job, shown
from ccmtl_client.wire import LOST, Answer, Wire

FINAL = {"succeeded", "failed", "cancelled"}
SILENCE = 60.0
"""Seconds without a word after which an event stream is opened anew; the service sends some every 15."""


class Job:
    """A training job.

    Attributes
    ----------
    id : str
        Names it; ``client.jobs.get(id)`` finds it again, from any machine.
    status : dict
        The job when it was last read, as ``GET /v1/training-jobs/{id}`` tells it.
    """

    def __init__(self, wire: Wire, status: Answer) -> None:
        self._wire = wire
        self.id = str(status["id"])
        self.status = status

    def __repr__(self) -> str:
        return f"Job({self.id!r}, {self.state!r})"

    @property
    def state(self) -> str:
        """``queued``, ``running``, ``succeeded``, ``failed`` or ``cancelled``, when it was last read."""
        return str(self.status["state"])

    @property
    def model(self) -> str | None:
        """The version that it published, as in ``"shop/versions/3"``; None before, and once it is deleted."""
        made = self.status["model"]
        return made and f"{made['name']}/versions/{made['version']}"

    def refresh(self) -> Answer:
        """Read the job again, and return its status."""
        self.status = self._wire.call("GET", self._path)
        return self.status

    def wait(self, *, progress: bool | Show = False, timeout: float | None = None) -> Job:
        """Follow the job until it has ended, whatever becomes of connections and API processes meanwhile.

        Parameters
        ----------
        progress : bool or callable
            True shows a bar on a terminal or in a notebook; a function is given a :class:`Progress` at
            each change.
        timeout : float, optional
            Seconds after which to stop waiting; the job goes on.

        Returns
        -------
        Job
            Itself, succeeded.

        Raises
        ------
        JobFailed
            It failed or was cancelled.
        WaitedTooLong
            It has not ended in time.
        NoAnswer, ApiError
            The service could not be asked for as long as the client tries again.

        Examples
        --------
        >>> client.train("shop", "shop", lags=2, fusion_strength=1).wait(timeout=600).model
        'shop/versions/1'
        """
        with shown(progress) as show:
            for status in self.events(timeout):
                show(of_job(status))
        if self.refresh()["state"] != "succeeded":
            raise JobFailed(self.status)
        return self

    def events(self, timeout: float | None = None) -> Iterator[Answer]:
        """Yield the status now and after each change until the job has ended, as :meth:`wait` follows it.

        Parameters
        ----------
        timeout : float, optional
            Seconds after which to stop; the job goes on.

        Yields
        ------
        dict
            The status; of the errors of strengths mostly those that are new.

        Raises
        ------
        WaitedTooLong
            The job has not ended in time.
        """
        until = math.inf if timeout is None else time.monotonic() + timeout
        while True:
            try:
                for status in self._wire.events(f"{self._path}/events", self._patience(until)):
                    if status is not None:
                        yield status
                        if status["state"] in FINAL:
                            return
                    if time.monotonic() > until:
                        break
            except LOST:
                pass  # what follows asks again for as long as the client does, and says what is wrong
            yield self.refresh()
            if self.state in FINAL:
                return
            if time.monotonic() > until:
                raise WaitedTooLong(f"The training job {self.id} is {self.state} after {timeout:g} seconds.")
            time.sleep(random.uniform(0.25, 0.5))

    def cancel(self) -> Job:
        """Ask the job to stop; one that runs stops within some seconds, as ``wait`` would tell.

        Returns
        -------
        Job
            Itself.

        Raises
        ------
        Conflict
            It has ended otherwise.
        """
        try:
            self.status = self._wire.call("POST", f"{self._path}/cancel")
        except Conflict:
            if self.refresh()["state"] != "cancelled":
                raise
        return self

    @property
    def _path(self) -> str:
        return f"/v1/training-jobs/{self.id}"

    @staticmethod
    def _patience(until: float) -> float:
        return max(0.01, min(SILENCE, until - time.monotonic()))


class Jobs:
    """The training jobs of the service: ``client.jobs``."""

    def __init__(self, wire: Wire) -> None:
        self._wire = wire

    def get(self, job_id: str) -> Job:
        """Return the job with this id, or raise NotFound."""
        return Job(self._wire, self._wire.call("GET", f"/v1/training-jobs/{quote(job_id, safe='')}"))

    def list(
        self, *, state: str | None = None, model: str | None = None, schedule: str | None = None
    ) -> Iterator[Job]:
        """Yield jobs, newest first; if asked for, those in one state, of one model, or of one schedule."""
        found = self._wire.pages("/v1/training-jobs", state=state, model=model, schedule=schedule)
        return (Job(self._wire, status) for status in found)

    def start(self, request: dict[str, Any], idempotency_key: str | None) -> Job:
        """Queue a training job."""
        headers = {"Idempotency-Key": idempotency_key} if idempotency_key else None
        return Job(self._wire, self._wire.call("POST", "/v1/training-jobs", json=request, headers=headers))

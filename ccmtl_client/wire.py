"""Sends requests, sends them again where that helps and is safe, and raises what the service refuses."""

from __future__ import annotations

import json
import logging
import random
import time
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from typing import Any, TypeVar

import httpx2

from ccmtl_client.errors import ApiError, ClientError, NoAnswer, StrangeAnswer, api_error

logger = logging.getLogger("ccmtl_client")

Answer = dict[str, Any]
Read = TypeVar("Read")
Response = httpx2.Response

LOST = (httpx2.NetworkError, httpx2.TimeoutException, httpx2.RemoteProtocolError, httpx2.ProxyError)
"""No answer came; trying again may help."""
NOT_SENT = (httpx2.ConnectError, httpx2.ConnectTimeout, httpx2.PoolTimeout, httpx2.ProxyError)
"""Those of them after which the service cannot have carried out the request."""
UNREADABLE = (httpx2.DecodingError, json.JSONDecodeError, UnicodeDecodeError, RecursionError)
NOT_OURS = "cannot be read; is it the service that answers there, or something on the way to it"
AGAIN = {408, 429, 502, 503, 504}
UNDONE = {"dataset_changed", "request_timeout"}
"""Codes of requests that came at a bad moment: nothing was done, and the next try may find a better one."""
FIRST_PAUSE, LONGEST_PAUSE = 0.25, 10.0
CONNECT_SECONDS = 10.0
REFUSAL_BYTES = 1 << 20
"""What is read of a refusal; those of the service are shorter."""


class Wire:
    """An HTTP client that tries again for up to ``retry_for`` seconds from the first failure on."""

    def __init__(self, http: httpx2.Client, timeout: float, retry_for: float) -> None:
        self.http, self.timeout, self._retry_for = http, timeout, retry_for

    def call(self, method: str, path: str, **request: Any) -> Any:
        """Send as :meth:`send` does; return the JSON of the answer, None where it is empty."""
        return self.send(method, path, _json, **request)

    def send(
        self,
        method: str,
        path: str,
        read: Callable[[Response], Read],
        *,
        params: Mapping[str, Any] | None = None,
        json: Any = None,
        content: bytes | Callable[[], Iterable[bytes]] | None = None,
        headers: Mapping[str, str] | None = None,
        timeout: float | None = None,
        repeatable: bool = True,
    ) -> Read:
        """Send a request until it is answered, and return what ``read`` makes of the answer.

        Parameters
        ----------
        method, path : str
            As in the reference of the service.
        read : callable
            Reads the body; called again from its beginning if the connection ends meanwhile.
        params : mapping, optional
            Of the query; those that are None are left out.
        json : optional
            The body; or give ``content``.
        content : bytes or callable, optional
            The body, or what gives its pieces anew for each try.
        headers : mapping, optional
            Beside the usual ones. Every ``POST`` has an ``Idempotency-Key``, the same in all its tries.
        timeout : float, optional
            Seconds to wait for the next piece of the answer.
        repeatable : bool
            Whether it may be sent again after it may have been carried out.

        Returns
        -------
        object
            What ``read`` returned.

        Raises
        ------
        ApiError
            The service refused, or could not answer in the time for tries.
        NoAnswer
            No answer came in that time.
        StrangeAnswer
            What came cannot be read.
        ValueError
            The path leads to another server, which must not see the key.
        """
        if not path.startswith("/"):
            raise ValueError(f"the path must begin with /, as /v1/models, not {path!r}")
        given = {"Idempotency-Key": uuid.uuid4().hex} if method == "POST" else {}
        tries, maybe_done = _Tries(self._retry_for), False
        while True:
            failure: ClientError
            body = content() if callable(content) else content
            try:
                with self.http.stream(
                    method,
                    path,
                    params=None if params is None else {k: v for k, v in params.items() if v is not None},
                    json=json,
                    content=body,
                    headers={**given, **(headers or {})},
                    timeout=self.limits(timeout),
                ) as response:
                    if response.is_success:
                        return read(response)
                    failure = refusal = _refusal(response)
                failure.maybe_done = maybe_done
                is_undone = response.status_code == 429 or refusal.code in UNDONE
                if response.status_code not in AGAIN and not is_undone:
                    raise failure
                doubtful = not is_undone
            except LOST as error:
                failure = self._no_answer(method, path, error, tries)
                failure.__cause__ = error
                doubtful = not isinstance(error, NOT_SENT)
            except UNREADABLE as error:
                raise StrangeAnswer(f"The answer to {method} {path} {NOT_OURS}: {error}") from error
            if doubtful and not repeatable:
                raise failure
            tries.pause_after(failure)
            maybe_done = maybe_done or doubtful

    def events(self, path: str, timeout: float) -> Iterator[Answer | None]:
        """Yield server-sent events, and None now and then; none at all where the service refuses them."""
        with self.http.stream("GET", path, timeout=self.limits(timeout)) as response:
            if not response.is_success:
                return
            for line in response.iter_lines():
                yield json.loads(line[5:]) if line.startswith("data:") else None

    def pages(self, path: str, **params: Any) -> Iterator[Answer]:
        """Yield the items of all pages of a list."""
        cursor = None
        while True:
            page = self.call("GET", path, params={**params, "limit": 500, "cursor": cursor})
            yield from page["items"]
            cursor = page["next_cursor"]
            if cursor is None:
                return

    def limits(self, timeout: float | None = None) -> httpx2.Timeout:
        """Return the limits of time of one try."""
        seconds = self.timeout if timeout is None else timeout
        return httpx2.Timeout(seconds, connect=min(seconds, CONNECT_SECONDS))

    def _no_answer(self, method: str, path: str, error: Exception, tries: _Tries) -> NoAnswer:
        why = str(error) or type(error).__name__
        return NoAnswer(
            f"No answer from {self.http.base_url} to {method} {path}, try {tries.n}: {why}. Does the service "
            "run there, and can this machine reach it?"
        )


class _Tries:
    """The pauses between the tries of one request: growing, at random, within a limit of time."""

    def __init__(self, seconds: float) -> None:
        self._seconds, self.n = seconds, 1
        self._until: float | None = None

    def pause_after(self, failure: ClientError) -> None:
        """Wait before the next try; raise ``failure`` where no time is left for it."""
        now = time.monotonic()
        self._until = now + self._seconds if self._until is None else self._until
        pause = min(LONGEST_PAUSE, FIRST_PAUSE * 2 ** (self.n - 1)) * random.uniform(0.5, 1.0)
        if isinstance(failure, ApiError):
            pause += failure.retry_after or 0.0
        if now + pause > self._until or "CERTIFICATE_VERIFY_FAILED" in str(failure):
            raise failure
        logger.warning("%s Trying again in %.1f s.", str(failure).partition("\n")[0], pause)
        time.sleep(pause)
        self.n += 1


def _json(response: Response) -> Any:
    content = response.read()
    return json.loads(content) if content else None


def _refusal(response: Response) -> ApiError:
    content = bytearray()
    with suppress(httpx2.DecodingError):  # its status is enough
        for piece in response.iter_bytes():
            content += piece
            if len(content) > REFUSAL_BYTES:
                break
    try:
        problem = json.loads(content)
    except (ValueError, RecursionError):
        problem = None
    text = content.decode(errors="replace").strip()[:200] or response.reason_phrase
    return api_error(response.status_code, problem, text, _seconds_until(response.headers.get("retry-after")))


def _seconds_until(retry_after: str | None) -> float | None:
    """Return the seconds that ``Retry-After`` names, itself or by a date; None where it cannot be read."""
    if retry_after is None:
        return None
    try:
        return max(0.0, float(retry_after))
    except ValueError:
        pass
    try:
        return max(0.0, (parsedate_to_datetime(retry_after) - datetime.now(UTC)).total_seconds())
    except (ValueError, TypeError, OverflowError):
        return None

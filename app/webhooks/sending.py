"""Send one request to an address that a user chose, without letting it reach what the user may not.

The name is resolved here, and the connection made to the very address that was checked. Redirects are not
followed, and of the answer no more than its head is read.
"""

from __future__ import annotations

import ipaddress
import queue
import socket
import ssl
import threading
from collections.abc import Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime
from functools import cache
from http.client import HTTPConnection, HTTPException
from typing import Any, NamedTuple
from urllib.parse import urlsplit

from app.settings import variable

SECONDS = 15.0
"""What a request may take in all, once the name is resolved."""
RESOLVE_SECONDS = 10.0
"""What resolving a name may take."""
_WITH_IPV4_INSIDE = (ipaddress.ip_network("::ffff:0:0/96"), ipaddress.ip_network("64:ff9b::/96"))
"""Addresses that mean the IPv4 address in their last 32 bits."""
_UNICAST = ipaddress.ip_network("2000::/3")
"""All that the internet uses of IPv6; other ranges hold private IPv4 addresses in ways of their own."""
_NEVER_PUBLIC = tuple(
    map(ipaddress.ip_network, ("2002::/16", "3fff::/20", "192.88.99.0/24", "168.63.129.16/32"))
)
"""6to4, examples, and what a cloud answers its own machines under a public address."""
ALLOWED_BY = variable("webhook_private_addresses")


class NotSent(Exception):
    """The request was not sent, or not answered; the text says why."""


class Answer(NamedTuple):
    """The head of an answer: its status, and the seconds that it asks to wait."""

    status: int
    retry_after: float | None


def is_public(address: str) -> bool:
    """Whether an IP address is one of the internet, and none of this machine or of a network of its own.

    Examples
    --------
    >>> [is_public(address) for address in ("93.184.215.14", "10.0.0.1", "::ffff:127.0.0.1")]
    [True, False, False]
    """
    ip = ipaddress.ip_address(address.partition("%")[0])
    if any(ip in network for network in _WITH_IPV4_INSIDE):
        ip = ipaddress.IPv4Address(int(ip) & 0xFFFFFFFF)
    if ip.version == 6 and ip not in _UNICAST:
        return False
    return ip.is_global and not ip.is_multicast and not any(ip in network for network in _NEVER_PUBLIC)


def fault_of_url(url: str, *, private: bool) -> str | None:
    """Return what is wrong with the address of a webhook as far as its text tells, or None."""
    parts = urlsplit(url)
    if private:
        return None
    if parts.scheme != "https":
        return f"must begin with https:// (the operator can allow http by {ALLOWED_BY})"
    host = parts.hostname or ""
    try:
        is_inside = not is_public(host)
    except ValueError:  # a name
        is_inside = host == "localhost" or host.endswith(".localhost")
    return f"is of this machine or of a private network ({ALLOWED_BY} allows it)" if is_inside else None


def post(
    url: str, headers: Mapping[str, str], body: bytes, *, private: bool, seconds: float = SECONDS
) -> Answer:
    """Send ``body`` to ``url`` and return the head of the answer.

    Parameters
    ----------
    url
        An http or https URL.
    headers
        Besides those that every request has.
    body
        What is sent.
    private
        Whether the URL may be of this machine or a private network, and begin with http.
    seconds
        How long all of it may take, once the name is resolved.

    Returns
    -------
    Answer
        Of any status.

    Raises
    ------
    NotSent
        The address is refused, or nobody answered in time.
    """
    fault = fault_of_url(url, private=private)
    if fault is not None:
        raise NotSent(f"the address {fault}")
    parts = urlsplit(url)
    tls = _tls() if parts.scheme == "https" else None
    host, port = parts.hostname or "", parts.port or (80 if tls is None else 443)
    connection = _Connection(host, port, _resolve(host, port, private=private), tls, seconds)
    deadline = threading.Timer(seconds, connection.give_up)
    deadline.daemon = True
    deadline.start()
    target = (parts.path or "/") + (f"?{parts.query}" if parts.query else "")
    try:
        connection.request("POST", target, body, {**headers, "Connection": "close"})
        answer = connection.getresponse()
        if connection.is_given_up:  # then its head was cut off
            raise TimeoutError
        return Answer(answer.status, _seconds(answer.headers.get("Retry-After")))
    except (OSError, HTTPException, ValueError) as error:
        if connection.is_given_up or isinstance(error, TimeoutError):
            raise NotSent(f"there was no answer within {seconds:g} s") from None
        raise NotSent(f"{type(error).__name__}: {error}"[:200]) from None
    finally:
        deadline.cancel()
        connection.close()


class _Connection(HTTPConnection):
    """A connection to one of some addresses, as if it had been made to ``host``, that can be given up."""

    def __init__(
        self,
        host: str,
        port: int,
        addresses: Sequence[tuple[int, Any]],
        tls: ssl.SSLContext | None,
        seconds: float,
    ) -> None:
        super().__init__(host, port, timeout=seconds)
        self.default_port = 80 if tls is None else 443  # what the header Host leaves out
        self.is_given_up = False
        self._addresses = addresses
        self._tls = tls

    def connect(self) -> None:
        """Connect to the first address that answers."""
        failure: OSError = TimeoutError()
        for family, address in self._addresses:
            if self.is_given_up:
                break
            self.sock = socket.socket(family, socket.SOCK_STREAM)
            self.sock.settimeout(self.timeout)
            try:
                self.sock.connect(address)
                break
            except OSError as error:
                self.sock.close()
                failure = error
        else:
            raise failure
        if self._tls is not None:
            self.sock = self._tls.wrap_socket(
                self.sock, server_hostname=self.host, do_handshake_on_connect=False
            )
            self.sock.do_handshake()

    def give_up(self) -> None:
        """End whatever this connection waits for; the timeout of a socket begins anew with every byte."""
        self.is_given_up = True
        if self.sock is not None:
            with suppress(OSError):
                socket.socket.shutdown(self.sock, socket.SHUT_RDWR)


@cache
def _tls() -> ssl.SSLContext:
    return ssl.create_default_context()


def _resolve(host: str, port: int, *, private: bool) -> Sequence[tuple[int, Any]]:
    looked_up: queue.SimpleQueue[Any] = queue.SimpleQueue()

    def look_up() -> None:
        try:
            looked_up.put(socket.getaddrinfo(host, port, type=socket.SOCK_STREAM))
        except (OSError, UnicodeError) as error:
            looked_up.put(error)

    # The system's call takes no limit of time; what comes after ours is not waited for.
    threading.Thread(target=look_up, name="resolver", daemon=True).start()
    try:
        found = looked_up.get(timeout=RESOLVE_SECONDS)
    except queue.Empty:
        raise NotSent(f"the name {host[:100]} was not resolved within {RESOLVE_SECONDS:g} s") from None
    if isinstance(found, Exception):
        raise NotSent(f"the name {host[:100]} cannot be resolved: {found}")
    allowed = [(family, place) for family, _, _, _, place in found if private or is_public(str(place[0]))]
    if not allowed:
        raise NotSent(f"{host[:100]} is a name of this machine or of a private network ({ALLOWED_BY})")
    return allowed


def _seconds(retry_after: str | None) -> float | None:
    """Return the seconds that a header ``Retry-After`` asks to wait; None if it cannot be understood."""
    if retry_after is None:
        return None
    if retry_after.isascii() and retry_after.isdigit():
        return float(retry_after[:9])
    try:
        moment = parsedate_to_datetime(retry_after)
        return max(0.0, (moment - datetime.now(UTC)).total_seconds())
    except (TypeError, ValueError, OverflowError):  # not a date, or one without a zone
        return None

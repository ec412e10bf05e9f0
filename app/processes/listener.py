"""Open the socket that the API listens on, or say in one sentence why that fails and what to do."""

from __future__ import annotations

import errno
import ipaddress
import socket

from app.processes.cannot_start import CannotStart

_OTHER_PORT = "choose another with --port or CCMTL_PORT (0: a free one)"
_OTHER_HOST = "choose another with --host or CCMTL_HOST"
_REMEDIES = {
    errno.EADDRINUSE: f"another program listens there; end it, or {_OTHER_PORT}",
    errno.EACCES: f"this user may not use the port; {_OTHER_PORT}",
    socket.EAI_NONAME: f"there is no such host; {_OTHER_HOST}",
    errno.EADDRNOTAVAIL: f"it is no address of this machine; {_OTHER_HOST}",
}


class CannotListen(CannotStart):
    """The API cannot listen on this address."""


def is_loopback(host: str) -> bool:
    """Whether only this machine reaches ``host``; of a name, whether all its addresses are such."""
    try:
        addresses = {str(found[4][0]) for found in socket.getaddrinfo(host, None)}
    except OSError:  # `listen` says why
        return False
    return all(ipaddress.ip_address(address.partition("%")[0]).is_loopback for address in addresses)


def listen(host: str, port: int) -> socket.socket:
    """Return a socket that listens on ``host`` and ``port``; the API accepts callers later."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        return socket.create_server((host, port), family=family, backlog=2048)
    except OSError as error:
        reason = _REMEDIES.get(error.errno or 0, error.strerror)
        raise CannotListen(f"Cannot listen on {host}, port {port}: {reason}.") from None

"""One request to an address that a user chose: it reaches only what it may, and never takes long."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from http.server import BaseHTTPRequestHandler

import pytest

from app.webhooks import sending
from app.webhooks.sending import NotSent, fault_of_url, is_public, post
from tests.support.receiver import receiving


def with_header(status: int, name: str, value: str) -> Callable[[BaseHTTPRequestHandler], None]:
    def answer(handler: BaseHTTPRequestHandler) -> None:
        handler.send_response(status)
        handler.send_header(name, value)
        handler.end_headers()
        with suppress(OSError):
            handler.wfile.write(b"x" * 1_000_000)

    return answer


def send(url: str, seconds: float = 30.0) -> sending.Answer:
    return post(url, {"webhook-id": "evt_1"}, b"{}", private=True, seconds=seconds)


def test_a_request_is_sent_as_it_is_and_answered() -> None:
    with receiving(204) as receiver:
        assert send(receiver.url) == (204, None)
    path, headers, body = receiver.requests[0]
    assert (path, body) == ("/hooks?from=ccmtl", b"{}")
    assert headers["host"] in receiver.url
    assert headers["webhook-id"] == "evt_1"


def test_redirects_are_not_followed_and_no_body_is_read() -> None:
    with receiving(200) as elsewhere, receiving(with_header(302, "Location", elsewhere.url)) as receiver:
        assert send(receiver.url).status == 302
    assert elsewhere.requests == []


@pytest.mark.parametrize(
    ("value", "least", "most"),
    [
        ("7", 7, 7),
        ("Fri, 01 Jan 2100 00:00:00 GMT", 1e9, 1e10),
        ("Thu, 01 Jan 1970 00:00:00 GMT", 0, 0),
        *((bad, None, None) for bad in ("soon", "-1", "²", "1.5", "")),
    ],
)
def test_what_the_receiver_asks_to_wait_is_understood(
    value: str, least: float | None, most: float | None
) -> None:
    found = sending._seconds(value)
    assert found is None if least is None or most is None else found is not None and least <= found <= most


def test_an_answer_that_comes_byte_by_byte_is_given_up() -> None:
    """Each byte begins the timeout of a socket anew."""
    stop = threading.Event()

    def drip(handler: BaseHTTPRequestHandler) -> None:
        handler.wfile.write(b"HTTP/1.1 200 OK\r\nX-Slow: ")
        with suppress(OSError):
            while not stop.wait(0.05):
                handler.wfile.write(b"x")

    with receiving(drip) as receiver:
        began = time.monotonic()
        with pytest.raises(NotSent, match=r"no answer within 0\.3 s"):
            send(receiver.url, seconds=0.3)
        assert time.monotonic() - began < 60
        stop.set()


def test_a_server_that_never_greets_is_given_up() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"https://127.0.0.1:{silent.getsockname()[1]}/"
        with pytest.raises(NotSent, match="no answer within"):
            send(url, seconds=0.3)


@pytest.mark.parametrize(
    ("answer", "said"), [(b"nonsense\r\n\r\n", "BadStatusLine"), (b"", "RemoteDisconnected")]
)
def test_what_is_no_http_is_told(answer: bytes, said: str) -> None:
    def write(handler: BaseHTTPRequestHandler) -> None:
        handler.wfile.write(answer)

    with receiving(write) as receiver, pytest.raises(NotSent, match=said):
        send(receiver.url)


def test_a_port_where_nobody_listens_and_a_name_that_is_unknown_are_told() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    with pytest.raises(NotSent, match="ConnectionRefusedError"):
        send(f"http://127.0.0.1:{port}/")
    with pytest.raises(NotSent, match="cannot be resolved"):
        send("https://nobody.invalid/")


def test_a_certificate_that_is_not_trusted_is_refused() -> None:
    with receiving(200) as receiver, pytest.raises(NotSent, match="SSLError"):
        send(receiver.url.replace("http:", "https:"))


INSIDE = [
    *("127.0.0.1", "127.1.2.3", "0.0.0.0", "10.0.0.1", "172.16.0.1", "192.168.1.1", "169.254.169.254"),
    *("100.64.0.1", "224.0.0.1", "240.0.0.1", "255.255.255.255", "198.18.0.1", "192.0.2.1"),
    *(
        "::1",
        "::",
        "fe80::1",
        "fe80::1%eth0",
        "fd00::1",
        "fec0::1",
        "ff02::1",
        "2001:db8::1",
        "2002:7f00:1::",
    ),
    *("::ffff:127.0.0.1", "::ffff:10.0.0.1", "64:ff9b::7f00:1", "64:ff9b::a9fe:a9fe"),
    *("::127.0.0.1", "::ffff:0:7f00:1", "64:ff9b:1::7f00:1", "5f00::1", "3fff::1", "ff0e::1"),
    *("192.88.99.1", "168.63.129.16", "::ffff:168.63.129.16"),
]


@pytest.mark.parametrize("address", INSIDE)
def test_an_address_inside_is_not_public(address: str) -> None:
    assert not is_public(address)


@pytest.mark.parametrize("address", ["93.184.215.14", "2606:2800:21f::1", "64:ff9b::5db8:d70e"])
def test_an_address_of_the_internet_is_public(address: str) -> None:
    assert is_public(address)


@pytest.mark.parametrize(
    "url",
    [
        "http://shop.example/",
        "https://localhost/",
        "https://a.localhost:8000/",
        "https://[::1]/",
        "https://10.0.0.1/",
    ],
)
def test_a_url_that_is_inside_or_not_encrypted_is_refused_by_its_text(url: str) -> None:
    assert "CCMTL_WEBHOOK_PRIVATE_ADDRESSES" in (fault_of_url(url, private=False) or "")
    assert fault_of_url(url, private=True) is None
    with pytest.raises(NotSent):
        post(url, {}, b"{}", private=False)


def test_a_name_that_is_not_resolved_in_time_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    may_go_on = threading.Event()
    monkeypatch.setattr(sending, "RESOLVE_SECONDS", 0.1)
    monkeypatch.setattr(socket, "getaddrinfo", lambda *host, **kind: may_go_on.wait(60))
    with pytest.raises(NotSent, match=r"the name slow\.example was not resolved within 0\.1 s"):
        post("https://slow.example/", {}, b"{}", private=False)
    may_go_on.set()


def test_a_name_that_leads_inside_is_refused_when_it_is_resolved(monkeypatch: pytest.MonkeyPatch) -> None:
    """The connection goes to the address that was checked, whatever the name means a moment later."""
    asked: list[str] = []

    def resolve(host: str, port: int, **_: object) -> list[tuple[object, ...]]:
        asked.append(host)
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", ("127.0.0.1", port))]

    with receiving(200) as receiver:
        port = receiver.url.split(":")[2].partition("/")[0]
        monkeypatch.setattr(socket, "getaddrinfo", resolve)
        with pytest.raises(NotSent, match="of a private network"):
            post(f"https://rebound.example:{port}/", {}, b"{}", private=False)
        assert post(f"http://rebound.example:{port}/", {}, b"{}", private=True).status == 200
    assert asked == ["rebound.example"] * 2
    assert receiver.requests[0][1]["host"] == f"rebound.example:{port}"

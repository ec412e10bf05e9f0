"""One client that asks the same request over many connections for a while, and counts the answers."""

from __future__ import annotations

import socket
import time

HOST = "127.0.0.1"
N_CLIENTS, N_CONNECTIONS, SECONDS = 2, 8, 4.0


def ask(port: int, request: bytes) -> int:
    """Keep a request under way on every connection; return how many were answered with 200."""
    connections = [socket.create_connection((HOST, port)) for _ in range(N_CONNECTIONS)]
    answered = 0
    deadline = time.monotonic() + SECONDS
    while time.monotonic() < deadline:
        for connection in connections:
            connection.sendall(request)
        for connection in connections:
            answered += _receive(connection).startswith(b"HTTP/1.1 200")
    for connection in connections:
        connection.close()
    return answered


def _receive(connection: socket.socket) -> bytes:
    answer = connection.recv(65536)
    head, _, body = answer.partition(b"\r\n\r\n")
    length = int(head.lower().split(b"content-length:")[1].split(b"\r\n")[0])
    while len(body) < length:
        body += connection.recv(65536)
    return head

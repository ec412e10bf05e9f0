"""How many requests a second one API process answers, asked by clients on the same machine."""

from __future__ import annotations

import socket
import tempfile
import time
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

from rich.console import Console

from examples.local_service import HOST, LocalService

N_CLIENTS, N_CONNECTIONS, SECONDS = 2, 8, 4.0
FEATURES = ",".join(f'"lag_{lag}":{lag}' for lag in range(1, 8))
ROW = f'{{"rows":[{{"unique_id":"0001","features":{{{FEATURES}}}}}]}}'
REQUESTS = {
    "GET forecast, one product, h=1": "GET /v1/models/shop/forecast?unique_id=0001&h=1 HTTP/1.1\r\n"
    "Host: x\r\n\r\n",
    "POST predict, one row": "POST /v1/models/shop/predict HTTP/1.1\r\nHost: x\r\n"
    f"Content-Type: application/json\r\nContent-Length: {len(ROW)}\r\n\r\n{ROW}",
}


def publish_model(service: LocalService) -> None:
    """Train a model on the example file."""
    service.post("/v1/datasets", {"name": "shop", "kind": "series", "frequency": "D"})
    content = Path("examples/shop.csv").read_bytes()
    service.upload("/v1/datasets/shop/versions?mode=full", [content], len(content))
    job = service.post(
        "/v1/training-jobs", {"dataset": "shop", "model": "shop", "fusion_strength": 10, "lags": 7}
    )
    while job["state"] in ("queued", "running"):
        time.sleep(0.2)
        job = service.get(f"/v1/training-jobs/{job['id']}")
    if job["state"] != "succeeded":
        raise SystemExit(f"training {job['state']}: {job['error']}")


def ask(port: int, request: bytes) -> int:
    """Keep a request under way on every connection for a while; return how many were answered with 200."""
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


def main() -> None:
    """Print requests a second for each kind of request."""
    console = Console()
    with tempfile.TemporaryDirectory() as folder, LocalService(Path(folder)) as service:
        publish_model(service)
        with ProcessPoolExecutor(N_CLIENTS) as pool:
            for name, request in REQUESTS.items():
                answered = sum(pool.map(ask, [service.port] * N_CLIENTS, [request.encode()] * N_CLIENTS))
                console.print(
                    f"{name:<34}{answered / SECONDS:8,.0f} requests/s "
                    f"({N_CLIENTS} clients with {N_CONNECTIONS} connections each)",
                    highlight=False,
                )


if __name__ == "__main__":
    main()

"""Traces by OpenTelemetry, which the standard variables switch on."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

PROGRAM = """
import logging, os, sys
from fastapi.testclient import TestClient
from app.main import create_app
from app.processes.logs import configure_logging
from app.settings import Settings

def ask():
    app = create_app(Settings())
    app.add_api_route("/logged", lambda: logging.getLogger("here").info("asked"))
    with TestClient(app, "http://localhost") as client:
        for path in ("/logged", "/healthz"):
            client.get(path, headers={"traceparent": os.environ["PARENT"], "X-Request-Id": "r1"})

configure_logging("api", "info", "json")
logging.getLogger("httpx").setLevel("WARNING")
ask()
assert "opentelemetry.sdk" not in sys.modules, "loaded although nothing asked for it"
os.environ["OTEL_EXPORTER_OTLP_TRACES_ENDPOINT"] = os.environ["COLLECTOR"]
ask()
"""
TRACE = "4bf92f3577b34da6a3ce929d0e0e4736"


class _Collector(BaseHTTPRequestHandler):
    received: list[bytes]

    def do_POST(self) -> None:
        self.received.append(self.rfile.read(int(self.headers["Content-Length"])))
        self.send_response(200)
        self.end_headers()

    def log_message(self, *arguments: object) -> None:
        pass


def test_requests_are_traced_and_logs_name_the_trace_where_a_collector_is_named(tmp_path: Path) -> None:
    received: list[bytes] = []
    with HTTPServer(("127.0.0.1", 0), type("_", (_Collector,), {"received": received})) as collector:
        threading.Thread(target=collector.serve_forever, daemon=True).start()
        environment = {
            **os.environ,
            "CCMTL_DATA_DIR": str(tmp_path),
            "COLLECTOR": f"http://127.0.0.1:{collector.server_port}/v1/traces",
            "PARENT": f"00-{TRACE}-00f067aa0ba902b7-01",
        }
        done = subprocess.run(
            [sys.executable, "-c", PROGRAM], env=environment, capture_output=True, text=True
        )
        collector.shutdown()
    assert done.returncode == 0, done.stderr
    lines = [json.loads(line) for line in done.stderr.splitlines()]
    untraced, traced = (line for line in lines if line["message"] == "asked")
    assert "trace_id" not in untraced
    assert (traced["request_id"], traced["trace_id"]) == ("r1", TRACE)
    spans = b"".join(received)
    assert bytes.fromhex(TRACE) in spans
    assert b"GET /logged" in spans
    assert b"/healthz" not in spans

"""Traces by OpenTelemetry, which the standard variables switch on."""

from __future__ import annotations

import json
import os
import re
import socket
import subprocess
import sys
import threading
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import httpx2

from tests.support.forked import forked_program
from tests.support.processes import PATIENCE, wait_until

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
            "CCMTL_DATA_DIR": str(tmp_path),
            "COLLECTOR": f"http://127.0.0.1:{collector.server_port}/v1/traces",
            "PARENT": f"00-{TRACE}-00f067aa0ba902b7-01",
        }
        done = forked_program(PROGRAM, **environment)
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


def test_a_collector_that_is_away_does_not_hold_up_the_end(tmp_path: Path) -> None:
    log_file = tmp_path / "log"
    with socket.create_server(("127.0.0.1", 0)) as silent, log_file.open("wb") as log:
        environment = {
            **os.environ,
            "CCMTL_DATA_DIR": str(tmp_path / "var"),
            "CCMTL_PORT": "0",
            "OTEL_EXPORTER_OTLP_ENDPOINT": f"http://127.0.0.1:{silent.getsockname()[1]}",
        }
        command = [sys.executable, "-m", "app.commands.cli", "api"]
        process = subprocess.Popen(command, env=environment, stderr=log)
        try:
            found = wait_until(
                lambda: re.search(r"listening on (http://\S+)", log_file.read_text()), "the API"
            )
            assert httpx2.get(f"{found[1]}/v1/models", timeout=PATIENCE).status_code == 200
            process.terminate()
            assert process.wait(PATIENCE) == 0
        finally:
            process.kill()
    assert "did not take the rest within 3 s" in log_file.read_text()

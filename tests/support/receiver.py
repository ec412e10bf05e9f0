"""A receiver of webhooks in this process, which answers as the test says, and the recipe that users get."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any

from scripts.guide_blocks import blocks_of


@dataclass
class Receiver:
    """Answers its n-th request with the n-th of ``answers``, and with the last from then on."""

    answers: list[int | Callable[[BaseHTTPRequestHandler], None]]
    url: str = ""
    requests: list[tuple[str, dict[str, str], bytes]] = field(default_factory=list)

    @property
    def events(self) -> list[dict[str, Any]]:
        """What was sent, parsed."""
        return [json.loads(body) for _, _, body in self.requests]

    def handle(self, handler: BaseHTTPRequestHandler) -> None:
        """Note a request and answer it."""
        body = handler.rfile.read(int(handler.headers["content-length"]))
        headers = {name.lower(): value for name, value in handler.headers.items()}
        self.requests.append((handler.path, headers, body))
        answer = self.answers[min(len(self.requests), len(self.answers)) - 1]
        if not isinstance(answer, int):
            answer(handler)
            return
        handler.send_response(answer)
        handler.send_header("Content-Length", "0")
        handler.end_headers()


@contextmanager
def receiving(*answers: int | Callable[[BaseHTTPRequestHandler], None]) -> Iterator[Receiver]:
    """Serve a receiver on a free port of this machine."""
    receiver = Receiver(list(answers) or [200])

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            receiver.handle(self)

        def log_message(self, format: str, *args: Any) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        server.daemon_threads = True
        Thread(target=server.serve_forever, kwargs={"poll_interval": 0.02}, daemon=True).start()
        receiver.url = f"http://127.0.0.1:{server.server_port}/hooks?from=ccmtl"
        yield receiver
        server.shutdown()


def published_recipe() -> Callable[[str, Mapping[str, str], bytes], bool]:
    """Return the function of the guide that checks a signature."""
    names: dict[str, Any] = {}
    (block,) = [b for b in blocks_of(["docs/http.md"]) if "def is_genuine" in b.text]
    exec(block.text, names)
    recipe: Callable[[str, Mapping[str, str], bytes], bool] = names["is_genuine"]
    return recipe

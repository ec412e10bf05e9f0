"""An application behind a real server, in a thread of this process."""

from __future__ import annotations

import socket
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import uvicorn

from app.http.protocol import ProblemProtocol
from tests.support.processes import PATIENCE

Address = tuple[str, int]


@contextmanager
def served(app: Any, protocol: type[ProblemProtocol] = ProblemProtocol) -> Iterator[Address]:
    """Serve the application, which has been started, on a free port; yield its address."""
    listener = socket.create_server(("127.0.0.1", 0))
    config = uvicorn.Config(app, http=protocol, ws="none", log_config=None, lifespan="off", access_log=False)
    server = uvicorn.Server(config)
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listener]})
    thread.start()
    while not server.started:
        time.sleep(0.01)
    yield listener.getsockname()
    server.should_exit = True
    thread.join(PATIENCE)

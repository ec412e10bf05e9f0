"""Answer HEAD wherever there is a GET: the same status and headers, without the body."""

from __future__ import annotations

from anyio import CancelScope
from starlette.types import ASGIApp, Message, Receive, Scope, Send


class HeadAnswers:
    """Middleware that lets the application answer GET, and stops it as its body begins."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer as the application does, HEAD without a body."""
        if scope["type"] != "http" or scope["method"] != "HEAD":
            await self._app(scope, receive, send)
            return

        async def send_head(message: Message) -> None:
            if message["type"] == "http.response.start":
                scope["method"] = "HEAD"  # the server sends a length without a body for this method alone
                await send(message)
                await send({"type": "http.response.body", "body": b""})
            else:
                rest.cancel()  # the body may be a stream without end

        scope["method"] = "GET"
        with CancelScope() as rest:
            await self._app(scope, receive, send_head)

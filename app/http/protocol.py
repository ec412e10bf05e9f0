"""Answer what is no HTTP request as other faults are answered, before the application sees it."""

from __future__ import annotations

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol

from app.http.errors import MEDIA_TYPE, BadRequest


class ProblemProtocol(HttpToolsProtocol):
    """The protocol of uvicorn, with a problem document where the parser gives up."""

    def send_400_response(self, msg: str) -> None:
        """Answer 400 and close the connection; what follows on it cannot be told apart any more."""
        detail = f"What was sent is no HTTP request that can be read, or of an unknown method: {msg}"
        body = BadRequest("not_http", detail).problem.model_dump_json(exclude={"error", "report"}) + "\n"
        head = (
            f"HTTP/1.1 400 Bad Request\r\ncontent-type: {MEDIA_TYPE}\r\n"
            f"content-length: {len(body.encode())}\r\nconnection: close\r\n\r\n"
        )
        self.transport.write((head + body).encode())
        self.transport.close()

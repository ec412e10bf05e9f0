"""Write log records to standard error, one line each: time, level, process, logger, message.

A line is text, or a JSON object with the same as fields, for programs that gather logs.
"""

from __future__ import annotations

import json
import logging
import os
import sys
from contextvars import ContextVar
from datetime import UTC, datetime
from types import TracebackType
from typing import Any

from opentelemetry.trace import get_current_span

REQUEST_ID: ContextVar[str | None] = ContextVar("REQUEST_ID", default=None)
"""The id of the request that is being answered; it stands at the end of each log line about it."""


def _ids() -> dict[str, str]:
    """The ids of the request that is being answered, and of its trace where requests are traced."""
    request_id, trace = REQUEST_ID.get(), get_current_span().get_span_context()
    ids = {} if request_id is None else {"request_id": request_id}
    return {**ids, "trace_id": f"{trace.trace_id:032x}"} if trace.is_valid else ids


class OneLine(logging.Formatter):
    """Puts a record on one line, a traceback and a message's own line breaks included."""

    def format(self, record: logging.LogRecord) -> str:
        """Return the line."""
        line = super().format(record).replace("\r", "").replace("\n", " | ")
        ids = " ".join(f"{name.removesuffix('_id')} {value}" for name, value in _ids().items())
        return f"{line} [{ids}]" if ids else line

    def formatTime(self, record: logging.LogRecord, datefmt: str | None = None) -> str:
        """Return the time in UTC, to the millisecond."""
        return datetime.fromtimestamp(record.created, UTC).strftime("%Y-%m-%dT%H:%M:%S.%f")[:-3] + "Z"


class JsonLine(OneLine):
    """Makes of a record a JSON object on one line."""

    def __init__(self, role: str) -> None:
        super().__init__()
        self._role = role

    def format(self, record: logging.LogRecord) -> str:
        """Return the line."""
        fields: dict[str, Any] = {
            "time": self.formatTime(record),
            "level": record.levelname.lower(),
            "process": self._role,
            "pid": os.getpid(),
            "logger": record.name,
            "message": record.getMessage(),
        }
        fields |= _ids()
        if record.exc_info:
            fields["traceback"] = self.formatException(record.exc_info)
        return json.dumps(fields, ensure_ascii=False)


def configure_logging(role: str, level: str, form: str = "text") -> None:
    """Write all records of at least ``level``, with the process's ``role``, to standard error."""
    handler = logging.StreamHandler(sys.stderr)
    text = OneLine(f"%(asctime)s %(levelname)s {role}[{os.getpid()}] %(name)s: %(message)s")
    handler.setFormatter(JsonLine(role) if form == "json" else text)
    logging.basicConfig(level=level.upper(), handlers=[handler], force=True)
    sys.excepthook = _log_uncaught
    # These log every step of their start, which is of no use to an operator.
    for chatty in ("alembic", "numba"):
        logging.getLogger(chatty).setLevel(logging.WARNING)


def _log_uncaught(kind: type[BaseException], error: BaseException, traceback: TracebackType | None) -> None:
    if isinstance(error, KeyboardInterrupt):
        sys.__excepthook__(kind, error, traceback)
    else:
        logging.getLogger(__name__).critical("uncaught error", exc_info=(kind, error, traceback))

"""Small work that a process does again and again in a thread, beside what it is there for."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Sequence
from types import TracebackType

from sqlalchemy.exc import DBAPIError

logger = logging.getLogger(__name__)

STOP_SECONDS = 3.0


class Errands:
    """Does each piece of work every ``seconds`` while its block runs, also after one has failed."""

    def __init__(self, seconds: float, work: Sequence[Callable[[], None]]) -> None:
        self._seconds = seconds
        self._work = work
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="errands", daemon=True)

    def __enter__(self) -> Errands:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._stop.set()
        self._thread.join(STOP_SECONDS)

    def _run(self) -> None:
        while not self._stop.wait(self._seconds):
            for errand in self._work:
                try:
                    errand()
                except DBAPIError as error:
                    logger.warning("the database cannot be used: %s", error.orig)
                except Exception:
                    logger.exception("an errand met an unexpected error")

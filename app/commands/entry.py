"""Where the ``ccmtl`` command begins: an interrupt while modules are still being imported ends it quietly.

The handler that Python has for interrupts would show where the imports were.
"""

from __future__ import annotations

import importlib
import os
import signal
from types import FrameType

INTERRUPTED = 130
"""The exit code of shells for what an interrupt ended."""


def main() -> None:
    """Import the command line, and run it."""
    usual = signal.getsignal(signal.SIGINT)
    if usual is signal.default_int_handler:  # ignored, as behind ``nohup``, they stay ignored
        signal.signal(signal.SIGINT, _leave)
    command_line = importlib.import_module("app.commands.cli")
    signal.signal(signal.SIGINT, usual)
    command_line.main()


def _leave(number: int, frame: FrameType | None) -> None:
    os._exit(INTERRUPTED)  # modules that are half imported have nothing to clean up


if __name__ == "__main__":
    main()

"""A parent that spawns ``tied_child`` and waits; ``portable`` does without the kernel's help."""

from __future__ import annotations

import sys
import time

from app.processes import lifeline

if __name__ == "__main__":
    pid_file, watching, kind = sys.argv[1:]
    if kind == "portable":
        lifeline._prctl = None
    child = lifeline.spawn_module("tests.support.tied_child", pid_file, watching)
    time.sleep(600)

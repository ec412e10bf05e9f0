"""A spawned child: writes its pid to a file, then waits; ``watching`` its standard input or not."""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path

from app.processes.lifeline import end_with_standard_input

if __name__ == "__main__":
    pid_file, watching = sys.argv[1], sys.argv[2] == "watching"
    if watching:
        end_with_standard_input()
    Path(pid_file).write_text(str(os.getpid()))
    time.sleep(600)

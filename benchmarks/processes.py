"""Look at other processes as Linux shows them: their children, commands, memory and processor time."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path


def children_of(pid: int) -> list[int]:
    """Return the processes that a process has started; none where it has ended."""
    with suppress(OSError):
        lists = [path.read_text() for path in Path(f"/proc/{pid}/task").glob("*/children")]
        return [int(child) for children in lists for child in children.split()]
    return []


def all_below(pid: int) -> list[int]:
    """Return the children of a process, and theirs, and so on."""
    found = children_of(pid)
    return [*found, *(below for child in found for below in all_below(child))]


def command_of(pid: int) -> list[str]:
    """Return the command line of a process; empty where it has ended."""
    with suppress(OSError):
        return Path(f"/proc/{pid}/cmdline").read_text().split("\0")
    return []


def megabytes(pid: int, what: str) -> float:
    """Return memory of a process by the kernel's name, such as ``VmHWM``; raise OSError if it has ended."""
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith(f"{what}:"):
            return int(line.split()[1]) * 1024 / 1e6
    return 0.0


def processor_seconds(pid: int) -> float:
    """Return the processor seconds that a process has used so far; raise OSError if it has ended."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")

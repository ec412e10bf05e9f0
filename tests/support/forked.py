"""Processes forked from one that has imported the service: importing it takes each a second or more."""

from __future__ import annotations

import multiprocessing
import os
import sys
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from multiprocessing.process import BaseProcess
from pathlib import Path
from subprocess import CompletedProcess
from tempfile import TemporaryDirectory
from typing import Any

from app.commands.cli import main
from tests.support.processes import PATIENCE

_CONTEXT = multiprocessing.get_context("forkserver")
_CONTEXT.set_forkserver_preload(
    ["pytest", "app.commands.service_commands", "app.main", "app.jobs.worker", "app.processes.supervisor"]
)


def forked(function: Callable[..., None], *arguments: Any, environment: Mapping[str, str]) -> BaseProcess:
    """Start a process that calls the function, with these variables besides those of the test."""
    given = ({**os.environ, **environment}, function, arguments)
    process = _CONTEXT.Process(target=_call, args=given, daemon=True)
    process.start()
    return process


def forked_ccmtl(*arguments: str, stdout: str = "", **environment: str) -> CompletedProcess[str]:
    """Run the command to its end; print into ``stdout``, or else return what is printed."""
    return _printed(main, ["ccmtl", *arguments], stdout, environment)


def forked_program(text: str, *arguments: str, **environment: str) -> CompletedProcess[str]:
    """Run a program to its end; return what it prints."""
    return _printed(partial(exec, text, {}), ["-c", *arguments], "", environment)


def run_together(
    function: Callable[..., None], n: int, *arguments: Any, environment: Mapping[str, str]
) -> None:
    """Call the function in ``n`` processes: its first argument waits until each has called that."""
    wait = _CONTEXT.Barrier(n).wait
    processes = [forked(function, wait, *arguments, environment=environment) for _ in range(n)]
    assert [_ended(process) for process in processes] == [0] * n


def _printed(
    function: Callable[[], None], argv: Sequence[str], stdout: str, environment: Mapping[str, str]
) -> CompletedProcess[str]:
    with TemporaryDirectory() as folder:
        into = {"stdout": stdout or f"{folder}/stdout", "stderr": f"{folder}/stderr"}
        ended = _ended(forked(_call_printing, function, argv, into, environment=environment))
        said = "" if stdout else Path(into["stdout"]).read_text()
        return CompletedProcess(argv, ended, said, Path(into["stderr"]).read_text())


def _ended(process: BaseProcess) -> int:
    process.join(PATIENCE)
    ended = process.exitcode
    process.kill()
    assert ended is not None, "the process did not end"
    return ended


def _call(environment: dict[str, str], function: Callable[..., None], arguments: Sequence[Any]) -> None:
    os.environ.clear()
    os.environ.update(environment)
    function(*arguments)


def _call_printing(function: Callable[[], None], argv: Sequence[str], into: dict[str, str]) -> None:
    for name, path in into.items():
        file = os.open(path, os.O_CREAT | os.O_WRONLY)
        os.dup2(file, getattr(sys, name).fileno())
    sys.argv = list(argv)
    function()

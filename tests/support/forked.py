"""The ``ccmtl`` command forked from a process that has imported the service, which takes seconds."""

from __future__ import annotations

import multiprocessing
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from subprocess import CompletedProcess
from tempfile import TemporaryDirectory

from app.commands.cli import main
from tests.support.processes import PATIENCE

_CONTEXT = multiprocessing.get_context("forkserver")
_CONTEXT.set_forkserver_preload(
    ["pytest", "app.commands.service_commands", "app.main", "app.jobs.worker", "app.processes.supervisor"]
)


def forked_ccmtl(*arguments: str, **environment: str) -> CompletedProcess[str]:
    """Run the command to its end, with these variables besides those of the test."""
    with TemporaryDirectory() as folder:
        given = (arguments, {**os.environ, **environment}, folder)
        process = _CONTEXT.Process(target=_run, args=given, daemon=True)
        process.start()
        process.join(PATIENCE)
        ended = process.exitcode
        process.kill()
        assert ended is not None, "the command did not end"
        said, complained = (Path(folder, name).read_text() for name in ("stdout", "stderr"))
        return CompletedProcess(arguments, ended, said, complained)


def _run(arguments: Sequence[str], environment: dict[str, str], folder: str) -> None:
    os.environ.clear()
    os.environ.update(environment)
    for name in ("stdout", "stderr"):
        file = os.open(Path(folder, name), os.O_CREAT | os.O_WRONLY)
        os.dup2(file, getattr(sys, name).fileno())
    sys.argv = ["ccmtl", *arguments]
    main()

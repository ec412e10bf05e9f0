"""Check and store a large upload in a process of its own: the memory that this takes is not the API's.

``python -m app.datasets.upload.apart DESCRIPTOR`` does the upload that a line of its standard input describes
and writes what came of it to the descriptor, as :func:`add_version_apart` asks it to.
"""

from __future__ import annotations

import logging
import os
import select
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from typing import BinaryIO, NamedTuple

from pydantic import BaseModel, TypeAdapter
from sqlalchemy.exc import SQLAlchemyError

from app.datasets.receive import Bounds
from app.datasets.schemas import UploadOutcome
from app.datasets.upload.ingest import Upload
from app.datasets.upload.reader_process import SPARE_SECONDS, ReaderProcesses
from app.datasets.upload.upload import add_version
from app.http.errors import AppError, PayloadTooLarge, Problem, ServiceUnavailable
from app.http.failures import failure_of
from app.persistence.database import Database
from app.persistence.storage import Storage
from app.processes.lifeline import end_with_standard_input, is_stopped
from app.processes.logs import REQUEST_ID, configure_logging
from app.settings import Settings, variable
from ccmtl_core.tables.containers.formats import Format

logger = logging.getLogger("app.datasets.upload.apart")  # not "__main__", which this module is when it runs

APART_FROM_BYTES = 4_000_000
"""A file as large as this is read apart.

Measured with texts of series, five uploads each, on SQLite and two busy cores: a process of its own takes 2 s
of processor time more, while the API reads 4 MB in 0.2 s. Its memory is 20 to 50 MB larger afterwards;
meanwhile up to 75 MB for one such file, and 150 to 230 for four at once. Other requests took 0.3 s at most,
as they do beside a process of its own. Of files of 8 MB, 130 MB stay.
"""
PACKED_FROM_BYTES = 50_000
"""The same of what is not text: a hundred times as much can come out of it."""
STREAM_FROM_BYTES = 5_000
"""The same of an Arrow stream: ten thousand times as much can."""
UNPACKED_HERE = 1 << 23
"""What comes out as more is read apart, too."""
AT_ONCE = 4
"""So many uploads an API process reads at a time, and has read apart; others wait, and hold no thread."""
WATCH_SECONDS = 1.0
START_SECONDS = 300.0
"""A process that has not begun to read after so long is killed; on a busy machine starting takes a while."""
SUSPENDED_SECONDS = 30.0
"""A process that is suspended for so long is killed."""
_PROCESS = "The process that read the file"
_LOOK = "Look whether the dataset has a new version; if not, nothing was stored: send the file"

_PACKED = tuple(known.magic for known in Format if known not in (Format.TEXT, Format.JSON_LINES))


class _Work(NamedTuple):
    workspace: str
    name: str
    upload: Upload
    request_id: str | None


_WORK = TypeAdapter(_Work)


class _Told(BaseModel):
    """What came of an upload: its outcome, or what is answered in its place."""

    outcome: UploadOutcome | None = None
    problem: Problem | None = None
    headers: dict[str, str] = {}


def is_large(path: Path) -> bool:
    """Return whether the API leaves a file to a process of its own."""
    with path.open("rb") as file:
        head = file.read(8)
    if head.startswith(Format.ARROW_STREAM.magic):
        return path.stat().st_size >= STREAM_FROM_BYTES
    return path.stat().st_size >= (PACKED_FROM_BYTES if head.startswith(_PACKED) else APART_FROM_BYTES)


def add_version_here(
    database: Database, storage: Storage, name: str, upload: Upload, bounds: Bounds
) -> UploadOutcome | None:
    """Do what :func:`app.datasets.upload.upload.add_version` does; None where too much comes of the file."""
    here = Bounds(min(bounds.max_bytes, UNPACKED_HERE), bounds.max_expansion)
    try:
        return add_version(database, storage, name, upload, here)
    except PayloadTooLarge:
        if here.max_bytes == bounds.max_bytes:
            raise
        return None


def add_version_apart(
    processes: ReaderProcesses, settings: Settings, workspace: str, name: str, upload: Upload
) -> UploadOutcome:
    """Do what :func:`app.datasets.upload.upload.add_version` does, in a process of its own.

    Its errors are raised here. Raise ServiceUnavailable if the process is ended, as it is first where the
    machine's memory runs out, and PayloadTooLarge if it takes too long: so would the same file once more.
    """
    process = processes.take()
    child = process.child
    try:
        limit = settings.upload_max_seconds or default_seconds(upload.path.stat().st_size)
        _hand_over(_Work(workspace, name, upload, REQUEST_ID.get()), child)
        told = _read(process.answer, child, limit)
        with suppress(subprocess.TimeoutExpired):  # one that does not end is killed below
            child.wait(SUSPENDED_SECONDS)
    finally:
        process.end()
        if child.returncode != 0:
            Storage(settings.data_dir).sweep_incoming()
    if child.returncode != 0:
        raise _ended(child)
    result = _Told.model_validate_json(told)
    if result.problem is not None:
        raise AppError.of(result.problem, result.headers)
    assert result.outcome is not None
    return result.outcome


def default_seconds(n_bytes: int) -> float:
    """Return how long reading a file of this size may take where no setting says it."""
    return 900.0 + n_bytes / 250_000


def _hand_over(work: _Work, child: subprocess.Popen[bytes]) -> None:
    assert child.stdin is not None
    with suppress(BrokenPipeError):  # it has ended, as its code tells
        child.stdin.write(_WORK.dump_json(work) + b"\n")
        child.stdin.flush()


def _read(answer: BinaryIO, child: subprocess.Popen[bytes], limit: float) -> bytes:
    """Return all that the process tells, or raise where it is suspended, or reads longer than ``limit``.

    Time is counted by looks: it stands still while this process is suspended too. Once the process has
    started and begins to read it tells a first byte, from which on ``limit`` counts.
    """
    told, waited, suspended = bytearray(), 0.0, 0.0
    pipe = select.poll()
    pipe.register(answer, select.POLLIN)
    while True:
        if pipe.poll(1000 * WATCH_SECONDS):
            piece = os.read(answer.fileno(), 1 << 20)
            if not piece:
                return bytes(told)
            if not told:
                waited = 0.0
            told += piece
            continue
        waited += WATCH_SECONDS
        suspended = suspended + WATCH_SECONDS if is_stopped(child) else 0.0
        if suspended >= SUSPENDED_SECONDS:
            why = f"was suspended for {suspended:g} s, and ended"
            raise ServiceUnavailable("upload_ended", f"{_PROCESS} {why}. {_LOOK} again.")
        if not told and waited >= START_SECONDS:
            why = f"did not begin to read within {START_SECONDS:g} s, and was ended"
            raise ServiceUnavailable("upload_ended", f"{_PROCESS} {why}. {_LOOK} again.")
        if told and waited >= limit:
            why = f"took longer than the {limit:g} s that it may take, and was ended"
            remedy = f"in parts, or let the operator raise {variable('upload_max_seconds')}"
            raise PayloadTooLarge("upload_takes_too_long", f"{_PROCESS} {why}. {_LOOK} {remedy}.")


def _ended(child: subprocess.Popen[bytes]) -> Exception:
    if child.returncode > 0:  # it has logged why
        return RuntimeError(f"the process of an upload ended with code {child.returncode}")
    name = signal.Signals(-child.returncode).name
    why = f"was ended by {name}, as happens when memory runs out"
    return ServiceUnavailable("upload_ended", f"{_PROCESS} {why}. {_LOOK} in parts.")


def _told(settings: Settings, work: _Work) -> _Told:
    """The outcome, or what the API answers; what else is raised is a fault of the program."""
    database = Database(settings)
    try:
        seen = database.of(work.workspace)
        bounds = Bounds(settings.max_upload_bytes, settings.max_expansion)
        return _Told(outcome=add_version(seen, Storage(settings.data_dir), work.name, work.upload, bounds))
    except AppError as refusal:
        return _Told(problem=refusal.problem, headers=refusal.headers)
    except (SQLAlchemyError, OSError) as error:
        failure = failure_of(error)
        if failure is None:
            raise
        logger.error("an upload to %s failed: %s", work.name, error)
        return _Told(problem=failure.problem)
    finally:
        database.dispose()


def main() -> None:
    """Do the upload that standard input describes, if one comes in time."""
    with suppress(OSError):  # when the machine's memory runs out, the kernel should end this process first
        Path("/proc/self/oom_score_adj").write_text("1000")
    if not select.select([0], [], [], 2 * SPARE_SECONDS)[0]:
        return
    line = sys.stdin.buffer.readline()
    if not line:  # the API needs it no more, or has ended
        return
    end_with_standard_input()
    settings = Settings()
    configure_logging("upload", settings.log_level, settings.log_format)
    work = _WORK.validate_json(line)
    REQUEST_ID.set(work.request_id)
    with open(int(sys.argv[1]), "w", encoding="utf-8") as answer:
        answer.write("\n")  # it begins; JSON may have white space before it
        answer.flush()
        answer.write(_told(settings, work).model_dump_json())
    os._exit(0)  # taking down what was loaded takes as long as reading a few million rows


if __name__ == "__main__":
    main()

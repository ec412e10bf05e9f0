"""A large upload is read in a process of its own, and is answered as one that the API reads itself."""

from __future__ import annotations

import errno
import gzip
import os
import random
import signal
import subprocess
import sys
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import psycopg
import pytest
from sqlalchemy.exc import OperationalError, ProgrammingError

from app.datasets import endpoints
from app.datasets.schemas import OverlapPolicy, UploadMode, UploadOutcome
from app.datasets.upload import apart, reader_process
from app.datasets.upload.ingest import Upload
from app.http.errors import AppError, Conflict, Fault, InvalidContent
from app.settings import Settings
from ccmtl_core.tables import ReadOptions
from tests.app.datasets.conftest import Shop

ROWS = "unique_id,ds,y\na,2024-01-01,1\na,2024-01-02,2\n"
FAULTY = "unique_id,ds,y\na,2024-01-01,much\na,2024-13-02,2\n"


def test_a_file_is_left_to_a_process_by_its_size_and_a_packed_one_sooner(tmp_path: Path) -> None:
    text = b"unique_id,ds,y\n" + b"a,2024-01-01,1\n" * 5000
    noise = random.Random(0).randbytes(60_000)
    for content, is_large in (
        (text, False),
        (text * 60, True),
        (gzip.compress(text), False),
        (gzip.compress(noise), True),
        (b"PAR1" + noise, True),
        (b"\xff\xff\xff\xff" + noise[:4000], False),
        (b"\xff\xff\xff\xff" + noise[:5000], True),
        (b"{" + noise, False),
    ):
        (tmp_path / "file").write_bytes(content)
        assert apart.is_large(tmp_path / "file") == is_large


def test_what_unpacks_to_much_is_read_apart(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    sizes = []

    def noting(*upload: Any) -> UploadOutcome:
        sizes.append(1)
        return apart.add_version_apart(*upload)

    monkeypatch.setattr(endpoints, "add_version_apart", noting)
    monkeypatch.setattr(apart, "UNPACKED_HERE", 100_000)
    text = "unique_id,ds,y\n" + "".join(f"a{i},2024-01-01,1\n" for i in range(4000))
    assert shop.accepted(shop.series(), gzip.compress(text.encode()))["rows"] == 4000
    assert not sizes
    more = text + text[15:].replace("a", "b")
    assert shop.accepted(shop.series(), gzip.compress(more.encode()))["rows"] == 8000
    assert sizes


def test_answers_are_those_of_an_upload_that_the_api_reads(
    shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    here, there = shop.series(), shop.series()
    expected, refused = shop.accepted(here, ROWS), shop.upload(here, FAULTY)
    monkeypatch.setattr(apart, "APART_FROM_BYTES", 0)
    before = shop.files()
    answer = shop.upload(there, ROWS)
    assert (answer.status_code, answer.json()["report"]) == (201, expected)
    assert shop.files() == before, "equal segments are stored once, and nothing is left behind"
    ids = ("request_id", "report")
    faults = shop.upload(there, FAULTY)
    assert faults.status_code == refused.status_code == 422
    assert [faults.json()[key] for key in faults.json() if key not in ids] == [
        refused.json()[key] for key in refused.json() if key not in ids
    ]
    assert shop.client.get(f"/v1/datasets/{there}").json()["newest_version"] == 1


@pytest.mark.parametrize(("apart_from", "reads"), [(0, "add_version_apart"), (10_000, "add_version_here")])
def test_few_are_read_at_a_time_and_other_requests_are_answered_meanwhile(
    apart_from: int, reads: str, shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    name, may_go_on, begun = shop.series(), threading.Event(), threading.Semaphore(0)
    under_way: list[int] = []

    def wait(*upload: Any) -> UploadOutcome:
        under_way.append(1)
        begun.release()
        assert may_go_on.wait(60)
        raise Conflict("released", "The test is over.")

    monkeypatch.setattr(apart, "APART_FROM_BYTES", apart_from)
    monkeypatch.setattr(endpoints, reads, wait)
    n_uploads = 3 * apart.AT_ONCE
    with ThreadPoolExecutor(n_uploads) as clients:
        answers = [clients.submit(shop.upload, name, ROWS) for _ in range(n_uploads)]
        try:
            assert all(begun.acquire(timeout=60) for _ in range(apart.AT_ONCE))
            assert shop.client.get(f"/v1/datasets/{name}").status_code == 200
            assert len(under_way) == apart.AT_ONCE
        finally:
            may_go_on.set()
        assert {answer.result().json()["code"] for answer in answers} == {"released"}
    assert len(under_way) == n_uploads


def test_a_process_that_is_ended_is_told_and_leaves_nothing_behind(
    shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    def ended(module: str, *arguments: str, **options: Any) -> subprocess.Popen[bytes]:
        file = shop.folder / "incoming" / "rows-set-aside"
        program = f"import os, signal; open({str(file)!r}, 'w'); os.kill(os.getpid(), signal.SIGKILL)"
        command = [sys.executable, "-S", "-c", program]
        return subprocess.Popen(command, stdin=subprocess.PIPE, start_new_session=True)

    monkeypatch.setattr(apart, "APART_FROM_BYTES", 0)
    monkeypatch.setattr(reader_process, "spawn_module", ended)
    name, before = shop.series(), shop.files()
    answer = shop.upload(name, ROWS)
    assert (answer.status_code, answer.json()["code"]) == (503, "upload_ended")
    assert signal.SIGKILL.name in answer.json()["detail"]
    assert shop.files() == before


BEGUN = "import os, sys, time; os.write(int(sys.argv[1]), b'.'); time.sleep(600)"


@pytest.mark.parametrize(
    ("program", "status", "code", "says"),
    [
        ("import os, signal; os.kill(os.getpid(), signal.SIGSTOP)", 503, "upload_ended", "for 0.2 s"),
        ("import time; time.sleep(600)", 503, "upload_ended", "begin to read within 3 s"),
        (BEGUN, 413, "upload_takes_too_long", "longer than the 1 s"),
    ],
)
def test_a_process_that_is_suspended_or_takes_too_long_is_killed_and_its_place_free_again(
    program: str, status: int, code: str, says: str, shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    started: list[subprocess.Popen[bytes]] = []

    def hanging(module: str, *arguments: str, pass_fds: list[int], **options: Any) -> subprocess.Popen[bytes]:
        command = [sys.executable, "-S", "-c", program, *arguments]
        started.append(
            subprocess.Popen(command, stdin=subprocess.PIPE, start_new_session=True, pass_fds=pass_fds)
        )
        return started[0]

    name, before = shop.series(), shop.files()
    monkeypatch.setattr(apart, "APART_FROM_BYTES", 0)
    monkeypatch.setattr(apart, "WATCH_SECONDS", 0.05)
    monkeypatch.setattr(apart, "SUSPENDED_SECONDS", 0.2)
    monkeypatch.setattr(apart, "START_SECONDS", 3.0)
    monkeypatch.setattr(apart, "default_seconds", lambda n_bytes: 1.0)
    with monkeypatch.context() as patch:
        patch.setattr(reader_process, "spawn_module", hanging)
        answer = shop.upload(name, ROWS)
    assert (answer.status_code, answer.json()["code"]) == (status, code)
    assert ("Retry-After" in answer.headers) == (status == 503), "what would take as long is not tried again"
    assert says in answer.json()["detail"]
    assert started[0].returncode == -signal.SIGKILL
    assert shop.files() == before
    state: Any = shop.client.app.state  # type: ignore[attr-defined]
    assert state.places_apart.borrowed_tokens == 0


def test_the_limit_of_time_counts_from_when_the_process_begins_to_read(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(apart, "WATCH_SECONDS", 0.05)
    reader, writer = os.pipe()
    program = "import os, sys, time; time.sleep(1.5); os.write(int(sys.argv[1]), b'.'); time.sleep(0.1)"
    command = [sys.executable, "-S", "-c", program, str(writer)]
    with subprocess.Popen(command, pass_fds=[writer]) as child, open(reader, "rb") as answer:
        os.close(writer)
        assert apart._read(answer, child, 1.0) == b"."


def test_the_time_of_an_upload_grows_with_its_file() -> None:
    assert apart.default_seconds(0) == 900
    assert apart.default_seconds(1_000_000_000) == 4900


REFUSALS = [
    InvalidContent("x", "what", errors=[Fault(message="m", row=3)], error_count=7, report={"rows": 1}),
    Conflict("y", "why", suggestions=["3"], headers={"Retry-After": "5"}),
]
DISK_FULL = OperationalError("SELECT 1", {}, psycopg.errors.DiskFull("no room"))


@pytest.mark.parametrize(
    ("error", "status", "code"),
    [
        *((refusal, refusal.problem.status, refusal.problem.code) for refusal in REFUSALS),
        (OSError(errno.ENOSPC, os.strerror(errno.ENOSPC)), 507, "storage_full"),
        (OSError(errno.EACCES, os.strerror(errno.EACCES)), 503, "storage_unavailable"),
        (DISK_FULL, 507, "storage_full"),
        (OperationalError("SELECT 1", {}, psycopg.errors.AdminShutdown("away")), 503, "database_unavailable"),
    ],
)
def test_a_refusal_and_a_failure_are_told_to_the_process_that_answers(
    error: Exception, status: int, code: str, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    told = _told_of(error, settings, monkeypatch)
    problem = told.problem
    assert problem is not None
    assert (told.outcome, problem.status, problem.code) == (None, status, code)
    if isinstance(error, AppError):
        again = AppError.of(problem, told.headers)
        assert (str(again), again.problem, again.headers) == (str(error), error.problem, error.headers)


@pytest.mark.parametrize(
    "fault", [OSError(errno.EBADF, "closed"), ProgrammingError("SELECT", {}, Exception())]
)
def test_a_fault_of_the_program_is_no_answer(
    fault: Exception, settings: Settings, monkeypatch: pytest.MonkeyPatch
) -> None:
    with pytest.raises(type(fault)):
        _told_of(fault, settings, monkeypatch)


def _told_of(error: Exception, settings: Settings, monkeypatch: pytest.MonkeyPatch) -> apart._Told:
    """What the process tells, as the API reads it, of an upload that raises this."""

    def failing(*upload: Any) -> UploadOutcome:
        raise error

    monkeypatch.setattr(apart, "add_version", failing)
    upload = Upload(Path("file"), ReadOptions(delimiter=";"), UploadMode.FULL, OverlapPolicy.REFUSE, True)
    work = apart._WORK.validate_json(apart._WORK.dump_json(apart._Work("default", "shop", upload, "id")))
    assert work == apart._Work("default", "shop", upload, "id")
    return apart._Told.model_validate_json(apart._told(settings, work).model_dump_json())

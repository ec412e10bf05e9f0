"""The store of dataset files: content-addressed, checked on reading, and clean after a kill at any moment."""

from __future__ import annotations

import hashlib
import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from app.persistence.storage import SegmentDamaged, Storage, file_sha256
from tests.support.processes import PATIENCE

STUCK = """
import sys, time
from pathlib import Path
from app.persistence.storage import Storage, file_sha256

storage = Storage(Path(sys.argv[1]))
with storage.incoming() as path:
    path.write_bytes(b"half an upload")
    if sys.argv[2] == "publishing":
        with storage.publishing():
            storage.commit(path, file_sha256(path))
            print("ready", flush=True)
            time.sleep(600)
    print("ready", flush=True)
    time.sleep(600)
"""


@pytest.fixture
def storage(tmp_path: Path) -> Storage:
    return Storage(tmp_path)


def put(storage: Storage, content: bytes) -> str:
    with storage.incoming() as path, storage.publishing():
        path.write_bytes(content)
        digest = file_sha256(path)
        storage.commit(path, digest)
        return digest


def files(folder: Path) -> list[bytes]:
    return [path.read_bytes() for path in folder.rglob("*") if path.is_file() and path.suffix != ".lock"]


def stuck_process(folder: Path, place: str) -> subprocess.Popen[str]:
    process = subprocess.Popen(
        [sys.executable, "-c", STUCK, str(folder), place], stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "ready\n"
    return process


def end(process: subprocess.Popen[str]) -> None:
    os.kill(process.pid, signal.SIGKILL)
    process.communicate()


def test_a_segment_is_named_by_its_bytes(storage: Storage) -> None:
    digest = put(storage, b"content")
    assert digest == hashlib.sha256(b"content").hexdigest()
    assert storage.verified_segment(digest).read_bytes() == b"content"


def test_the_same_bytes_twice_are_one_file(storage: Storage, tmp_path: Path) -> None:
    assert put(storage, b"content") == put(storage, b"content")
    assert files(tmp_path) == [b"content"]


def test_an_incoming_file_is_gone_after_a_failure(storage: Storage, tmp_path: Path) -> None:
    def fail() -> None:
        with storage.incoming() as path:
            path.write_bytes(b"half")
            raise ValueError("on purpose")

    with pytest.raises(ValueError, match="on purpose"):
        fail()
    assert files(tmp_path) == []


def test_damaged_and_missing_segments_are_not_read(storage: Storage) -> None:
    digest = put(storage, b"content")
    storage.segment_path(digest).write_bytes(b"c0ntent")
    with pytest.raises(SegmentDamaged, match="has changed"):
        storage.verified_segment(digest)
    storage.segment_path(digest).unlink()
    with pytest.raises(SegmentDamaged, match="is missing"):
        storage.verified_segment(digest)


def test_a_sweep_keeps_what_is_referenced_and_what_is_coming_in(storage: Storage, tmp_path: Path) -> None:
    kept, _ = put(storage, b"kept"), put(storage, b"garbage")
    with storage.incoming() as path:
        path.write_bytes(b"coming in")
        assert storage.sweep(lambda: {kept}) == 1
        assert sorted(files(tmp_path)) == [b"coming in", b"kept"]


def test_only_named_segments_are_discarded(storage: Storage, tmp_path: Path) -> None:
    first, second, third = (put(storage, content) for content in (b"1", b"2", b"3"))
    assert storage.discard([first, second], lambda: {second}) == 1
    assert sorted(files(tmp_path)) == [b"2", b"3"]
    assert storage.segment_path(third).exists()


@pytest.mark.parametrize("place", ["receiving", "publishing"])
def test_what_a_killed_process_leaves_is_swept(storage: Storage, tmp_path: Path, place: str) -> None:
    process = stuck_process(tmp_path, place)
    assert files(tmp_path) == [b"half an upload"]
    end(process)
    assert storage.sweep(set) == 1
    assert files(tmp_path) == []


def test_a_living_process_keeps_what_it_is_receiving(storage: Storage, tmp_path: Path) -> None:
    process = stuck_process(tmp_path, "receiving")
    try:
        assert storage.sweep(set) == 0
        assert files(tmp_path) == [b"half an upload"]
    finally:
        end(process)


def test_a_sweep_waits_for_a_segment_that_is_being_published(storage: Storage, tmp_path: Path) -> None:
    process = stuck_process(tmp_path, "publishing")
    sweeper = threading.Thread(target=storage.sweep, args=(set,))
    sweeper.start()
    sweeper.join(0.3)
    assert sweeper.is_alive()
    assert files(tmp_path) == [b"half an upload"]
    end(process)
    sweeper.join(PATIENCE)
    assert not sweeper.is_alive()
    assert files(tmp_path) == []

"""Kernels run where compiled code can be kept and where it cannot, and let other threads work."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import textwrap
import threading
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import ccmtl_core
from ccmtl_core import SufficientStatistics, TaskDataset
from ccmtl_core.kernels.compiled import OLD_SECONDS, _KernelFiles, compilation_told, kernel
from tests.support.processes import PATIENCE

PROGRAM = """
import numpy as np
from ccmtl_core.kernels.block_products import times
print(times(np.array([[[2.0]]]), np.array([[3.0]])).item())
"""


@pytest.mark.parametrize(
    "place", [{"NUMBA_CACHE_LOCATOR_CLASSES": "ZipCacheLocator"}, {"NUMBA_CACHE_DIR": "{tmp}"}]
)
def test_kernels_run_with_and_without_a_folder_for_compiled_code(
    place: dict[str, str], tmp_path: Path
) -> None:
    environment = {name: value.format(tmp=tmp_path) for name, value in place.items()}
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        timeout=PATIENCE,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout == "6.0\n"
    assert any(tmp_path.rglob("*.nbc")) == ("NUMBA_CACHE_DIR" in place)


TELLING = (
    """
from ccmtl_core.kernels.compiled import compilation_told
said = []
with compilation_told(said.append):
"""
    + textwrap.indent(PROGRAM.strip(), "    ")
    + """
assert said == [True, False] * (len(said) // 2)
print("compiled" if said else "kept")
"""
)


@pytest.mark.landing
def test_compiled_code_is_kept_outside_the_source_until_any_source_of_it_changes(tmp_path: Path) -> None:
    """Two checkouts of the same source share it; a change in a module that a kernel uses is noticed."""

    def outcome(checkout: str) -> str:
        done = subprocess.run(
            [sys.executable, "-c", TELLING],
            cwd=tmp_path / checkout,
            env={**os.environ, "PYTHONPATH": str(tmp_path / checkout), "XDG_CACHE_HOME": str(tmp_path)},
            capture_output=True,
            text=True,
            timeout=PATIENCE,
        )
        assert done.stdout.startswith("6.0\n"), done.stderr
        return done.stdout.split()[1]

    source = Path(ccmtl_core.__file__).parent
    for checkout in ("one", "other"):
        ignore = shutil.ignore_patterns("__pycache__")
        shutil.copytree(source, tmp_path / checkout / "ccmtl_core", ignore=ignore)
    assert [outcome("one"), outcome("other")] == ["compiled", "kept"]
    kernels = set(tmp_path.rglob("*.nbc"))
    assert kernels
    assert kernels == set((tmp_path / "ccmtl").glob("*.nbc"))
    with (tmp_path / "other" / "ccmtl_core" / "kernels" / "vectors.py").open("a") as file:
        file.write("# changed\n")
    assert [outcome("other"), outcome("one")] == ["compiled", "kept"]


def test_processes_that_compile_a_kernel_at_once_keep_the_code_of_each(tmp_path: Path) -> None:
    """Neither waits for the other, and neither writes where the other does."""
    one, other = (_KernelFiles(str(tmp_path), "kernel", "stamp") for _ in range(2))
    one.save(("float64",), "code of one")
    other.save(("int64",), "code of the other")
    assert one.load(("int64",)) == "code of the other"
    assert other.load(("float64",)) == "code of one"
    assert other.load(("int32",)) is None


def test_code_of_a_source_that_is_gone_is_removed_in_time(tmp_path: Path) -> None:
    old, new = (_KernelFiles(str(tmp_path), "kernel", stamp * 16) for stamp in "ab")
    old.save(("float64",), "old")
    new.save(("float64",), "new")
    assert old.load(("float64",)) == "old"
    killed = tmp_path / f"{old._name(('float64',))}.tmp.0123"
    killed.write_text("half of the co")
    for file in tmp_path.iterdir():
        os.utime(file, (0, time.time() - OLD_SECONDS - 1))
    new.save(("int64",), "new")
    assert old.load(("float64",)) is None
    assert new.load(("float64",)) == "new"
    assert not killed.exists()


@pytest.mark.parametrize(
    "damage", [lambda code: b"", lambda code: code[:-1], lambda code: code.replace(b"co", b"re")]
)
def test_a_damaged_file_is_compiled_anew(damage: Callable[[bytes], bytes], tmp_path: Path) -> None:
    """Also one that still is a pickle: wrong machine code would end the process, or compute wrong numbers."""
    files = _KernelFiles(str(tmp_path), "kernel", "stamp")
    files.save(("float64",), "code")
    (file,) = tmp_path.iterdir()
    file.write_bytes(damage(file.read_bytes()))
    assert files.load(("float64",)) is None


def test_a_folder_that_becomes_full_or_read_only_costs_no_result(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path / "kernels"))
    doubled = kernel(_doubled)
    shutil.rmtree(tmp_path / "kernels")
    (tmp_path / "kernels").write_text("no folder any more")
    assert doubled(2.0) == 4.0


def test_code_is_taken_from_a_folder_that_cannot_be_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path))
    assert kernel(_doubled)(2.0) == 4.0

    def refused(*_: object, **__: object) -> None:
        raise PermissionError

    monkeypatch.setattr("tempfile.TemporaryFile", refused)  # by which numba tries a folder
    said: list[bool] = []
    with compilation_told(said.append):
        assert kernel(_doubled)(2.0) == 4.0
    assert said == []


def _doubled(number: float) -> float:
    return 2.0 * number


def test_a_pass_over_rows_does_not_hold_the_interpreter() -> None:
    n = 1_000_000
    data = TaskDataset(np.ones((n, 4)), np.ones(n), np.array([0, n]), ("a",), ("p", "q", "r", "s"))
    SufficientStatistics.from_dataset(data)
    running = threading.Event()
    finished = threading.Event()

    def work() -> None:
        running.set()
        for _ in range(10):
            SufficientStatistics.from_dataset(data)
        finished.set()

    thread = threading.Thread(target=work)
    thread.start()
    running.wait()
    steps = 0
    while not finished.is_set():
        steps += 1
    thread.join()
    assert steps > 10_000

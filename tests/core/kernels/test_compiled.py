"""Kernels run where compiled code can be kept and where it cannot, and let other threads work."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pytest

from ccmtl_core import SufficientStatistics, TaskDataset

PROGRAM = """
import numpy as np
from ccmtl_core import SufficientStatistics, TaskDataset
data = TaskDataset.from_arrays([[[2.0]]], [[3.0]])
print(SufficientStatistics.from_dataset(data).xty.item())
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
        timeout=200,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout == "6.0\n"
    assert any(tmp_path.rglob("*.nbc")) == ("NUMBA_CACHE_DIR" in place)


def test_a_second_process_compiles_nothing(tmp_path: Path) -> None:
    program = (
        PROGRAM
        + "from ccmtl_core.kernels.statistics.gram_kernel import _accumulate\n"
        + "print(len(_accumulate.stats.cache_misses))"
    )
    for misses in (1, 0):
        done = subprocess.run(
            [sys.executable, "-c", program],
            env={**os.environ, "NUMBA_CACHE_DIR": str(tmp_path)},
            capture_output=True,
            text=True,
            timeout=200,
        )
        assert done.stdout == f"6.0\n{misses}\n", done.stderr


def test_a_pass_over_rows_does_not_hold_the_interpreter() -> None:
    n = 4_000_000
    data = TaskDataset(np.ones((n, 4)), np.ones(n), np.array([0, n]), ("a",), ("p", "q", "r", "s"))
    SufficientStatistics.from_dataset(data)
    running = threading.Event()
    finished = threading.Event()

    def work() -> None:
        running.set()
        for _ in range(20):
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

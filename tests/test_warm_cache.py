"""After set-up nothing is compiled: scripts/warm_cache.py leaves all kernels of a first upload and job."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
FIRST_JOB = """
import numpy as np
import polars as pl
from ccmtl_core import SufficientStatistics, TaskDataset, fit, select
from ccmtl_core.forecasting import SeriesPanel, fit_forecaster
from ccmtl_core.graph.leaf_search import nearest_by_leaves
from ccmtl_core.inspection import inspect
inspect("examples/shop.csv")
table = pl.read_csv("examples/shop.csv", schema_overrides={"unique_id": pl.String}, try_parse_dates=True)
fit_forecaster(SeriesPanel.from_frame(table, "D"), horizon=7).forecast(level=[80])
points = np.random.default_rng(0).normal(size=(100, 5))
for scale in (1.0, 1e15):
    points[-1] *= scale
    nearest_by_leaves(points, 4)
sizes = (300, 7), (300, 12), (6000, 5)
for (n_tasks, n_features), n_rows in ((size, n) for size in sizes for n in (8, 40)):
    random = np.random.default_rng(1)
    task = np.repeat(np.arange(n_tasks), n_rows)
    y = random.poisson(0.3, task.size)
    data = TaskDataset.from_long(random.poisson(0.3, (task.size, n_features)), y, [str(t) for t in task])
    fit(data, fusion_strength=3.0)
select(SufficientStatistics.by_fold(data, np.arange(data.y.size) % 2, 2), [0.0, 1.0, 1e6])
"""


def kernels(folder: Path) -> set[Path]:
    return set(folder.rglob("*.nbc"))


@pytest.mark.slow
def test_a_first_job_finds_every_kernel_compiled(tmp_path: Path) -> None:
    environment = os.environ | {"NUMBA_CACHE_DIR": str(tmp_path)}
    subprocess.run([sys.executable, ROOT / "scripts" / "warm_cache.py"], env=environment, check=True)
    after_set_up = kernels(tmp_path)
    subprocess.run([sys.executable, "-c", FIRST_JOB], cwd=ROOT, env=environment, check=True)
    assert after_set_up
    assert kernels(tmp_path) == after_set_up

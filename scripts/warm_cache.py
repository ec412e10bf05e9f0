"""Scans and fits invented rows and series once, so that numba keeps every kernel before the first job."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import count
from multiprocessing import get_context
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np

from ccmtl_core import SufficientStatistics, TaskDataset, fit, fusion_threshold
from ccmtl_core.forecasting import Frequency, SeriesPanel, fit_forecaster
from ccmtl_core.graph.leaf_search import nearest_by_leaves
from ccmtl_core.inspection import Policies
from ccmtl_core.inspection.parts.in_pieces import examined_in_pieces
from ccmtl_core.kernels.csv_scan import scan_csv
from ccmtl_core.solver.clusters import Clusters
from ccmtl_core.tables.csv_file import CsvText
from ccmtl_core.tables.faults import FaultList
from ccmtl_core.tables.table_file import open_unscanned

# Kernels for few features of few tasks, for many features, and for the demo's five of many tasks.
SIZES = ((1000, 3), (1000, 9), (5000, 5))
N_ROWS = 12
STRENGTH = 3.0  # at which some tasks fuse, and not all


def main() -> None:
    """Take the steps of an upload, and beside it those of training jobs with a holdout.

    With the argument ``ahead`` only those of the demo's training, its last ones first: beside a job that
    compiles them in its own order.
    """
    if "ahead" in sys.argv:
        train(*SIZES[-1], solvers=("newton", "alternating", "auto"))
        return
    beside = get_context("spawn").Process(target=scan_and_search)
    beside.start()
    for n_tasks, n_features in SIZES:
        train(n_tasks, n_features)
    beside.join()
    sys.exit(beside.exitcode)


def scan_and_search() -> None:
    """Scan a file, read one in pieces, find neighbours as for very many tasks, and make rows of series."""
    scan_csv(np.frombuffer(b"a,b\n1,2\n", np.uint8), n_fields=2)
    with TemporaryDirectory() as name:
        read_in_pieces(Path(name))
    points = np.arange(1000.0).reshape(200, 5)
    for last in (0.0, 1e12):  # in single precision and, with one far away, in double
        nearest_by_leaves(np.concatenate([points, np.full((1, 5), last)]), 11)
    values = np.random.default_rng(0).normal(size=60)
    panel = SeriesPanel(("a", "b"), np.array([0, 30, 60]), np.tile(np.arange(30), 2), values, Frequency.DAY)
    fit_forecaster(panel, 2, fusion_strength=STRENGTH).forecast()


def read_in_pieces(folder: Path) -> None:
    """Read a text of more series than a reader has room for at first."""
    path, numbers = folder / "sales.csv", count()
    path.write_text("store,product,day,sold\n" + "".join(f"1,{i % 3000},{i},1\n" for i in range(6000)))

    @contextmanager
    def new_file() -> Iterator[Path]:
        file = folder / str(next(numbers))
        file.touch()
        yield file

    with open_unscanned(path, [], FaultList()) as text:
        assert isinstance(text, CsvText)
        found = examined_in_pieces(
            text,
            ("store", "product"),
            "day",
            "sold",
            Frequency.INTEGER,
            Policies(),
            ds_format="integer",
            files=new_file,
            write=lambda *_: None,
        )
    assert found is not None


def train(n_tasks: int, n_features: int, solvers: Sequence[str] = ("auto", "alternating", "newton")) -> None:
    """Fit one half of the rows of invented groups of tasks, then all."""
    random = np.random.default_rng(0)
    task = np.repeat(np.arange(n_tasks), N_ROWS)
    X = random.normal(size=(task.size, n_features))
    y = (X * (task[:, None] % 7)).sum(axis=1) + random.normal(size=task.size)
    dataset = TaskDataset.from_long(X, y, [str(t) for t in task])
    fold = np.tile(np.arange(N_ROWS) % 2, n_tasks)
    training, _ = SufficientStatistics.by_fold(dataset, fold, 2)
    for data in (training, dataset):
        for solver in solvers:
            result = fit(data, fusion_strength=STRENGTH, solver=solver)
        fusion_threshold(SufficientStatistics.from_dataset(dataset), result.graph)
        Clusters.of_equal(result.graph, result.model.weights)
    fit(training, fusion_strength=STRENGTH, metric="mahalanobis")


if __name__ == "__main__":
    main()

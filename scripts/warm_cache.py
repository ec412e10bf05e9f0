"""Scans and fits invented data once, so that numba keeps every kernel on disk before the first real job."""

from __future__ import annotations

import numpy as np

from app.datasets.csv_scan import scan_csv
from ccmtl_core import SufficientStatistics, TaskDataset, fit

N_TASKS, N_ROWS, N_FEATURES = 2000, 12, 3


def main() -> None:
    """Take the steps of a training job with a holdout, on enough tasks for the solver to need every level."""
    scan_csv(np.frombuffer(b"a,b\n1,2\n", np.uint8), n_fields=2)
    random = np.random.default_rng(0)
    task = np.repeat(np.arange(N_TASKS), N_ROWS)
    X = random.normal(size=(task.size, N_FEATURES))
    y = (X * (task[:, None] % 7)).sum(axis=1) + random.normal(size=task.size)
    dataset = TaskDataset.from_long(X, y, [str(t) for t in task])
    fold = np.tile(np.arange(N_ROWS) % 2, N_TASKS)
    training, _ = SufficientStatistics.by_fold(dataset, fold, 2)
    for data in (training, dataset):
        fit(data, fusion_strength=1.0)


if __name__ == "__main__":
    main()

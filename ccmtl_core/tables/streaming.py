"""Compute statistics of files of any size: each is read once, in pieces."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from os import PathLike
from pathlib import Path

import numpy as np
from joblib import Parallel, delayed

from ccmtl_core.base.arrays import Faults, as_sequence, checked_names, is_whole
from ccmtl_core.base.exceptions import ParameterError
from ccmtl_core.base.file_path import checked_path
from ccmtl_core.base.id_codes import id_codes
from ccmtl_core.base.threads import check_workers
from ccmtl_core.kernels.grouping import group_rows
from ccmtl_core.statistics.merging import StatisticsSum, merge_statistics
from ccmtl_core.statistics.sufficient_statistics import SufficientStatistics
from ccmtl_core.tables.columns import ColumnReader, check_roles
from ccmtl_core.tables.table_file import table_batches

BATCH_ROWS = 2**17


def statistics_from_files(
    paths: str | Path | Iterable[str | Path],
    *,
    task: str,
    target: str,
    features: Sequence[str],
    n_jobs: int = 1,
    batch_rows: int = BATCH_ROWS,
) -> SufficientStatistics:
    """Compute statistics of files that together, or each alone, may be larger than memory.

    Memory holds a piece of each file that is being read, and the statistics: T × (P² + 2 P + 4) numbers.

    Parameters
    ----------
    paths : path or iterable of paths
        CSV with a header, Parquet or Arrow files with one sample per row; told apart by content.
    task : str
        Column with the id of each row's task: text, or integers; read as text.
    target : str
        Column of y.
    features : sequence of P str
        Columns of X, in this order.
    n_jobs : int
        Files read at a time, by joblib; its backend is the caller's to choose. ``-1``: one for each core.
        The result does not depend on it.
    batch_rows : int
        Rows of a piece.

    Returns
    -------
    SufficientStatistics
        Tasks in order of first appearance, files in the order given.

    Raises
    ------
    DataError
        Names the file, and the row and column of each cell that cannot be used.
    ParameterError
        No paths, no features, a column used twice, or no workers.
    OSError
        A file cannot be read.

    Examples
    --------
    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     file = Path(folder) / "sales.csv"
    ...     _ = file.write_text("store,sold,price\\n007,3,1.5\\n012,1,2\\n007,2,2\\n")
    ...     statistics = statistics_from_files(file, task="store", target="sold", features=["price"])
    >>> statistics.task_ids, statistics.n_samples
    (('007', '012'), array([2, 1]))
    """
    one = isinstance(paths, str | PathLike)
    files = [checked_path(path) for path in ([paths] if one else as_sequence(paths, "paths"))]
    names = checked_names(features, "feature")
    check_workers(n_jobs)
    check_roles(task, target, names)
    if not files:
        raise ParameterError("there are no files to read")
    if not is_whole(batch_rows) or batch_rows < 1:
        raise ParameterError(f"batch_rows must be an integer of at least 1, not {batch_rows!r}")
    if len(files) == 1:
        return _statistics_of_file(files[0], task, target, names, batch_rows)
    read = delayed(_statistics_of_file)
    jobs = (read(file, task, target, names, batch_rows) for file in files)
    return merge_statistics(Parallel(n_jobs=n_jobs, return_as="generator")(jobs))


def _statistics_of_file(
    path: Path, task: str, target: str, features: tuple[str, ...], batch_rows: int
) -> SufficientStatistics:
    total = StatisticsSum(features)
    first_row = 0
    for batch in table_batches(path, [task, target, *features], batch_rows):
        faults = Faults()
        reader = ColumnReader(batch, faults, first_row, str(path))
        ids, y = reader.ids(task), reader.numbers(target)
        columns = [reader.numbers(name) for name in features]
        faults.refuse()
        distinct, codes = id_codes(ids, ordered=False)
        order, offsets = group_rows(codes, len(distinct))
        total.add_rows(np.column_stack(columns), y, order, offsets, total.numbers(distinct))
        first_row += len(batch)
    return total.statistics()

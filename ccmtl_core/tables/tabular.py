"""Read a CSV or Parquet file as a task dataset; every unusable cell is named by row and column.

Ids are read as text: "0471" stays "0471". Rows are counted from 1, the header not included.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from ccmtl_core.base.arrays import Faults, checked_names
from ccmtl_core.base.file_path import checked_path
from ccmtl_core.base.id_codes import id_codes
from ccmtl_core.data.task_dataset import TaskDataset
from ccmtl_core.tables.columns import ColumnReader, check_roles
from ccmtl_core.tables.table_file import read_table


def read_task_dataset(path: str | Path, *, task: str, target: str, features: Sequence[str]) -> TaskDataset:
    """Read a dataset from a file with one sample per row.

    Parameters
    ----------
    path : str or Path
        CSV with a header (comma, UTF-8, also gzip or zstd compressed), Parquet or Arrow; told apart by
        content, not by name.
    task : str
        Column with the id of each row's task: text, or integers in Parquet.
    target : str
        Column of y.
    features : sequence of str
        Columns of X, in this order.

    Returns
    -------
    TaskDataset
        Tasks in order of first appearance.

    Raises
    ------
    DataError
        A file that is none of these, missing columns, empty cells, cells that are not finite numbers.
    ParameterError
        No features, a column used twice, or a path that is none.
    OSError
        The file cannot be read.
    """
    names = checked_names(features, "feature")
    frame = read_table(checked_path(path), check_roles(task, target, names))
    faults = Faults()
    reader = ColumnReader(frame, faults, table=str(path))
    ids, y = reader.ids(task), reader.numbers(target)
    columns = [reader.numbers(name) for name in names]
    faults.refuse()
    task_ids, codes = id_codes(ids, ordered=False)
    return TaskDataset.from_codes(np.column_stack(columns), y, codes, task_ids, feature_names=names)

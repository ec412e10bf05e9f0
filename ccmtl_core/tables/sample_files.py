"""Read files of samples, one a row: as a dataset, or piece by piece into statistics, whatever their size.

Ids are read as text: "0471" stays "0471". Rows are counted from 1, the header not included.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from os import PathLike
from pathlib import Path

import numpy as np
import polars as pl
from joblib import Parallel, delayed

from ccmtl_core.base.arrays import as_sequence, checked_names, is_whole
from ccmtl_core.base.exceptions import ParameterError
from ccmtl_core.base.file_path import checked_path
from ccmtl_core.base.id_codes import id_codes
from ccmtl_core.base.threads import check_workers
from ccmtl_core.data.task_dataset import TaskDataset
from ccmtl_core.kernels.csv_rows import ID, IGNORED, Columns, NotPlain, plain_rows
from ccmtl_core.kernels.grouping import group_rows
from ccmtl_core.statistics.merging import StatisticsSum, merge_statistics
from ccmtl_core.statistics.sufficient_statistics import SufficientStatistics
from ccmtl_core.tables.cells import OtherStyle, cell_batches, numbers_of, read_cells
from ccmtl_core.tables.csv_file import CsvText
from ccmtl_core.tables.dialects.dialect import NOTHING_STATED, ReadOptions
from ccmtl_core.tables.dialects.number_choice import SAMPLE_ROWS, sampled_decimals, styled
from ccmtl_core.tables.faults import Fault, FaultList
from ccmtl_core.tables.header import Role, sample_roles
from ccmtl_core.tables.table import REPEATED_HEADER, Table
from ccmtl_core.tables.table_file import open_table, open_unscanned

BATCH_ROWS = 2**17


def read_task_dataset(
    path: str | Path,
    *,
    task: str,
    target: str,
    features: Sequence[str],
    dialect: ReadOptions = NOTHING_STATED,
) -> TaskDataset:
    """Read a dataset from a file, by the names of its columns; tasks are in order of first appearance.

    The file may be of any format that :func:`ccmtl_core.tables.read_table` reads; ``dialect`` states of it
    what shall not be guessed. Errors are those of :func:`statistics_from_files`.
    """
    names = checked_names(features, "feature")
    roles = sample_roles(task, target, names)
    frame = read_columns(path, roles, dialect=dialect)
    task_ids, codes = id_codes(frame["unique_id"], ordered=False)
    X = frame.select(role.name for role in roles[2:]).to_numpy()
    return TaskDataset.from_codes(X, frame["y"].to_numpy(), codes, task_ids, feature_names=names)


def read_columns(
    path: str | Path,
    roles: Sequence[Role],
    dialect: ReadOptions = NOTHING_STATED,
) -> pl.DataFrame:
    """Read the columns of ``roles`` from a file, under the names of the roles, all rows in their order.

    A DataError names the file, and the row and column of each cell that cannot be used.
    """
    faults = FaultList(str(path))
    with open_table(checked_path(path), [role.column for role in roles], faults, dialect) as table:
        _refuse_repeated_headers(table, faults)
        frame = read_cells(table, roles, faults).frame
    if faults:
        raise faults.refusal()
    return frame


def statistics_from_files(
    paths: str | Path | Iterable[str | Path],
    *,
    task: str,
    target: str,
    features: Sequence[str],
    n_jobs: int = 1,
    batch_rows: int = BATCH_ROWS,
    dialect: ReadOptions = NOTHING_STATED,
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
    dialect : ReadOptions
        What is stated of how the files are written; the rest is guessed.

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
    roles = sample_roles(task, target, names)
    if not files:
        raise ParameterError("there are no files to read")
    if not is_whole(batch_rows) or batch_rows < 1:
        raise ParameterError(f"batch_rows must be an integer of at least 1, not {batch_rows!r}")
    if len(files) == 1:
        return _statistics_of_file(files[0], roles, names, batch_rows, dialect)
    jobs = (delayed(_statistics_of_file)(file, roles, names, batch_rows, dialect) for file in files)
    return merge_statistics(Parallel(n_jobs=n_jobs, return_as="generator")(jobs))


def _statistics_of_file(
    path: Path, roles: Sequence[Role], features: tuple[str, ...], batch_rows: int, options: ReadOptions
) -> SufficientStatistics:
    faults = FaultList(str(path))
    with open_unscanned(path, [role.column for role in roles], faults, options) as opened:
        if not isinstance(opened, CsvText):
            table = opened
        else:
            statistics = _statistics_of_plain_text(opened, roles, features, batch_rows)
            if statistics is not None:
                return statistics
            table = opened.scanned(faults)
        _refuse_repeated_headers(table, faults)
        try:
            return _statistics_of_table(
                styled(table, numbers_of(roles), faults), roles, features, batch_rows, faults
            )
        except OtherStyle as other:
            return _statistics_of_table(other.table, roles, features, batch_rows, faults)


def _refuse_repeated_headers(table: Table, faults: FaultList) -> None:
    """Refuse rows that would be left out, as no report tells of them here."""
    for note in table.notes:
        if note.code == REPEATED_HEADER:
            message = "the row repeats the header: take it out"
            faults.add_all(note.code, note.count, (Fault(note.code, message, row) for row in note.rows))


def _statistics_of_plain_text(
    text: CsvText, roles: Sequence[Role], features: tuple[str, ...], batch_rows: int
) -> SufficientStatistics | None:
    """The statistics of a text in which all is plain, in one pass over its bytes; None of any other."""
    task, target, *numbers = [role.column for role in roles]
    places = {task: ID} | {column: place for place, column in enumerate([*numbers, target])}
    layout, decimals = text.layout, plain_decimals(text, places, numbers_of(roles))
    if decimals is None:
        return None
    columns = Columns(
        np.array([places.get(name, IGNORED) for name in text.columns]),
        np.array([ord(decimals.get(name) or "\0") for name in text.columns], dtype=np.uint8),
        layout.delimiter,
        layout.quote,
    )
    total = StatisticsSum(features)
    try:
        for batch in plain_rows(text.data, columns, batch_rows, has_header=layout.has_header):
            total.numbers(batch.new_ids)
            tasks, group = np.arange(total.n_tasks), batch.task  # in order, as sums lie: memory likes that
            if len(tasks) > len(group):
                tasks, group = np.unique(group, return_inverse=True)
            order, offsets = group_rows(group, len(tasks))
            total.add_rows(batch.X, batch.y, order, offsets, tasks)
    except NotPlain:
        return None
    return total.statistics() if total.n_tasks else None


def plain_decimals(text: CsvText, columns: Collection[str], numbers: Sequence[str]) -> dict[str, str] | None:
    """Return the decimal sign of each column of numbers, as the first rows of a text prove it.

    None of a text that may not be plain: a column is missing or named twice, or marks may be part of numbers.
    """
    marks, names = text.layout.delimiter + text.layout.quote, set(text.columns)
    if len(names) < len(text.columns) or not (names.issuperset(columns) and marks.isascii()):
        return None
    decimals = sampled_decimals(text.first_rows(SAMPLE_ROWS), numbers)
    if decimals is None or set(marks) & {*"-0123456789", *decimals.values()}:
        return None
    return decimals


def _statistics_of_table(
    table: Table, roles: Sequence[Role], features: tuple[str, ...], batch_rows: int, faults: FaultList
) -> SufficientStatistics:
    total = StatisticsSum(features)
    for batch in cell_batches(table, roles, faults, batch_rows):
        distinct, codes = id_codes(batch["unique_id"], ordered=False)
        order, offsets = group_rows(codes, len(distinct))
        X = batch.select(role.name for role in roles[2:]).to_numpy(order="c")
        total.add_rows(X, batch["y"].to_numpy(), order, offsets, total.numbers(distinct))
    return total.statistics()

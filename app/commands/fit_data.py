"""Read what ``ccmtl fit`` learns from: samples, series, or a database's statistics of samples; and fit it."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from rich.console import Console

from app.commands.file_options import Stated
from app.commands.guard import refuse_undecodable
from app.commands.history import read_history
from app.commands.lists import listed
from app.commands.options import Source, Strength
from app.reports import lone_notes
from ccmtl_core import (
    CCMTLModel,
    DataError,
    FitResult,
    ModelChoices,
    Progress,
    Selection,
    SelectionProgress,
    SufficientStatistics,
    TaskDataset,
    fit,
    read_statistics,
    read_statistics_folds,
    select,
    statistics_from_files,
)
from ccmtl_core.base.display import counted
from ccmtl_core.forecasting import SeriesPanel, lag_dataset, without_lone_values
from ccmtl_core.inspection import InspectionReport
from ccmtl_core.tables import ReadOptions
from ccmtl_core.tables.sample_files import read_task_dataset


@dataclass(frozen=True)
class FitData:
    """What was read: samples, or the statistics of their folds."""

    rows: TaskDataset | list[SufficientStatistics]
    origin: Mapping[str, Any]  # what `ccmtl predict` and `forecast` need to read their files alike
    time: NDArray[np.int64] | None = None  # when each sample was, where that is known
    notes: Sequence[str] = ()  # what of the file is no sample

    @property
    def n_samples(self) -> int:
        """How many samples there are."""
        parts = self.rows if isinstance(self.rows, list) else [self.rows]
        return sum(int(part.n_samples.sum()) for part in parts)

    def with_origin(self, model: CCMTLModel) -> CCMTLModel:
        """Return the model with its origin."""
        return replace(model, metadata={**model.metadata, **self.origin})


def read(source: Source, messages: Console, *, by_fold: bool) -> FitData:
    """Read the file; all samples of it where they will be parted (``by_fold``)."""
    if source.statistics is not None:
        refuse_undecodable(source.statistics)
        if by_fold:
            return FitData(read_statistics_folds(source.statistics), {})
        return FitData([read_statistics(source.statistics)], {})
    assert source.file is not None
    if source.lags is not None:
        return _read_series(source, source.file, source.lags, messages)
    read_rows = read_task_dataset if by_fold else statistics_from_files
    task, target, features = source.task or "", source.target or "", listed(source.features or "")
    refuse_undecodable(source.file, [task, target, *features])
    dialect = ReadOptions(**source.stated.written)
    rows = read_rows(source.file, task=task, target=target, features=features, dialect=dialect)
    return FitData(rows if isinstance(rows, TaskDataset) else [rows], {"task": task})


def _read_series(source: Source, file: Path, lags: int, messages: Console) -> FitData:
    table = read_history(file, source.stated, messages)
    panel, report = table.panel, table.report
    assert report is not None
    longest = int(np.diff(panel.offsets).max(initial=0))
    if lags >= longest:
        raise DataError(
            f"--lags {lags} needs series of {lags + 1} values or more, and the longest has {longest:,}"
        )
    lagged = lag_dataset(panel, lags)
    n_used = len(lagged.dataset.y)
    if not source.accept_gaps:
        _refuse_gaps(panel, lags, n_used)
    n_without = int(np.count_nonzero(lagged.dataset.n_samples == 0))
    n_filled = report.accounts.values_added.get("fill", 0)
    filled = {"zero": "counted as 0", "forward": "took the value before", "none": ""}
    notes = [
        f"{counted(n_filled, 'period')} without a row {filled[report.policies['fill']]}." if n_filled else "",
        f"{counted(lagged.n_dropped, 'value')} of {len(panel.values):,} could not be learned from: not "
        f"all {lags} periods before them are there.",
        f"{n_without:,} series {'has' if n_without == 1 else 'have'} no sample; what the others have in "
        "common stands in for it."
        if n_without
        else "",
        *lone_notes(without_lone_values(panel).report(), counts=True),
    ]
    origin = {"series": _origin(source.stated, report)}
    return FitData(lagged.dataset, origin, lagged.target_period, [note for note in notes if note])


def _origin(stated: Stated, report: InspectionReport) -> dict[str, Any]:
    """What forecasts need to read their file as this one was read."""
    columns = {name: report.traits[name].value for name in ("unique_id", "ds", "y", "frequency")}
    several = stated.columns.get("unique_id", ())
    parts = {"unique_id": several} if len(several) > 1 else {}
    return {**columns, **parts, "ds_format": stated.columns.get("ds_format"), **report.policies}


def _refuse_gaps(panel: SeriesPanel, lags: int, n_used: int) -> None:
    """Refuse series of which less than half of the rows can be used: the others may be of another kind."""
    sizes = np.diff(panel.offsets)
    n_possible = int(np.where(sizes > lags, sizes - lags, sizes).sum())
    if 2 * n_used < n_possible:
        raise DataError(
            f"with --lags {lags} only {n_used:,} of {n_possible:,} rows can be used: the others lack a value "
            f"in one of the {lags} periods before them, and a model of the rest may be wrong for them. If "
            "nothing happened in the absent periods, add --fill zero; if they do not count, take fewer "
            "--lags or a longer --frequency; or add --accept-gaps"
        )


def fitted(
    data: FitData,
    strength: Strength,
    choices: ModelChoices,
    show: Callable[[Progress], None],
    *,
    tolerance: float,
    solver: str,
) -> tuple[FitResult, Selection | None]:
    """Fit the data, or its folds together, with the strength or the chosen one."""
    if isinstance(strength.value, float):
        one = data.rows[0] if isinstance(data.rows, list) else data.rows
        result = fit(
            one, strength.value, choices=choices, tolerance=tolerance, solver=solver, on_progress=show
        )
        return result, None
    if isinstance(data.rows, list) and len(data.rows) < 2:
        raise DataError("the statistics hold no folds, by which a strength is chosen; name one")

    def told(step: SelectionProgress) -> None:
        show(Progress(f"fit {step.done} of {step.total}", 0, None, None, 0.0))

    selection = select(
        data.rows,
        strength.value,
        folds=strength.folds or ("random" if data.time is None else "rolling"),
        time=None if strength.folds == "random" else data.time,
        n_folds=strength.n_folds,
        rule=strength.rule or "best",
        choices=choices,
        tolerance=tolerance,
        solver=solver,
        n_jobs=-1,
        on_progress=told,
    )
    return selection.fit, selection

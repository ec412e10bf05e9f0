"""Read what ``ccmtl fit`` learns from: samples, series, or statistics that a database made of samples."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Literal

import numpy as np
import typer
from numpy.typing import NDArray

from app.commands.name_list import listed
from ccmtl_core import (
    CCMTLModel,
    SufficientStatistics,
    TaskDataset,
    read_statistics,
    read_statistics_folds,
    statistics_from_files,
)
from ccmtl_core.base.display import counted
from ccmtl_core.forecasting import lag_dataset, read_series
from ccmtl_core.tables.sample_files import read_task_dataset

Fill = Literal["none", "zero"]
Every = Literal["h", "D", "W", "MS"]


@dataclass(frozen=True)
class FitData:
    """What was read: samples, or the statistics of their folds."""

    rows: TaskDataset | list[SufficientStatistics]
    time: NDArray[np.int64] | None = None  # when each sample was, where that is known
    series: dict[str, Any] | None = None  # of series: what `ccmtl forecast` needs to read its history alike
    notes: Sequence[str] = ()  # what of the file is no sample

    @property
    def n_samples(self) -> int:
        """How many samples there are."""
        parts = self.rows if isinstance(self.rows, list) else [self.rows]
        return sum(int(part.n_samples.sum()) for part in parts)

    def with_origin(self, model: CCMTLModel) -> CCMTLModel:
        """Return the model with what tells ``ccmtl forecast`` how to go on from it."""
        if self.series is None:
            return model
        return replace(model, metadata={**model.metadata, "series": self.series})


@dataclass(frozen=True)
class Source:
    """The options of ``ccmtl fit`` that name what to read; None where they were not given."""

    file: Path | None
    statistics: Path | None
    task: str | None
    target: str | None
    features: str | None
    lags: int | None
    time: str | None
    frequency: Every | None
    ds_format: str | None
    fill: Fill | None

    def refuse_contradictions(self) -> None:
        """Refuse options that cannot stand beside each other, and say which to leave out or to add."""
        if (self.file is None) == (self.statistics is None):
            raise typer.BadParameter("give either FILE or --statistics FILE")
        of_series = {"--time": self.time, "--frequency": self.frequency}
        of_series |= {"--ds-format": self.ds_format, "--fill": self.fill}
        columns = {"--task": self.task, "--target": self.target, "--features": self.features}
        if self.statistics is not None:
            _refuse({**columns, "--lags": self.lags, **of_series}, "statistics name their own columns")
        elif self.lags is None:
            _refuse(of_series, "these are for series, which need --lags")
            if None in columns.values():
                raise typer.BadParameter(
                    "FILE needs --task, --target and --features; of series, --lags and --frequency"
                )
        else:
            _refuse({"--features": self.features}, "with --lags the features are the values before")
            if self.frequency is None:
                raise typer.BadParameter("--lags needs --frequency: h, D, W or MS, what a period is")

    def read(self, *, by_fold: bool) -> FitData:
        """Read the file; ``by_fold``, the samples will be parted, so that all of them must be there.

        Raises
        ------
        CCMTLError, OSError
            The file cannot be used, or not read.
        """
        if self.statistics is not None:
            if by_fold:
                return FitData(read_statistics_folds(self.statistics))
            return FitData([read_statistics(self.statistics)])
        assert self.file is not None
        if self.lags is not None:
            return self._read_series(self.lags)
        read = read_task_dataset if by_fold else statistics_from_files
        rows = read(
            self.file, task=self.task or "", target=self.target or "", features=listed(self.features or "")
        )
        return FitData(rows if isinstance(rows, TaskDataset) else [rows])

    def _read_series(self, lags: int) -> FitData:
        assert self.file is not None
        assert self.frequency is not None
        fill = self.fill or "none"
        panel = read_series(
            self.file,
            self.frequency,
            unique_id=self.task or "unique_id",
            ds=self.time or "ds",
            y=self.target or "y",
            ds_format=self.ds_format,
        )
        n_read, n_filled = len(panel.values), 0
        if fill != "none":
            panel, n_filled = panel.filled(fill, "series")
        lagged = lag_dataset(panel, lags)
        n_without = int(np.count_nonzero(np.diff(lagged.dataset.offsets) == 0))
        notes = [
            f"{counted(n_filled, 'period')} without a row counted as 0." if n_filled else "",
            f"{counted(lagged.n_dropped, 'value')} of {n_read + n_filled:,} could not be learned from: not "
            f"all {lags} periods before them are there.",
            f"{n_without:,} series {'has' if n_without == 1 else 'have'} no sample, and so the model of all."
            if n_without
            else "",
        ]
        series = {"frequency": self.frequency, "fill": fill, "ds_format": self.ds_format}
        return FitData(lagged.dataset, lagged.target_period, series, [note for note in notes if note])


def _refuse(options: dict[str, Any], reason: str) -> None:
    given = [name for name, value in options.items() if value is not None]
    if given:
        raise typer.BadParameter(f"{', '.join(given)}: {reason}")

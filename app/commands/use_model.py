"""``ccmtl predict`` and ``ccmtl forecast``: use a model that ``ccmtl fit`` wrote; no server.

Standard output carries CSV alone; messages go to standard error.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
from rich.console import Console

from app.commands.file_options import COLUMNS, Stated
from app.commands.guard import refuse_undecodable
from app.commands.history import read_history
from app.commands.printing import messages_console, print_data
from app.commands.unusable import explaining
from app.reading.stated import POLICIES
from ccmtl_core import CCMTLModel, DataError, ParameterError
from ccmtl_core.base.display import quoted
from ccmtl_core.base.file_path import whole_file
from ccmtl_core.forecasting import SeriesPanel, latest_lags, recursive_forecast
from ccmtl_core.tables import ReadOptions
from ccmtl_core.tables.faults import TableError
from ccmtl_core.tables.header import Kind, Role
from ccmtl_core.tables.sample_files import read_columns

MAX_NAMED = 5
SERIES_KEYS = {"frequency", "fill", "ds_format"}
"""What a model of series tells of its file at least."""


def predict(
    model: Path, file: Path, task: str | None, output: Path | None, written: Mapping[str, Any]
) -> None:
    """Print a prediction for each row of the file, or write them to ``output``."""
    messages = messages_console()
    with explaining(messages):
        fitted = CCMTLModel.load(model)
        series = _series(fitted)
        task = task or series.get("unique_id") or fitted.metadata.get("task")
        if not isinstance(task, str):
            raise ParameterError(f"{model} does not name the column of the tasks' ids: add --task")
        numbers = [Role(f"x_{i}", name, Kind.NUMBER) for i, name in enumerate(fitted.feature_names)]
        refuse_undecodable(file, [task, *fitted.feature_names])
        try:
            frame = read_columns(file, [Role("unique_id", task, Kind.ID), *numbers], ReadOptions(**written))
        except TableError as error:
            if not series or "missing_column" not in error.counts:
                raise
            raise DataError(
                f"{model} is a model of series: ccmtl forecast goes on from their values; rows to predict "
                f"from need the columns {', '.join([task, *fitted.feature_names])}"
            ) from None
        X, ids = frame.select(role.name for role in numbers).to_numpy(), frame["unique_id"]
        predictions = pl.DataFrame({"task": ids, "yhat": fitted.predict(X, ids.to_list())})
    write_table(predictions, output, messages)


def forecast(model: Path, file: Path, horizon: int, stated: Stated, output: Path | None) -> None:
    """Print the forecasts of each series of the file, or write them to ``output``.

    Columns and formats that are ``stated`` are the file's own, in place of those of the fit.
    """
    messages = messages_console()
    with explaining(messages):
        fitted = CCMTLModel.load(model)
        series = _series(fitted)
        if not series:
            raise DataError(f"{model} is no model of series; ccmtl fit --lags makes them")
        columns = {name: series[name] for name in COLUMNS if series.get(name) is not None}
        policies = {name: series[name] for name in POLICIES if name in series}
        of_fit = Stated({**columns, **stated.columns}, policies, stated.written)
        panel = read_history(file, of_fit, messages).panel
        forecasts, without = _forecasts(fitted, panel, horizon)
        for reason, ids in without.items():
            if ids:
                messages.print(_left_out(ids, reason), style="yellow", markup=False, soft_wrap=True)
        if not len(forecasts):
            raise DataError("no series of the file can be forecast")
    write_table(forecasts, output, messages)


def _series(model: CCMTLModel) -> Mapping[str, Any]:
    """How a model of series read its file; empty of another model."""
    series = model.metadata.get("series")
    return series if isinstance(series, Mapping) and series.keys() >= SERIES_KEYS else {}


def _forecasts(
    model: CCMTLModel, panel: SeriesPanel, horizon: int
) -> tuple[pl.DataFrame, dict[str, list[str]]]:
    """Return a row for each series and step, and the ids of series without, by reason."""
    lags, last_period = latest_lags(panel, len(model.feature_names))
    known = np.isin(panel.unique_ids, model.task_ids)
    is_whole = ~np.isnan(lags).any(axis=1)
    ids = np.array(panel.unique_ids, dtype=object)
    chosen = np.flatnonzero(known & is_whole)
    rows = model.rows(ids[chosen].tolist())
    yhat = recursive_forecast(model.weights[rows], lags[chosen], horizon, model.intercept[rows])
    periods = last_period[chosen, None] + np.arange(1, horizon + 1)
    table = pl.DataFrame(
        {
            "unique_id": pl.Series(np.repeat(ids[chosen], horizon), dtype=pl.String),
            "ds": panel.frequency.dated(periods.ravel()),
            "yhat": yhat.ravel(),
        }
    )
    without = {
        "unknown to the model": ids[~known].tolist(),
        f"without values in each of their last {len(model.feature_names)} periods": ids[
            known & ~is_whole
        ].tolist(),
    }
    return table, without


def _left_out(ids: list[str], reason: str) -> str:
    named = ", ".join(map(quoted, ids[:MAX_NAMED])) + (", …" if len(ids) > MAX_NAMED else "")
    return f"No forecast for {len(ids):,} series {reason}: {named}"


def write_table(table: pl.DataFrame, output: Path | None, messages: Console) -> None:
    """Write CSV; a file all of it or nothing."""
    if output is None:
        print_data(table.write_csv())
        return
    with explaining(messages), whole_file(output) as file:
        table.write_csv(file)

"""``ccmtl predict`` and ``ccmtl forecast``: use a model that ``ccmtl fit`` wrote; no server.

Standard output carries CSV alone; messages go to standard error.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated

import numpy as np
import polars as pl
import typer
from rich.console import Console

from app.commands.unusable import explaining, print_answer
from ccmtl_core import CCMTLModel, DataError, ParameterError
from ccmtl_core.base.display import quoted
from ccmtl_core.base.file_path import whole_file
from ccmtl_core.forecasting import Frequency, SeriesPanel, latest_lags, read_series, recursive_forecast
from ccmtl_core.tables.header import Kind, Role
from ccmtl_core.tables.sample_files import read_columns

Model = Annotated[Path, typer.Argument(metavar="MODEL.npz", help="What ccmtl fit --output wrote.")]
Output = Annotated[Path | None, typer.Option(metavar="FILE.csv", help="Write here, not to standard output.")]

MAX_NAMED = 5
SERIES_KEYS = {"frequency", "fill", "ds_format"}
"""What a model of series tells of its file."""


def predict_command(
    model: Model,
    file: Annotated[
        Path, typer.Argument(metavar="FILE", help="CSV, Parquet or Arrow, one row for each prediction.")
    ],
    task: Annotated[str, typer.Option(metavar="COL", help="Column with the id of each row's task.")],
    output: Output = None,
) -> None:
    """Predict each row of a file with a model that ccmtl fit wrote.

    FILE has the columns that the model was fitted with, in any order. The answer is CSV, in the order of
    FILE's rows: the task and yhat.

    Exit codes: 0 all rows are predicted; 1 a file, a cell or a task cannot be used, and nothing is written.
    """
    messages = Console(stderr=True, highlight=False)
    with explaining(messages):
        fitted = CCMTLModel.load(model)
        numbers = [Role(f"x_{i}", name, Kind.NUMBER) for i, name in enumerate(fitted.feature_names)]
        frame = read_columns(file, [Role("unique_id", task, Kind.ID), *numbers])
        X, ids = frame.select(role.name for role in numbers).to_numpy(), frame["unique_id"]
        predictions = pl.DataFrame({"task": ids, "yhat": fitted.predict(X, ids.to_list())})
    _write(predictions, output, messages)


def forecast_command(
    model: Model,
    file: Annotated[
        Path, typer.Argument(metavar="FILE", help="The history: CSV, Parquet or Arrow, one value a row.")
    ],
    horizon: Annotated[
        int, typer.Option("--horizon", "-h", help="Periods to forecast, each series from its end.")
    ],
    task: Annotated[
        str, typer.Option("--task", metavar="COL", help="Column with the id of the series.")
    ] = "unique_id",
    time: Annotated[
        str, typer.Option("--time", metavar="COL", help="Column with the time of each value.")
    ] = "ds",
    target: Annotated[str, typer.Option("--target", metavar="COL", help="Column with the values.")] = "y",
    output: Output = None,
) -> None:
    """Forecast each series of a file with a model that ccmtl fit --lags wrote.

    Frequency and filling are those of the fit. The answer is CSV: unique_id, ds, yhat. Series without a
    forecast are counted on standard error: the model does not know them, or their last periods are not
    all there.

    Exit codes: 0 there are forecasts; 1 a file or a cell cannot be used, or no series can be forecast.
    """
    messages = Console(stderr=True, highlight=False)
    with explaining(messages):
        fitted = CCMTLModel.load(model)
        series = fitted.metadata.get("series")
        if not (isinstance(series, Mapping) and series.keys() >= SERIES_KEYS):
            raise ParameterError(f"{model} is no model of series; ccmtl fit --lags makes them")
        panel = read_series(
            file, series["frequency"], unique_id=task, ds=time, y=target, ds_format=series["ds_format"]
        )
        if series["fill"] != "none":
            panel, _ = panel.filled(series["fill"], "series")
        forecasts, without = _forecasts(fitted, panel, horizon)
        for reason, ids in without.items():
            if ids:
                messages.print(_left_out(ids, reason), style="yellow", markup=False, soft_wrap=True)
        if not len(forecasts):
            raise DataError("no series of the file can be forecast")
    _write(forecasts, output, messages)


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
    starts = pl.Series(panel.frequency.to_datetime(periods.ravel()))
    table = pl.DataFrame(
        {
            "unique_id": pl.Series(np.repeat(ids[chosen], horizon), dtype=pl.String),
            "ds": starts if panel.frequency is Frequency.HOUR else starts.cast(pl.Date),
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


def _write(table: pl.DataFrame, output: Path | None, messages: Console) -> None:
    """Write CSV; a file all of it or nothing."""
    if output is None:
        print_answer(table.write_csv())
        return
    with explaining(messages), whole_file(output) as file:
        table.write_csv(file)

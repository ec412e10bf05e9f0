"""``ccmtl forecast FILE`` without a model, and ``ccmtl backtest FILE``: from a history alone; no server.

Standard output carries the answer alone; progress and messages go to standard error.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import polars as pl
from rich.console import Console

from app.commands.options import Aim, Shown
from app.commands.unusable import explaining, print_answer
from app.commands.use_model import write_table
from ccmtl_core.base.display import counted
from ccmtl_core.forecasting import (
    Backtest,
    ForecastModel,
    SeriesTable,
    backtest,
    fit_forecaster,
    forecast_all,
    read_series_table,
    total_forecasts,
)
from ccmtl_core.tables import ReadOptions
from ccmtl_core.tables.faults import TableError


def forecast_file(
    file: Path,
    columns: Mapping[str, str | None],
    beside: Mapping[str, Sequence[str]],
    fill: str,
    horizon: int,
    aim: Aim,
    show: Shown,
    output: Path | None,
    written: Mapping[str, Any],
) -> None:
    """Fit a forecaster to the file, and print its forecasts or write them to ``output``."""
    messages = Console(stderr=True, highlight=False)
    with explaining(messages), _told(messages) as tell:
        table = _read(file, columns, beside, fill, written)
        forecaster = fit_forecaster(
            table.panel, horizon, columns=table.columns, aim=aim, n_jobs=-1, on_phase=tell
        )
        found = _shown(forecaster, table, show)
    write_table(found, output, messages)


def _shown(forecaster: ForecastModel, table: SeriesTable, show: Shown) -> pl.DataFrame:
    """The table to print."""
    if show.contributions:
        return forecaster.contributions(columns=table.columns)
    if table.attributes is None:
        found = forecaster.forecast(columns=table.columns, level=show.level)
    else:
        found = forecast_all(forecaster, table.attributes, columns=table.columns, level=show.level)
    if show.total_by is None:
        return found
    by = [] if table.attributes is None or show.total_by == ["all"] else show.total_by
    return total_forecasts(found, table.attributes, by)


def backtest_file(
    file: Path,
    columns: Mapping[str, str | None],
    beside: Mapping[str, Sequence[str]],
    fill: str,
    horizon: int,
    aim: Aim,
    n_origins: int,
    level: Sequence[float],
    as_json: bool,
    written: Mapping[str, Any],
) -> None:
    """Forecast the last windows of the file from what lay before them, and print who was nearest."""
    messages = Console(stderr=True, highlight=False)
    with explaining(messages), _told(messages) as tell:
        table = _read(file, columns, beside, fill, written)
        result = backtest(
            table.panel, horizon, n_origins=n_origins, level=level, columns=table.columns, aim=aim,
            n_jobs=-1, on_phase=tell,
        )  # fmt: skip
    if as_json:
        print_answer(json.dumps(result.to_dict(), ensure_ascii=False, allow_nan=False))
    else:
        print_answer(_in_tables(result))


def _read(
    file: Path,
    columns: Mapping[str, str | None],
    beside: Mapping[str, Sequence[str]],
    fill: str,
    written: Mapping[str, Any],
) -> SeriesTable:
    given: dict[str, Any] = {name: value for name, value in columns.items() if value is not None}
    try:
        table = read_series_table(file, **given, **dict[str, Any](beside), dialect=ReadOptions(**written))
    except TableError as error:
        if "missing_column" in error.counts:
            options = "Name the columns with --task, --time and --target"
            error.add_note(f"{options}; ccmtl inspect {file} says which they may be.")
        raise
    return table if fill == "none" else table._replace(panel=table.panel.filled(fill, "series")[0])


@contextmanager
def _told(messages: Console) -> Iterator[Callable[[str], None] | None]:
    """Show the phase on a terminal, and nothing elsewhere."""
    if not messages.is_terminal:
        yield None
        return
    with messages.status("reading") as status:
        yield status.update


def _in_tables(result: Backtest) -> str:
    """The verdict, the errors of each method, and those of the model by decile of volume."""
    windows = counted(len(result.report["origins"]), "window")
    periods = counted(result.report["horizon"], "period")
    overall = result.overall.drop("mase", "pinball", strict=False)
    names = {"rmsse": "RMSSE", "wape": "WAPE", "wape_of_totals": "WAPE of totals"}
    naive = overall.filter(pl.col("method").is_in(["zero", "seasonal_naive", "window_average"]))
    rival = naive.sort("rmsse", nulls_last=True)["method"][0]
    shown = ["decile", "n_series", "rmsse", "bias", *(c for c in overall.columns if c.startswith("coverage"))]
    deciles = result.by_decile.filter(method="ccmtl").select(
        c for c in shown if c in result.by_decile.columns
    )
    beside = result.by_decile.filter(method=rival)["rmsse"].rename(f"RMSSE of {rival}")
    return "\n".join(
        [
            result.verdict,
            "",
            f"{windows} of {periods}, each forecast from what lay before it:",
            *_lines(overall.rename(names, strict=False)),
            "",
            "By volume, the smallest series first:",
            *_lines(deciles.insert_column(3, beside).rename(names, strict=False)),
        ]
    )


def _lines(table: pl.DataFrame) -> list[str]:
    """A table in columns of text, numbers to three digits."""

    def text(value: Any) -> str:
        return "–" if value is None else f"{value:.3f}" if isinstance(value, float) else str(value)

    cells = [table.columns, *([text(value) for value in row] for row in table.rows())]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    return [
        "  ".join(
            cell.ljust(width) if c == 0 else cell.rjust(width)
            for c, (cell, width) in enumerate(zip(row, widths, strict=True))
        )
        for row in cells
    ]

"""``ccmtl forecast FILE`` without a model, and ``ccmtl backtest FILE``: from a history alone; no server.

Standard output carries the answer alone; progress and messages go to standard error.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import polars as pl
from rich.console import Console

from app.commands.file_options import Stated
from app.commands.history import read_history
from app.commands.options import Asked
from app.commands.printing import messages_console, print_answer, print_json
from app.commands.unusable import explaining
from app.commands.use_model import write_table
from app.reports import ended_notes, forecaster_notes
from ccmtl_core import DataError
from ccmtl_core.base.display import counted
from ccmtl_core.forecasting import (
    Backtest,
    ForecastModel,
    SeriesTable,
    backtest,
    fit_forecaster,
    forecast_all,
    total_forecasts,
)


def forecast_file(file: Path, stated: Stated, asked: Asked, output: Path | None) -> None:
    """Fit a forecaster to the file, and print its forecasts or write them to ``output``."""
    messages = messages_console()
    with explaining(messages), _told(messages) as tell:
        table = _read(file, stated, asked, messages)
        _refuse_unknown_ahead(table, asked)
        forecaster = fit_forecaster(
            table.panel, asked.horizon, columns=table.columns, aim=asked.aim, n_jobs=-1, on_phase=tell
        )
        found = _forecasts(forecaster, table, asked)
        _warn(messages, forecaster.report)
        _tell_ended(messages, forecaster, table, found)
        if asked.total_by is not None:
            by = [] if table.attributes is None or asked.total_by == ["all"] else asked.total_by
            found = total_forecasts(found, table.attributes, by)
    write_table(found, output, messages)


def _forecasts(forecaster: ForecastModel, table: SeriesTable, asked: Asked) -> pl.DataFrame:
    """The forecasts of each product, or what they are made of."""
    if asked.contributions:
        return forecaster.contributions(columns=table.columns)
    if table.attributes is None:
        return forecaster.forecast(columns=table.columns, level=asked.level, quantiles=asked.quantiles)
    return forecast_all(
        forecaster, table.attributes, columns=table.columns, level=asked.level, quantiles=asked.quantiles
    )


def _tell_ended(
    messages: Console, forecaster: ForecastModel, table: SeriesTable, found: pl.DataFrame
) -> None:
    """Tell which series ended and have no forecast."""
    there = set(found["unique_id"])
    ended = [name for name in forecaster.ended(columns=table.columns) if name not in there]
    for note in ended_notes(forecaster, ended):
        messages.print(note, style="yellow", markup=False, soft_wrap=True)


def backtest_file(file: Path, stated: Stated, asked: Asked, as_json: bool) -> None:
    """Forecast the last windows of the file from what lay before them, and print who was nearest."""
    messages = messages_console()
    with explaining(messages), _told(messages) as tell:
        table = _read(file, stated, asked, messages)
        result = backtest(
            table.panel, asked.horizon, n_origins=asked.n_origins, level=asked.level,
            quantiles=asked.quantiles, columns=table.columns, aim=asked.aim, n_jobs=-1, on_phase=tell,
        )  # fmt: skip
        _warn(messages, result.report["windows"][-1])
    if as_json:
        print_json(result.to_dict())
    else:
        print_answer(_in_tables(result))


def _warn(messages: Console, report: Mapping[str, Any]) -> None:
    """Tell what limits the forecasts."""
    for note in forecaster_notes(report):
        messages.print(note, style="yellow", markup=False, soft_wrap=True)


def _refuse_unknown_ahead(table: SeriesTable, asked: Asked) -> None:
    """Refuse columns that are said to be known ahead, before the fit, if no row knows them."""
    if table.columns is None or not len(table.panel.period):
        return
    last, columns = int(table.panel.period.max()), replace(table.columns, ahead=None)
    known = dict(zip(columns.names, columns.known_ahead(last).tolist(), strict=True))
    if unknown := [name for name in asked.future if not known[name]]:
        raise DataError(
            f"no row says what {', '.join(unknown)} will be after {table.panel.frequency.text(last)}: add "
            "rows of the periods to forecast, without a value, or name in --past what is known up to the "
            "present alone"
        )


def _read(file: Path, stated: Stated, asked: Asked, messages: Console) -> SeriesTable:
    return read_history(file, stated, messages, future=asked.future, past=asked.past, static=asked.static)


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
            *_of_quantiles(result.by_quantile),
        ]
    )


def _of_quantiles(table: pl.DataFrame) -> list[str]:
    """What the quantiles that were asked for were worth, a line each."""
    if not table.height:
        return []
    names = {"pinball": "pinball loss", "coverage": "share at or below"}
    ours, naive = (table.filter(method=name).drop("method") for name in ("ccmtl", "seasonal_naive"))
    beside = naive["pinball"].rename("that of seasonal_naive")
    quantile = pl.col("quantile").map_elements(lambda p: f"{p:g}", return_dtype=pl.String)
    return ["", "By quantile:", *_lines(ours.with_columns(quantile).insert_column(2, beside).rename(names))]


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

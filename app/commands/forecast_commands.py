"""``ccmtl forecast`` and ``backtest``: options; neither needs a server.

What they run imports the library, which takes seconds: help and a wrong command line do not wait for it.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import typer

from app.commands.file_options import OF_SERIES, STATED, told_of_files
from app.commands.model_commands import Output, refuse_swapped, run
from app.commands.options import EVERY_HELP, Aim, Duplicates, Every, Fill, Shown, listed, refuse_twice


def _levels(text: str) -> str:
    """Refuse what is no list of numbers from 1 to 99."""
    try:
        if all(1.0 <= float(part) <= 99.0 for part in text.split(",")) or not text:
            return text
    except ValueError:
        if not text:
            return text
    raise typer.BadParameter(f"{text!r} is no list of numbers from 1 to 99, such as 80,95")


def _numbers(text: str) -> list[float]:
    return [float(part) for part in text.split(",")] if text else []


Id = Annotated[
    str | None, typer.Option("--task", metavar="COL", help="Column with the id; unique_id by default.")
]
Time = Annotated[
    str | None, typer.Option("--time", metavar="COL", help="Column with the time; ds by default.")
]
Value = Annotated[
    str | None, typer.Option("--target", metavar="COL", help="Column with the values; y by default.")
]
Pattern = Annotated[
    str | None,
    typer.Option(
        "--ds-format", metavar="PATTERN", help="How times are written, as %d/%m/%Y; found by default."
    ),
]
OfSeveral = Annotated[
    Duplicates | None,
    typer.Option("--duplicates", help="What several rows of a period become; by default they are refused."),
]
Gaps = Annotated[
    Fill | None,
    typer.Option(
        "--fill", show_default="none", help="What stands for a period without a row, once it has begun."
    ),
]


Future = Annotated[
    str,
    typer.Option(
        "--future", metavar="COL,COL,…", show_default="none",
        help="Columns of numbers that are known of periods to come, as price,promotion: rows without a value "
        "say what they will be.",
    ),
]  # fmt: skip
Past = Annotated[
    str,
    typer.Option(
        "--past", metavar="COL,COL,…", show_default="none",
        help="Columns of numbers that are known up to the present alone.",
    ),
]  # fmt: skip
Static = Annotated[
    str,
    typer.Option(
        "--static", metavar="COL,COL,…", show_default="none",
        help="Columns of text that are the same in all rows of a product, as category: products with hardly "
        "any history are forecast from those that share them.",
    ),
]  # fmt: skip

ToBeRight = Annotated[
    Aim,
    typer.Option(
        "--aim",
        help="What shall be right: each product's forecast or, where those are too low in sum, their totals.",
    ),
]


@told_of_files(STATED | OF_SERIES)
def forecast(
    model: Annotated[
        Path,
        typer.Argument(
            metavar="MODEL.npz|FILE", help="What ccmtl fit --output wrote; or the history by itself."
        ),
    ],
    horizon: Annotated[
        int, typer.Option(metavar="N", min=1, help="Periods to forecast, each series from its end.")
    ],
    file: Annotated[
        Path | None,
        typer.Argument(metavar="FILE", show_default=False, help="The history, a file of series."),
    ] = None,
    frequency: Annotated[
        Every | None, typer.Option(metavar="PERIOD", help=f"Without a model: {EVERY_HELP}")
    ] = None,
    level: Annotated[
        str,
        typer.Option(
            metavar="NUMBER,…",
            show_default="none",
            callback=_levels,
            help="Without a model: percentages of values that ranges shall hold, as 80,95.",
        ),
    ] = "",
    task: Id = None,
    time: Time = None,
    target: Value = None,
    ds_format: Pattern = None,
    duplicates: OfSeveral = None,
    fill: Gaps = None,
    future: Future = "",
    past: Past = "",
    static: Static = "",
    total_by: Annotated[
        str | None,
        typer.Option(
            metavar="COL,COL,…|all",
            help="Print sums of forecasts over products that share these of --static, or over all.",
        ),
    ] = None,
    aim: ToBeRight = "products",
    contributions: Annotated[
        bool,
        typer.Option("--contributions", metavar="", help="Print what each feature adds to each forecast."),
    ] = False,
    output: Output = None,
    *,
    written: Mapping[str, Any],
) -> None:
    """Forecast each series of a file, by itself or with a model that ccmtl fit --lags wrote.

    By itself (--frequency), the features of the forecast and how strongly to fuse are chosen on the history;
    the answer is CSV: unique_id, ds, yhat, and for each --level as yhat-lo-80 and yhat-hi-80; with --static
    also status, which says of a product whether it is forecast from its like. Sums have no ranges.

    With a model, frequency, columns, policies are those of the fit, and the answer is
    unique_id, ds, yhat. Series without a forecast are counted on standard error: the model does not know
    them, or their last periods are not all there.

    Exit codes: 0 there are forecasts; 1 a file or a cell cannot be used, or no series can be forecast;
    2 a wrong argument.
    """
    columns = {"unique_id": task, "ds": time, "y": target}
    if file is None:
        if model.suffix == ".npz":
            raise typer.BadParameter(f"{model} is a model: give the FILE with the history after it")
        if frequency is None:
            raise typer.BadParameter(
                "without a model --frequency is needed, such as h, D, W or MS: what a period is"
            )
        columns |= {"frequency": frequency, "ds_format": ds_format, "duplicates": duplicates}
        beside = _beside(columns, future, past, static)
        shown = Shown(_numbers(level), None if total_by is None else listed(total_by), contributions)
        shown.refuse_contradictions(beside["static"])
        run(
            "forecast_file.forecast_file", model, columns, beside, fill or "none", horizon, aim, shown,
            output, written,
        )  # fmt: skip
        return
    refuse_swapped(model, file)
    of_fit = {"--frequency": frequency, "--level": level, "--ds-format": ds_format}
    of_fit |= {"--duplicates": duplicates, "--fill": fill, "--future": future, "--past": past}
    of_fit |= {"--static": static, "--total-by": total_by}
    if given := [
        name
        for name, value in {**of_fit, "--contributions": contributions, "--aim": aim != "products"}.items()
        if value
    ]:
        raise typer.BadParameter(f"{', '.join(given)}: for forecasts without a model; it has its own")
    run("use_model.forecast", model, file, horizon, columns, output, written)


@told_of_files(STATED | OF_SERIES)
def backtest(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="The history, a file of series.")],
    frequency: Annotated[Every, typer.Option(metavar="PERIOD", help=f"What a period is: {EVERY_HELP}")],
    horizon: Annotated[int, typer.Option(metavar="N", min=1, help="Periods of each window.")],
    n_origins: Annotated[
        int, typer.Option(metavar="N", min=1, help="Windows, side by side up to the last period.")
    ] = 3,
    level: Annotated[
        str,
        typer.Option(
            metavar="NUMBER,…", callback=_levels, help="Percentages of values that ranges shall hold."
        ),
    ] = "80,95",
    task: Id = None,
    time: Time = None,
    target: Value = None,
    ds_format: Pattern = None,
    duplicates: OfSeveral = None,
    fill: Gaps = None,
    future: Future = "",
    past: Past = "",
    aim: ToBeRight = "products",
    as_json: Annotated[
        bool, typer.Option("--json", metavar="", help="Print one JSON object instead of tables.")
    ] = False,
    *,
    written: Mapping[str, Any],
) -> None:
    """Forecast the last windows of a file from what lay before, and say who is nearest.

    Beside the model stand always zero, the value a season before, the mean of the last 8 values, and on the
    same rows one model for all series, each series alone, and each shrunk to the one.

    Exit codes: 0 there is a verdict; 1 a file or a cell cannot be used; 2 a wrong argument.
    """
    columns = {"unique_id": task, "ds": time, "y": target, "frequency": frequency}
    columns |= {"ds_format": ds_format, "duplicates": duplicates}
    beside = _beside(columns, future, past, "")
    asked = horizon, aim, n_origins, _numbers(level)
    run("forecast_file.backtest_file", file, columns, beside, fill or "none", *asked, as_json, written)


def _beside(columns: Mapping[str, str | None], future: str, past: str, static: str) -> dict[str, list[str]]:
    """The columns beside the values by what they are; none may be named twice."""
    beside = {"future": listed(future), "past": listed(past), "static": listed(static)}
    series = [columns[name] or name for name in ("unique_id", "ds", "y")]
    refuse_twice([*series, *beside["future"], *beside["past"], *beside["static"]])
    return beside

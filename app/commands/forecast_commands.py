"""``ccmtl forecast`` and ``backtest``: options; neither needs a server.

What they run imports the library, which takes seconds: help and a wrong command line do not wait for it.
"""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from app.commands.file_options import Stated, option, told_of_series
from app.commands.lists import levels, listed, numbers, quantiles
from app.commands.model_commands import Output, refuse_swapped, run
from app.commands.options import Aim, Asked, refuse

History = Annotated[Path, typer.Argument(metavar="FILE", help="The history, a file of series.")]
Future = Annotated[
    str,
    typer.Option(
        metavar="COL,COL,…", show_default="none",
        help="Columns of numbers that are known of periods to come, as price,promotion: rows without a value "
        "say what they will be.",
    ),
]  # fmt: skip
Past = Annotated[
    str,
    typer.Option(
        metavar="COL,COL,…", show_default="none",
        help="Columns of numbers that are known up to the present alone.",
    ),
]  # fmt: skip
ToBeRight = Annotated[
    Aim,
    typer.Option(
        help="What shall be right: each product's forecast or, where those are too low in sum, their totals."
    ),
]


@told_of_series()
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
    level: Annotated[
        str,
        typer.Option(
            metavar="NUMBER,…",
            show_default="none",
            callback=levels,
            help="Without a model: percentages of values that ranges shall hold, as 80,95; not of sums or "
            "contributions.",
        ),
    ] = "",
    probabilities: Annotated[
        str,
        typer.Option(
            "--quantiles",
            metavar="NUMBER,…",
            show_default="none",
            callback=quantiles,
            help="Without a model: probabilities that a value is not above the quantile, as 0.1,0.9; not of "
            "sums or contributions.",
        ),
    ] = "",
    future: Future = "",
    past: Past = "",
    static: Annotated[
        str,
        typer.Option(
            metavar="COL,COL,…",
            show_default="none",
            help="Without a model: columns of text that are the same in all rows of a product, as category: "
            "products with hardly any history are forecast from those that share them.",
        ),
    ] = "",
    total_by: Annotated[
        str | None,
        typer.Option(
            metavar="COL,COL,…|all",
            help="Without a model: print sums of forecasts over products that share these of --static, or "
            "over all. Sums have no ranges.",
        ),
    ] = None,
    aim: ToBeRight = "products",
    contributions: Annotated[
        bool,
        typer.Option(
            "--contributions",
            metavar="",
            help="Without a model: print what each feature adds to each forecast; goes without --level, "
            "--quantiles, --static and --total-by.",
        ),
    ] = False,
    output: Output = None,
    *,
    stated: Stated,
) -> None:
    """Forecast each series of a file, by itself or with a model that ccmtl fit --lags wrote.

    By itself, the features of the forecast and how strongly to fuse are chosen on the history;
    the answer is CSV: unique_id, ds, yhat, for each --level as yhat-lo-80 and yhat-hi-80, and for each of
    --quantiles as yhat-q-10; with --static also status, which says of a product whether it is forecast from
    its like. Sums have no ranges. What of the file was found and not stated, and what may not
    be meant in it, is told on standard error.

    With a model, columns, frequency and policies are those of the fit. Where FILE is written otherwise,
    --unique-id, --ds, --y, --ds-format and the options from --delimiter on say how; all others but --horizon
    and --output are refused. The answer is unique_id, ds, yhat. Series without a forecast are counted on
    standard error: the model does not know them, or their last periods are not all there.

    Exit codes: 0 there are forecasts; 1 a file or a cell cannot be used, or no series can be forecast;
    2 a wrong argument.
    """
    if file is None:
        if model.suffix == ".npz":
            raise typer.BadParameter(f"{model} is a model: give the FILE with the history after it")
        asked = Asked(
            horizon,
            aim,
            numbers(level),
            listed(future),
            listed(past),
            listed(static),
            None if total_by is None else listed(total_by),
            contributions,
            quantiles=numbers(probabilities),
        )
        asked.refuse_contradictions(stated)
        run("forecast_file.forecast_file", model, stated, asked, output)
        return
    refuse_swapped(model, file)
    of_fit = {
        "--level": level,
        "--quantiles": probabilities,
        "--future": future,
        "--past": past,
        "--static": static,
        "--total-by": total_by,
    }
    switches = {"--contributions": contributions, "--aim": aim != "products"}
    given = [name for name, value in [*of_fit.items(), *switches.items()] if value]
    given += map(option, [*(stated.columns.keys() & {"frequency"}), *stated.policies])
    refuse(given, "for forecasts without a model; it has its own")
    run("use_model.forecast", model, file, horizon, stated, output)


@told_of_series()
def backtest(
    file: History,
    horizon: Annotated[int, typer.Option(metavar="N", min=1, help="Periods of each window.")],
    n_origins: Annotated[
        int, typer.Option(metavar="N", min=1, help="Windows, side by side up to the last period.")
    ] = 3,
    level: Annotated[
        str,
        typer.Option(
            metavar="NUMBER,…", callback=levels, help="Percentages of values that ranges shall hold."
        ),
    ] = "80,95",
    probabilities: Annotated[
        str,
        typer.Option(
            "--quantiles",
            metavar="NUMBER,…",
            show_default="none",
            callback=quantiles,
            help="Probabilities that a value is not above the quantile, as 0.1,0.9; each is scored apart.",
        ),
    ] = "",
    future: Future = "",
    past: Past = "",
    aim: ToBeRight = "products",
    as_json: Annotated[
        bool, typer.Option("--json", metavar="", help="Print one JSON object instead of tables.")
    ] = False,
    *,
    stated: Stated,
) -> None:
    """Forecast the last windows of a file from what lay before, and say who is nearest.

    Beside the model stand always zero, the value a season before, the mean of the last 8 values, and on the
    same rows one model for all series, each series alone, and each shrunk to the one.

    Exit codes: 0 there is a verdict; 1 a file or a cell cannot be used; 2 a wrong argument.
    """
    asked = Asked(
        horizon, aim, numbers(level), listed(future), listed(past), n_origins=n_origins,
        quantiles=numbers(probabilities),
    )  # fmt: skip
    asked.refuse_contradictions(stated)
    run("forecast_file.backtest_file", file, stated, asked, as_json)

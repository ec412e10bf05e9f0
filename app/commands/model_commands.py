"""``ccmtl fit``, ``predict``, ``forecast``, ``backtest``, ``statistics-sql``: options; none needs a server.

What they run imports the library, which takes seconds: help and a wrong command line do not wait for it.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Annotated, Any

import typer

from app.commands.options import (
    DEFAULT_FOLDS,
    EVERY_HELP,
    Aggregation,
    Dialect,
    Every,
    Fill,
    Folds,
    LossScaling,
    Metric,
    Rule,
    Solver,
    Source,
    Strength,
)


def _ending(suffix: str) -> Callable[[Path | None], Path | None]:
    def checked(output: Path | None) -> Path | None:
        if output is not None and output.suffix != suffix:
            raise typer.BadParameter(f"what is written is {suffix[1:]}: give a name that ends in {suffix}")
        return output

    return checked


def _above_zero(value: float) -> float:
    if not 0 < value < float("inf"):
        raise typer.BadParameter(f"{value} is not a finite number above 0")
    return value


Model = Annotated[Path, typer.Argument(metavar="MODEL.npz", help="What ccmtl fit --output wrote.")]
Output = Annotated[
    Path | None,
    typer.Option(metavar="FILE.csv", help="Write here, not to standard output.", callback=_ending(".csv")),
]


def fit(
    fusion_strength: Annotated[
        str,
        typer.Option(
            metavar="NUMBER|NUMBER,…|auto",
            help="λ, 0 or from 1e-100 to 1e100: how strongly similar tasks are pulled together; of "
            "several, or of 21 with auto, the best in cross-validation.",
        ),
    ],
    file: Annotated[
        Path | None,
        typer.Argument(metavar="FILE", help="CSV, Parquet or Arrow, one sample or value per row."),
    ] = None,
    task: Annotated[
        str | None,
        typer.Option(
            metavar="COL", help="Column with the id of each row's task; of series, unique_id by default."
        ),
    ] = None,
    target: Annotated[
        str | None, typer.Option(metavar="COL", help="Column to predict; of series, y by default.")
    ] = None,
    features: Annotated[
        str | None,
        typer.Option(metavar="COL,COL,…", help="Columns to predict from; quote a name that has a comma."),
    ] = None,
    lags: Annotated[
        int | None,
        typer.Option(
            metavar="N",
            min=1,
            help="FILE holds series: predict each value from so many before it, not from --features.",
        ),
    ] = None,
    time: Annotated[
        str | None,
        typer.Option(metavar="COL", help="Of series: column with the time of each value; ds by default."),
    ] = None,
    frequency: Annotated[
        Every | None, typer.Option(metavar="PERIOD", help=f"Of series: {EVERY_HELP}")
    ] = None,
    ds_format: Annotated[
        str | None,
        typer.Option(
            metavar="PATTERN", help="Of series: how times are written, as %d/%m/%Y; ISO 8601 by default."
        ),
    ] = None,
    aggregation: Annotated[
        Aggregation | None,
        typer.Option(help="Of series: what several rows of a period become; by default they are refused."),
    ] = None,
    fill: Annotated[
        Fill | None,
        typer.Option(
            show_default="none", help="Of series: what stands for a period without a row, once it has begun."
        ),
    ] = None,
    accept_gaps: Annotated[
        bool,
        typer.Option(
            "--accept-gaps", metavar="", help="Of series: fit although gaps leave out most of the values."
        ),
    ] = False,
    statistics: Annotated[
        Path | None,
        typer.Option(
            metavar="FILE", help="In place of samples: the result of a query of ccmtl statistics-sql."
        ),
    ] = None,
    folds: Annotated[
        Folds | None,
        typer.Option(
            show_default="random; of series, rolling",
            help="How one of several strengths is chosen; contiguous and rolling go by time, or by the order "
            "of rows where none is known.",
        ),
    ] = None,
    n_folds: Annotated[
        int | None,
        typer.Option(
            min=1, show_default=str(DEFAULT_FOLDS), help="Parts that are predicted from the others."
        ),
    ] = None,
    rule: Annotated[
        Rule | None,
        typer.Option(
            show_default="best",
            help="The strength of least error, or the largest within one standard error of it.",
        ),
    ] = None,
    n_neighbors: Annotated[
        int, typer.Option(metavar="N", min=1, help="Neighbours of each task in the graph of similar tasks.")
    ] = 10,
    fit_intercept: Annotated[
        bool,
        typer.Option(
            "--fit-intercept",
            metavar="",
            help="Give each task an intercept of its own, which the fusion leaves alone.",
        ),
    ] = False,
    loss_scaling: Annotated[
        LossScaling,
        typer.Option(
            help="What each task's loss is divided by: nothing, or the standard deviation of its y, so that "
            "tasks of large numbers do not decide alone."
        ),
    ] = "none",
    metric: Annotated[
        Metric,
        typer.Option(
            help='How far weights are from each other, in the graph and in the penalty. "mahalanobis": in '
            "units of the covariance that the tasks' weights have, so that features of any scale, and any "
            "mixture of them, count by how much they vary between tasks."
        ),
    ] = "euclidean",
    tolerance: Annotated[
        float, typer.Option(help="Certified relative gap to reach.", callback=_above_zero)
    ] = 1e-4,
    solver: Annotated[Solver, typer.Option(help="auto takes the one that suits the data.")] = "auto",
    as_json: Annotated[
        bool, typer.Option("--json", metavar="", help="Print one JSON object instead of a table.")
    ] = False,
    output: Annotated[
        Path | None, typer.Option(metavar="FILE.npz", help="Write the model here.", callback=_ending(".npz"))
    ] = None,
) -> None:
    """Fit one linear model per task from a file, similar tasks pulled together; needs no server.

    Of series (--lags, --frequency) it learns to predict a period from those before it; ccmtl forecast goes
    on from there, as ccmtl predict does with models of samples.

    FILE is read in pieces and may be larger than memory, unless it holds series or a strength is to be
    chosen: its rows then must fit. (A database can make the statistics of the folds instead: ccmtl
    statistics-sql --folds.)

    Exit codes: 0 the certified gap is within the tolerance; 1 the file or its data cannot be used, or the
    model cannot be written; 2 a wrong argument; 3 a model was fitted (and written), but its gap is above
    the tolerance.
    """
    source = Source(
        file, statistics, task, target, features, lags, time, frequency, ds_format, fill, aggregation,
        accept_gaps,
    )  # fmt: skip
    source.refuse_contradictions()
    strength = Strength.parsed(fusion_strength, folds, n_folds, rule)
    choices = {
        "fit_intercept": fit_intercept,
        "loss_scaling": loss_scaling,
        "metric": metric,
        "n_neighbors": n_neighbors,
    }
    _run("fit_model.fit_model", source, strength, choices, tolerance, solver, as_json, output)


def predict(
    model: Model,
    file: Annotated[
        Path, typer.Argument(metavar="FILE", help="CSV, Parquet or Arrow, one row for each prediction.")
    ],
    task: Annotated[
        str | None,
        typer.Option(
            metavar="COL", show_default="that of the fit", help="Column with the id of each row's task."
        ),
    ] = None,
    output: Output = None,
) -> None:
    """Predict each row of a file with a model that ccmtl fit wrote.

    FILE has the columns that the model was fitted with, in any order. The answer is CSV, in the order of
    FILE's rows: the task and yhat.

    Exit codes: 0 all rows are predicted; 1 a file, a cell or a task cannot be used, and nothing is written;
    2 a wrong argument.
    """
    _refuse_swapped(model, file)
    _run("use_model.predict", model, file, task, output)


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
        "--ds-format", metavar="PATTERN", help="How times are written, as %d/%m/%Y; ISO 8601 by default."
    ),
]
OfSeveral = Annotated[
    Aggregation | None,
    typer.Option("--aggregation", help="What several rows of a period become; by default they are refused."),
]
Gaps = Annotated[
    Fill | None,
    typer.Option(
        "--fill", show_default="none", help="What stands for a period without a row, once it has begun."
    ),
]


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
        typer.Argument(
            metavar="FILE", show_default=False, help="The history: CSV, Parquet or Arrow, one value a row."
        ),
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
    aggregation: OfSeveral = None,
    fill: Gaps = None,
    output: Output = None,
) -> None:
    """Forecast each series of a file, by itself or with a model that ccmtl fit --lags wrote.

    By itself (--frequency), the features of the forecast and how strongly to fuse are chosen on the history;
    the answer is CSV: unique_id, ds, yhat, and for each --level as yhat-lo-80 and yhat-hi-80.

    With a model, frequency, columns, aggregation and filling are those of the fit, and the answer is
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
        columns |= {"frequency": frequency, "ds_format": ds_format, "aggregation": aggregation}
        _run("forecast_file.forecast_file", model, columns, fill or "none", horizon, _numbers(level), output)
        return
    _refuse_swapped(model, file)
    of_fit = {"--frequency": frequency, "--level": level or None, "--ds-format": ds_format}
    of_fit |= {"--aggregation": aggregation, "--fill": fill}
    if given := [name for name, value in of_fit.items() if value is not None]:
        raise typer.BadParameter(f"{', '.join(given)}: for forecasts without a model; it has its own")
    _run("use_model.forecast", model, file, horizon, columns, output)


def backtest(
    file: Annotated[
        Path, typer.Argument(metavar="FILE", help="The history: CSV, Parquet or Arrow, one value a row.")
    ],
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
    aggregation: OfSeveral = None,
    fill: Gaps = None,
    as_json: Annotated[
        bool, typer.Option("--json", metavar="", help="Print one JSON object instead of tables.")
    ] = False,
) -> None:
    """Forecast the last windows of a file from what lay before, and say who is nearest.

    Beside the model stand always zero, the value a season before, the mean of the last 8 values, and on the
    same rows one model for all series, each series alone, and each shrunk to the one.

    Exit codes: 0 there is a verdict; 1 a file or a cell cannot be used; 2 a wrong argument.
    """
    columns = {"unique_id": task, "ds": time, "y": target, "frequency": frequency}
    columns |= {"ds_format": ds_format, "aggregation": aggregation}
    asked = horizon, n_origins, _numbers(level)
    _run("forecast_file.backtest_file", file, columns, fill or "none", *asked, as_json)


def statistics_sql(
    table: Annotated[str, typer.Option(metavar="NAME", help="Table, as in shop.sales; capitals count.")],
    task: Annotated[str, typer.Option(metavar="COL", help="Column with the id of each row's task.")],
    target: Annotated[str, typer.Option(metavar="COL", help="Column to predict.")],
    features: Annotated[
        str, typer.Option(metavar="COL,COL,…", help="Columns to predict from; quote a name that has a comma.")
    ],
    dialect: Annotated[Dialect, typer.Option(help="Whose SQL.")],
    where: Annotated[
        str | None, typer.Option(metavar="CONDITION", help="Which rows, in the same SQL.")
    ] = None,
    time: Annotated[
        str | None, typer.Option(metavar="COL", help="Dates or numbers that split rows into folds.")
    ] = None,
    folds: Annotated[
        str,
        typer.Option(metavar="CUT,CUT,…", help="Where folds begin after the first: rising dates or numbers."),
    ] = "",
) -> None:
    """Write the query that computes statistics for training in your own database.

    Run it there, store its result as CSV, Parquet or Arrow, and train from that: ccmtl fit --statistics FILE.
    Rows with NULL in a column that is used are counted in n_null, and training refuses them.
    """
    _run("statistics_sql.print_sql", table, task, target, features, dialect, where, time, folds)


def _refuse_swapped(model: Path, file: Path) -> None:
    if file.suffix == ".npz" and model.suffix != ".npz":
        raise typer.BadParameter(f"the model comes first, then the rows: {file} {model}")


def _run(place: str, *arguments: Any) -> None:
    """Import what the command does, and do it."""
    module, function = place.split(".")
    getattr(import_module(f"app.commands.{module}"), function)(*arguments)

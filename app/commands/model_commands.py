"""``ccmtl fit``, ``predict`` and ``statistics-sql``: options; none needs a server.

What they run imports the library, which takes seconds: help and a wrong command line do not wait for it.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module
from pathlib import Path
from typing import Annotated, Any

import typer

from app.commands.file_options import Stated, told_of_file, told_of_series
from app.commands.options import (
    DEFAULT_FOLDS,
    Dialect,
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


@told_of_series("Of series: ")
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
        typer.Argument(metavar="FILE", help="A file of samples, one a row, or of series."),
    ] = None,
    task: Annotated[
        str | None,
        typer.Option(metavar="COL", help="Of samples: column with the id of each row's task."),
    ] = None,
    target: Annotated[str | None, typer.Option(metavar="COL", help="Of samples: column to predict.")] = None,
    features: Annotated[
        str | None,
        typer.Option(
            metavar="COL,COL,…", help="Of samples: columns to predict from; quote a name that has a comma."
        ),
    ] = None,
    lags: Annotated[
        int | None,
        typer.Option(
            metavar="N",
            min=1,
            help="FILE holds series: predict each value from so many before it, not from --features.",
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
            metavar="FILE",
            help="In place of samples: the result of a query of ccmtl statistics-sql. It names its columns "
            "and has its folds: goes without FILE, --n-folds and the options of samples, series and files.",
        ),
    ] = None,
    folds: Annotated[
        Folds | None,
        typer.Option(
            show_default="random; of series, rolling",
            help="How one of several strengths (or auto) is chosen; contiguous and rolling go by time, or by "
            "the order of rows where none is known.",
        ),
    ] = None,
    n_folds: Annotated[
        int | None,
        typer.Option(
            min=1,
            show_default=str(DEFAULT_FOLDS),
            help="Of several strengths: parts that are predicted from the others.",
        ),
    ] = None,
    rule: Annotated[
        Rule | None,
        typer.Option(
            show_default="best",
            help="Of several strengths: that of least error, or the largest within one standard error of it.",
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
    *,
    stated: Stated,
) -> None:
    """Fit one linear model per task from a file, similar tasks pulled together; needs no server.

    Of series (--lags) it learns to predict a period from those before it; ccmtl forecast goes
    on from there, as ccmtl predict does with models of samples.

    FILE is read in pieces and may be larger than memory, unless it holds series or a strength is to be
    chosen: its rows then must fit. (A database can make the statistics of the folds instead: ccmtl
    statistics-sql --folds.)

    Exit codes: 0 the certified gap is within the tolerance; 1 the file or its data cannot be used, or the
    model cannot be written; 2 a wrong argument; 3 a model was fitted (and written), but its gap is above
    the tolerance.
    """
    source = Source(file, statistics, task, target, features, lags, accept_gaps, stated)
    source.refuse_contradictions()
    strength = Strength.parsed(fusion_strength, folds, n_folds, rule)
    choices = {
        "fit_intercept": fit_intercept,
        "loss_scaling": loss_scaling,
        "metric": metric,
        "n_neighbors": n_neighbors,
    }
    run("fit_model.fit_model", source, strength, choices, tolerance, solver, as_json, output)


@told_of_file
def predict(
    model: Model,
    file: Annotated[Path, typer.Argument(metavar="FILE", help="A file with a row for each prediction.")],
    task: Annotated[
        str | None,
        typer.Option(
            metavar="COL", show_default="that of the fit", help="Column with the id of each row's task."
        ),
    ] = None,
    output: Output = None,
    *,
    written: Mapping[str, Any],
) -> None:
    """Predict each row of a file with a model that ccmtl fit wrote.

    FILE has the columns that the model was fitted with, in any order. The answer is CSV, in the order of
    FILE's rows: the task and yhat.

    Exit codes: 0 all rows are predicted; 1 a file, a cell or a task cannot be used, and nothing is written;
    2 a wrong argument.
    """
    refuse_swapped(model, file)
    run("use_model.predict", model, file, task, output, written)


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
    run("statistics_sql.print_sql", table, task, target, features, dialect, where, time, folds)


def refuse_swapped(model: Path, file: Path) -> None:
    """Refuse a model and a file in the wrong order."""
    if file.suffix == ".npz" and model.suffix != ".npz":
        raise typer.BadParameter(f"the model comes first, then the rows: {file} {model}")


def run(place: str, *arguments: Any) -> None:
    """Import what the command does, and do it."""
    module, function = place.split(".")
    getattr(import_module(f"app.commands.{module}"), function)(*arguments)

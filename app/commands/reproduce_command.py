"""``ccmtl reproduce``: its options. What it runs imports the library, which help does not wait for."""

from __future__ import annotations

from importlib import import_module
from pathlib import Path
from typing import Annotated, Literal

import typer

from app.commands.lists import listed

Experiment = Literal[
    "syn", "school", "sales", "ta-feng", "school-protocols", "sales-protocols", "ta-feng-protocols",
    "scalesyn", "admm", "table",
]  # fmt: skip


def reproduce(
    experiment: Annotated[
        Experiment,
        typer.Argument(
            help="The paper's tables, details of their protocol (…-protocols), its timing (scalesyn), its "
            "comparison of solvers (admm), or a table of your own, such as boardings of bus stops."
        ),
    ],
    data: Annotated[
        Path, typer.Option(metavar="DIR|FILE", help="Where the data are; for table the CSV file itself.")
    ] = Path("data"),
    columns: Annotated[
        str | None,
        typer.Option(
            metavar="COL,COL,COL",
            help="Of table: the columns of task, time and count, a row for each. Times are ISO 8601 "
            "(2025-01-31), numbers, or texts with zeros before them (W01 … W10).",
        ),
    ] = None,
    methods: Annotated[
        str | None, typer.Option(metavar="NAME,…", show_default="all", help="Which methods to compare.")
    ] = None,
    settings: Annotated[
        str | None,
        typer.Option(metavar="TEXT;…", show_default="all", help='Which columns, as in "20 %;30 %".'),
    ] = None,
    repeats: Annotated[int, typer.Option(min=1, help="Random splits, or random sets, of each setting.")] = 5,
    limit: Annotated[
        float, typer.Option(min=0.001, max=1e8, help="Processor seconds after which a method is stopped.")
    ] = 3600.0,
    quick: Annotated[
        bool,
        typer.Option("--quick", metavar="", help="Minutes: 2 repeats, few parameters, small sizes, 120 s."),
    ] = False,
    output: Annotated[
        Path, typer.Option(metavar="DIR", help="Folder of results; a run that was ended goes on from them.")
    ] = Path("reproduced"),
    as_json: Annotated[
        bool, typer.Option("--json", metavar="", help="Print one JSON object instead of tables.")
    ] = False,
) -> None:
    """Run an experiment of the paper: CCMTL beside its rivals, with tests, times and a figure.

    Each method's parameters are searched by five folds of the rows for training; its error is that on the
    rows held out. Bold is the best, and what a paired t-test at 0.05 does not tell from it. The extra
    "reproduce" brings what is needed: pip install 'ccmtl[reproduce]'.

    Exit codes: 0 tables were printed; 1 a file or library is missing or of no use; 2 a wrong argument.
    """
    try:
        run = import_module("app.commands.reproduce_tables").run
    except ImportError as error:
        typer.echo(f"{error}; the extra brings it: pip install 'ccmtl[reproduce]'", err=True)
        raise typer.Exit(1) from None
    names = None if methods is None else listed(methods)
    chosen = None if settings is None else [setting.strip() for setting in settings.split(";")]
    counts = None if columns is None else listed(columns)
    run(experiment, data, counts, names, chosen, repeats, limit, quick, output, as_json)

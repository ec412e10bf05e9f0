"""``ccmtl statistics-sql``: print the query that computes statistics; nothing is run."""

from __future__ import annotations

from typing import Annotated

import typer

from app.commands.name_list import listed
from app.commands.statistics_sql import Dialect, statistics_sql
from app.commands.unusable import print_answer
from ccmtl_core import ParameterError

Table = Annotated[str, typer.Option(metavar="NAME", help="Table, as in shop.sales; capitals count.")]
Task = Annotated[str, typer.Option(metavar="COL", help="Column with the id of each row's task.")]
Target = Annotated[str, typer.Option(metavar="COL", help="Column to predict.")]
Features = Annotated[
    str, typer.Option(metavar="COL,COL,…", help="Columns to predict from; quote a name that has a comma.")
]
Spoken = Annotated[Dialect, typer.Option(help="Whose SQL.")]
Where = Annotated[str | None, typer.Option(metavar="CONDITION", help="Which rows, in the same SQL.")]
Time = Annotated[str | None, typer.Option(metavar="COL", help="Dates or numbers that split rows into folds.")]
Folds = Annotated[
    str, typer.Option(metavar="CUT,CUT,…", help="Where folds begin after the first: rising dates or numbers.")
]


def statistics_sql_command(
    table: Table,
    task: Task,
    target: Target,
    features: Features,
    dialect: Spoken,
    where: Where = None,
    time: Time = None,
    folds: Folds = "",
) -> None:
    """Write the query that computes statistics for training in your own database.

    Run it there, store its result as CSV, Parquet or Arrow, and train from that: ccmtl fit --statistics FILE.
    Rows with NULL in a column that is used are counted in n_null, and training refuses them.
    """
    try:
        query = statistics_sql(
            table=table,
            task=task,
            target=target,
            features=listed(features),
            dialect=dialect,
            where=where,
            time=time,
            cuts=listed(folds),
        )
    except ParameterError as error:
        typer.echo(str(error), err=True)
        raise typer.Exit(1) from None
    print_answer(query)

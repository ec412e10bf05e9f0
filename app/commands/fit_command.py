"""``ccmtl fit``: train a model from a file, without a server, and write it with its report.

The file holds samples, one a row; with ``--lags`` the values of series; or with ``--statistics`` what a
database made of samples.

Standard output carries the report alone (a table, or one JSON object with ``--json``); progress and
messages go to standard error.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.progress import BarColumn, TextColumn, TimeElapsedColumn
from rich.progress import Progress as ProgressBar

from app.commands.fit_data import Every, Fill, FitData, Source
from app.commands.strength_option import Strength
from app.commands.unusable import explaining, print_answer
from app.reports import described, in_words, rival_notes
from ccmtl_core import FitResult, ModelChoices, Progress, SolveStatus
from ccmtl_core.base.file_path import checked_output
from ccmtl_core.choices.model_choices import LossScaling, Metric, choice_texts
from ccmtl_core.fitting.scoring import Rule
from ccmtl_core.fitting.selection import DEFAULT_FOLDS, Folds
from ccmtl_core.kernels.compiled import compilation_told
from ccmtl_core.solver.fusion_solver import SOLVERS
from ccmtl_core.tables.cell_hints import spreadsheet_ids, spreadsheet_warning

_DEFAULT, _TEXTS = ModelChoices(), choice_texts()


GAP_NOT_REACHED = 3
"""The exit code of a fit whose gap is above the tolerance."""


def fit_command(
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
            help="FILE holds series: predict each value from so many before it, in place of --features."
        ),
    ] = None,
    time: Annotated[
        str | None,
        typer.Option(metavar="COL", help="Of series: column with the time of each value; ds by default."),
    ] = None,
    frequency: Annotated[
        Every | None, typer.Option(help="Of series: an hour, a day, a week or a month.")
    ] = None,
    ds_format: Annotated[
        str | None,
        typer.Option(
            metavar="PATTERN", help="Of series: how times are written, as %d/%m/%Y; ISO 8601 by default."
        ),
    ] = None,
    fill: Annotated[
        Fill | None,
        typer.Option(
            show_default="none",
            help="Of series: what stands for a period without a row, once it has begun.",
        ),
    ] = None,
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
        typer.Option(show_default=str(DEFAULT_FOLDS), help="Parts that are predicted from the others."),
    ] = None,
    rule: Annotated[
        Rule | None,
        typer.Option(
            show_default="best",
            help="The strength of least error, or the largest within one standard error of it.",
        ),
    ] = None,
    n_neighbors: Annotated[int, typer.Option(help=_TEXTS["n_neighbors"])] = _DEFAULT.n_neighbors,
    fit_intercept: Annotated[
        bool, typer.Option("--fit-intercept", metavar="", help=_TEXTS["fit_intercept"])
    ] = _DEFAULT.fit_intercept,
    loss_scaling: Annotated[LossScaling, typer.Option(help=_TEXTS["loss_scaling"])] = _DEFAULT.loss_scaling,
    metric: Annotated[Metric, typer.Option(help=_TEXTS["metric"])] = _DEFAULT.metric,
    tolerance: Annotated[float, typer.Option(help="Certified relative gap to reach.")] = 1e-4,
    solver: Annotated[
        str, typer.Option(metavar="|".join(SOLVERS), help="auto takes the one that suits the data.")
    ] = "auto",
    as_json: Annotated[
        bool, typer.Option("--json", metavar="", help="Print one JSON object instead of a table.")
    ] = False,
    output: Annotated[Path | None, typer.Option(metavar="FILE.npz", help="Write the model here.")] = None,
) -> None:
    """Fit one linear model per task from a file, similar tasks pulled together; needs no server.

    Of series (--lags, --frequency) it learns to predict a period from those before it; ccmtl forecast goes
    on from there, as ccmtl predict does with models of samples.

    FILE is read in pieces and may be larger than memory, unless it holds series or a strength is to be
    chosen: its rows then must fit. (A database can make the statistics of the folds instead: ccmtl
    statistics-sql --folds.)

    Exit codes: 0 the certified gap is within the tolerance; 1 the file, its data or an argument cannot
    be used, or the model cannot be written; 2 wrong command line; 3 a model was fitted (and written),
    but its gap is above the tolerance.
    """
    messages = Console(stderr=True, highlight=False)
    source = Source(file, statistics, task, target, features, lags, time, frequency, ds_format, fill)
    source.refuse_contradictions()
    strength = Strength.parsed(fusion_strength, folds, n_folds, rule)
    with explaining(messages):
        choices = ModelChoices(fit_intercept, loss_scaling, metric, n_neighbors)
        if output is not None:
            checked_output(output)  # before the fit, not after it
        with _progress_bar(messages, tolerance) as show, compilation_told(_once(messages)):
            show(Progress("reading", 0, None, None, 0.0))
            data = source.read(by_fold=strength.is_chosen)
            result, selection = strength.fit(data, show, choices, tolerance=tolerance, solver=solver)
        if output is not None:
            data.with_origin(result.model).save(output)
    report = None if selection is None else described(selection)
    ids = spreadsheet_ids(result.model.task_ids)
    notes = [spreadsheet_warning(ids)] if ids else []
    notes += rival_notes(choices, {}, report, of_series=source.lags is not None)
    summary = _summary(data, result, output, notes, report)
    if as_json:
        print_answer(json.dumps(summary, ensure_ascii=False, allow_nan=False))
    else:
        print_answer(_table(summary))
    if result.report.status is not SolveStatus.CONVERGED:
        messages.print(result.report.advice, style="yellow", markup=False, soft_wrap=True)
        raise typer.Exit(GAP_NOT_REACHED)


def _once(console: Console) -> Callable[[bool], None]:
    """Say at the first compilation why the fit takes longer than the next one will."""
    said: list[bool] = []

    def tell(begins: bool) -> None:
        if not said:
            console.print("Compiling the numerical kernels for this kind of fit (once per machine)")
        said.append(begins)

    return tell


@contextmanager
def _progress_bar(console: Console, tolerance: float) -> Iterator[Callable[[Progress], None]]:
    """A bar that fills as the gap falls, on a terminal; nothing elsewhere."""
    columns = (TextColumn("{task.description:<10}"), BarColumn(), TextColumn("{task.fields[state]}"))
    with ProgressBar(
        *columns, TimeElapsedColumn(), console=console, transient=True, disable=not console.is_terminal
    ) as bar:
        line = bar.add_task("", total=None, state="")

        def show(progress: Progress) -> None:
            share = _share_done(progress.gap, tolerance)
            bar.update(
                line,
                description=progress.phase,
                total=None if share is None else 1.0,
                completed=share or 0.0,
                state=_state(progress),
            )

        yield show


def _share_done(gap: float | None, tolerance: float) -> float | None:
    """Digits of the gap that are reached, of those that are asked for."""
    if gap is None or not 0 < tolerance < 1:
        return None
    return min(1.0, max(0.0, math.log(min(max(gap, tolerance), 1.0)) / math.log(tolerance)))


def _state(progress: Progress) -> str:
    if progress.objective is None:
        return ""
    gap = "" if progress.gap is None else f", gap {progress.gap:.1e}"
    return f"round {progress.round}, objective {progress.objective:.6g}{gap}"


def _summary(
    data: FitData, result: FitResult, output: Path | None, notes: list[str], selection: dict[str, Any] | None
) -> dict[str, Any]:
    report = result.report
    return {
        "tasks": len(result.model.task_ids),
        "features": list(result.model.feature_names),
        "samples": data.n_samples,
        "edges": len(result.graph.edges),
        "status": report.status.value,
        "advice": report.advice,
        "notes": [*notes, *data.notes, *report.notes],
        "solver": report.solver,
        "objective": _finite(report.objective),
        "gap": _finite(report.gap),
        "tolerance": report.tolerance,
        "rounds": report.rounds,
        "cg_iterations": report.cg_iterations,
        "seconds": {phase: round(seconds, 6) for phase, seconds in report.seconds.items()},
        "model": None if output is None else str(output),
        "fusion_strength": result.fusion_strength,
        "selection": selection,
    }


def _finite(value: float) -> float | None:
    return value if math.isfinite(value) else None


def _table(summary: dict[str, Any]) -> str:
    """One line for each thing there is to say, names in one column and values in the other."""
    shown = {
        **summary,
        "features": ", ".join(summary["features"]),
        "notes": " ".join(summary["notes"]),
        "selection": None if summary["selection"] is None else in_words(summary["selection"]),
        "seconds": ", ".join(f"{phase} {seconds:.3f}" for phase, seconds in summary["seconds"].items()),
    }
    width = max(map(len, shown)) + 2
    lines = (
        f"{name.replace('_', ' '):<{width}}{value}"
        for name, value in shown.items()
        if value not in (None, "")
    )
    return "\n".join(lines)

"""``ccmtl fit``: train a model from a file, without a server, and write it with its report.

The file holds samples, one a row; with ``--lags`` the values of series; or with ``--statistics`` what a
database made of samples.

Standard output carries the report alone (a table, or one JSON object with ``--json``); progress and
messages go to standard error.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import typer
from rich.console import Console
from rich.progress import BarColumn, TextColumn, TimeElapsedColumn
from rich.progress import Progress as ProgressBar

from app.commands.fit_data import FitData, fitted, read
from app.commands.options import Source, Strength
from app.commands.printing import messages_console, print_answer, print_json
from app.commands.unusable import explaining
from app.reports import described, in_words, rival_notes
from ccmtl_core import FitResult, ModelChoices, Progress, SolveStatus
from ccmtl_core.base.file_path import checked_output
from ccmtl_core.choices.model_choices import ChoiceKeywords
from ccmtl_core.kernels.compiled import compilation_told
from ccmtl_core.tables.cell_hints import spreadsheet_ids, spreadsheet_warning

GAP_NOT_REACHED = 3
"""The exit code of a fit whose gap is above the tolerance."""


def fit_model(
    source: Source,
    strength: Strength,
    chosen: ChoiceKeywords,
    tolerance: float,
    solver: str,
    as_json: bool,
    output: Path | None,
) -> None:
    """Read, fit, write the model, and print the report; the exit code says how it ended."""
    messages = messages_console()
    with explaining(messages):
        choices = ModelChoices(**chosen)
        if output is not None:
            checked_output(output)  # before the fit, not after it
        with _progress_bar(messages, tolerance) as show, compilation_told(_once(messages)):
            show(Progress("reading", 0, None, None, 0.0))
            data = read(source, messages, by_fold=strength.is_chosen)
            result, selection = fitted(data, strength, choices, show, tolerance=tolerance, solver=solver)
        if output is not None:
            data.with_origin(result.model).save(output)
    report = None if selection is None else described(selection)
    ids = spreadsheet_ids(result.model.task_ids)
    notes = [spreadsheet_warning(ids)] if ids else []
    notes += rival_notes(choices, {}, report, of_series=source.lags is not None)
    summary = _summary(data, result, output, notes, report)
    if as_json:
        print_json(summary)
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

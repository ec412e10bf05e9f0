"""Run an experiment of the paper, show progress, and print, keep and draw what came out."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from app.commands.printing import messages_console, print_answer, print_exactly
from app.commands.unusable import explaining
from ccmtl_core import ParameterError
from ccmtl_core.base.near_matches import NearMatches
from ccmtl_core.reproduce import EXPERIMENTS, Cell, Experiment, Report, draw, run_cells, table_experiment

_QUICK_REPEATS, _QUICK_LIMIT, _QUICK_SIZES = 2, 120.0, 5


def run(
    name: str,
    data: Path,
    columns: Sequence[str] | None,
    methods: Sequence[str] | None,
    settings: Sequence[str] | None,
    repeats: int,
    limit: float,
    quick: bool,
    output: Path,
    as_json: bool,
) -> None:
    """Run what is not kept in ``output`` yet; print all, and write it there as Markdown, JSON and PNG."""
    messages = messages_console()
    with explaining(messages):
        experiment = _experiment(name, columns)
        offered = experiment.settings
        if quick:
            repeats, limit = min(repeats, _QUICK_REPEATS), min(limit, _QUICK_LIMIT)
            offered = offered[:_QUICK_SIZES] if experiment.measure == "seconds" else offered
        chosen_methods = _among(methods, tuple(experiment.rivals), "method")
        chosen_settings = _among(settings, offered, "setting")
        output.mkdir(parents=True, exist_ok=True)
        stem = f"{name}-quick" if quick else name
        with _shown(messages) as on_cell:
            cells = run_cells(
                experiment, output / f"{stem}.jsonl", folder=data, methods=chosen_methods,
                settings=chosen_settings, repeats=repeats, quick=quick, limit=limit, on_cell=on_cell,
            )  # fmt: skip
        report = Report(experiment, cells)
        tables, numbers = report.markdown(), json.dumps(report.to_dict(), ensure_ascii=False)
        (output / f"{stem}.md").write_text(tables + "\n", encoding="utf-8")
        (output / f"{stem}.json").write_text(numbers + "\n", encoding="utf-8")
        draw(report, output / f"{stem}.png")
    print_exactly(numbers) if as_json else print_answer(tables)
    messages.print(f"Kept as {output / stem}.jsonl, .md, .json and .png", style="dim", soft_wrap=True)


def _experiment(name: str, columns: Sequence[str] | None) -> Experiment:
    if (name == "table") is not (columns is not None):
        raise ParameterError("--columns and the experiment table go together")
    if columns is None:
        return EXPERIMENTS[name]
    if len(columns) != 3 or len(set(columns)) != 3:
        raise ParameterError(
            f"--columns must name three, all different: of task, time and count; not {', '.join(columns)}"
        )
    return table_experiment(*columns)


def _among(asked: Sequence[str] | None, known: Sequence[str], what: str) -> Sequence[str]:
    if asked is not None and not any(asked):
        raise ParameterError(
            f"--{what}s names no {what}: leave it out for all, or name some of {', '.join(known)}"
        )
    for name in asked or ():
        if name not in known:
            near = NearMatches(tuple(known)).find(name, limit=1)
            hint = f"did you mean {near[0]}?" if near else f"there are {', '.join(known)}"
            raise ParameterError(f"there is no {what} {name!r}; {hint}")
    return tuple(known) if asked is None else [name for name in known if name in asked]


@contextmanager
def _shown(messages: Console) -> Iterator[Callable[[int, int, Cell | None], None]]:
    """Show how many cells are done: a bar on a terminal, elsewhere a line for each that was just run."""
    columns = TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn()
    with Progress(*columns, console=messages, disable=not messages.is_terminal) as progress:
        bar = progress.add_task("reading")

        def on_cell(done: int, total: int, cell: Cell | None) -> None:
            what = "reading" if cell is None else f"{cell.method}, {cell.setting}, repeat {cell.repeat + 1}"
            progress.update(bar, completed=done, total=total, description=what)
            if not messages.is_terminal and cell is not None:
                found = "stopped" if cell.value is None else f"{cell.value:.6g}"
                messages.print(f"{done}/{total}: {what}: {found}", soft_wrap=True)

        yield on_cell

"""``ccmtl inspect FILE``: print the report of a file of series, in tables or as JSON; no server."""

from __future__ import annotations

import io
from pathlib import Path

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from app.commands.file_options import Stated, option
from app.commands.guard import refuse_undecodable
from app.commands.history import accounted
from app.commands.option_names import in_command
from app.commands.printing import Terminal, escaped, is_terminal, messages_console, print_exactly, print_json
from app.commands.unusable import explaining
from ccmtl_core.base.display import counted
from ccmtl_core.inspection import Finding, InspectionReport, Policies, inspect
from ccmtl_core.tables import ReadOptions

_COLOURS = {"error": "red", "warning": "yellow", "note": "cyan"}
_WIDTH = 110


def inspect_file(file: Path, stated: Stated, as_json: bool) -> None:
    """Print the report; exit with 1 if the file cannot be used as it is."""
    with explaining(messages_console()):
        refuse_undecodable(file)
        policies, dialect = Policies(**stated.policies), ReadOptions(**stated.written)
        report = inspect(file, **stated.columns, policies=policies, dialect=dialect).worded(in_command)
    if as_json:
        print_json(report.to_dict())
    else:
        print_exactly(_in_words(report))
    if report.panel is None:
        raise typer.Exit(1)


def _in_words(report: InspectionReport) -> str:
    """The report in tables, coloured on a terminal."""
    written, is_shown = io.StringIO(), is_terminal()
    console = Terminal(
        file=written, force_terminal=is_shown, width=None if is_shown else _WIDTH, highlight=False
    )
    if report.traits:
        known = _plain("understood as", "", "because")
        for name, trait in report.traits.items():
            value = "tab" if trait.value == "\t" else escaped(str(trait.value))
            known.add_row(name, Text(value, "bold"), trait.evidence)
        console.print(known)
    console.print()
    rows = Text(counted(report.accounts.rows_read, "row"), "bold")
    console.print(rows + Text(f": {accounted(report)}", "not bold"), soft_wrap=True)
    if report.values:
        span = f"{counted(report.periods, 'period')} from {report.first} to {report.last}"
        console.print(f"{report.series:,} series, {counted(report.values, 'value')}, {span}")
    for finding in report.findings:
        console.print()
        _print(console, finding)
    console.print()
    if report.panel is None:
        n = len(report.errors)
        are = "is an error" if n == 1 else "are errors"
        console.print(Text(f"Not usable yet: {n} of these {are}, in red or called so.", "red"))
    else:
        console.print(Text("Usable.", "green"))
    return written.getvalue()


def _print(console: Console, finding: Finding) -> None:
    head = Text(f"{finding.severity} ", _COLOURS[finding.severity])
    decided = "" if finding.policy is None else f", decided by {option(finding.policy)}"
    count = counted(finding.count, finding.unit.removesuffix("s"))
    count = f"{finding.count:,} {finding.unit}" if finding.unit in ("series", "table") else count
    console.print(head + Text(f"{finding.code} ", "bold") + Text(f"{count}{decided}"))
    console.print(Text(f"  {escaped(finding.message)}"), soft_wrap=False)
    if any(sample.row or sample.unique_id for sample in finding.samples):
        of_files = any(sample.file for sample in finding.samples)
        samples = _plain("", "row", "unique_id", "ds", "value", *(["file"] if of_files else []))
        for sample in finding.samples:
            cells = [
                sample.row,
                sample.unique_id,
                sample.ds,
                sample.value,
                *([sample.file] if of_files else []),
            ]
            samples.add_row("", *("" if cell is None else Text(escaped(str(cell))) for cell in cells))
        console.print(samples)


def _plain(*columns: str) -> Table:
    """A table without lines."""
    table = Table(box=None, pad_edge=False, header_style="dim")
    for column in columns:
        table.add_column(column, overflow="fold")
    return table

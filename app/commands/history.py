"""Read the series of a file as they are stated, and say what was found, repaired and left out."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from rich.console import Console

from app.commands.file_options import COLUMNS, Stated
from app.commands.guard import refuse_undecodable
from app.commands.option_names import in_command, stated_as
from app.reading.stated import OF_SHAPE, OF_TEXT
from ccmtl_core.base.display import counted
from ccmtl_core.forecasting import SeriesTable, read_series_table
from ccmtl_core.inspection import InspectionReport, Policies
from ccmtl_core.tables import ReadOptions

_USUAL = {("ds_format", "ISO 8601"), ("decimal", "."), ("delimiter", ","), ("encoding", "utf-8"),
          ("header_row", "1"), ("thousands", "none")}  # fmt: skip
"""What need not be said of how a file is written."""


def read_history(
    file: Path,
    stated: Stated,
    messages: Console,
    *,
    future: Sequence[str] = (),
    past: Sequence[str] = (),
    static: Sequence[str] = (),
) -> SeriesTable:
    """Read the file, and tell what was found in it, all warnings included."""
    refuse_undecodable(file)
    table = read_series_table(
        file,
        **stated.columns,
        policies=Policies(**stated.policies),
        dialect=ReadOptions(**stated.written),
        future=future,
        past=past,
        static=static,
    )
    assert table.report is not None
    for line in _told(table.report, has_columns=bool(future or past or static)):
        messages.print(line, markup=False, soft_wrap=True)
    forecast_from_like = {"empty_series"} if static else set()
    for finding in table.report.worded(in_command).findings:
        if finding.severity == "warning" and finding.code not in forecast_from_like:
            messages.print(f"Warning {finding}", style="yellow", markup=False, soft_wrap=True)
    return table


def accounted(report: InspectionReport) -> str:
    """Return what became of the rows, and what policies changed and added."""
    accounts = report.accounts
    parts = [f"{accounts.rows_used:,} used", f"{accounts.rows_merged:,} merged"]
    parts += [f"{n:,} not used ({code})" for code, n in accounts.rows_dropped.items()]
    parts += [f"{counted(n, 'value')} changed ({policy})" for policy, n in accounts.values_changed.items()]
    parts += [f"{counted(n, 'value')} added ({policy})" for policy, n in accounts.values_added.items()]
    return ", ".join(parts)


def _told(report: InspectionReport, *, has_columns: bool) -> Iterator[str]:
    """Say what of the file was guessed, and what policies did.

    Where columns stand beside the values (``has_columns``), rows without one are used for these.
    """
    if found := _found(report):
        yield f"Understood as if stated: {found}"
    accounts = report.accounts
    n_used = accounts.rows_used + (accounts.rows_dropped.get("empty_number", 0) if has_columns else 0)
    if n_used < accounts.rows_read or accounts.values_changed or accounts.values_added:
        yield f"{counted(accounts.rows_read, 'row')}: {accounted(report)}"


def _found(report: InspectionReport) -> str:
    """What was guessed, as the options that would state it."""
    guessed = [
        (name, "wide" if name == "shape" else str(trait.value))
        for name, trait in report.traits.items()
        if trait.origin == "guessed" and name in COLUMNS | OF_TEXT | OF_SHAPE
    ]
    told = [(name, value) for name, value in guessed if (name, value) not in _USUAL and name != value]
    return " ".join(stated_as(name, value) for name, value in told)

"""Print what sections measured: tables for people, or one JSON object for programs."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from rich.console import Console
from rich.markup import escape
from rich.table import Table

Row = Mapping[str, Any]


@dataclass(frozen=True)
class Bar:
    """What a figure must not fall below, or not exceed."""

    what: str
    measured: float
    limit: float
    at_least: bool = False

    @property
    def met(self) -> bool:
        """Whether the figure holds; one that is not a number does not."""
        return self.measured >= self.limit if self.at_least else self.measured <= self.limit

    def __str__(self) -> str:
        return f"{self.what}: {_text(self.measured)}, {'≥' if self.at_least else '≤'} {_text(self.limit)}"


@dataclass(frozen=True)
class Section:
    """Tables by title, the bars they are held to, and remarks; or why there are none."""

    tables: Mapping[str, Sequence[Row]] = field(default_factory=dict)
    bars: Sequence[Bar] = ()
    notes: Sequence[str] = ()
    skipped: str | None = None


@dataclass(frozen=True)
class Measured:
    """A section with its name, how long it took, and the load before and after."""

    name: str
    section: Section
    wall_seconds: float
    load: tuple[list[float], list[float]]


def step(text: str) -> None:
    """Say on standard error what is measured now; a measurement may take minutes."""
    Console(stderr=True, highlight=False).print(f"{text} ...", markup=False, soft_wrap=True)


def print_json(machine: Row, sections: Sequence[Measured]) -> None:
    """Print everything as one object."""
    documents = {
        measured.name: {
            **vars(measured.section),
            "bars": [{**vars(bar), "met": bar.met} for bar in measured.section.bars],
            "wall_seconds": measured.wall_seconds,
            "load": measured.load,
        }
        for measured in sections
    }
    print(json.dumps({"machine": machine, "sections": documents, "missed": missed(sections)}))


def print_tables(machine: Row, sections: Sequence[Measured]) -> None:
    """Print tables, bars and remarks."""
    console = Console(highlight=False, width=None if Console().is_terminal else 160)
    console.print("; ".join(f"{name.replace('_', ' ')}: {value}" for name, value in machine.items()))
    console.print("Seconds are processor seconds of one core; wall seconds are what the clock said.")
    for measured in sections:
        section, (before, after) = measured.section, measured.load
        console.print(f"\n[bold]{measured.name}[/] ({measured.wall_seconds:.0f} s, load {before} to {after})")
        if section.skipped:
            console.print(f"skipped: {escape(section.skipped)}")
        for title, rows in section.tables.items():
            console.print(_table(title, rows))
        for note in section.notes:
            console.print(escape(note))
        for bar in section.bars:
            console.print("[green]met[/]   " if bar.met else "[red]missed[/]", escape(str(bar)))


def missed(sections: Sequence[Measured]) -> list[str]:
    """Return the bars that do not hold, in words."""
    return [f"{m.name}: {bar}" for m in sections for bar in m.section.bars if not bar.met]


def _table(title: str, rows: Sequence[Row]) -> Table:
    table = Table(title=escape(title), title_justify="left")
    for name in rows[0]:
        is_text = all(isinstance(row[name], str) for row in rows)
        table.add_column(escape(name), justify="left" if is_text else "right")
    for row in rows:
        table.add_row(*(escape(_text(value)) for value in row.values()))
    return table


def _text(value: Any) -> str:
    if value is None:
        return "-"
    if not isinstance(value, float):
        return str(value)
    if value != 0 and not 1e-2 <= abs(value) < 1e5:
        return f"{value:.2e}" if abs(value) < 1 else f"{value:.8g}"
    return f"{value:.3g}" if abs(value) < 100 else f"{value:.0f}"

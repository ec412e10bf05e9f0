"""Read the rows of a table of series: which columns hold what, how times are written, what a period is."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from ccmtl_core.base.display import option
from ccmtl_core.inspection.column_choice import choose_columns
from ccmtl_core.inspection.frequency import infer_frequency
from ccmtl_core.inspection.report import Trait
from ccmtl_core.series.calendar import Frequency
from ccmtl_core.tables.cells import Cells, read_cells
from ccmtl_core.tables.dates.column_format import column_format
from ccmtl_core.tables.dates.doubts import DatesFound
from ccmtl_core.tables.faults import FaultList
from ccmtl_core.tables.header import Kind, Role
from ccmtl_core.tables.table import Table


@dataclass(frozen=True)
class SeriesRows:
    """The rows of a table of series, and how they were understood."""

    table: Table
    cells: Cells
    dates: DatesFound
    frequency: Frequency | None
    """None where it was not stated, and the times do not tell."""
    traits: dict[str, Trait]

    @property
    def unread(self) -> dict[str, int]:
        """How many rows of the table were not read, by the code that accounts for them."""
        n_faulty = self.table.n_rows - self.cells.frame.height - self.table.n_skipped
        return ({"faulty_rows": n_faulty} if n_faulty else {}) | self.table.n_left_out


def read_rows(
    table: Table,
    stated: Mapping[str, str | None],
    faults: FaultList,
    *,
    ds_format: str | None = None,
    frequency: Frequency | None = None,
    missing: str = "error",
    beside: Sequence[Role] = (),
) -> SeriesRows:
    """Read the rows of a table with one value a row; find the columns and the frequency not stated.

    Parameters
    ----------
    table : Table
        Opened.
    stated : mapping
        The names of the columns ``unique_id``, ``ds`` and ``y``; None for those that are to be found.
    faults : FaultList
        Takes what is wrong with cells.
    ds_format : str, optional
        How times are written; without it the whole column decides.
    frequency : Frequency, optional
        What a period is; inferred from the times where not stated.
    missing : {"error", "absent"}
        Whether a row without a value is faulty.
    beside : sequence of Role
        More columns to read.

    Returns
    -------
    SeriesRows

    Raises
    ------
    TableError
        A column is missing or cannot be told, or no row is left.
    """
    others = [role.column for role in beside]
    traits = dict(choose_columns(table, stated, faults, others, ds_format or table.ds_format).traits)
    if len(traits) < len(stated):
        raise faults.refusal()
    columns = {role: str(trait.value) for role, trait in traits.items()}
    number = Kind.NUMBER if missing == "error" else Kind.OPTIONAL
    roles = [
        Role("unique_id", columns["unique_id"], Kind.ID),
        Role("y", columns["y"], number, f"write one, or choose {option('missing', 'absent')}"),
        Role("ds", columns["ds"], Kind.TIME),
        *beside,
    ]
    in_utc = frequency is Frequency.HOUR
    table, formats, dates = column_format(table, columns["ds"], ds_format, faults, in_utc=in_utc)
    cells = read_cells(table, roles, faults, formats)
    traits["ds_format"] = _trait(ds_format, dates.format or "ISO 8601", dates.evidence)
    if frequency is None:
        found = infer_frequency(cells.frame["ds"], dates.format)
        frequency = found.frequency
        if frequency is Frequency.HOUR and cells.time_zone is not None:
            table, formats, _ = column_format(table, columns["ds"], dates.format, FaultList(), in_utc=True)
            cells = read_cells(table, roles, FaultList(), formats)
        traits["frequency"] = Trait(frequency and frequency.value, "guessed", found.evidence)
    else:
        traits["frequency"] = Trait(frequency.value, "stated")
    for trait in cells.dialect.traits:
        traits.setdefault(trait.name, Trait(str(trait.value), trait.origin, trait.evidence))
    return SeriesRows(table, cells, dates, frequency, traits)


def _trait(stated: str | None, value: str, evidence: str) -> Trait:
    return Trait(value, "stated") if stated is not None else Trait(value, "guessed", evidence)

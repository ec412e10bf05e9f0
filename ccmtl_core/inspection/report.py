"""What was found in a table of series: the report, and each finding with its code, count and sample rows."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass, field, replace
from typing import Any, Literal

from ccmtl_core.base.display import counted, quoted, shown
from ccmtl_core.base.exceptions import DataError
from ccmtl_core.series.panel import SeriesPanel
from ccmtl_core.tables.faults import NO_ROWS, no_rows

MAX_SAMPLES = 5
Severity = Literal["error", "warning", "note"]
_ORDER = {"error": 0, "warning": 1, "note": 2}


@dataclass(frozen=True)
class Sample:
    """One place of a finding; what does not apply is None."""

    row: int | None = None
    """In the file, from 1 below the header."""
    unique_id: str | None = None
    ds: str | None = None
    value: str | None = None
    file: str | None = None
    """Of several files that were read together, the one that the row is of."""


@dataclass(frozen=True)
class Seen:
    """How many places there are of one kind, and the first of them."""

    count: int = 0
    samples: tuple[Sample, ...] = ()

    @classmethod
    def joined(cls, parts: Iterable[Seen]) -> Seen:
        """Return what parts of a table have together; samples that name a row come in the order of rows.

        Parameters
        ----------
        parts : iterable of Seen
            In the order of their series.

        Returns
        -------
        Seen
        """
        all_of = list(parts)
        samples = sorted((one for part in all_of for one in part.samples), key=lambda one: one.row or 0)
        return cls(sum(part.count for part in all_of), tuple(samples[:MAX_SAMPLES]))


@dataclass(frozen=True)
class Finding:
    """One kind of thing that was found."""

    code: str
    """Stable name of its kind."""
    severity: Severity
    """"error": the table cannot be used as it is; "warning": it may not be meant; "note": for information."""
    count: int
    unit: str
    """What is counted: rows, series, periods, ids, values."""
    message: str
    samples: tuple[Sample, ...] = ()
    policy: str | None = None
    """The option that decides what becomes of it."""

    def __str__(self) -> str:
        return f"{self.code}: {self.message}"


@dataclass(frozen=True)
class Trait:
    """One thing that is known of the table, stated by the caller or guessed from the data, and why."""

    value: str | None
    origin: Literal["stated", "guessed"]
    evidence: str = "stated"


@dataclass(frozen=True)
class Accounts:
    """Where each row went: ``rows_read == rows_used + rows_merged + sum(rows_dropped.values())``."""

    rows_read: int
    rows_used: int
    """Rows that stand for a value of a series in a period."""
    rows_merged: int
    """Rows that were put together with a row that is used, by the policy ``duplicates``."""
    rows_dropped: Mapping[str, int] = field(default_factory=dict)
    """Rows that are not used, by the code of the finding that tells why."""
    values_changed: Mapping[str, int] = field(default_factory=dict)
    """Values that a policy changed, by its name."""
    values_added: Mapping[str, int] = field(default_factory=dict)
    """Values that a policy added, by its name."""


@dataclass(frozen=True, eq=False)
class InspectionReport:
    """What a table holds, how it was understood, and what is to be decided before it is used.

    Parameters
    ----------
    traits : mapping
        ``unique_id``, ``ds`` and ``y`` (columns), ``ds_format``, ``frequency``, and how the file is written;
        each with its origin.
    accounts : Accounts
        Where each row went.
    findings : tuple of Finding
        Errors first.
    policies : mapping
        The repairs that were chosen.
    series, values, periods : int
        Extent of the data once it was repaired; 0 where it could not be understood.
    first, last : str or None
        The first and the last period.
    time_zone : str or None
        "UTC" or "local" where times name a zone.
    panel : SeriesPanel or None
        The data itself; None while there are errors.

    A report of no values always has an error: where nothing else is wrong, `no_rows` names what left out the
    rows.
    """

    traits: Mapping[str, Trait]
    accounts: Accounts
    findings: tuple[Finding, ...]
    policies: Mapping[str, str]
    series: int = 0
    values: int = 0
    periods: int = 0
    first: str | None = None
    last: str | None = None
    time_zone: str | None = None
    panel: SeriesPanel | None = None

    def __post_init__(self) -> None:
        if self.values or self.errors:
            return
        rows, left_out = self.accounts.rows_read, self.accounts.rows_dropped
        none = Finding(NO_ROWS, "error", max(rows, 1), "rows", no_rows(left_out))
        object.__setattr__(self, "findings", (none, *self.findings))

    @property
    def counts(self) -> dict[str, int]:
        """How many there are of each code."""
        return {finding.code: finding.count for finding in self.findings}

    @property
    def errors(self) -> tuple[Finding, ...]:
        """What keeps the table from being used."""
        return tuple(finding for finding in self.findings if finding.severity == "error")

    def require_panel(self, name: str = "") -> SeriesPanel:
        """Return the data.

        Parameters
        ----------
        name : str
            What errors call the table.

        Returns
        -------
        SeriesPanel

        Raises
        ------
        DataError
            Names each error, and the option that decides.
        """
        if self.panel is None:
            of = f"{name}: " if name else ""
            faults = [f"{of}{finding}{_first(finding)}" for finding in self.errors]
            raise DataError(faults)
        return self.panel

    def worded(self, words: Callable[[str], str]) -> InspectionReport:
        """Return the report with its sentences in other words.

        Parameters
        ----------
        words : callable
            Returns a sentence in other words, as with the options of a command in place of the library's.

        Returns
        -------
        InspectionReport
        """
        traits = {name: replace(one, evidence=words(one.evidence)) for name, one in self.traits.items()}
        findings = tuple(replace(one, message=words(one.message)) for one in self.findings)
        return replace(self, traits=traits, findings=findings)

    def to_dict(self) -> dict[str, Any]:
        """Return the report for JSON, without the data."""
        return {
            "traits": {name: asdict(trait) for name, trait in self.traits.items()},
            **asdict(self.accounts),
            "series": self.series,
            "values": self.values,
            "periods": self.periods,
            "first": self.first,
            "last": self.last,
            "time_zone": self.time_zone,
            "policies": dict(self.policies),
            "findings": [asdict(finding) for finding in self.findings],
        }

    def __repr__(self) -> str:
        found = f"{counted(len(self.errors), 'error')}, {counted(len(self.findings), 'finding')}"
        return shown(self, counted(self.accounts.rows_read, "row"), f"{self.series:,} series", found)


def _first(finding: Finding) -> str:
    """Where the first of what was found is."""
    if not finding.samples:
        return ""
    sample = finding.samples[0]
    known = {"row": sample.row, "series": sample.unique_id, "time": sample.ds, "value": sample.value}
    told = [f"{word} {quoted(value)}" for word, value in known.items() if value is not None]
    return f" The first: {', '.join(told)}." if told else ""


def ordered(findings: Iterable[Finding]) -> tuple[Finding, ...]:
    """Return the findings that count something, errors first."""
    counted_ones = [finding for finding in findings if finding.count]
    return tuple(sorted(counted_ones, key=lambda finding: _ORDER[finding.severity]))

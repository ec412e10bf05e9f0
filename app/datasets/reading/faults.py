"""Faults of an upload are gathered here, so that all kinds of them are reported at once, with their rows."""

from __future__ import annotations

from collections.abc import Iterable

from app.http.errors import MAX_ERRORS, Fault, InvalidContent

MAX_VALUE_CHARACTERS = 200


class FaultList:
    """Samples of each kind of fault, and how many there are of each."""

    def __init__(self) -> None:
        self._samples: dict[str, list[Fault]] = {}
        self._counts: dict[str, int] = {}

    def __bool__(self) -> bool:
        return bool(self._counts)

    def add(
        self,
        code: str,
        message: str,
        *,
        row: int | None = None,
        column: str | None = None,
        value: str | None = None,
    ) -> None:
        """Note one fault."""
        shown = None if value is None else value[:MAX_VALUE_CHARACTERS]
        self.add_all(code, 1, [Fault(code=code, message=message, row=row, column=column, value=shown)])

    def add_all(self, code: str, count: int, samples: Iterable[Fault]) -> None:
        """Note ``count`` faults of one kind, of which ``samples`` are the first."""
        self._counts[code] = self._counts.get(code, 0) + count
        kept = self._samples.setdefault(code, [])
        kept.extend(sample for sample, _ in zip(samples, range(MAX_ERRORS - len(kept)), strict=False))

    def refusal(self) -> InvalidContent:
        """Return the error that lists the faults by row, every kind of them represented."""
        total = sum(self._counts.values())
        kinds = ", ".join(f"{count} {code}" for code, count in self._counts.items())
        noun = "fault" if total == 1 else "faults"
        return InvalidContent(
            "invalid_upload",
            f"The file has {total} {noun} ({kinds}); see `errors`. Nothing was stored.",
            errors=self._listed(),
            error_count=total,
        )

    def _listed(self) -> list[Fault]:
        quota = MAX_ERRORS // max(1, len(self._samples))
        listed = [fault for samples in self._samples.values() for fault in samples[:quota]]
        spare = [fault for samples in self._samples.values() for fault in samples[quota:]]
        listed += spare[: MAX_ERRORS - len(listed)]
        return sorted(listed, key=lambda fault: (fault.row or 0, fault.column or ""))


def refuse(code: str, message: str) -> InvalidContent:
    """Return the refusal of a file for one fault of the whole."""
    faults = FaultList()
    faults.add(code, message)
    return faults.refusal()

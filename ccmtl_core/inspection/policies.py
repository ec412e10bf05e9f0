"""The repairs that a user may name; by default nothing is repaired."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields

from ccmtl_core.base.display import option
from ccmtl_core.base.exceptions import ParameterError

CHOICES: Mapping[str, tuple[str, ...]] = {
    "duplicates": ("error", "sum", "mean", "last"),
    "missing": ("error", "absent"),
    "negatives": ("keep", "clip", "error"),
    "leading_zeros": ("keep", "drop"),
    "partial_last": ("keep", "drop"),
    "fill": ("none", "zero", "forward"),
    "fill_start": ("series", "dataset"),
}
"""The values of each policy, its default first."""


@dataclass(frozen=True)
class Policies:
    """What becomes of rows that cannot be taken as they stand, or may not be meant so.

    Parameters
    ----------
    duplicates : {"error", "sum", "mean", "last"}
        Several rows of a series in one period.
    missing : {"error", "absent"}
        Rows without a value: their period counts as one without a row.
    negatives : {"keep", "clip", "error"}
        Values below zero, once the rows of a period are put together; ``clip`` makes them 0.
    leading_zeros : {"keep", "drop"}
        Zeros before the first other value of a series: a product that was not sold yet.
    partial_last : {"keep", "drop"}
        Rows of the last period, where the file ends within it.
    fill : {"none", "zero", "forward"}
        Periods without a row; ``forward`` repeats the value before.
    fill_start : {"series", "dataset"}
        Whether filling begins with the first value of each series, or for all with that of the table.

    Raises
    ------
    ParameterError
        A value that a policy does not have, or ``forward`` from the first period of the table.

    Examples
    --------
    >>> Policies(duplicates="sum").duplicates
    'sum'
    """

    duplicates: str = "error"
    missing: str = "error"
    negatives: str = "keep"
    leading_zeros: str = "keep"
    partial_last: str = "keep"
    fill: str = "none"
    fill_start: str = "series"

    def __post_init__(self) -> None:
        for field in fields(self):
            value, known = getattr(self, field.name), CHOICES[field.name]
            if value not in known:
                raise ParameterError(
                    f"{option(field.name)} must be {', '.join(map(repr, known))}; not {value!r}"
                )
        if (self.fill, self.fill_start) == ("forward", "dataset"):
            raise ParameterError(
                "`fill='forward'` has no value before the first of a series: choose `fill_start='series'`"
            )

    def to_dict(self) -> dict[str, str]:
        """Return the policies by their names."""
        return {field.name: getattr(self, field.name) for field in fields(self)}

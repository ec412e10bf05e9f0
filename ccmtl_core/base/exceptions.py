"""The errors of the library. Each is also the Python error that it resembles most.

::

    CCMTLError
    ├── DataError         (ValueError)    rows, shapes, ids or files that cannot be used
    ├── ParameterError    (ValueError)    an argument out of its range
    ├── UnknownTaskError  (KeyError)      a task id that the model has never seen
    ├── ModelFileError    (ValueError)    a model file that is damaged or not one
    └── ConvergenceError  (RuntimeError)  a solve that a caller asked to succeed did not
"""

from __future__ import annotations

from collections.abc import Sequence

from ccmtl_core.base.display import quoted

_MOST_SHOWN = 10


class CCMTLError(Exception):
    """Base of every error that this library raises on purpose."""


class DataError(CCMTLError, ValueError):
    """Data that cannot be used, with every fault found in it.

    Parameters
    ----------
    faults : sequence of str
        One sentence per fault, in the order found.
    n_faults : int, optional
        How many there are in all, when only the first ones were written down.

    Examples
    --------
    >>> print(DataError(["task 'a', row 2: y is nan", "task 'b', row 1: y is inf"]))
    2 faults in the data:
    - task 'a', row 2: y is nan
    - task 'b', row 1: y is inf
    """

    def __init__(self, faults: Sequence[str] | str, n_faults: int | None = None) -> None:
        self.faults = [faults] if isinstance(faults, str) else list(faults)
        self.n_faults = max(len(self.faults), n_faults or 0)
        lines = self.faults[:_MOST_SHOWN]
        if self.n_faults > len(lines):
            lines.append(f"and {self.n_faults - len(lines):,} more")
        if self.n_faults != 1:
            lines = [f"{self.n_faults:,} faults in the data:", *(f"- {line}" for line in lines)]
        super().__init__("\n".join(lines))

    def __reduce__(self) -> tuple[type[DataError], tuple[list[str], int]]:
        """Keep every fault on the way from another process."""
        return type(self), (self.faults, self.n_faults)


class ParameterError(CCMTLError, ValueError):
    """An argument that is out of its range or does not fit the others."""


class UnknownTaskError(CCMTLError, KeyError):
    """A task id that the model has never seen, with the known ids most like it.

    Parameters
    ----------
    task_id : str
        The id asked for.
    near_matches : sequence of str
        Known ids that resemble it, best first.

    Examples
    --------
    >>> print(UnknownTaskError("471", ["0471"]))
    unknown task '471'; near matches: '0471'
    """

    def __init__(self, task_id: str, near_matches: Sequence[str] = ()) -> None:
        self.task_id = task_id
        self.near_matches = list(near_matches)
        super().__init__(task_id)

    def __str__(self) -> str:
        known = ", ".join(map(quoted, self.near_matches))
        return f"unknown task {quoted(self.task_id)}" + (f"; near matches: {known}" if known else "")


class ModelFileError(CCMTLError, ValueError):
    """A model file that is damaged, or is not a model file."""


class ConvergenceError(CCMTLError, RuntimeError):
    """A solve ended without the accuracy that the caller made a condition."""

"""Tables of an experiment: means over repeats, who is best or not worse by a paired t-test, times, slopes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from scipy.stats import ttest_rel

from ccmtl_core.base.types import FloatArray
from ccmtl_core.fitting.scoring import Score, mean_of_task_rmse, rmse_over_rows
from ccmtl_core.reproduce.cells import Cell
from ccmtl_core.reproduce.experiments import Experiment

LEVEL = 0.05
_TITLES: dict[Score, str] = {rmse_over_rows: "RMSE over all rows", mean_of_task_rmse: "mean RMSE of tasks"}


@dataclass(frozen=True, eq=False)
class Report:
    """Cells of an experiment, and what is read from them.

    Parameters
    ----------
    experiment : Experiment
        Its title, measure and the paper's figures.
    cells : sequence of Cell
        All that were run or stopped.
    """

    experiment: Experiment
    cells: Sequence[Cell]

    @cached_property
    def settings(self) -> tuple[str, ...]:
        """Settings in the order of the cells."""
        return tuple(dict.fromkeys(cell.setting for cell in self.cells))

    @cached_property
    def methods(self) -> tuple[str, ...]:
        """Methods in the order of the cells."""
        return tuple(dict.fromkeys(cell.method for cell in self.cells))

    def of(self, setting: str, method: str) -> list[Cell]:
        """The repeats of one method in one setting, none where it was stopped."""
        cells = [cell for cell in self.cells if (cell.setting, cell.method) == (setting, method)]
        return [] if any(cell.value is None for cell in cells) else cells

    def values(self, setting: str, method: str, *, other: bool = False) -> FloatArray:
        """Errors or objectives by repeat, or seconds of the fit where these are measured.

        With ``other`` the errors of the other score, in the cells that have it.
        """
        cells = self.of(setting, method)
        if other:
            return np.array([v for cell in cells if (v := cell.other_value) is not None])
        if self.experiment.measure == "seconds":
            return np.array([cell.seconds for cell in cells])
        return np.array([cell.value for cell in cells], dtype=np.float64)

    def best(self, setting: str, *, other: bool = False) -> set[str]:
        """The method of least mean, and those that a paired t-test at 0.05 does not tell from it."""
        found = {m: v for m in self.methods if len(v := self.values(setting, m, other=other))}
        if not found:
            return set()
        least = min(found, key=lambda method: float(found[method].mean()))
        return {m for m, values in found.items() if m == least or not _differ(values, found[least])}

    def slope(self, method: str) -> float | None:
        """The exponent with which time grows with the number of tasks, over the larger half of the sizes."""
        sizes = [s for s in self.settings if self.of(s, method)]
        sizes = sizes[len(sizes) // 2 :]
        if len(sizes) < 2:
            return None
        seconds = [max(float(self.values(s, method).mean()), 1e-9) for s in sizes]
        tasks = [float(s.replace(",", "")) for s in sizes]
        return float(np.polyfit(np.log(tasks), np.log(seconds), 1)[0])

    def markdown(self) -> str:
        """The tables as text."""
        if self.experiment.measure == "seconds":
            return _table(["", *self.settings, "slope"], [self._times(m) for m in self.methods])
        words = "seconds of a fit" + (", of the search" if self.experiment.measure == "error" else "")
        seconds = [[method, *(self._seconds(s, method) for s in self.settings)] for method in self.methods]
        tables = [self._values("objective")]
        if self.experiment.measure == "error":
            scores = self.experiment.score, self.experiment.other_score
            tables = [
                self._values(_TITLES[s], other=other) for s, other in zip(scores, (False, True), strict=True)
            ]
        if self.experiment.protocols:
            return "\n\n".join(tables)
        return "\n\n".join([*tables, _table([words, *self.settings], seconds)])

    def to_dict(self) -> dict[str, Any]:
        """All numbers, for JSON."""
        rows = []
        for setting in self.settings:
            best = self.best(setting)
            for method in self.methods:
                cells, values = self.of(setting, method), self.values(setting, method)
                mean, error = mean_and_error(values)
                searches = [cell.search_seconds for cell in cells]
                rows.append(
                    {
                        "setting": setting,
                        "method": method,
                        "mean": mean,
                        "standard_error": error,
                        "in_best_group": method in best,
                        "mean_of_other_score": mean_and_error(self.values(setting, method, other=True))[0],
                        "paper": self.experiment.paper.get((setting, method)),
                        "seconds": float(np.mean([c.seconds for c in cells])) if cells else None,
                        "search_seconds": float(np.mean(searches)) if cells else None,
                        "parameters": [dict(cell.parameters) for cell in cells],
                        "converged": sum(cell.converged for cell in cells),
                        "repeats": len(cells),
                        "stopped": not cells,
                    }
                )
        slopes = {m: self.slope(m) for m in self.methods} if self.experiment.measure == "seconds" else None
        measure = self.experiment.measure
        return {"title": self.experiment.title, "measure": measure, "rows": rows, "slopes": slopes}

    def _values(self, title: str, *, other: bool = False) -> str:
        if self.experiment.protocols:
            return self._protocols(title, other)
        rows = [[m, *(self._cell(s, m, other) for s in self.settings)] for m in self.methods]
        return _table([title, *self.settings], rows)

    def _protocols(self, title: str, other: bool) -> str:
        """A row per protocol, the paper's figures first; what CCMTL is of STL in the last column."""
        printed = (
            [] if other else [["paper", *(self.experiment.paper.get(("", m), "–") for m in self.methods)]]
        )
        rows = [[s, *(self._cell(s, m, other) for m in self.methods)] for s in self.settings]
        header = [title, *self.methods]
        if {"STL", "CCMTL"} <= set(self.methods):
            header.append("CCMTL / STL")
            for row in printed:
                row.append("–")
            for setting, row in zip(self.settings, rows, strict=True):
                ours, stl = (
                    mean_and_error(self.values(setting, m, other=other))[0] for m in ("CCMTL", "STL")
                )
                row.append(f"{ours / stl:.3f}" if ours is not None and stl else "–")
        return _table(header, [*printed, *rows])

    def _cell(self, setting: str, method: str, other: bool) -> str:
        paper = None if other else self.experiment.paper.get((setting, method))
        mean, error = mean_and_error(self.values(setting, method, other=other))
        digits = 3 if self.experiment.measure == "error" else 2
        text = "stopped" if mean is None else f"{mean:.{digits}f}"
        if (
            mean is not None
            and method in self.best(setting, other=other)
            and self.experiment.measure == "error"
        ):
            text = f"**{text}**"
        text += f" ({error:.{digits}f})" if error is not None else ""
        return text + (f"; paper {paper}" if paper else "")

    def _seconds(self, setting: str, method: str) -> str:
        cells = self.of(setting, method)
        if not cells:
            return "stopped"
        text = f"{np.mean([cell.seconds for cell in cells]):.3g}"
        if self.experiment.measure == "error":
            text += f", {np.mean([cell.search_seconds for cell in cells]):.3g}"
        return text

    def _times(self, method: str) -> list[str]:
        slope = self.slope(method)
        return [method, *(self._seconds(s, method) for s in self.settings), f"{slope:.2f}" if slope else "–"]


def mean_and_error(values: FloatArray) -> tuple[float | None, float | None]:
    """Return the mean, and its standard error over repeats where there are two or more."""
    mean = float(values.mean()) if len(values) else None
    return mean, float(values.std(ddof=1) / np.sqrt(len(values))) if len(values) > 1 else None


def _differ(a: FloatArray, b: FloatArray) -> bool:
    """Whether a paired t-test at 0.05 tells the means apart; of one repeat only equal ones are the same."""
    apart = a - b
    if not apart.any():
        return False
    if len(a) < 2 or np.ptp(apart) <= 1e-12 * np.abs(apart).max():
        return True
    return bool(ttest_rel(a, b).pvalue < LEVEL)


def _table(header: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    lines = [header, ["---"] * len(header), *rows]
    return "\n".join("| " + " | ".join(line) + " |" for line in lines)

"""Run an experiment cell by cell (setting × repeat × method), each kept in a file as soon as it is done.

A run that is killed goes on where it was: the file has a line of JSON per cell, and a line that was cut off
is run again, as are cells of another data file and those that a lower limit stopped.
"""

from __future__ import annotations

import json
import os
import signal
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from types import FrameType
from typing import Any

import numpy as np
from sklearn.base import clone

from ccmtl_core.base.display import counted
from ccmtl_core.base.exceptions import DataError
from ccmtl_core.base.types import FloatArray
from ccmtl_core.kernels.compiled import compilation_told
from ccmtl_core.methods import TaskRegressor
from ccmtl_core.reproduce.experiments import Experiment
from ccmtl_core.reproduce.readers import Split
from ccmtl_core.reproduce.rivals import Rival
from ccmtl_core.statistics.folds import training_statistics
from ccmtl_core.statistics.sufficient_statistics import SufficientStatistics

_QUICK = 0.1
"""Seconds: a fit that takes less is repeated for so long, as the clock is coarse."""


class Stopped(Exception):
    """A method took longer than it was given."""


@dataclass(frozen=True)
class Cell:
    """What one method made of one split.

    Parameters
    ----------
    setting, repeat, method
        Which cell it is.
    value : float or None
        Error or objective; None where the method was stopped.
    seconds, search_seconds : float
        Processor time of the final fit, and of the search over parameters; the limit, and 0, of a method
        that was stopped.
    parameters : mapping
        Those that the search chose, or that were given.
    converged : bool
        Whether the final fit met its tolerance.
    other_value : float or None
        Of errors, the one that the experiment does not search by: over rows, or the mean over tasks.
    data : str or None
        A digest of the file and columns that were read; None where the data are drawn from a seed.
    """

    setting: str
    repeat: int
    method: str
    value: float | None
    seconds: float
    search_seconds: float
    parameters: Mapping[str, float]
    converged: bool
    other_value: float | None = None
    data: str | None = None

    @property
    def key(self) -> tuple[str, int, str]:
        """Which cell it is."""
        return self.setting, self.repeat, self.method


def run_cells(
    experiment: Experiment,
    file: Path,
    *,
    folder: Path,
    methods: Sequence[str],
    settings: Sequence[str],
    repeats: int,
    quick: bool,
    limit: float,
    on_cell: Callable[[int, int, Cell | None], None],
) -> list[Cell]:
    """Run the cells that the file does not have yet, and return all.

    Parameters
    ----------
    experiment : Experiment
        What to run.
    file : Path
        Where cells are kept, of any data. Quick ones and others are not mixed: name another file.
    folder : Path
        Where the data are.
    methods, settings : sequences of str
        Which of the experiment's.
    repeats : int
        How often, with seeds from 0.
    quick : bool
        Search over every second value alone.
    limit : float
        Processor seconds for a cell. A method that takes longer is stopped, and not run again in that
        setting; with ``measure`` "seconds", neither in the settings after it, which are larger. What a lower
        limit stopped is run again.
    on_cell : callable
        Called with the number of cells done, that of all, and the last one.

    Returns
    -------
    list of Cell

    Raises
    ------
    DataError
        The file of the data is missing, even if all cells are kept; or it cannot be used.
    """
    data = {setting: experiment.data(folder, setting) for setting in settings}
    known = {
        cell.key: cell
        for cell in read_cells(file)
        if cell.data == data.get(cell.setting) and (cell.value is not None or cell.seconds >= limit)
    }
    wanted = [
        (setting, repeat, method)
        for setting in settings
        for repeat in range(1 if setting in experiment.repeats_once else repeats)
        for method in methods
    ]
    at, split = ("", -1), None
    on_cell(0, len(wanted), None)
    for number, key in enumerate(wanted, 1):
        if key not in known:
            setting, repeat, method = key
            cell = Cell(setting, repeat, method, None, limit, 0.0, {}, False, data=data[setting])
            if not _is_hopeless(experiment, known.values(), setting, method):
                if at != (setting, repeat) or split is None:
                    at, split = (setting, repeat), None  # the one before goes first: it may be large
                    split = experiment.split(folder, setting, repeat)
                    _refuse_empty_folds(experiment, split, setting)
                cell = _run(experiment, split, cell, quick, limit)
            known[key] = cell
            _append(file, cell)
        on_cell(number, len(wanted), known[key])
    return [known[key] for key in wanted]


def _refuse_empty_folds(experiment: Experiment, split: Split, setting: str) -> None:
    """Refuse data of which a part that is to be scored has no row."""
    if experiment.measure != "error":
        return
    parts = {f"fold {f + 1} of {len(split.folds)}": fold for f, fold in enumerate(split.folds)}
    parts["the part held out"] = split.held_out
    n_rows = {name: int(part.n_samples.sum()) for name, part in parts.items()}
    if empty := [name for name, n in n_rows.items() if not n]:
        raise DataError(
            f"{experiment.title}, {setting}: of {counted(sum(n_rows.values()), 'row')} none is left for "
            f"{empty[0]}, and errors are measured on each fold and on what is held out: give more tasks or "
            "more times of each; the first ten times of a table make no rows"
        )


def _is_hopeless(experiment: Experiment, cells: Any, setting: str, method: str) -> bool:
    stopped = {cell.setting for cell in cells if cell.method == method and cell.value is None}
    if experiment.measure == "seconds":
        return not stopped.isdisjoint(experiment.settings[: experiment.settings.index(setting) + 1])
    return setting in stopped


def _run(experiment: Experiment, split: Split, cell: Cell, quick: bool, limit: float) -> Cell:
    rival = experiment.rival(cell.setting, cell.method)
    parameters: Mapping[str, float] = experiment.fixed(cell.setting)
    try:
        with within(limit) as seconds_so_far:
            if experiment.measure == "error":
                parameters = _searched(experiment, rival, split, quick)
            searched = seconds_so_far()
            model = clone(rival.model).set_params(**parameters).fit_statistics(split.training)
            ended = seconds_so_far()
    except (Stopped, MemoryError):
        return cell
    value, other = model.objective_, None
    if experiment.measure == "error":
        errors, n_samples = _errors(model, split, split.held_out), split.held_out.n_samples
        value, other = (score(errors, n_samples) for score in (experiment.score, experiment.other_score))
    seconds = ended - searched
    seconds = seconds if seconds > _QUICK else _seconds(model, split.training)
    times = {"seconds": seconds, "search_seconds": searched}
    done = {"value": value, "parameters": parameters, "converged": model.converged_, **times}
    done["other_value"] = other
    return replace(cell, **done)


def _seconds(model: TaskRegressor, training: SufficientStatistics) -> float:
    """Fit a quick model anew for a while; return the processor seconds of a fit, without compiling."""
    began, fits = time.process_time(), 0
    while time.process_time() - began < _QUICK:
        clone(model).fit_statistics(replace(training))  # which has forgotten its least squares
        fits += 1
    return (time.process_time() - began) / fits


def _searched(experiment: Experiment, rival: Rival, split: Split, quick: bool) -> Mapping[str, float]:
    """The parameters of least mean error over the folds; of equal ones the first, which shrinks most."""
    grid = rival.grid(quick=quick)
    errors = np.zeros(len(grid))
    for training, held_out in zip(training_statistics(split.folds), split.folds, strict=True):
        for number, model in enumerate(rival.model.along(training, grid, warm=rival.starts_warm)):
            errors[number] += experiment.score(_errors(model, split, held_out), held_out.n_samples)
    return grid[int(np.argmin(errors))]


def _errors(model: TaskRegressor, split: Split, held_out: SufficientStatistics) -> FloatArray:
    """Squared errors (T,) in the unit of the file."""
    errors = squared_errors(model, held_out)
    return errors if split.unit is None else errors * split.unit**2


def squared_errors(model: TaskRegressor, held_out: SufficientStatistics) -> FloatArray:
    """Return the squared errors (T,) of a fitted model on held-out rows, from their statistics."""
    intercept = model.intercept_ if model.intercept_.any() else None
    return held_out.squared_error(model.coef_, intercept)


@contextmanager
def within(seconds: float) -> Iterator[Callable[[], float]]:
    """Raise :class:`Stopped` in the block once it has taken so much processor time.

    The clock stands still while kernels are compiled, which the first fit of a kind on a machine waits for.
    The block is given a function that tells the seconds so far.
    """
    began, remaining, compiling = time.process_time(), seconds, 0.0

    def stop(number: int, frame: FrameType | None) -> None:
        raise Stopped

    def tell(begins: bool) -> None:
        nonlocal remaining, compiling
        if begins:
            compiling -= time.process_time()
            remaining = signal.setitimer(signal.ITIMER_PROF, 0.0)[0]
        else:
            compiling += time.process_time()
            signal.setitimer(signal.ITIMER_PROF, max(remaining, 1e-6))

    before = signal.signal(signal.SIGPROF, stop)
    try:
        with compilation_told(tell):
            signal.setitimer(signal.ITIMER_PROF, seconds)
            yield lambda: time.process_time() - began - compiling
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0.0)
        signal.signal(signal.SIGPROF, before)


def read_cells(file: Path) -> list[Cell]:
    """Return the cells of a file, leaving out lines that a kill has cut off, or an editor has spoilt."""
    lines = file.read_bytes().splitlines() if file.exists() else []
    return [cell for line in lines if (cell := _cell(line)) is not None]


def _cell(line: bytes) -> Cell | None:
    """The cell of a line, None where it is not whole."""
    try:
        cell = Cell(**json.loads(line))
        numbers = [cell.seconds, cell.search_seconds, *cell.parameters.values()]
    except (ValueError, TypeError, AttributeError):
        return None
    numbers += [error for error in (cell.value, cell.other_value) if error is not None]
    texts = [cell.setting, cell.method] + ([] if cell.data is None else [cell.data])
    is_whole = (
        isinstance(cell.repeat, int)
        and isinstance(cell.converged, bool)
        and all(isinstance(number, int | float) for number in numbers)
        and all(isinstance(text, str) for text in texts)
    )
    return cell if is_whole else None


def _append(file: Path, cell: Cell) -> None:
    """Add a line that is on the disk when this returns; it begins anew where the last one was cut off."""
    with file.open("a+b") as stream:
        if stream.tell():
            stream.seek(-1, os.SEEK_END)
            if stream.read(1) != b"\n":
                stream.write(b"\n")
        stream.write(json.dumps(asdict(cell)).encode() + b"\n")
        stream.flush()
        os.fsync(stream.fileno())

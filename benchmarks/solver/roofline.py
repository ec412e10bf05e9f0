"""Show where the time of a Ta-Feng fit goes, and how many bytes it moves beside what the machine can move.

While one fit runs, each compiled kernel is replaced by one that also notes its time and the size of all
arrays that it was given or gave back: what it must move at least, each array counted once a call.
"""

from __future__ import annotations

import cProfile
import pstats
import sys
import time
from collections import defaultdict
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from numba.core.dispatcher import Dispatcher

from benchmarks.report import Row, Section
from benchmarks.solver import ta_feng
from benchmarks.solver.bandwidth import SIZES, copy_bandwidth
from ccmtl_core import SufficientStatistics, fit
from examples.ta_feng import NotToBeHad

STRENGTH = 3e3
N_FUNCTIONS = 12


@dataclass
class Traffic:
    """What one kernel did during a fit."""

    calls: int = 0
    seconds: float = 0.0
    bytes: int = 0


def measure(folder: Path) -> Section:
    """Measure the fit at one strength, or say why the data could not be had."""
    try:
        statistics = ta_feng.read(folder)
    except NotToBeHad as reason:
        return Section(skipped=str(reason))
    return analyse(statistics, STRENGTH, SIZES)


def analyse(statistics: SufficientStatistics, strength: float, sizes: dict[str, int]) -> Section:
    """Fit once to time the phases, once to count what kernels move, once to profile what is around them."""

    def run() -> dict[str, float]:
        fresh = replace(statistics)
        return fit(fresh, fusion_strength=strength, tolerance=ta_feng.TOLERANCE).report.seconds

    run()  # load the compiled kernels
    phases = run()
    start = time.process_time()
    with counted_kernels() as traffic:
        run()
    total = time.process_time() - start
    bandwidth = {name: copy_bandwidth(size) for name, size in sizes.items()}
    tables: dict[str, list[Row]] = {
        "Phases": _phase_rows(phases),
        "Copy, read and written": [{"size": name, "GB/s": value / 1e9} for name, value in bandwidth.items()],
        "Compiled kernels": _kernel_rows(traffic, total, list(bandwidth.values())),
        "Functions by their own time, with that of the kernels they call": _function_rows(run),
    }
    moved = sum(kernel.bytes for kernel in traffic.values())
    fastest, slowest = moved / max(bandwidth.values()), moved / min(bandwidth.values())
    notes = [
        f"fusion_strength {strength:g}: {total:.2f} s, at least {moved / 1e9:.2f} GB moved by kernels. "
        f"A copy moves as much in {fastest:.2f} s in the fastest cache, in {slowest:.2f} s in memory."
    ]
    return Section(tables, notes=notes)


@contextmanager
def counted_kernels() -> Iterator[dict[str, Traffic]]:
    """Count the traffic of each compiled kernel of ``ccmtl_core`` that is called from Python in the block."""
    traffic: dict[str, Traffic] = defaultdict(Traffic)
    kernels = [
        (module, name, value)
        for module_name, module in sorted(sys.modules.items())
        if module_name.startswith("ccmtl_core")
        for name, value in vars(module).items()
        if isinstance(value, Dispatcher)
    ]
    for module, name, kernel in kernels:
        setattr(module, name, _counted(kernel, traffic[name]))
    try:
        yield traffic
    finally:
        for module, name, kernel in kernels:
            setattr(module, name, kernel)
        for name in [name for name, counted in traffic.items() if not counted.calls]:
            del traffic[name]


def _counted(kernel: Callable[..., Any], traffic: Traffic) -> Callable[..., Any]:
    def call(*arguments: Any, **named: Any) -> Any:
        start = time.process_time()
        result = kernel(*arguments, **named)
        traffic.seconds += time.process_time() - start
        traffic.calls += 1
        arrays = [*arguments, *named.values(), *(result if isinstance(result, tuple) else (result,))]
        traffic.bytes += sum(array.nbytes for array in arrays if isinstance(array, np.ndarray))
        return result

    return call


def _phase_rows(phases: dict[str, float]) -> list[Row]:
    total = sum(phases.values())
    return [
        {"phase": name, "wall seconds": value, "share": _share(value, total)}
        for name, value in phases.items()
    ]


def _kernel_rows(traffic: dict[str, Traffic], total: float, bandwidth: list[float]) -> list[Row]:
    """Kernels by time, and what remains; the roof of a kernel is the copy whose size is next to a call's."""
    sizes = np.array(list(SIZES.values()), dtype=np.float64)
    rows: list[Row] = []
    for name, kernel in sorted(traffic.items(), key=lambda item: -item[1].seconds):
        rate, per_call = kernel.bytes / max(kernel.seconds, 1e-9), kernel.bytes / kernel.calls
        nearest = int(np.argmin(np.abs(np.log(sizes[: len(bandwidth)] / max(per_call, 1.0)))))
        rows.append(
            {
                "kernel": name,
                "calls": kernel.calls,
                "seconds": kernel.seconds,
                "share": _share(kernel.seconds, total),
                "MB a call": per_call / 1e6,
                "GB": kernel.bytes / 1e9,
                "GB/s": rate / 1e9,
                "of a copy": _share(rate, bandwidth[nearest]),
            }
        )
    outside = total - sum(kernel.seconds for kernel in traffic.values())
    rest = {"kernel": "everything else", "seconds": outside, "share": _share(outside, total)}
    return [*rows, {name: rest.get(name) for name in rows[0]}]


def _function_rows(run: Callable[[], object]) -> list[Row]:
    """The functions in which most time is spent, that of the kernels which they call included."""
    profile = cProfile.Profile(time.process_time)
    profile.runcall(run)
    stats = pstats.Stats(profile)
    own = {place: entry[2] for place, entry in stats.stats.items()}  # type: ignore[attr-defined] # not in the stubs
    total = sum(own.values())
    largest = sorted(own.items(), key=lambda item: -item[1])[:N_FUNCTIONS]
    return [
        {"function": f"{Path(file).stem}.{name}", "seconds": value, "share": _share(value, total)}
        for (file, _, name), value in largest
    ]


def _share(part: float, whole: float) -> str:
    return f"{part / whole:.1%}"

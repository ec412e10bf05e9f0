"""Work in a few parts in, the parts done by as many threads out; kernels let go of the interpreter's lock.

How many parts there are depends on the problem alone, so that sums come out the same on any machine. How
many threads share them is numba's setting (``NUMBA_NUM_THREADS``, by default all cores), which joblib lowers
in its worker processes.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from itertools import pairwise
from typing import Any

from numba import config

from ccmtl_core.base.arrays import is_whole
from ccmtl_core.base.exceptions import ParameterError

Share = Callable[[Callable[[Any], Any], Sequence[Any]], list[Any]]

WORTH_SHARING = 2_000_000
"""Numbers that a pass must touch before a second thread saves more than it costs."""


def check_workers(n_jobs: int | None) -> None:
    """Refuse a number of workers that joblib has no meaning for; None leaves it to joblib's configuration."""
    if n_jobs is not None and not (is_whole(n_jobs) and n_jobs != 0):
        raise ParameterError(f"n_jobs must be an integer other than 0, -1 for all cores; not {n_jobs!r}")


def slices(n: int, n_parts: int) -> tuple[slice, ...]:
    """Cut range(n) into parts that are as even as can be.

    Examples
    --------
    >>> slices(5, 2)
    (slice(0, 2, None), slice(2, 5, None))
    """
    bounds = [n * part // n_parts for part in range(n_parts + 1)]
    return tuple(slice(first, last) for first, last in pairwise(bounds))


@contextmanager
def sharing(n_parts: int) -> Iterator[Share]:
    """A function that does like ``map`` over so many parts, on threads where that is possible."""
    n_threads = min(n_parts, config.NUMBA_NUM_THREADS)  # type: ignore[attr-defined] # made at run time
    if n_threads == 1:
        yield lambda work, parts: [work(part) for part in parts]
        return
    with ThreadPoolExecutor(n_threads) as pool:
        yield lambda work, parts: list(pool.map(work, parts))

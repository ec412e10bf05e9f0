"""Share the parts of a pass over data among threads; compiled loops release Python's global lock.

How many parts there are follows from the problem alone, so that sums are the same on every machine. How many
threads share them is numba's setting (``NUMBA_NUM_THREADS``, by default all cores), which joblib lowers in
its worker processes.
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
"""Numbers a pass must touch for a second thread to save more time than it costs."""


def check_workers(n_jobs: int | None) -> None:
    """Raise a ParameterError unless joblib can use this number of workers; None means joblib's default."""
    if n_jobs is not None and not (is_whole(n_jobs) and n_jobs != 0):
        raise ParameterError(f"n_jobs must be an integer other than 0, -1 for all cores; not {n_jobs!r}")


def slices(n: int, n_parts: int) -> tuple[slice, ...]:
    """Cut range(n) into parts whose lengths differ by at most one.

    Examples
    --------
    >>> slices(5, 2)
    (slice(0, 2, None), slice(2, 5, None))
    """
    bounds = [n * part // n_parts for part in range(n_parts + 1)]
    return tuple(slice(first, last) for first, last in pairwise(bounds))


@contextmanager
def sharing(n_parts: int) -> Iterator[Share]:
    """Yield a function that works like ``map`` on a list, using up to ``n_parts`` threads."""
    n_threads = min(n_parts, config.NUMBA_NUM_THREADS)  # type: ignore[attr-defined] # made at run time
    if n_threads == 1:
        yield lambda work, parts: [work(part) for part in parts]
        return
    with ThreadPoolExecutor(n_threads) as pool:
        yield lambda work, parts: list(pool.map(work, parts))

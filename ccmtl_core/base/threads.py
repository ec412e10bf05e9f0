"""Share the parts of a pass over data among threads; compiled loops release Python's global lock.

How many parts there are follows from the problem alone, so that sums are the same on every machine. How many
threads share them is numba's setting (``NUMBA_NUM_THREADS``, by default all cores), which joblib lowers in
its worker processes.

BLAS has one thread. The blocks of tasks are small: two threads of it wait for each other most of the time.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from itertools import pairwise
from threading import Lock
from typing import Any

from numba import config
from threadpoolctl import threadpool_limits

from ccmtl_core.base.arrays import is_whole
from ccmtl_core.base.exceptions import ParameterError

Share = Callable[[Callable[[Any], Any], Sequence[Any]], list[Any]]

WORTH_SHARING = 2_000_000
"""Numbers a pass must touch for a second thread to save more time than it costs."""


class _BlasLimit:
    """One limit for the whole process, which the first to want it sets and the last one lifts."""

    def __init__(self) -> None:
        self._lock, self._n_inside = Lock(), 0

    def enter(self) -> None:
        with self._lock:
            if not self._n_inside:
                self._limits = threadpool_limits(limits=1, user_api="blas")
            self._n_inside += 1

    def leave(self) -> None:
        with self._lock:
            self._n_inside -= 1
            if not self._n_inside:
                self._limits.restore_original_limits()


_BLAS_LIMIT = _BlasLimit()


@contextmanager
def one_blas_thread() -> Iterator[None]:
    """Let BLAS use one thread inside; also decorates functions. Nested and overlapping uses are counted.

    Examples
    --------
    >>> from threadpoolctl import threadpool_info
    >>> with one_blas_thread():
    ...     {pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas"}
    {1}
    """
    _BLAS_LIMIT.enter()
    try:
        yield
    finally:
        _BLAS_LIMIT.leave()


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

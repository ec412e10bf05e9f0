"""How loops are compiled: for one thread, without the GIL, and kept on disk between processes."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import Any

from numba import njit

FAST_MATH = {"reassoc", "contract", "nsz", "arcp"}
"""Sums may be taken in vectors; NaN and infinity keep their meaning."""


def kernel(function: Callable[..., Any]) -> Callable[..., Any]:
    """Compile a function at the first call with each combination of argument types.

    The compiled code is kept in ``NUMBA_CACHE_DIR``, beside the source, or in the user's cache
    folder. Where none of them can be written, each process compiles anew (a few seconds).
    """
    compiled = njit(nogil=True, error_model="numpy", fastmath=FAST_MATH)(function)
    with suppress(RuntimeError):  # numba's word for: no folder to write to
        compiled.enable_caching()
    return compiled


def inlined(function: Callable[..., Any]) -> Callable[..., Any]:
    """Compile a function into each kernel that calls it, where a call would take as long as its work.

    Kernels kept on disk do not notice that it has changed: touch their files too.
    """
    options = njit(nogil=True, error_model="numpy", fastmath=FAST_MATH, inline="always")
    compiled: Callable[..., Any] = options(function)
    return compiled

"""Let a process keep the memory that it frees, where the C library can (glibc).

Memory that a process gets for the first time is cleared by the system, and in a virtual machine fetched
from the host, which can take ten times as long. How much of it a fit gets depends on what ran before it, not
on the fit: small fits reuse what they freed, large ones give it back in between.
"""

from __future__ import annotations

import ctypes
from collections.abc import Iterator
from contextlib import contextmanager

_TRIM_THRESHOLD, _MMAP_MAX = -1, -4  # what mallopt calls them
_USUAL_TRIM, _USUAL_MMAP = 128 * 1024, 65536
_NEVER = -1


@contextmanager
def kept_memory() -> Iterator[bool]:
    """Keep what is freed within the block; yields whether that is possible."""
    library = ctypes.CDLL(None)
    possible = hasattr(library, "mallopt") and hasattr(library, "malloc_trim")
    if possible:
        library.mallopt(_MMAP_MAX, 0)
        library.mallopt(_TRIM_THRESHOLD, _NEVER)
    yield possible
    if possible:
        library.mallopt(_MMAP_MAX, _USUAL_MMAP)
        library.mallopt(_TRIM_THRESHOLD, _USUAL_TRIM)
        library.malloc_trim(0)

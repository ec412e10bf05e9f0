"""How loops are compiled: for one thread, without the GIL, and kept on disk between processes."""

# mypy: allow-untyped-calls, no-warn-return-any

from __future__ import annotations

import os
import pickle
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import cache
from hashlib import sha256
from pathlib import Path
from typing import Any

from numba import njit
from numba.core import caching, event

FAST_MATH = {"reassoc", "contract", "nsz", "arcp"}
"""Sums may be taken in vectors; NaN and infinity keep their meaning."""
OLD_SECONDS = 30 * 24 * 3600.0
"""Compiled code of a source that is no longer there goes when it is this old."""
_DIGEST_BYTES = 32


def kernel(function: Callable[..., Any], *, fastmath: set[str] | bool = FAST_MATH) -> Callable[..., Any]:
    """Compile a function at the first call with each combination of argument types.

    Parameters
    ----------
    function : callable
        What numba can compile.
    fastmath : set of str, or False
        What the compiler may do to sums and quotients; False where each must be the nearest number.

    Returns
    -------
    callable
        It keeps compiled code in :func:`cache_folder`. Where that cannot be written, what it holds is used,
        and each process compiles the rest anew (up to half a minute for a fit).
    """
    compiled: Any = njit(nogil=True, error_model="numpy", fastmath=fastmath)(function)
    with suppress(RuntimeError):  # numba's word for: NUMBA_CACHE_LOCATOR_CLASSES names no folder
        compiled._cache = _KernelCache(function)
    return compiled


def inlined(function: Callable[..., Any]) -> Callable[..., Any]:
    """Compile a function into each kernel that calls it, where a call would take as long as its work."""
    options = njit(nogil=True, error_model="numpy", fastmath=FAST_MATH, inline="always")
    compiled: Callable[..., Any] = options(function)
    return compiled


def cache_folder() -> Path:
    """Return the folder of compiled code: ``NUMBA_CACHE_DIR``, else ``ccmtl`` in the user's cache folder."""
    if given := os.environ.get("NUMBA_CACHE_DIR"):
        return Path(given)
    return Path(os.environ.get("XDG_CACHE_HOME") or Path("~/.cache").expanduser()) / "ccmtl"


@contextmanager
def compilation_told(tell: Callable[[bool], None]) -> Iterator[None]:
    """Say when the compiler is at work: the first fit of a kind on a machine waits for it, some seconds.

    Parameters
    ----------
    tell : callable
        Called with True when something begins to be compiled within the block, with False when it is done.

    Returns
    -------
    context manager
        The block of which it is told.

    Examples
    --------
    >>> from ccmtl_core import TaskDataset, fit
    >>> from ccmtl_core.kernels.compiled import compilation_told
    >>> data = TaskDataset.from_arrays([[[1.0]], [[2.0]]], [[1.0], [2.0]])
    >>> with compilation_told(lambda begins: None):
    ...     result = fit(data, fusion_strength=1.0)
    """
    listener = _Listener(tell)
    event.register("numba:compile", listener)
    try:
        yield
    finally:
        event.unregister("numba:compile", listener)


class _Listener(event.Listener):
    """Passes on the outermost begin and end: a kernel that calls others compiles them too."""

    def __init__(self, tell: Callable[[bool], None]) -> None:
        self._tell, self._depth = tell, 0

    def on_start(self, _: Any) -> None:
        self._depth += 1
        if self._depth == 1:
            self._tell(True)

    def on_end(self, _: Any) -> None:
        self._depth -= 1
        if self._depth == 0:
            self._tell(False)


class _Locator(caching.UserWideCacheLocator):
    def __init__(self, function: Callable[..., Any], file: str) -> None:
        super().__init__(function, file)
        self._cache_path = str(cache_folder())
        self._module = function.__module__

    def ensure_cache_path(self) -> None:
        """Make the folder, or leave it: numba would take no code from one that cannot be written."""
        with suppress(OSError):
            super().ensure_cache_path()

    def get_source_stamp(self) -> str:
        return _source_stamp(self._module)

    def get_disambiguator(self) -> str:
        return str(self._module)


class _Implementation(caching.CompileResultCacheImpl):
    _locator_classes = [_Locator]  # noqa: RUF012


class _KernelCache(caching.FunctionCache):
    """Compiled code outside the source tree, the same for all checkouts of the same source."""

    _impl_class = _Implementation

    def __init__(self, function: Callable[..., Any]) -> None:
        super().__init__(function)
        stamp = _source_stamp(function.__module__)
        self._cache_file = _KernelFiles(self._cache_path, self._impl.filename_base, stamp)

    def save_overload(self, sig: Any, data: Any) -> None:
        """Keep compiled code, unless the folder is full or read-only."""
        with suppress(OSError):
            super().save_overload(sig, data)


class _KernelFiles(caching.IndexDataCacheFile):
    """One file for each combination of types, named after them and the source.

    numba's own files are numbered by an index without a lock: of two processes that compile one kernel for
    different types at a time, one later runs the code of the other. Each file ends with a digest: machine
    code that was damaged on the disk must not run.
    """

    def load(self, key: tuple[Any, ...]) -> Any:
        with suppress(OSError):
            content = Path(self._data_path(self._name(key))).read_bytes()
            code, digest = content[:-_DIGEST_BYTES], content[-_DIGEST_BYTES:]
            if sha256(code).digest() == digest:
                return pickle.loads(code)
        return None

    def save(self, key: tuple[Any, ...], data: Any) -> None:
        self._save_data(self._name(key), data)
        for file in Path(self._cache_path).glob(f"{self._base}-*.nbc*"):
            is_current = self._stamp in file.name and file.suffix == ".nbc"  # others are of a killed process
            if not is_current and file.stat().st_mtime < time.time() - OLD_SECONDS:
                file.unlink()

    def _dump(self, data: Any) -> bytes:
        code = super()._dump(data)
        return bytes(code + sha256(code).digest())

    @property
    def _base(self) -> str:
        return self._index_name.removesuffix(".nbi")

    @property
    def _stamp(self) -> str:
        return self._source_stamp[:16]

    def _name(self, key: tuple[Any, ...]) -> str:
        types = sha256(repr((self._version, key)).encode()).hexdigest()[:32]
        return f"{self._base}-{self._stamp}-{types}.nbc"


@cache
def _source_stamp(module: str) -> str:
    """A digest of all source that is compiled into a module's kernels, and of the constants it imports."""
    digest = sha256()
    for name in sorted(_sources(module, set())):
        found = vars(sys.modules[name])
        digest.update(Path(found["__file__"]).read_bytes())
        constants = {k: v for k, v in found.items() if k.isupper() and isinstance(v, int | float | tuple)}
        digest.update(repr(sorted(constants.items())).encode())
    return digest.hexdigest()


def _sources(module: str, known: set[str]) -> set[str]:
    """Add a module and those whose kernels and parts of kernels it uses, in turn, to what is known."""
    known.add(module)
    package = __name__.rpartition(".")[0] + "."
    for value in list(vars(sys.modules[module]).values()):
        origin = getattr(getattr(value, "py_func", value), "__module__", None)
        if not isinstance(origin, str) or origin in known or origin not in sys.modules:
            continue
        if hasattr(value, "py_func") or origin.startswith(package):
            _sources(origin, known)
    return known

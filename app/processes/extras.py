"""Packages that only some settings need."""

from __future__ import annotations

from importlib.util import find_spec

from app.processes.cannot_start import CannotStart
from app.settings import Settings, variable


def require_extras(settings: Settings) -> None:
    """Raise CannotStart where a setting needs a package that is not installed."""
    if settings.dask_scheduler is not None and find_spec("distributed") is None:
        raise CannotStart(
            f"{variable('dask_scheduler')} needs the package distributed: install the extra `distributed` of "
            "ccmtl, or unset it."
        )

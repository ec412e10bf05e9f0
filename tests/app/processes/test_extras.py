from __future__ import annotations

import pytest

from app.processes import extras
from app.processes.cannot_start import CannotStart
from app.settings import Settings


def test_a_scheduler_without_the_package_for_it_stops_the_start(monkeypatch: pytest.MonkeyPatch) -> None:
    extras.require_extras(Settings(dask_scheduler="tcp://scheduler:8786"))
    monkeypatch.setattr(extras, "find_spec", lambda name: None)
    extras.require_extras(Settings())
    with pytest.raises(CannotStart, match="CCMTL_DASK_SCHEDULER needs the package distributed"):
        extras.require_extras(Settings(dask_scheduler="tcp://scheduler:8786"))

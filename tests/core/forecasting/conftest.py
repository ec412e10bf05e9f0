"""A fitted forecaster, which no test changes."""

from __future__ import annotations

import pytest

from ccmtl_core.forecasting import ForecastModel, fit_forecaster
from tests.core.forecasting.panels import ROWS, noisy


@pytest.fixture(scope="session")
def forecaster() -> ForecastModel:
    return fit_forecaster(noisy(), 3, rows=ROWS)

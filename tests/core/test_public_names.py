"""The names that users and the service import; a change here is a change for them."""

from __future__ import annotations

import inspect
import subprocess
import sys
from types import ModuleType

import pytest

import ccmtl_core
import ccmtl_core.forecasting

CORE = [
    "CCMTLError",
    "CCMTLModel",
    "ConvergenceError",
    "DataError",
    "FitResult",
    "FusionPath",
    "FusionThreshold",
    "ModelChoices",
    "ModelFileError",
    "ParameterError",
    "PathPoint",
    "Progress",
    "RandomCoefficients",
    "Selection",
    "SelectionProgress",
    "SolveReport",
    "SolveStatus",
    "SufficientStatistics",
    "TaskDataset",
    "TaskGraph",
    "TriangularStatistics",
    "UnknownTaskError",
    "append_statistics",
    "contiguous_folds",
    "fit",
    "fit_path",
    "fused_weights",
    "fusion_threshold",
    "merge_statistics",
    "nearest_neighbour_graph",
    "period_factors",
    "pooled_weights",
    "random_coefficients",
    "random_folds",
    "read_statistics",
    "read_statistics_folds",
    "rival_models",
    "select",
    "shrunk_weights",
    "single_task_weights",
    "statistics_frame",
    "statistics_from_files",
    "strength_grid",
    "training_statistics",
]

FORECASTING = [
    "MAX_DENSE_ROWS",
    "MOST_ATTRIBUTES",
    "Backtest",
    "DirectRows",
    "ForecastModel",
    "Frequency",
    "LaggedPanel",
    "LoneValues",
    "NewProducts",
    "RangeTable",
    "RowChoice",
    "RowFeatures",
    "SeriesColumns",
    "SeriesPanel",
    "SeriesTable",
    "TriedRows",
    "backtest",
    "choose_rows",
    "direct_rows",
    "direct_statistics",
    "fit_forecaster",
    "forecast_all",
    "lag_dataset",
    "latest_lags",
    "latest_rows",
    "latest_tails",
    "n_periods_held_out",
    "new_products",
    "range_columns",
    "read_series",
    "read_series_table",
    "recursive_forecast",
    "rolling_origins",
    "series_scale",
    "split_by_time",
    "total_forecasts",
    "with_attributes",
    "without_lone_values",
]


def test_the_face_of_the_core() -> None:
    assert ccmtl_core.__all__ == CORE
    assert dir(ccmtl_core) == sorted(CORE) == CORE
    assert all(hasattr(ccmtl_core, name) for name in CORE)


def test_the_face_of_forecasting() -> None:
    assert ccmtl_core.forecasting.__all__ == FORECASTING
    assert all(hasattr(ccmtl_core.forecasting, name) for name in FORECASTING)


@pytest.mark.parametrize("module", [ccmtl_core, ccmtl_core.forecasting])
def test_a_name_that_there_is_not_is_an_attribute_error(module: ModuleType) -> None:
    with pytest.raises(AttributeError, match=rf"module '{module.__name__}' has no attribute 'fitt'"):
        module.fitt  # noqa: B018


def test_names_are_imported_when_they_are_asked_for() -> None:
    loaded = "import sys; from ccmtl_core import TaskDataset; print('ccmtl_core.solver' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", loaded], capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"


def test_strengths_have_one_name_everywhere() -> None:
    names = set()
    for module in (ccmtl_core, ccmtl_core.forecasting):
        for value in (getattr(module, name) for name in module.__all__):
            names |= {name for name in dir(value) if not name.startswith("_")}
            if inspect.isfunction(value):
                names |= inspect.signature(value).parameters.keys()
    assert {name for name in names if "strength" in name} == {"fusion_strength", "fusion_strengths"}
    assert not names & {"lam", "lambda_", "lmbda", "penalty"}

"""Train a forecaster on direct rows, and say of it what a version keeps."""

from __future__ import annotations

from typing import Any

import numpy as np

from app.datasets.stored.frames import LoadedPanel
from app.registry.forecasters import as_configuration, newest_past
from app.registry.publication import TrainedModel
from app.registry.schemas import ForecasterReport
from app.reports import POINTER_TO_NOTES, forecaster_notes
from app.training.progress import ProgressLog
from app.training.schemas import TrainingJobRequest
from app.training.task_data import not_forecast
from ccmtl_core import SolveStatus
from ccmtl_core.forecasting import ForecastModel, fit_forecaster, with_attributes

_NOT_SOLVED: dict[str, Any] = {
    "status": SolveStatus.CONVERGED,
    "solver": "none",
    "objective": 0.0,
    "gap": 0.0,
    "rounds": 0,
    "cg_iterations": 0,
    "seconds": {},
    "history": [],
    "notes": ["No series ever changed: each is forecast by its constant."],
}


def train_forecaster(loaded: LoadedPanel, request: TrainingJobRequest, log: ProgressLog) -> TrainedModel:
    """Fit a forecaster to all series, with what the request leaves open decided by validation."""
    assert request.horizon is not None
    assert not isinstance(request.fusion_strength, tuple)
    forecaster = fit_forecaster(
        loaded.panel,
        request.horizon,
        columns=loaded.columns,
        choices=request.candidates,
        fusion_strength=request.fusion_strength,
        aim=request.aim,
        tolerance=request.tolerance,
        n_jobs=-1,
        on_progress=log.selection,
        on_phase=log.enter,
    )
    if loaded.attributes is not None:
        forecaster = with_attributes(forecaster, loaded.attributes)
    told = dict(forecaster.report)
    held_out = told.get("held_out")
    definition = loaded.definition.model_dump(mode="json", include={"kind", "duplicates", "fill"})
    beside = {"columns": loaded.definition.columns.beside}
    asked = {"fusion_strength": request.fusion_strength, "tolerance": request.tolerance, "aim": request.aim}
    chosen = told.get("choices", {})
    return TrainedModel(
        weights=forecaster.model.weights,
        intercept=forecaster.model.intercept,
        task_ids=forecaster.unique_ids,
        feature_names=forecaster.features.names,
        history=None,
        configuration={**definition, **beside, **as_configuration(forecaster), **asked, **chosen},
        metrics={} if held_out is None else {**held_out, "n_periods_filled": loaded.n_filled},
        report=_report(forecaster, told, request.tolerance),
        forecaster=forecaster,
        newest_past=newest_past(forecaster, loaded.columns),
        n_samples=np.diff(loaded.panel.offsets),
        graph=forecaster.graph,
    )


def _report(forecaster: ForecastModel, told: dict[str, Any], tolerance: float) -> dict[str, Any]:
    solve = told.get("fit", {**_NOT_SOLVED, "tolerance": tolerance})
    used, left_out = told.get("n_rows", 0), told.get("n_left_out", 0)
    without_values = np.asarray(np.isnan(forecaster.tail).all(axis=1))
    missing, notes = not_forecast(without_values, forecaster.unique_ids, "their history")
    notes += forecaster_notes(told)
    possible = max(used + left_out, 1)
    return {
        **solve,
        "advice": SolveStatus(solve["status"]).advice + (POINTER_TO_NOTES if notes else ""),
        "notes": [*notes, *solve["notes"]],
        "fusion_strength": told.get("fusion_strength", 0.0),
        "rows": {"values": used + left_out, "used": used, "share": used / possible},
        "not_forecast": missing,
        "forecaster": {name: told[name] for name in ForecasterReport.model_fields if name in told},
    }

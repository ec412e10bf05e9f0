"""A model whose forecasts start from newer values than those that it was fitted to."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import polars as pl

from app.registry.forecasters import newest_past
from app.registry.publication import History
from app.registry.schemas import DataUsed
from app.registry.service import StoredModel
from ccmtl_core.forecasting import SeriesColumns, SeriesPanel, latest_lags


def with_newest(
    model: StoredModel,
    panel: SeriesPanel,
    columns: SeriesColumns | None,
    attributes: pl.DataFrame | None,
    data: DataUsed,
) -> StoredModel:
    """Return the model with the newest values of the panel; products that it lacks keep those that they had.

    What the panel has of products that the model was not fitted to is kept for forecasts from their like.
    """
    place = np.array([model.rows.get(name, -1) for name in panel.unique_ids], dtype=np.int64)
    known = panel.take(np.flatnonzero(place >= 0))
    if model.forecaster is None:
        assert model.history is not None
        lags, last_period = model.history.lags.copy(), model.history.last_period.copy()
        rows = place[place >= 0]
        lags[rows], last_period[rows] = latest_lags(known, lags.shape[1])
        return replace(model, history=History(lags, last_period), data=data)
    forecaster = model.forecaster.with_newest(known)
    past = newest_past(forecaster, columns)
    added = panel.take(np.flatnonzero(place < 0))
    return replace(
        model,
        forecaster=forecaster,
        newest_past=model.newest_past if past is None else past,
        data=data,
        added=added if added.n_series else None,
        added_attributes=attributes,
        added_columns=columns,
    )

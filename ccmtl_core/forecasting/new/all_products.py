"""Forecast all products at once: those with a history by their own, new and thin ones from their like."""

from __future__ import annotations

from typing import Any

import numpy as np
import polars as pl

from ccmtl_core.forecasting.fitted.forecast_model import ForecastModel
from ccmtl_core.forecasting.new.histories import are_thin
from ccmtl_core.forecasting.new.like_products import attribute_table
from ccmtl_core.forecasting.new.new_products import new_products
from ccmtl_core.series.columns import SeriesColumns


def forecast_all(
    forecaster: ForecastModel,
    attributes: Any,
    h: int | None = None,
    *,
    columns: SeriesColumns | None = None,
    **ranges: Any,
) -> pl.DataFrame:
    """Forecast the products of a forecaster and those that attributes alone are known of.

    Parameters
    ----------
    forecaster : ForecastModel
        Of T products.
    attributes : DataFrame of polars or pandas, or an Arrow table
        As in :func:`new_products`: ``unique_id`` and columns of text.
    h, columns, **ranges
        As in :meth:`ForecastModel.forecast`, which names ``level`` and ``quantiles``.

    Returns
    -------
    DataFrame
        As :meth:`ForecastModel.forecast` returns it, products in the order of the forecaster and then of the
        table; and ``status``: "ok" of a product that is forecast by its own history, "from_like" or
        "from_all" of one that has hardly any, as :class:`NewProducts` says. One that
        :meth:`ForecastModel.ended` has no rows, unless it has hardly any history and its columns are known of
        the periods to come.

    Raises
    ------
    ParameterError, DataError
        As :func:`new_products` and :meth:`ForecastModel.forecast` do.

    Examples
    --------
    >>> from ccmtl_core.forecasting import RowFeatures, SeriesPanel, fit_forecaster
    >>> values = [[1.0, 3.0] * 6, [2.0, 6.0] * 6, [3.0, 9.0] * 6, [4.0, 12.0] * 6]
    >>> panel = SeriesPanel(tuple("abcd"), [0, 12, 24, 36, 48], [*range(12)] * 4, np.ravel(values), "D")
    >>> forecaster = fit_forecaster(panel, 2, rows=RowFeatures(seasons=((2, 1),)))
    >>> table = pl.DataFrame({"unique_id": list("abcde"), "shop": ["x"] * 5})
    >>> forecast_all(forecaster, table, 1)["status"].to_list()
    ['ok', 'ok', 'ok', 'ok', 'from_all']
    """
    attributes = attribute_table(attributes)
    thin = are_thin(forecaster)
    ended = set(forecaster.ended(h, columns=columns))
    known = [
        name
        for name, is_thin in zip(forecaster.unique_ids, thin.tolist(), strict=True)
        if not is_thin and name not in ended
    ]
    found = forecaster.forecast(h, unique_ids=known, columns=columns, **ranges)
    found = found.with_columns(status=pl.lit("ok"))
    if not thin.any() and not (set(attributes["unique_id"]) - set(forecaster.unique_ids)):
        return found
    made = new_products(forecaster, attributes, columns=columns)
    gone = [name for name in made.forecaster.unique_ids if name in ended]
    needed = made.forecaster.missing_columns(h, unique_ids=gone, columns=columns)["unique_id"]
    left_out = set(needed)  # forecasts from the like start after the newest period, whatever the own last one
    new = [name for name in made.forecaster.unique_ids if name not in left_out]
    added = made.forecast(h, unique_ids=new, columns=columns, **ranges)
    both = pl.concat([found, added.select(found.columns)])
    order = dict.fromkeys([*forecaster.unique_ids, *attributes["unique_id"]])
    place = pl.DataFrame({"unique_id": list(order), "place": np.arange(len(order))})
    placed = both.join(place, on="unique_id", how="left", maintain_order="left")
    return placed.sort("place", maintain_order=True).drop("place")

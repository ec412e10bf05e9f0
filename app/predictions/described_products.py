"""New products that a request describes by their attributes and first values."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import polars as pl

from app.http.errors import Fault, InvalidContent
from app.http.names import hint
from app.predictions.request_tables import attribute_frame, history_panel, written
from app.predictions.wire import ForecastBatch
from app.registry.forecasters import nothing_known
from app.registry.service import StoredModel
from ccmtl_core import CCMTLError
from ccmtl_core.forecasting import ForecastModel, NewProducts, SeriesPanel, new_products
from ccmtl_core.forecasting.new.histories import MOST_TARGETS


def described(model: StoredModel, forecaster: ForecastModel, request: ForecastBatch) -> NewProducts:
    """Return the new products that a request describes, ready to be forecast; refuse what cannot be so."""
    table, panel = pl.DataFrame(schema={"unique_id": pl.String}), None
    if request.attributes is not None:
        table = attribute_frame(request.attributes)
        unknown = [name for name in table.columns if name != "unique_id" and name not in model.attributes]
        if unknown:
            faults = [
                Fault(
                    message=f"the dataset names no such attribute; {hint(name, model.attributes)}",
                    location=f"body.attributes.{name}",
                )
                for name in unknown
            ]
            raise InvalidContent(
                "unknown_attribute", "There are other attributes; see `errors`.", errors=faults
            )
    if request.history is not None:
        panel = history_panel(request.history, forecaster.frequency)
    known = [
        name for name in [*table["unique_id"], *(panel.unique_ids if panel else ())] if name in model.rows
    ]
    if known:
        where = "body.attributes" if request.attributes is not None else "body.history"
        fault = Fault(
            message=f"the model knows the product {known[0]!r}; its values are stored", location=where
        )
        raise InvalidContent(
            "product_is_known", "Only products that are new can be described.", errors=[fault]
        )
    _refuse_not_asked(request, table, panel)
    if panel is not None:
        _refuse_too_old(forecaster, panel)
    found: NewProducts = refusing(
        partial(new_products, forecaster, table, panel=panel, columns=nothing_known(forecaster))
    )
    return found


def _refuse_not_asked(request: ForecastBatch, table: pl.DataFrame, panel: SeriesPanel | None) -> None:
    """Refuse what is told of products that are not asked for: an id was mistyped, or is missing."""
    told = {"attributes": table["unique_id"].to_list(), "history": panel.unique_ids if panel else ()}
    asked = set(request.unique_id)
    faults = [
        Fault(message=f"`unique_id` does not ask for the product {name!r}", location=f"body.{part}.unique_id")
        for part, names in told.items()
        for name in names
        if name not in asked
    ]
    if faults:
        raise InvalidContent(
            "product_not_asked_for", "Only products that are asked for can be described.", errors=faults
        )


def _refuse_too_old(forecaster: ForecastModel, panel: SeriesPanel) -> None:
    """Refuse histories that end before what forecasts look at, which would be left out in silence."""
    last = panel.period[panel.offsets[1:] - 1]
    newest = max(int(forecaster.last_period.max()), int(last.max()))
    far = forecaster.features.reach + MOST_TARGETS
    bad = np.flatnonzero(newest - last >= far).tolist()
    if bad:
        at = pl.Series(forecaster.frequency.to_datetime(np.array([*last[bad], newest])))
        *ends, now = written(at, forecaster.frequency)
        faults = [
            Fault(
                message=f"the history of the product {panel.unique_ids[s]!r} ends at {day}, and forecasts "
                f"look at {far} periods up to {now} alone: correct its dates, or leave it out",
                location="body.history.ds",
            )
            for s, day in zip(bad, ends, strict=True)
        ]
        raise InvalidContent("history_too_old", "A history ends too long ago; see `errors`.", errors=faults)


def refusing(make: Callable[[], Any]) -> Any:
    """Return what ``make`` does, and answer what the library refuses as a fault of the request."""
    try:
        return make()
    except CCMTLError as error:
        raise InvalidContent("cannot_forecast", f"The products cannot be forecast: {error}.") from None

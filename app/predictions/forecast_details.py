"""Answer what forecasts are made of, what they need to know, and what they add up to."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import numpy as np
import polars as pl

from app.http.errors import Fault, InvalidContent
from app.predictions import wire
from app.predictions.described_products import refusing
from app.predictions.forecasts import (
    Asked,
    about,
    all_products,
    are_ended,
    asked_of,
    by_like,
    check_size,
    columns_of_new,
    decoded,
    forecast_all,
    forecaster_of,
    has_ended,
    missing,
    refuse_missing,
)
from app.predictions.request_tables import columns_of, written
from app.predictions.service import Refused
from app.registry.service import StoredModel, unknown_product
from ccmtl_core.forecasting import total_forecasts


def contributions(model: StoredModel, body: bytes) -> bytes:
    """Answer what each feature adds to the forecasts of some products."""
    request: wire.ContributionsRequest = decoded(body, wire.ContributionsRequest, wire.decode_contributions)
    asked = asked_of(model, request.h, "body", future=request.future)
    forecaster = forecaster_of(model)
    n_numbers = asked.h * (len(model.feature_names) + 1)
    check_size(len(request.unique_id), n_numbers)
    _refuse_unknown(model, request.unique_id)
    ended = are_ended(model, request.unique_id, asked)
    if ended.any():
        raise has_ended(model, request.unique_id[int(np.argmax(ended))], asked)
    refuse_missing(model, request.unique_id, asked)
    found = refusing(partial(_parts, model, request.unique_id, asked))
    names = list(model.feature_names)
    days = written(found["ds"], forecaster.frequency)
    parts = found.select(names).to_numpy()
    answers = [
        wire.Contribution(unique_id, ds, yhat, dict(zip(names, part, strict=True)), intercept, rest)
        for unique_id, ds, yhat, part, intercept, rest in zip(
            found["unique_id"], days, found["yhat"], parts.tolist(), found["intercept"], found["adjustment"],
            strict=True,
        )
    ]  # fmt: skip
    return wire.encode(wire.Contributions(*about(model), answers))


def _parts(model: StoredModel, unique_ids: Sequence[str], asked: Asked) -> pl.DataFrame:
    """What each feature adds, by the forecaster that forecasts each product, in the order asked for."""
    forecaster = forecaster_of(model)
    rows = np.array([model.rows.get(name, -1) for name in unique_ids])
    parts = []
    for added, at, own in by_like(model, unique_ids, asked, np.zeros(len(rows), dtype=np.bool_)):
        parts.append((added.forecaster, own, columns_of_new(model, added.forecaster, own, asked)))
        rows[at] = -1
    own = rows[rows >= 0]
    parts.append((forecaster, own, columns_of(forecaster, model.newest_past, own, asked.future)))
    found = [
        maker.contributions(
            asked.h, unique_ids=[maker.unique_ids[row] for row in np.unique(own).tolist()], columns=columns
        )
        for maker, own, columns in parts
        if len(own)
    ]
    wanted = pl.DataFrame({"unique_id": pl.Series(unique_ids, dtype=pl.String)})
    return wanted.join(pl.concat(found), on="unique_id", maintain_order="left_right")


def _refuse_unknown(model: StoredModel, unique_ids: Sequence[str]) -> None:
    unknown = [name for name in unique_ids if name not in model.rows]
    if unknown and (lost := set(unknown) - set(all_products(model))):
        raise Refused(partial(unknown_product, model, next(name for name in unknown if name in lost)))


def missing_columns(model: StoredModel, unique_ids: Sequence[str] | None, h: int | None) -> bytes:
    """Answer what must be known of some products, or all, to forecast them."""
    asked = asked_of(model, h, "query")
    wanted = list(all_products(model)) if unique_ids is None else list(unique_ids)
    _refuse_unknown(model, wanted)
    features = (
        ()
        if model.forecaster is None
        else (*model.forecaster.features.past, *model.forecaster.features.future)
    )
    check_size(len(wanted) * len(features), asked.h)
    unknown = missing(model, wanted, asked)
    answers = []
    if unknown is not None and model.frequency is not None:
        by_row = unknown.group_by("unique_id", "ds", maintain_order=True).agg("column")
        days = written(by_row["ds"], model.frequency)
        answers = [
            wire.MissingRow(*row)
            for row in zip(by_row["unique_id"], days, by_row["column"].to_list(), strict=True)
        ]
    ended = are_ended(model, wanted, asked)
    left_out = [name for name, is_ended in zip(wanted, ended.tolist(), strict=True) if is_ended]
    return wire.encode(wire.MissingColumns(*about(model), answers, left_out))


def totals(model: StoredModel, body: bytes) -> bytes:
    """Answer the sums of the forecasts of all products, by attributes."""
    request: wire.TotalsRequest = decoded(body, wire.TotalsRequest, wire.decode_totals)
    by, asked = request.by, asked_of(model, request.h, "body", future=request.future)
    forecaster = forecaster_of(model)
    names = list(model.attributes)
    if unknown := [name for name in by if name not in names]:
        there = f"there are {', '.join(map(repr, names))}" if names else "the dataset names none"
        fault = Fault(message=f"there is no attribute {unknown[0]!r}; {there}", location="body.by")
        raise InvalidContent("unknown_attribute", "The forecasts cannot be added up.", errors=[fault])
    parts = []
    for ids, numbers in forecast_all(model, asked):
        periods = numbers.last_period[:, None] + np.arange(1, asked.h + 1)
        parts.append(
            pl.DataFrame(
                {
                    "unique_id": pl.Series(ids, dtype=pl.String).gather(
                        np.repeat(np.arange(len(ids)), asked.h)
                    ),
                    "ds": periods.ravel(),
                    "yhat": numbers.values[:, :, 0].ravel(),
                }
            ).filter(pl.col("yhat").is_finite())
        )
    every = model.attribute_table
    found = total_forecasts(pl.concat(parts), every, by)
    days = forecaster.frequency.to_datetime(found["ds"].to_numpy())
    texts = written(pl.Series(days), forecaster.frequency)
    groups = found.select(by).to_dicts() if by else [{}] * len(found)
    answers = [
        wire.Total(*row) for row in zip(groups, texts, found["yhat"], found["n_products"], strict=True)
    ]
    return wire.encode(wire.Totals(*about(model), answers))

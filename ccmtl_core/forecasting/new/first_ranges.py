"""Ranges of products with few values, by what came after so few values of products like them.

The like products are forecast from past periods as if no more were known of each than of the product: the
newest values, or none. The errors of these forecasts hold all that is uncertain of such a product: its level,
its season, and whether it sells at all.
"""

from __future__ import annotations

import numpy as np

from ccmtl_core.base.types import BoolArray, FloatArray, IntArray
from ccmtl_core.forecasting.calibration.error_ranges import step_quantiles
from ccmtl_core.forecasting.calibration.range_table import RangeTable
from ccmtl_core.forecasting.fitted.forecast_model import ForecastModel
from ccmtl_core.forecasting.new.like_products import Alike, LikeProducts
from ccmtl_core.forecasting.new.posterior_weights import Prior
from ccmtl_core.forecasting.new.product_models import product_models
from ccmtl_core.series.columns import SeriesColumns

N_KNOWN = (0, 1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256)
"""Numbers of known values that errors are found for; another number has those of the next below."""
ORIGINS = 8
"""Past periods that like products are forecast from, a horizon apart."""
MOST_LIKE = 256
"""Like products that are forecast from each."""
MOST_MEMBERS = 4096
"""Products of all groups that their like are averaged over; of more, some groups tell enough."""
ENOUGH = 10
"""Errors of a step; of fewer, those of less knowledge are taken."""
FEW_HORIZONS = 4
"""A product with as many values as so many horizons, and enough for a row, is as well known as others."""
MOST_KINDS = 16
"""Combinations of attributes whose products are forecast from the past, those of the most new products."""
Errors = dict[tuple[int, bool], list[FloatArray]]


def first_ranges(
    alike: Alike,
    made: ForecastModel,
    own: FloatArray,
    like: LikeProducts,
    prior: Prior,
    columns: SeriesColumns | None,
    *,
    fill: bool = True,
) -> RangeTable:
    """Return the ranges of new products.

    Parameters
    ----------
    alike : Alike
        What the products are like.
    made : ForecastModel
        Of the n new ones, as :func:`product_models` made it of all that follows.
    own, like, prior, columns, fill
        As there.

    Returns
    -------
    RangeTable
        Of a product with many values, or whose like cannot be forecast from the past, as columns or their
        values do not go back so far, the ranges of its like, wider by the mean error of what is not known.
    """
    forecaster, n_own = alike.forecaster, (~np.isnan(own)).sum(axis=1)
    zero = (n_own > 0) & ~(np.nan_to_num(own) != 0.0).any(axis=1)
    few = n_own < max(forecaster.features.warm_up, FEW_HORIZONS * forecaster.horizon)
    n_known = np.array(N_KNOWN)[np.searchsorted(N_KNOWN, n_own, side="right") - 1]
    table = _of_like(forecaster, made.scale, like, n_own)
    quantiles, group, spread = list(table.quantiles), table.group.copy(), table.spread.copy()
    by_level = (n_own == 0) | zero  # the others have a level of their own
    shown = (alike.levels.effects[:, alike.known.new] != 0.0) & by_level
    kind = np.concatenate([alike.chosen[None], by_level[None], shown]).T
    kinds, place, count = np.unique(kind[few], axis=0, return_inverse=True, return_counts=True)
    for k in np.argsort(-count, kind="stable")[:MOST_KINDS]:
        members = np.flatnonzero(few)[place.reshape(-1) == k]
        errors = _errors(
            alike, int(kinds[k, 0]), kinds[k, 2:] != 0, np.unique(n_known[members]), prior, columns, fill
        )
        for n in np.unique(n_known[members]):
            for is_zero in (False, True):
                some = members[(n_known[members] == n) & (zero[members] == is_zero)]
                found = _enough(errors, int(n), is_zero) if len(some) else None
                if found is not None:
                    group[some], spread[some] = len(quantiles), like.spread[some]
                    quantiles.append(step_quantiles(found))
    return RangeTable(np.array(quantiles), group, spread)


def _of_like(forecaster: ForecastModel, scale: FloatArray, like: LikeProducts, n_own: IntArray) -> RangeTable:
    """Ranges of like products, wider by an error that their forecasts do not have."""
    table, short = forecaster.ranges, n_own < forecaster.features.warm_up
    more_error = np.where(n_own == 0, like.level_error / scale, np.where(short, like.move_error, 0.0))
    size = np.abs(table.quantiles).mean(axis=(1, 2))[like.range_group]
    wider = np.divide(more_error, size, out=np.zeros(len(size)), where=size > 0.0)
    return RangeTable(table.quantiles, like.range_group, np.hypot(like.spread, wider))


def _errors(
    alike: Alike,
    c: int,
    pattern: BoolArray,
    n_known: IntArray,
    prior: Prior,
    columns: SeriesColumns | None,
    fill: bool,
) -> Errors:
    """Errors (m, h) of past forecasts of products from so many of their values, and whether these are zeros.

    In units of each product and of its like's spread.
    """
    forecaster, known = alike.forecaster, alike.known
    h, R, errors = forecaster.horizon, known.tail.shape[1], Errors()
    members = _members(np.flatnonzero(known.like & (alike.group[c] >= 0)), alike.group[c])
    there = (~np.isnan(known.tail[members])).any(axis=0)
    reaches, begin = int(there.sum()), int(there.argmax())
    like_these = np.zeros(len(known.like), dtype=np.bool_)
    like_these[members] = True
    alike = alike._replace(known=known._replace(like=like_these))
    who = members[:: -(-len(members) // MOST_LIKE)]
    ids = [known.ids[s] for s in who]
    for back in _origins(h, reaches, forecaster.features.warm_up):
        tail = known.tail[:, begin : R - back]
        later = known.tail[who][:, R - back : R - back + h]
        like = alike.of_some(c, who, tail, without_own=True, pattern=pattern)
        newer = (~np.isnan(tail[who]))[:, ::-1].cumsum(axis=1)[:, ::-1]  # values from each period on
        for n in sorted({0, *n_known.tolist()}):
            own = np.where(newer <= n, tail[who], np.nan)
            made = product_models(forecaster, own, ids, known.origin - back, like, prior, columns, fill=fill)
            if (forecaster.features.past or forecaster.features.future) and (
                columns is None or len(made.missing_columns(h, columns=columns))
            ):
                return Errors()
            usable = (newer[:, 0] >= n) & ((n == 0) | (newer[:, -h:].max(axis=1) > 0))
            unit = (made.scale * like.spread)[:, None]
            error = (later - made.point_forecasts(h, columns=columns)) / np.where(unit > 0.0, unit, 1.0)
            zero = usable & ~(np.nan_to_num(own) != 0.0).any(axis=1)
            errors.setdefault((n, False), []).append(error[usable & ~zero if n else usable])
            errors.setdefault((n, True), []).append(
                error[zero] if n else _as_zero(later[usable] / unit[usable])
            )
    return errors


def _members(members: IntArray, group: IntArray) -> IntArray:
    """Of many products those of some groups, each whole; of one large group some."""
    most = -(-len(members) // MOST_MEMBERS)
    found = members[np.isin(group[members], np.unique(group[members])[::most])]
    return found[:: -(-len(found) // MOST_MEMBERS)]


def _origins(h: int, reaches: int, warm_up: int) -> list[int]:
    """How far back forecasts begin: where rows know all that they look at, or else half of it."""
    found = [back for back in range(h, ORIGINS * h + 1, h) if reaches - back >= warm_up]
    return found or [h] * (reaches - h >= max(h, warm_up / 2))


def _as_zero(values: FloatArray) -> FloatArray:
    """Errors of zero as a forecast where like products never sell nothing: it stays, or becomes like them."""
    return np.concatenate([values, np.zeros_like(values)])


def _enough(errors: Errors, n: int, is_zero: bool) -> FloatArray | None:
    """The errors from so much knowledge, (m, h), or from less where there are too few of them."""
    for less in sorted((m for m, _ in errors if m <= n), reverse=True):
        found = np.concatenate(errors[less, is_zero])
        if (~np.isnan(found)).sum() >= ENOUGH * found.shape[1] or less == 0:
            return found if (~np.isnan(found)).any() else None
    return None

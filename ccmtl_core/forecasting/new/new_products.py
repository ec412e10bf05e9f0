"""Forecast products that a forecaster was not fitted to, or that have hardly any history, from their like.

Like products share attributes, such as a department. What is not known of a new product's history is that of
its like, brought to its own level; its weights are the mean of theirs, moved as far as its own rows tell.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
import polars as pl

from ccmtl_core.base.arguments import check_kind
from ccmtl_core.base.arrays import as_integers, frozen
from ccmtl_core.base.display import counted, shown
from ccmtl_core.base.frozen_value import FrozenValue
from ccmtl_core.base.types import FloatArray, IntArray
from ccmtl_core.forecasting.calibration.range_table import RangeTable
from ccmtl_core.forecasting.fitted.forecast_model import ForecastModel
from ccmtl_core.forecasting.new.histories import MOST_TARGETS, Histories, histories, means, panel_of
from ccmtl_core.forecasting.new.like_products import LikeProducts, attribute_table, like_products
from ccmtl_core.forecasting.row_maker import RowMaker, check_columns, constant_values, series_scale
from ccmtl_core.forecasting.series_rows import block_statistics
from ccmtl_core.model.ccmtl_model import CCMTLModel
from ccmtl_core.series.columns import SeriesColumns
from ccmtl_core.series.panel import SeriesPanel

WORTH_OF_LIKE = 4.0
"""Changes of its own from value to value that count as much for a product's scale as those of its like."""
AT_A_TIME = 512
"""New products whose weights are found at a time."""
LEAST_VARIANCE = 1e-8
"""Of the largest variance of weights: what they vary by in every direction."""
_STORED = "attributes"


@dataclass(frozen=True, eq=False)
class NewProducts(FrozenValue):
    """Forecasts products that another forecaster was not fitted to.

    Parameters
    ----------
    forecaster : ForecastModel
        Of the n new products; before a product's first value its ``tail`` holds that of its like.
    status : tuple of n str
        "from_like" where a product is forecast from those that share attributes with it, "from_all" where
        from all.
    like : tuple of n str
        The attributes that it shares with its like, such as "department=12, store=7".
    n_like : (n,) int64
        How many these are.
    """

    forecaster: ForecastModel
    status: tuple[str, ...]
    like: tuple[str, ...]
    n_like: IntArray

    def __post_init__(self) -> None:
        object.__setattr__(self, "n_like", frozen(as_integers(self.n_like, "n_like")))

    def __repr__(self) -> str:
        number = counted(len(self.status), "product")
        return shown(self, number, f"{self.status.count('from_like'):,} from like products")

    def forecast(self, h: int | None = None, **keywords: Any) -> pl.DataFrame:
        """Forecast each new product from the newest period of all products on.

        Parameters
        ----------
        h, **keywords
            As in :meth:`ForecastModel.forecast`.

        Returns
        -------
        DataFrame
            Its columns, and ``status``, ``like`` and ``n_like`` of each product.
        """
        told = pl.DataFrame(
            {
                "unique_id": pl.Series(self.forecaster.unique_ids, dtype=pl.String),
                "status": pl.Series(self.status, dtype=pl.String),
                "like": pl.Series(self.like, dtype=pl.String),
                "n_like": self.n_like,
            }
        )
        found = self.forecaster.forecast(h, **keywords)
        return found.join(told, on="unique_id", how="left", maintain_order="left")


def with_attributes(forecaster: ForecastModel, attributes: Any) -> ForecastModel:
    """Return the forecaster with the attributes of its products, which its file then holds.

    Parameters
    ----------
    forecaster : ForecastModel
        Of T products.
    attributes : DataFrame of polars or pandas, or an Arrow table
        As in :func:`new_products`; rows of other products are left out.

    Returns
    -------
    ForecastModel

    Raises
    ------
    ParameterError, DataError
        A table that cannot be used.

    Examples
    --------
    >>> from ccmtl_core.forecasting import fit_forecaster
    >>> panel = SeriesPanel(("a", "b"), [0, 8, 16], [*range(8)] * 2, [1.0, 3.0] * 4 + [2.0, 8.0] * 4, "D")
    >>> table = pl.DataFrame({"unique_id": ["a", "b"], "shop": ["x", "x"]})
    >>> with_attributes(fit_forecaster(panel, 2), table).model.metadata["attributes"]
    {'shop': ['x', 'x']}
    """
    check_kind(forecaster, "forecaster", ForecastModel)
    rows = _rows_of(forecaster.unique_ids, attribute_table(attributes)).drop("unique_id")
    metadata = {**forecaster.model.metadata, _STORED: rows.to_dict(as_series=False)}
    return replace(forecaster, model=replace(forecaster.model, metadata=metadata))


def new_products(
    forecaster: ForecastModel,
    attributes: Any,
    *,
    panel: SeriesPanel | None = None,
    columns: SeriesColumns | None = None,
) -> NewProducts:
    """Make a forecaster of products that this one was not fitted to, or that have hardly any history.

    Parameters
    ----------
    forecaster : ForecastModel
        Fitted to other products.
    attributes : DataFrame of polars or pandas, or an Arrow table
        ``unique_id`` and at most eight columns of text, such as a store and a department, with one row for
        each new product and each of the forecaster; of the latter those that :func:`with_attributes` stored
        can be left out. A missing value is one that is not known.
    panel : SeriesPanel, optional
        Values of new products, and perhaps newer ones of others; what it does not hold has no history.
    columns : SeriesColumns, optional
        What the ``past`` and ``future`` features of the forecaster name. Where it has no row at all, products
        have the weights of their like.

    Returns
    -------
    NewProducts
        Of the products in ``attributes`` or ``panel`` that the forecaster does not have, and of those of it
        that have at most ``horizon`` values.

    Raises
    ------
    ParameterError
        No table, or one with too many attributes; columns that are needed and not given.
    DataError
        A table whose columns are missing or no text, or that holds a product twice; a panel of another
        frequency; no product that is new, or none with a history.

    Examples
    --------
    >>> from ccmtl_core.forecasting import RowFeatures, fit_forecaster
    >>> values = [[1.0, 3.0] * 6, [2.0, 6.0] * 6, [3.0, 9.0] * 6, [4.0, 12.0] * 6]
    >>> panel = SeriesPanel(tuple("abcd"), [0, 12, 24, 36, 48], [*range(12)] * 4, np.ravel(values), "D")
    >>> forecaster = fit_forecaster(panel, 2, rows=RowFeatures(seasons=((2, 1),)))
    >>> table = pl.DataFrame({"unique_id": list("abcde"), "shop": ["x"] * 5})
    >>> one_value = SeriesPanel(("e",), [0, 1], [11], [30.0], "D")
    >>> new_products(forecaster, table, panel=one_value).forecast()["yhat"].round(2).to_list()
    [10.0, 30.0]
    """
    check_kind(forecaster, "forecaster", ForecastModel)
    table = attribute_table(attributes)
    names = table.columns[1:]
    check_columns(columns, forecaster.features, forecaster.frequency)
    known = histories(forecaster, table["unique_id"].to_list(), panel)
    rows = _rows_of(known.ids, _with_stored(forecaster, table)).select("unique_id", *names)
    prior = _Prior.of(forecaster)
    like = like_products(forecaster, known, rows.select(names), prior.weights)
    told = [
        ", ".join(f"{names[c]}={row[c + 1]}" for c in shared)
        for row, shared in zip(rows.filter(known.new).rows(), like.attributes, strict=True)
    ]
    status = tuple("from_like" if words else "from_all" for words in told)
    return NewProducts(_made(forecaster, known, like, prior, columns), status, tuple(told), like.n)


def _rows_of(ids: Sequence[str], attributes: pl.DataFrame) -> pl.DataFrame:
    """The attributes of products, in their order; missing where the table does not have them."""
    products = pl.DataFrame({"unique_id": pl.Series(ids, dtype=pl.String)})
    return products.join(attributes, on="unique_id", how="left", maintain_order="left")


def _with_stored(forecaster: ForecastModel, attributes: pl.DataFrame) -> pl.DataFrame:
    """The table, with rows that a forecaster has for products that are not in it."""
    stored = forecaster.model.metadata.get(_STORED)
    if stored is None:
        return attributes
    table = pl.DataFrame(
        {"unique_id": forecaster.unique_ids, **stored}, schema_overrides=dict.fromkeys(stored, pl.String)
    )
    others = table.join(attributes, on="unique_id", how="anti")
    shared = ["unique_id", *(name for name in attributes.columns if name in stored)]
    return pl.concat([attributes, others.select(shared)], how="diagonal")


class _Prior(NamedTuple):
    """What weights are before a product's own rows are seen: normal around the mean of its like.

    Parameters
    ----------
    weights : (T, P + 1) float64
        Of the forecaster's products, and what is left of their intercepts, which rise with their levels in
        units of their scales, ``of_level`` times.
    root : (P + 1, P + 1) float64
        L, where L Lᵀ is the covariance of the weights of products that vary.
    noise : float
        Variance of a row.
    of_level : float
        See ``weights``.
    """

    weights: FloatArray
    root: FloatArray
    noise: float
    of_level: float

    @classmethod
    def of(cls, forecaster: ForecastModel) -> _Prior:
        model, varies = forecaster.model, np.isnan(forecaster.constant)
        level = np.nan_to_num(means(forecaster.tail)) / forecaster.scale
        square = float(level[varies] @ level[varies])
        of_level = float(model.intercept[varies] @ level[varies]) / square if square > 0.0 else 0.0
        weights = np.concatenate([model.weights, (model.intercept - of_level * level)[:, None]], axis=1)
        apart = weights[varies] - weights[varies].mean(axis=0) if varies.any() else weights[varies]
        values, vectors = np.linalg.eigh(apart.T @ apart / max(len(apart) - 1, 1))
        root = vectors * np.sqrt(np.maximum(values, LEAST_VARIANCE * values[-1]))
        return cls(weights, root, float(forecaster.report.get("error", 1.0)) ** 2, of_level)


def _made(
    forecaster: ForecastModel,
    known: Histories,
    like: LikeProducts,
    prior: _Prior,
    columns: SeriesColumns | None,
) -> ForecastModel:
    """The forecaster of the new products."""
    own, n_own = known.tail[known.new], known.n_values[known.new]
    ids = tuple(known.ids[s] for s in np.flatnonzero(known.new))
    panel = panel_of(own, known.origin, ids, forecaster.frequency)
    filled = _filled(own, n_own, like, forecaster.horizon, forecaster.features.reach)
    tail = filled[:, -forecaster.features.reach :]
    level = np.nan_to_num(means(tail))
    scale = series_scale(panel)
    borrowed = like.unevenness * np.abs(level)
    n_changes = np.maximum(n_own - 1, 0)
    squares = n_changes * scale**2 + WORTH_OF_LIKE * np.where(borrowed > 0.0, borrowed, scale) ** 2
    scale = np.sqrt(squares / (n_changes + WORTH_OF_LIKE))
    constant = constant_values(panel)
    constant[(n_own <= forecaster.horizon) & (constant != 0.0)] = np.nan
    if not np.isnan(forecaster.constant).any():
        constant = np.where(np.isnan(constant), level, constant)
    weights = like.weights.copy()
    moving = np.flatnonzero((n_own > forecaster.horizon) & np.isnan(constant))
    if columns is not None and not len(columns.period):  # no row can be made
        moving = moving[:0]
    _move(weights, moving, forecaster, prior, own, filled, scale, level / scale, known.origin, ids, columns)
    short = n_own < forecaster.features.warm_up
    more_error = np.where(n_own == 0, like.level_error / scale, np.where(short, like.move_error, 0.0))
    intercept = weights[:, -1] + prior.of_level * level / scale
    names = forecaster.model.feature_names
    return replace(
        forecaster,
        model=CCMTLModel(weights[:, :-1], ids, names, {}, intercept),
        scale=scale,
        nonnegative=like.nonnegative & ~(own < 0.0).any(axis=1),
        constant=constant,
        tail=tail,
        last_period=np.full(len(ids), known.origin),
        ranges=_ranges(forecaster.ranges, like, more_error),
        report={"new_products": len(ids)},
        graph=None,
    )


def _ranges(table: RangeTable, like: LikeProducts, more_error: FloatArray) -> RangeTable:
    """Ranges of like products, wider by an error that their forecasts do not have, in units of the scale."""
    size = np.abs(table.quantiles).mean(axis=(1, 2))[like.range_group]
    wider = np.divide(more_error, size, out=np.zeros(len(size)), where=size > 0.0)
    return RangeTable(table.quantiles, like.range_group, np.hypot(like.spread, wider))


def _filled(own: FloatArray, n_own: IntArray, like: LikeProducts, horizon: int, reach: int) -> FloatArray:
    """Histories (n, R), before the first value those of like products at the level of the product's own.

    Of products that ended before what rows can reach, so are all values that are not known.
    """
    both = ~np.isnan(own) & ~np.isnan(like.history)
    total, of_like = (np.where(both, values, 0.0).sum(axis=1) for values in (own, like.history))
    level_of_like = means(like.history)
    top, below = np.where(n_own > 0, total, like.level), np.where(n_own > 0, of_like, level_of_like)
    usable = (below > 0.0) & (top >= 0.0) & (like.tells | (n_own > horizon) | (n_own == 0))
    ratio = np.divide(top, below, out=np.zeros(len(top)), where=usable)
    flat = np.where(n_own > 0, means(own), like.level)
    brought = np.where(usable[:, None], ratio[:, None] * like.history, flat[:, None])
    ended = np.isnan(own[:, -reach:]).all(axis=1)
    first = np.where(ended, own.shape[1], (~np.isnan(own)).argmax(axis=1))
    return np.where(np.isnan(own) & (np.arange(own.shape[1]) < first[:, None]), brought, own)


def _move(
    weights: FloatArray,
    moving: IntArray,
    forecaster: ForecastModel,
    prior: _Prior,
    own: FloatArray,
    filled: FloatArray,
    scale: FloatArray,
    level: FloatArray,
    origin: int,
    ids: Sequence[str],
    columns: SeriesColumns | None,
) -> None:
    """Move weights from those of like products to their posterior mean, given rows of own targets.

    The rows of one target, one of each step, count as one, as they share its noise.
    """
    features, h, R = forecaster.features, forecaster.horizon, own.shape[1]
    begins = (~np.isnan(filled)).argmax(axis=1)
    warm = begins + np.minimum(features.warm_up, (R - begins) // 2) - 1
    first = np.maximum.reduce([(~np.isnan(own)).argmax(axis=1), warm, np.full(len(own), R - MOST_TARGETS)])
    noise, L = prior.noise * h, prior.root
    for start in np.unique(first[moving]):
        together = moving[first[moving] == start]
        for low in range(0, len(together), AT_A_TIME):
            some = together[low : low + AT_A_TIME]
            panel = panel_of(filled[some], origin, [ids[t] for t in some], forecaster.frequency)
            origins = np.arange(origin + 1 - R + start, origin)
            maker = RowMaker(panel, features, h, origins, scale[some], columns=columns)
            rows = block_statistics(maker, panel, features)[0]
            assert rows.x_sum is not None
            assert rows.y_sum is not None
            gram = np.concatenate([rows.gram, rows.x_sum[:, None, :]], axis=1)
            last = np.concatenate([rows.x_sum, rows.n_samples[:, None]], axis=1)
            gram = np.concatenate([gram, last[:, :, None]], axis=2)
            xty = np.concatenate([rows.xty, rows.y_sum[:, None]], axis=1)
            xty -= last * (prior.of_level * level[some])[:, None]
            xty -= np.einsum("tpq,tq->tp", gram, weights[some])
            precision = L.T @ gram @ L / noise + np.eye(len(L))
            weights[some] += np.linalg.solve(precision, (xty @ L / noise)[:, :, None])[:, :, 0] @ L.T

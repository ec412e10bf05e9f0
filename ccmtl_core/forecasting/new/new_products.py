"""Forecast products that a forecaster was not fitted to, or that have hardly any history, from their like.

Like products share attributes, such as a department. What is not known of a new product's history is that of
its like, brought to its own level; its weights are the mean of theirs, moved as far as its own rows tell.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import polars as pl

from ccmtl_core.base.arguments import check_kind
from ccmtl_core.base.arrays import as_integers, frozen
from ccmtl_core.base.display import counted, shown
from ccmtl_core.base.frozen_value import FrozenValue
from ccmtl_core.base.types import IntArray
from ccmtl_core.forecasting.fitted.forecast_model import ForecastModel
from ccmtl_core.forecasting.new.first_ranges import first_ranges
from ccmtl_core.forecasting.new.histories import histories
from ccmtl_core.forecasting.new.like_products import Alike, attribute_table
from ccmtl_core.forecasting.new.posterior_weights import Prior
from ccmtl_core.forecasting.new.product_models import product_models
from ccmtl_core.forecasting.row_maker import check_columns
from ccmtl_core.series.columns import SeriesColumns
from ccmtl_core.series.panel import SeriesPanel

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
    prior = Prior.of(forecaster, known.like[: len(forecaster.unique_ids)])
    alike = Alike.of(forecaster, known, rows.select(names), prior.weights)
    told = [
        ", ".join(f"{names[a]}={row[a + 1]}" for a in alike.combined[c])
        for row, c in zip(rows.filter(known.new).rows(), alike.chosen.tolist(), strict=True)
    ]
    status = tuple("from_like" if words else "from_all" for words in told)
    like, own = alike.of_new(), known.tail[known.new]
    ids = tuple(known.ids[s] for s in np.flatnonzero(known.new))
    made = product_models(forecaster, own, ids, known.origin, like, prior, columns)
    ranges = first_ranges(alike, made, own, like, prior, columns)
    return NewProducts(replace(made, ranges=ranges), status, tuple(told), alike.n_like)


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

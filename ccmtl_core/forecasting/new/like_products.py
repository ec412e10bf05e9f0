"""Find the products that a new one is like by attributes, and what they are like."""

from __future__ import annotations

from itertools import combinations
from typing import Any, NamedTuple

import numpy as np
import polars as pl

from ccmtl_core.base.arrays import refuse
from ccmtl_core.base.display import quoted
from ccmtl_core.base.exceptions import DataError, ParameterError
from ccmtl_core.base.id_codes import id_codes
from ccmtl_core.base.types import BoolArray, FloatArray, IntArray
from ccmtl_core.data.frames import as_polars
from ccmtl_core.forecasting.fitted.forecast_model import ForecastModel
from ccmtl_core.forecasting.new import MOST_ATTRIBUTES
from ccmtl_core.forecasting.new.histories import Histories, means
from ccmtl_core.forecasting.new.levels import LEAST_LIKE, Levels
from ccmtl_core.kernels.grouping import group_sums

CLEARLY = 0.95
"""Error of what like products tell, over that of no move, below which it is believed."""
WINDOWS = 6
"""Horizons that groups are judged on."""


class LikeProducts(NamedTuple):
    """What the products are like that each of n new ones is forecast from.

    Parameters
    ----------
    tells : (n,) bool
        Whether how they move tells clearly better how a product of theirs moves than that it stays as it is.
    history : (n, R) float64
        Mean of their values.
    level : (n,) float64
        What a product of its attributes can be expected to sell in a period.
    level_error : (n,) float64
        Mean absolute error of such an expectation.
    move_error : (n,) float64
        Mean absolute error of values, in units of the scale, where they tell how a product of theirs moves.
    unevenness : (n,) float64
        Median of scale over level.
    nonnegative : (n,) bool
        Whether most of them have no negative value.
    range_group : (n,) int64
        Group of most of them in the forecaster's table of ranges.
    spread : (n,) float64
        Mean of theirs in that table.
    weights : (n, P) float64
        Mean of theirs; of all products' where they do not tell how a product moves, or too few of them vary.
    """

    tells: BoolArray
    history: FloatArray
    level: FloatArray
    level_error: FloatArray
    move_error: FloatArray
    unevenness: FloatArray
    nonnegative: BoolArray
    range_group: IntArray
    spread: FloatArray
    weights: FloatArray


def attribute_table(attributes: Any) -> pl.DataFrame:
    """Return the attributes as a table of polars, ``unique_id`` first.

    Raises
    ------
    ParameterError, DataError
        No table; columns that are missing, too many or no text; a product twice.
    """
    table = as_polars(attributes, "attributes")
    if "unique_id" not in table.columns:
        raise DataError(f"attributes need a column 'unique_id'; there are {', '.join(table.columns)}")
    wrong = [name for name, kind in table.schema.items() if kind != pl.String]
    advice = "make it text, by cast(polars.String) or in pandas astype(str)"
    refuse([f"column {quoted(n)} must be text, not {table.schema[n]}: {advice}" for n in wrong])
    ids = table["unique_id"]
    if ids.null_count():
        raise DataError("column 'unique_id' of the attributes has a missing value")
    twice = ids.filter(ids.is_duplicated()).unique(maintain_order=True)
    refuse([f"the attributes hold the product {quoted(name)} twice" for name in twice])
    columns = [name for name in table.columns if name != "unique_id"]
    if len(columns) > MOST_ATTRIBUTES:
        raise ParameterError(f"attributes must be at most {MOST_ATTRIBUTES} columns, not {len(columns)}")
    return table.select("unique_id", *columns)


class Alike(NamedTuple):
    """How S products are alike by C combinations of attributes, of which the last is none: all products.

    Parameters
    ----------
    forecaster : ForecastModel
        Of T products that others can be like.
    known : Histories
        Of the S products.
    weights : (T, P) float64
        What is averaged over like products.
    combined : list of C tuples of int
        Columns of the attributes.
    group : (C, S) int64
        The group of each product by each combination; -1 where not known.
    tells : (C,) bool
        As in :class:`LikeProducts`.
    move_error : (C,) float64
        As in :class:`LikeProducts`.
    levels : Levels
        What attributes tell of levels.
    chosen : (n,) int64
        The combination of each new product.
    n_like : (n,) int64
        How many others share it.
    """

    forecaster: ForecastModel
    known: Histories
    weights: FloatArray
    combined: list[tuple[int, ...]]
    group: IntArray
    tells: BoolArray
    move_error: FloatArray
    levels: Levels
    chosen: IntArray
    n_like: IntArray

    @classmethod
    def of(
        cls, forecaster: ForecastModel, known: Histories, attributes: pl.DataFrame, weights: FloatArray
    ) -> Alike:
        """Find which products are alike, and by which attributes each new one is best told.

        A combination of attributes is used if products that share it tell better than all products do how
        each of them moves; the best combination first.

        Parameters
        ----------
        forecaster, known, weights
            As in the class.
        attributes : polars DataFrame
            A row for each of the S products, in their order; columns of text.

        Returns
        -------
        Alike
        """
        codes, new = _codes(attributes, len(known.ids)), np.flatnonzero(known.new)
        combined = [c for n in range(len(codes), 0, -1) for c in combinations(range(len(codes)), n)]
        every = np.zeros(len(known.ids), dtype=np.int64)
        group = np.stack([*(_joined(codes[list(c)]) for c in combined), every])
        worth, move_error = _worth(forecaster, known, group)
        chosen, n_like = np.zeros(len(new), dtype=np.int64), np.zeros(len(new), dtype=np.int64)
        for c in [len(combined), *np.argsort(-worth[:-1], kind="stable").tolist()]:  # the best comes last
            size = np.where(group[c, new] >= 0, _counts(group[c], known.like)[group[c, new]], 0)
            used = (size >= LEAST_LIKE) & (worth[c] < worth[-1]) | (c == len(combined))
            chosen[used], n_like[used] = c, size[used]
        levels = Levels.of(known, codes)
        told = worth < CLEARLY
        of_groups = [*combined, ()], group, told, move_error
        return cls(forecaster, known, weights, *of_groups, levels, chosen, n_like)

    def of_new(self) -> LikeProducts:
        """Return what the new products are like."""
        new = np.flatnonzero(self.known.new)
        parts = [np.flatnonzero(self.chosen == c) for c in np.unique(self.chosen)]
        found = [self.of_some(int(self.chosen[some[0]]), new[some], self.known.tail) for some in parts]
        place = np.argsort(np.concatenate(parts))
        return LikeProducts(*(np.concatenate(own)[place] for own in zip(*found, strict=True)))

    def of_some(
        self,
        c: int,
        who: IntArray,
        tail: FloatArray,
        *,
        without_own: bool = False,
        pattern: BoolArray | None = None,
    ) -> LikeProducts:
        """Return what products are like by one combination of attributes.

        Parameters
        ----------
        c : int
            The combination.
        who : (k,) int64
            Products, each of a group of it.
        tail : (S, R) float64
            Values of all products.
        without_own : bool
            Whether these are like products, and what each is like are the others of its group.
        pattern : (A,) bool, optional
            Attributes that tell of the levels; by default all that do.

        Returns
        -------
        LikeProducts
            Of these k.
        """
        forecaster, group, ranges = self.forecaster, self.group[c], self.forecaster.ranges
        members = np.flatnonzero(self.known.like & (group >= 0))
        own, G, wanted = group[members], int(group.max()) + 1, group[who]
        there = ~np.isnan(tail[members])
        n = group_sums(own, there.astype(np.float64), G)[wanted]
        history = group_sums(own, np.where(there, tail[members], 0.0), G)[wanted]
        varying = members[np.isnan(forecaster.constant[members])]
        n_varying = np.bincount(group[varying], minlength=G)[wanted]
        weights = group_sums(group[varying], self.weights[varying], G)[wanted]
        if without_own:
            n = n - ~np.isnan(tail[who])
            history = history - np.nan_to_num(tail[who])
            varies = np.isnan(forecaster.constant[who])
            n_varying = n_varying - varies
            weights = weights - np.where(varies[:, None], self.weights[who], 0.0)
        every = np.isnan(forecaster.constant) & self.known.like[: len(forecaster.constant)]
        of_all = self.weights[every].mean(axis=0) if every.any() else np.zeros(weights.shape[1])
        enough = (n_varying >= LEAST_LIKE) & self.tells[c]
        size = np.abs(means(self.known.tail[members]))
        uneven = np.divide(forecaster.scale[members], size, out=np.zeros(len(size)), where=size > 0.0)
        table = pl.DataFrame(
            {
                "group": own,
                "uneven": uneven,
                "nonnegative": forecaster.nonnegative[members],
                "range_group": ranges.group[members],
                "spread": ranges.spread[members],
            }
        )
        told = table.group_by("group").agg(
            pl.col("uneven").median(),
            pl.col("spread", "nonnegative").mean(),
            pl.col("range_group").mode().min(),
        )
        of_each = pl.DataFrame({"group": wanted}).join(told, on="group", how="left", maintain_order="left")
        level, level_error = self.levels.expected(who, pattern)
        return LikeProducts(
            history=np.divide(history, n, out=np.full(history.shape, np.nan), where=n > 0),
            tells=np.full(len(who), self.tells[c]),
            level=level,
            level_error=level_error,
            move_error=np.full(len(who), self.move_error[c]),
            unevenness=of_each["uneven"].to_numpy(),
            nonnegative=of_each["nonnegative"].to_numpy() >= 0.5,
            range_group=of_each["range_group"].to_numpy(),
            spread=of_each["spread"].to_numpy(),
            weights=np.where(enough[:, None], weights / np.maximum(n_varying, 1)[:, None], of_all),
        )


def _codes(attributes: pl.DataFrame, n_products: int) -> IntArray:
    """The value of each product in each column as a number, (A, S); -1 where not known."""
    codes = np.full((attributes.width, n_products), -1)
    for code, column in zip(codes, attributes, strict=True):
        code[column.is_not_null().to_numpy()] = id_codes(column.drop_nulls(), ordered=False)[1]
    return codes


def _joined(codes: IntArray) -> IntArray:
    """The group of each product by several columns, (S,); -1 where one is not known."""
    group = np.unique(codes, axis=1, return_inverse=True)[1].reshape(-1)
    return np.where((codes < 0).any(axis=0), -1, group)


def _counts(group: IntArray, members: BoolArray) -> IntArray:
    """How many members each group has."""
    return np.bincount(group[members & (group >= 0)], minlength=max(int(group.max(initial=0)), 0) + 1)


def _worth(forecaster: ForecastModel, known: Histories, group: IntArray) -> tuple[FloatArray, FloatArray]:
    """Error of how groups say that their products moved, over that of no move, (C,), and its mean, (C,).

    The values of a horizon are forecast from a product's mean over the horizon before, as the total of the
    others of its group moved, in units of its scale: for the newest horizon and a few before it.
    """
    h = max(1, min(forecaster.horizon, known.tail.shape[1] // 2))
    T, ends = len(forecaster.unique_ids), range(known.tail.shape[1], 2 * h - 1, -h)
    unit = np.ones(len(known.ids))
    unit[:T] = forecaster.scale
    like = known.like.copy()
    like[:T] &= np.isnan(forecaster.constant)
    moved, still, n = np.zeros((3, len(group)))
    for end in ends[:WINDOWS]:
        after, before = known.tail[:, end - h : end], means(known.tail[:, end - 2 * h : end - h])
        judged = like & ~np.isnan(means(after) + before)
        for c, of in enumerate(group):
            some = np.flatnonzero(judged & (of >= 0))
            own, G = of[some], max(int(of.max()), 0) + 1
            later = np.where(np.isnan(after[some]), before[some, None], after[some])
            others = np.bincount(own, minlength=G)[own] - 1
            total = group_sums(own, later, G)[own] - later
            earlier = group_sums(own, before[some], G)[own] - before[some]
            told = (others >= LEAST_LIKE) & (earlier > 0.0)
            some, share = some[told], total[told] / earlier[told, None]
            expected = before[some, None] * share
            error = np.abs(after[some] - expected) / unit[some, None]
            moved[c] += np.nansum(error)
            still[c] += np.nansum(np.abs(after[some] - before[some, None]) / unit[some, None])
            n[c] += (~np.isnan(error)).sum()
    return np.divide(moved, still, out=np.ones(len(group)), where=still > 0.0), moved / np.maximum(n, 1.0)

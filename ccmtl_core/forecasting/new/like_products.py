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
from ccmtl_core.kernels.grouping import group_sums

LEAST_LIKE = 3
"""Products that must share attributes for another to be forecast from them."""
CLEARLY = 0.95
"""Error of what like products tell, over that of no move, below which it is believed."""
WINDOWS = 6
"""Horizons that groups are judged on."""
ROUNDS = 20
"""In which the effects of attributes on the level settle."""


class LikeProducts(NamedTuple):
    """What the products are like that each of n new ones is forecast from.

    Parameters
    ----------
    attributes : list of n tuples of int
        Columns of the attributes that it shares with them; none where they are all products.
    n : (n,) int64
        How many they are.
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

    attributes: list[tuple[int, ...]]
    n: IntArray
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


def like_products(
    forecaster: ForecastModel, known: Histories, attributes: pl.DataFrame, weights: FloatArray
) -> LikeProducts:
    """Find what each new product is like.

    A combination of attributes is used if products that share it tell better than all products do how each of
    them moves; the best combination first.

    Parameters
    ----------
    forecaster : ForecastModel
        Of the T products that others can be like.
    known : Histories
        Of S products.
    attributes : polars DataFrame
        A row for each of the S products, in their order; columns of text.
    weights : (T, P) float64
        What is averaged over like products.

    Returns
    -------
    LikeProducts
    """
    codes, new = _codes(attributes, len(known.ids)), np.flatnonzero(known.new)
    columns = range(len(codes))
    combined = [c for n in range(len(codes), 0, -1) for c in combinations(columns, n)]
    group = np.stack([*(_joined(codes[list(c)]) for c in combined), np.zeros(len(known.ids), dtype=np.int64)])
    worth, move_error = _worth(forecaster, known, group)
    chosen, n_like = np.zeros(len(new), dtype=np.int64), np.zeros(len(new), dtype=np.int64)
    for c in [len(combined), *np.argsort(-worth[:-1], kind="stable").tolist()]:  # the best comes last
        size = np.where(group[c, new] >= 0, _counts(group[c], known.like)[group[c, new]], 0)
        used = (size >= LEAST_LIKE) & (worth[c] < worth[-1]) if c < len(combined) else np.full(len(new), True)
        chosen[used], n_like[used] = c, size[used]
    combined.append(())
    level, level_error = _levels(known, codes)
    n, R, P = len(new), known.tail.shape[1], weights.shape[1]
    found = LikeProducts(
        attributes=[combined[c] for c in chosen],
        n=n_like,
        tells=worth[chosen] < CLEARLY,
        history=np.empty((n, R)),
        level=level[new],
        level_error=level_error[new],
        move_error=move_error[chosen],
        unevenness=np.empty(n),
        nonnegative=np.empty(n, dtype=np.bool_),
        range_group=np.empty(n, dtype=np.int64),
        spread=np.empty(n),
        weights=np.empty((n, P)),
    )
    for c in np.unique(chosen):
        _describe(found, forecaster, known, group[c], weights, np.flatnonzero(chosen == c))
    return found


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


def _levels(known: Histories, codes: IntArray) -> tuple[FloatArray, FloatArray]:
    """The level that the attributes of each product let expect, (S,), and the mean error of that, (S,).

    Each attribute multiplies the level by a factor: logarithms of levels are parted into effects by medians
    of what the other effects leave. Where fewer than half of the products have a positive level, the median.
    """
    level = means(known.tail)
    positive = known.like & (level > 0.0)
    if 2 * positive.sum() < known.like.sum():
        middle = np.median(level[known.like])
        error = np.abs(level[known.like] - middle).mean()
        return np.full(len(level), middle), np.full(len(level), error)
    logs = np.log(level[positive])
    base, effects = np.median(logs), np.zeros(codes.shape)
    for _ in range(ROUNDS if len(codes) > 1 else 1):
        for own, effect in zip(codes, effects, strict=True):
            left = logs - base - (effects.sum(axis=0) - effect)[positive]
            told = pl.DataFrame({"code": own[positive], "left": left}).filter(pl.col("code") >= 0)
            found = told.group_by("code").agg(pl.col("left").median(), pl.len())
            some = found.filter(pl.col("len") >= LEAST_LIKE)
            of_code = np.zeros(max(int(own.max(initial=0)), 0) + 1)
            of_code[some["code"].to_numpy()] = some["left"].to_numpy()
            effect[:] = np.where(own >= 0, of_code[own], 0.0)
    expected: FloatArray = np.exp(np.minimum(base + effects.sum(axis=0), logs.max()))
    error = np.empty(len(level))
    patterns, pattern = np.unique(effects != 0.0, axis=1, return_inverse=True)
    for p, with_effect in enumerate(patterns.T):
        # How wrong levels are that are expected from these attributes alone:
        of_these = np.exp(base + effects[with_effect][:, positive].sum(axis=0))
        same = pattern.reshape(-1) == p
        error[same] = np.abs(level[positive] - of_these).sum() / of_these.sum() * expected[same]
    return expected, error


def _describe(
    found: LikeProducts,
    forecaster: ForecastModel,
    known: Histories,
    group: IntArray,
    weights: FloatArray,
    some: IntArray,
) -> None:
    """Fill in what those of the new products are like that are of groups of one combination."""
    members = np.flatnonzero(known.like & (group >= 0))
    own, tail, G = group[members], known.tail[members], int(group.max()) + 1
    there = ~np.isnan(tail)
    n_there = group_sums(own, there.astype(np.float64), G)
    sums = group_sums(own, np.where(there, tail, 0.0), G)
    history = np.divide(sums, n_there, out=np.full(sums.shape, np.nan), where=n_there > 0)
    size, ranges = np.abs(means(tail)), forecaster.ranges
    table = pl.DataFrame(
        {
            "group": own,
            "uneven": np.divide(forecaster.scale[members], size, out=np.zeros(len(size)), where=size > 0.0),
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
    varying = np.isnan(forecaster.constant[members])
    n_varying = np.bincount(own[varying], minlength=G)[:, None]
    total = group_sums(own[varying], weights[members[varying]], G)
    varies = np.isnan(forecaster.constant)
    of_all = weights[varies].mean(axis=0) if varies.any() else np.zeros(weights.shape[1])
    enough = (n_varying >= LEAST_LIKE) & found.tells[some[0]]
    mean = np.where(enough, total / np.maximum(n_varying, 1), of_all)
    wanted = group[np.flatnonzero(known.new)[some]]
    found.history[some], found.weights[some] = history[wanted], mean[wanted]
    of_wanted = pl.DataFrame({"group": wanted}).join(told, on="group", how="left", maintain_order="left")
    found.unevenness[some], found.spread[some] = of_wanted["uneven"], of_wanted["spread"]
    found.range_group[some] = of_wanted["range_group"]
    found.nonnegative[some] = (of_wanted["nonnegative"] >= 0.5).to_numpy()

"""Fill the rows of series: per origin what all steps share, per target what only its step has.

A series is a stretch of consecutive periods, NaN where a value is not known. ``i`` is the place of the origin
in it: nothing behind that place is read.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ccmtl_core.base.types import BoolArray, FloatArray, IntArray
from ccmtl_core.kernels.compiled import kernel


class RowPlan(NamedTuple):
    """Which features a row has, in the order of its columns; the first five kinds are shared by all steps.

    Parameters
    ----------
    spans : (S,) int64
        Rising lengths of windows that end with the origin: those of levels, and one season each.
    windows : (·,) int64
        Places in ``spans`` of the levels.
    decays, decay_lengths : (·,) float64, (·,) int64
        Exponentially weighted means: what a value counts beside the next one, and over how many periods.
    lags : (·,) int64
    season_levels : (·, 3) int64
        Length of the season, of the window, and the place in ``spans`` of the level to fall back to.
    n_past : int
        Columns beside the values, as they are at the origin.
    trends : (·, 2) int64
        Places in ``spans`` of a level and of one of twice its length.
    seasons : (·, 3) int64
        Length of the season, how many back, and the level to fall back to.
    season_means : (·, 3) int64
        Length of the season, how many of them, and the level to fall back to.
    n_future : int
        Columns beside the values, as they are at the target; in a row they come after the calendar.
    """

    spans: IntArray
    windows: IntArray
    decays: FloatArray
    decay_lengths: IntArray
    lags: IntArray
    season_levels: IntArray
    n_past: int
    trends: IntArray
    seasons: IntArray
    season_means: IntArray
    n_future: int


class Stretches(NamedTuple):
    """Series as stretches of consecutive periods.

    Parameters
    ----------
    values : (N,) float64
        NaN where not known.
    bounds : (T + 1,) int64
        Series t is ``values[bounds[t]:bounds[t + 1]]``.
    first : (T,) int64
        Its first period.
    columns : (N, C) float64
        Columns beside the values, those of the past first; NaN where not known.
    """

    values: FloatArray
    bounds: IntArray
    first: IntArray
    columns: FloatArray


class Targets(NamedTuple):
    """Which rows are asked for, by tables that begin with the period ``base``.

    Parameters
    ----------
    base : int
    origin : (Q,) int64
        The number of each period among the origins; −1 where it is none.
    block : (Q,) int64
        The block of each period as a target; −1 where it is not asked for.
    calendar : (Q, C) float64
        What the date of each period tells.
    horizon : int
        Steps from an origin.
    """

    base: int
    origin: IntArray
    block: IntArray
    calendar: FloatArray
    horizon: int


class Rows(NamedTuple):
    """Where rows go: features (n, P), target (n,), the target's period (n,), steps from the origin (n,)."""

    X: FloatArray
    y: FloatArray
    period: IntArray
    step: IntArray


@kernel
def fill_rows(series: Stretches, targets: Targets, plan: RowPlan, rows: Rows, counts: IntArray) -> int:
    """Fill rows by series, target and step; count them by series and block; return how many were left out."""
    n_origins = 0
    for o in targets.origin:
        n_origins = max(n_origins, o + 1)
    P, C = rows.X.shape[1], targets.calendar.shape[1]
    F = plan.n_future
    n_own = P - F - C - len(plan.trends) - len(plan.seasons) - len(plan.season_means)
    shared = np.empty((n_origins, n_own))
    means = np.empty((n_origins, len(plan.spans)))
    usable = np.empty(n_origins, dtype=np.bool_)
    row, left_out = 0, 0
    for t in range(len(series.first)):
        start, length = series.bounds[t], series.bounds[t + 1] - series.bounds[t]
        shift = series.first[t] - targets.base
        values = series.values[start : start + length]
        columns = series.columns[start : start + length]
        _share(values, columns, shift, targets.origin, plan, shared, means, usable)
        for q in range(length):
            place = shift + q
            if not 0 <= place < len(targets.block) or targets.block[place] < 0 or values[q] != values[q]:
                continue
            for step in range(1, targets.horizon + 1):
                o = targets.origin[place - step] if place >= step else -1
                if o < 0:
                    continue
                if q < step or not usable[o]:
                    left_out += 1
                    continue
                _copy(shared[o], rows.X[row], 0)
                complete = _fill_steps(values, q - step, step, plan, means[o], rows.X[row], n_own)
                for c in range(F):
                    rows.X[row, P - F + c] = columns[q, plan.n_past + c]
                    complete &= rows.X[row, P - F + c] == rows.X[row, P - F + c]
                if not complete:
                    left_out += 1
                    continue
                _copy(targets.calendar[place], rows.X[row], P - F - C)
                rows.y[row], rows.step[row] = values[q], step
                rows.period[row] = series.first[t] + q
                counts[t, targets.block[place]] += 1
                row += 1
    return left_out


@kernel
def fill_latest(
    tails: FloatArray,
    past: FloatArray,
    steps: IntArray,
    ahead: FloatArray,
    plan: RowPlan,
    X: FloatArray,
    known: BoolArray,
) -> None:
    """Fill the features (T, H, P) of steps (H,) ahead of tails (T, R), newest last, and which are known (T,).

    ``past`` (T, ·) holds columns at the origin, ``ahead`` (T, H, ·) the calendar and columns at the targets.

    A lag or a level that is missing becomes the mean of the tail, so that a short series has rows too.
    """
    P, C = X.shape[2], ahead.shape[2]
    n_own = P - C - len(plan.trends) - len(plan.seasons) - len(plan.season_means)
    means = np.empty(len(plan.spans))
    last = tails.shape[1] - 1
    for t in range(len(tails)):
        level = _mean(tails[t], 0, last + 1)
        known[t] = level == level
        if not known[t]:
            X[t] = 0.0
            continue
        shared = X[t, 0, :n_own]
        _fill_shared(tails[t], past[t], last, plan, means, shared)
        for c in range(n_own):
            if shared[c] != shared[c]:
                shared[c] = level
        for s in range(len(means)):
            if means[s] != means[s]:
                means[s] = level
        for h in range(len(steps)):
            _copy(shared, X[t, h], 0)
            _fill_steps(tails[t], last, steps[h], plan, means, X[t, h], n_own)
            _copy(ahead[t, h], X[t, h], P - C)


@kernel
def _share(
    values: FloatArray,
    columns: FloatArray,
    shift: int,
    origin: IntArray,
    plan: RowPlan,
    shared: FloatArray,
    means: FloatArray,
    usable: BoolArray,
) -> None:
    """Fill what the steps of each origin share."""
    for i in range(len(values) - 1):
        place = shift + i
        o = origin[place] if 0 <= place < len(origin) else -1
        if o >= 0:
            usable[o] = _fill_shared(values, columns[i], i, plan, means[o], shared[o])


@kernel
def _fill_shared(
    values: FloatArray, columns: FloatArray, i: int, plan: RowPlan, means: FloatArray, out: FloatArray
) -> bool:
    """Fill the means of spans and the features that all steps share; whether all of these are known."""
    _fill_means(values, i, plan.spans, means)
    c = 0
    for window in plan.windows:
        out[c] = means[window]
        c += 1
    for a in range(len(plan.decays)):
        weight, weights, total = 1.0, 0.0, 0.0
        for j in range(i, max(i - plan.decay_lengths[a], -1), -1):
            if values[j] == values[j]:
                total += weight * values[j]
                weights += weight
            weight *= plan.decays[a]
        out[c] = total / weights if weights > 0.0 else np.nan
        c += 1
    for lag in plan.lags:
        out[c] = values[i + 1 - lag] if i + 1 >= lag else np.nan
        c += 1
    for s in range(len(plan.season_levels)):
        end = i + 1 - plan.season_levels[s, 0]
        mean = _mean(values, end - plan.season_levels[s, 1], end)
        out[c] = mean if mean == mean else means[plan.season_levels[s, 2]]
        c += 1
    for past in range(plan.n_past):
        out[c + past] = columns[past]
    complete = True
    for c in range(len(out)):
        complete &= out[c] == out[c]
    return complete


@kernel
def _copy(values: FloatArray, row: FloatArray, c: int) -> None:
    """Write values into a row from column c on; an assignment to a slice takes seconds to compile."""
    for j in range(len(values)):
        row[c + j] = values[j]


@kernel
def _fill_means(values: FloatArray, i: int, spans: IntArray, means: FloatArray) -> None:
    """Fill the mean of what is known of each span that ends with place i, all in one walk back."""
    n, total, j = 0, 0.0, 0
    for s in range(len(spans)):
        while j < spans[s] and j <= i:
            if values[i - j] == values[i - j]:
                total += values[i - j]
                n += 1
            j += 1
        means[s] = total / n if n > 0 else np.nan


@kernel
def _mean(values: FloatArray, start: int, stop: int) -> float:
    """The mean of what is known between two places; NaN where that is nothing."""
    n, total = 0, 0.0
    for j in range(max(start, 0), stop):
        if values[j] == values[j]:
            total += values[j]
            n += 1
    return total / n if n > 0 else np.nan


@kernel
def _fill_steps(
    values: FloatArray, i: int, step: int, plan: RowPlan, means: FloatArray, row: FloatArray, c: int
) -> bool:
    """Fill the features that belong to one step from column c on; whether all are known."""
    complete = True
    for s in range(len(plan.trends)):
        half, both = plan.trends[s, 0], plan.trends[s, 1]
        row[c] = 2.0 * step * (means[half] - means[both]) / plan.spans[half]
        complete &= row[c] == row[c]
        c += 1
    for s in range(len(plan.seasons)):
        m = plan.seasons[s, 0]
        j = i + step - max(plan.seasons[s, 1], (step + m - 1) // m) * m
        if j >= 0 and values[j] != values[j]:
            j -= m
        known = j >= 0 and values[j] == values[j]
        row[c] = values[j] if known else means[plan.seasons[s, 2]]
        complete &= row[c] == row[c]
        c += 1
    for s in range(len(plan.season_means)):
        m = plan.season_means[s, 0]
        j = i + step - (step + m - 1) // m * m
        n, total = 0, 0.0
        for _ in range(plan.season_means[s, 1]):
            if j >= 0 and values[j] == values[j]:
                total += values[j]
                n += 1
            j -= m
        row[c] = total / n if n > 0 else means[plan.season_means[s, 2]]
        complete &= row[c] == row[c]
        c += 1
    return complete

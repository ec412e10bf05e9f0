"""Rows by the definition of each feature, in plain loops; and panels to try them on."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np
from hypothesis import strategies as st

from ccmtl_core.forecasting import RowFeatures, SeriesColumns, SeriesPanel

NAN = float("nan")
Values = Mapping[int, float]
"""The known values of a series, by period."""


@st.composite
def panels(draw: st.DrawFn, longest: int = 30) -> SeriesPanel:
    """Series with gaps, of other beginnings and ends, short and empty ones; some period is not the last."""
    own = st.sets(st.integers(0, longest), max_size=longest)
    periods = draw(st.lists(own, min_size=1, max_size=4).filter(lambda all_of: len(set().union(*all_of)) > 1))
    start = draw(st.integers(-5, 700))
    period = [start + p for mine in periods for p in sorted(mine)]
    rng = np.random.default_rng(draw(st.integers(0, 99)))
    values = np.round(rng.normal(10.0, 5.0, len(period)), draw(st.integers(0, 9)))
    offsets = np.concatenate([[0], np.cumsum([len(mine) for mine in periods])])
    return SeriesPanel(tuple(f"s{t}" for t in range(len(periods))), offsets, period, values, "D")  # type: ignore[arg-type]


@st.composite
def row_features(draw: st.DrawFn) -> RowFeatures:
    """Few features of every kind."""
    few = st.lists(st.integers(1, 9), max_size=3)
    pairs = st.lists(st.tuples(st.integers(1, 5), st.integers(1, 3)), max_size=2)
    chosen = {kind: tuple(draw(few)) for kind in ("windows", "lags", "trends")}
    seasonal = {kind: tuple(draw(pairs)) for kind in ("season_levels", "seasons", "season_means")}
    smoothing = tuple(draw(st.lists(st.sampled_from([0.4, 0.7, 0.9]), max_size=2)))
    calendar = tuple(draw(st.lists(st.sampled_from(["day_of_week", "month_3", "fourier_7_1"]), max_size=2)))
    if not any((*chosen.values(), *seasonal.values(), smoothing, calendar)):
        return RowFeatures(windows=(1,))
    some = st.sampled_from([(), ("price",), ("promotion", "price")])
    beside = {kind: draw(some) for kind in ("past", "future")}
    more = {"smoothing": smoothing, "calendar": calendar, **(beside if draw(st.booleans()) else {})}
    return RowFeatures(**chosen, **seasonal, **more)  # type: ignore[arg-type]


@st.composite
def columns_of(draw: st.DrawFn, panel: SeriesPanel) -> SeriesColumns:
    """Two columns for most periods of most series, or for most periods alone; some numbers are not known."""
    span = range(int(panel.period.min()), int(panel.period.max()) + 12)
    ids = draw(st.sampled_from([(), panel.unique_ids, (*panel.unique_ids[:1], "zz")]))
    rng = np.random.default_rng(draw(st.integers(0, 99)))
    cells = [(t, p) for t in range(max(len(ids), 1)) for p in span if rng.random() < 0.9]
    series, period = np.array(cells, dtype=np.int64).reshape(-1, 2).T
    values = np.where(rng.random((len(cells), 2)) < 0.1, np.nan, rng.normal(size=(len(cells), 2)))
    return SeriesColumns(("price", "promotion"), ids, series, period, values, panel.frequency)


def column_at(columns: SeriesColumns, unique_id: str, period: int, name: str) -> float:
    """A number of a column by looking through all rows."""
    for t, p, values in zip(columns.series, columns.period, columns.values, strict=True):
        if p == period and (not columns.unique_ids or columns.unique_ids[t] == unique_id):
            return float(values[columns.names.index(name)])
    return NAN


def by_period(panel: SeriesPanel, t: int) -> dict[int, float]:
    own = slice(panel.offsets[t], panel.offsets[t + 1])
    return dict(zip(panel.period[own].tolist(), panel.values[own].tolist(), strict=True))


def mean(values: Values, periods: range) -> float:
    known = [values[p] for p in periods if p in values]
    return sum(known) / len(known) if known else NAN


def row(values: Values, features: RowFeatures, o: int, k: int, past: Sequence[float] = ()) -> list[float]:
    """The features but for calendar and future, at origin o for the target o + k; NaN where not known."""
    values = {p: value for p, value in values.items() if p <= o}
    out = [mean(values, range(o - w + 1, o + 1)) for w in features.windows]
    for a in features.smoothing:
        length = math.ceil(math.log(1e-3) / math.log(1 - a))
        known = {j: values[o - j] for j in range(length) if o - j in values}
        weights = sum((1 - a) ** j for j in known)
        out.append(sum((1 - a) ** j * value for j, value in known.items()) / weights if known else NAN)
    out += [values.get(o + 1 - j, NAN) for j in features.lags]

    def level(m: int) -> float:
        return mean(values, range(o - m + 1, o + 1))

    def first_back(m: int) -> int:
        return next(i for i in range(1, k + 2) if o + k - i * m <= o)

    for m, w in features.season_levels:
        before = mean(values, range(o - m - w + 1, o - m + 1))
        out.append(level(m) if math.isnan(before) else before)
    out += past
    for w in features.trends:
        newer, both = (mean(values, range(o - length + 1, o + 1)) for length in (w, 2 * w))
        out.append(2 * k * (newer - both) / w)
    for m, i in features.seasons:
        back = max(i, first_back(m))
        places = [o + k - back * m, o + k - (back + 1) * m]
        out.append(next((values[p] for p in places if p in values), level(m)))
    for m, n in features.season_means:
        back = first_back(m)
        known = [values[o + k - i * m] for i in range(back, back + n) if o + k - i * m in values]
        out.append(sum(known) / len(known) if known else level(m))
    return out

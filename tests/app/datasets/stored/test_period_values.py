"""Rows become one value per series and period, as a dictionary would add them up, to the last bit."""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime, timedelta

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.datasets.definition import Aggregation
from app.datasets.stored.period_values import by_period
from ccmtl_core.forecasting import Frequency
from ccmtl_core.series.runs import n_missing

EPOCH = datetime(1999, 12, 25)
rows = st.lists(
    st.tuples(st.sampled_from(["a", "b", "A", "é", "0", "00"]), st.integers(0, 2000), st.floats(-1e6, 1e6)),
    min_size=1,
    max_size=40,
)


def frame_of(data: list[tuple[str, int, float]]) -> pl.DataFrame:
    return pl.DataFrame(
        {
            "unique_id": [name for name, _, _ in data],
            "ds": pl.Series([EPOCH + timedelta(hours=h) for _, h, _ in data], dtype=pl.Datetime("us")),
            "y": [y for _, _, y in data],
            "row": range(10, 10 + len(data)),
        },
        schema_overrides={"y": pl.Float64},
    )


def groups_of(frame: pl.DataFrame, frequency: Frequency) -> dict[tuple[bytes, int], list[tuple[int, float]]]:
    periods = frequency.to_period(frame["ds"].to_numpy()).tolist()
    groups: dict[tuple[bytes, int], list[tuple[int, float]]] = {}
    for name, period, row, y in zip(frame["unique_id"], periods, frame["row"], frame["y"], strict=True):
        groups.setdefault((name.encode(), period), []).append((row, y))
    return dict(sorted(groups.items()))


@given(data=rows, frequency=st.sampled_from(Frequency), aggregation=st.sampled_from([None, *Aggregation]))
def test_groups_agree_with_a_dictionary(
    data: list[tuple[str, int, float]], frequency: Frequency, aggregation: Aggregation | None
) -> None:
    frame = frame_of(data)
    values = by_period(frame, frequency, aggregation)
    groups = groups_of(frame, frequency)
    names = [name.encode() for name in values.unique_ids]
    assert [(names[s], p) for s, p in zip(values.series, values.period, strict=True)] == list(groups)
    assert values.row.tolist() == [group[0][0] for group in groups.values()]
    if aggregation is None:
        assert values.y.tolist() == [group[0][1] for group in groups.values()]
        later = [(row, group[0][0]) for group in groups.values() for row, _ in group[1:]]
        assert sorted(map(tuple, values.repeated[:, :2].tolist())) == sorted(later)
    else:
        reduces = {Aggregation.SUM: np.sum, Aggregation.MEAN: np.mean, Aggregation.LAST: lambda y: y[-1]}
        reduce: Callable[[list[float]], float] = reduces[aggregation]
        expected = [reduce([y for _, y in group]) for group in groups.values()]
        np.testing.assert_allclose(values.y, expected, rtol=1e-12, atol=1e-6)
        assert values.count.tolist() == [len(group) for group in groups.values()]


@given(data=rows, aggregation=st.sampled_from(Aggregation), cut=st.floats(0, 1))
def test_two_segments_merge_to_what_one_would_be(
    data: list[tuple[str, int, float]], aggregation: Aggregation, cut: float
) -> None:
    frame = frame_of(data).drop("row")
    at = max(1, min(len(data) - 1, round(cut * len(data))))
    parts = [part for part in (frame[:at], frame[at:]) if len(part)]
    stored = pl.concat([by_period(part, Frequency.DAY, aggregation).to_frame() for part in parts])
    merged = by_period(stored, Frequency.DAY, aggregation).to_frame()
    whole = by_period(frame, Frequency.DAY, aggregation).to_frame()
    assert merged.drop("y").equals(whole.drop("y"))
    np.testing.assert_allclose(merged["y"], whole["y"], rtol=1e-12, atol=1e-6)


INTERVALS = {"h": "1h", "D": "1d", "W": "1w", "MS": "1mo", "QS": "1q", "YS": "1y"}


@given(data=rows, frequency=st.sampled_from(sorted(INTERVALS)))
def test_a_period_starts_where_polars_says(data: list[tuple[str, int, float]], frequency: str) -> None:
    frame = frame_of(data)
    starts = by_period(frame, Frequency(frequency), Aggregation.SUM).to_frame()["ds"].unique().sort()
    expected = frame["ds"].dt.truncate(INTERVALS[frequency]).unique().sort()
    assert starts.equals(expected.alias("ds"))


def test_adding_up_in_the_order_of_rows_is_the_same_whatever_the_size() -> None:
    y = np.random.default_rng(0).normal(size=10_001) * 10.0 ** np.arange(10_001 % 300 - 300, 1)[0]
    data = [("a", 0, value) for value in y]
    alone = by_period(frame_of(data), Frequency.DAY, Aggregation.SUM)
    among = by_period(frame_of([("b", 5, 1.0), *data]), Frequency.DAY, Aggregation.SUM)
    assert alone.y[0] == among.y[0]


@pytest.mark.parametrize(("start", "expected"), [("dataset", 10 - 4), ("series", 7 - 4)])
def test_missing_periods_are_counted(start: str, expected: int) -> None:
    frame = frame_of([("a", 0, 1.0), ("a", 24 * 4, 1.0), ("b", 24 * 3, 1.0), ("b", 24 * 4, 1.0)])
    assert n_missing(by_period(frame, Frequency.DAY, None).runs(), start) == expected

"""Runs of consecutive periods say of any values what a set of (series, period) says."""

from __future__ import annotations

from datetime import datetime, timedelta

import numpy as np
import polars as pl
from hypothesis import given
from hypothesis import strategies as st

from app.datasets.stored.period_values import PeriodValues, by_period
from ccmtl_core.forecasting import Frequency
from ccmtl_core.series.runs import blocks, has_period, merged_runs, n_missing, series_order

values = st.sets(st.tuples(st.sampled_from(["a", "B", "é", "0"]), st.integers(-9, 9)), min_size=1)


def values_of(pairs: set[tuple[str, int]]) -> PeriodValues:
    moments = [datetime(1970, 1, 1) + timedelta(days=period) for _, period in pairs]
    ids = [unique_id for unique_id, _ in pairs]
    frame = pl.DataFrame({"unique_id": ids, "ds": pl.Series(moments, dtype=pl.Datetime("us")), "y": 1.0})
    return by_period(frame, Frequency.DAY, None)


def pairs_of(runs: pl.DataFrame) -> list[tuple[str, int]]:
    return [(name, first + i) for name, first, length in runs.iter_rows() for i in range(length)]


@given(st.lists(st.tuples(st.integers(0, 3), st.integers(-4, 4))))
def test_the_order_of_series_and_periods_keeps_equal_ones_as_they_stand(pairs: list[tuple[int, int]]) -> None:
    given_pairs = np.array(pairs, dtype=np.int64).reshape(-1, 2)
    expected = sorted(range(len(pairs)), key=lambda place: pairs[place])
    assert series_order(given_pairs[:, 0], given_pairs[:, 1]).tolist() == expected
    in_order = given_pairs[expected]
    assert series_order(in_order[:, 0], in_order[:, 1]).tolist() == list(range(len(pairs)))


@given(values)
def test_runs_hold_each_value_once_in_order(pairs: set[tuple[str, int]]) -> None:
    runs = values_of(pairs).runs()
    assert pairs_of(runs) == sorted(pairs, key=lambda pair: (pair[0].encode(), pair[1]))
    ends = runs["first"] + runs["length"]
    touching = (runs["unique_id"] == runs["unique_id"].shift(-1)) & (ends == runs["first"].shift(-1))
    assert not touching.any()


@given(before=values, added=values)
def test_what_is_held_already_is_found_and_the_rest_is_added(
    before: set[tuple[str, int]], added: set[tuple[str, int]]
) -> None:
    held, sent = values_of(before).runs(), values_of(added)
    taken = has_period(held, sent.unique_ids, sent.series, sent.period)
    ids = sent.unique_ids.to_list()
    found = {(ids[s], p) for s, p in zip(sent.series[taken], sent.period[taken], strict=True)}
    assert found == before & added
    assert merged_runs(held, sent.runs(~taken)).equals(values_of(before | added).runs())


@given(values)
def test_blocks_and_absent_periods_are_those_of_the_set(pairs: set[tuple[str, int]]) -> None:
    runs = values_of(pairs).runs()
    starts, ends = blocks(runs["first"].to_numpy(), runs["length"].to_numpy())
    periods = {period for _, period in pairs}
    assert [p for s, e in zip(starts, ends, strict=True) for p in range(s, e)] == sorted(periods)
    assert (starts[1:] > ends[:-1]).all()
    own = {name: min(p for n, p in pairs if n == name) for name, _ in pairs}
    spans = {"dataset": len(own) * (max(periods) - min(periods) + 1)}
    spans["series"] = int(np.sum([max(periods) - first + 1 for first in own.values()]))
    assert {start: n_missing(runs, start) for start in spans} == {k: v - len(pairs) for k, v in spans.items()}

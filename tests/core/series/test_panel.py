"""From a frame in any order to sorted series, and filling that adds zeros and nothing else."""

from __future__ import annotations

from datetime import date, datetime, timedelta, timezone
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from ccmtl_core import DataError, ParameterError
from ccmtl_core.forecasting import Frequency, SeriesPanel
from tests.support.pandas_table import NA, Frame, ZonedTimes

SALES = st.dictionaries(
    st.tuples(st.sampled_from(["b", "a", "0471", "471", "ü"]), st.integers(-5, 20)),
    st.floats(-100, 100),
    min_size=1,
    max_size=30,
)


def frame_of(sales: dict[tuple[str, int], float], seed: int = 0) -> pl.DataFrame:
    rows = [(name, date(2000, 1, 1) + timedelta(days=day), y) for (name, day), y in sales.items()]
    np.random.default_rng(seed).shuffle(rows)  # type: ignore[arg-type]
    return pl.DataFrame(rows, schema={"unique_id": pl.String, "ds": pl.Date, "y": pl.Float64}, orient="row")


def as_dict(panel: SeriesPanel) -> dict[tuple[str, int], float]:
    day = panel.period - Frequency.DAY.to_period(["2000-01-01"])
    names = [panel.unique_ids[t] for t in panel.series_index]
    return dict(zip(zip(names, day.tolist(), strict=True), panel.values.tolist(), strict=True))


@given(sales=SALES, seed=st.integers(0, 100))
def test_a_frame_in_any_order_becomes_sorted_series(sales: dict[tuple[str, int], float], seed: int) -> None:
    panel = SeriesPanel.from_frame(frame_of(sales, seed), "D")
    assert as_dict(panel) == sales
    assert panel.unique_ids == tuple(sorted({name for name, _ in sales}))
    assert panel.frequency is Frequency.DAY


@given(sales=SALES, start=st.sampled_from(["dataset", "series"]))
def test_filling_adds_zeros_where_nothing_was(sales: dict[tuple[str, int], float], start: str) -> None:
    panel = SeriesPanel.from_frame(frame_of(sales), "D")
    dense, n_filled = panel.filled("zero", start)
    days = [day for _, day in sales]
    expected = {}
    for name in panel.unique_ids:
        own = [day for other, day in sales if other == name]
        first = min(days) if start == "dataset" else min(own)
        expected |= {(name, day): sales.get((name, day), 0.0) for day in range(first, max(days) + 1)}
    assert as_dict(dense) == expected
    assert n_filled == len(expected) - len(sales)
    assert dense.filled("zero", start)[1] == 0


def test_hours_with_a_zone_are_read_in_utc() -> None:
    zone = timezone(timedelta(hours=2))
    frame = pl.DataFrame({"unique_id": ["a"], "ds": [datetime(2000, 1, 1, 1, 30, tzinfo=zone)], "y": [1]})
    panel = SeriesPanel.from_frame(frame, "h")
    assert panel.frequency.to_datetime(panel.period)[0] == np.datetime64("1999-12-31T23:00")


@pytest.mark.parametrize("zone", ["Europe/London", "Europe/Berlin", "America/New_York", "Pacific/Auckland"])
@pytest.mark.parametrize("month", [date(2024, month, 1) for month in (3, 4, 9, 10, 11)])
def test_local_midnights_are_days_without_gaps_when_clocks_change(zone: str, month: date) -> None:
    days = [month + timedelta(days=day) for day in range(31)]
    midnights = pl.Series(days).cast(pl.Datetime("us")).dt.replace_time_zone(zone)
    frame = pl.DataFrame({"unique_id": ["a"] * 31, "ds": midnights, "y": range(31)})
    panel, n_filled = SeriesPanel.from_frame(frame, "D").filled("zero")
    assert (panel.values.tolist(), n_filled) == (list(range(31)), 0)
    assert panel.frequency.to_datetime(panel.period).astype("datetime64[D]").tolist() == days


@pytest.mark.parametrize(("frequency", "second"), [("W", datetime(2024, 7, 8)), ("MS", datetime(2024, 8, 1))])
def test_local_midnights_begin_their_week_and_month(frequency: str, second: datetime) -> None:
    starts = pl.Series([datetime(2024, 7, 1), second])
    midnights = starts.dt.replace_time_zone("Europe/Berlin")
    panel = SeriesPanel.from_frame(
        pl.DataFrame({"unique_id": ["a", "a"], "ds": midnights, "y": [1, 2]}), frequency
    )
    assert panel.frequency.to_datetime(panel.period).tolist() == starts.to_list()


def test_an_hour_that_the_clock_shows_twice_is_two_hours() -> None:
    hours = pl.Series([datetime(2024, 10, 27, hour) for hour in range(3)]).dt.replace_time_zone("UTC")
    local = hours.dt.convert_time_zone("Europe/London")
    assert local.dt.hour().to_list() == [1, 1, 2]
    frame = pl.DataFrame({"unique_id": ["a"] * 3, "ds": local, "y": [1, 2, 3]})
    assert SeriesPanel.from_frame(frame, "h").filled("zero")[0].values.tolist() == [1, 2, 3]


def test_series_without_entries_are_filled_from_the_dataset_only() -> None:
    panel = SeriesPanel(("a", "b"), [0, 0, 2], [3, 4], [1.0, 2.0], "D")
    assert panel.filled("zero", "dataset")[0].values.tolist() == [0, 0, 1, 2]
    assert panel.filled("zero", "series")[0].offsets.tolist() == [0, 0, 2]
    empty = SeriesPanel(("a",), [0, 0], [], [], "D")
    assert empty.filled("zero") == (empty, 0)


def test_integer_ids_become_text_as_in_datasets_of_tasks() -> None:
    frame = pl.DataFrame({"unique_id": [10, 9], "ds": [date(2000, 1, 1)] * 2, "y": [1, 2]})
    panel = SeriesPanel.from_frame(frame, "D")
    assert (panel.unique_ids, panel.values.tolist()) == (("10", "9"), [1, 2])


def test_two_rows_in_one_period_are_named() -> None:
    rows = [("a", datetime(2000, 1, 3)), ("a", datetime(2000, 1, 9, 23)), ("b", datetime(2000, 1, 10))]
    frame = pl.DataFrame({"unique_id": [r[0] for r in rows], "ds": [r[1] for r in rows], "y": [1, 2, 3]})
    assert len(SeriesPanel.from_frame(frame, "D").values) == 3
    with pytest.raises(
        DataError, match="series 'a', period 2000-01-03T00:00:00 appears twice: a series has one value"
    ):
        SeriesPanel.from_frame(frame, "W")


def test_one_mistyped_year_is_refused_before_the_memory_is_asked_for() -> None:
    days = [date(2000, 1, 1), date(2000, 1, 2), date(200, 1, 1)]
    frame = pl.DataFrame({"unique_id": ["a", "b", "c"], "ds": days, "y": [1.0, 2.0, 3.0]})
    panel = SeriesPanel.from_frame(frame, "h")
    with pytest.raises(DataError, match=r"from 0200-01-01.* to 2000-01-02.* more than 1000000: is one of"):
        panel.filled("zero", max_rows=1_000_000)


@pytest.mark.parametrize(("method", "start"), [("mean", "dataset"), ("zero", "now"), ("zero", [])])
def test_unknown_policies_are_refused(method: str, start: Any) -> None:
    with pytest.raises(ParameterError):
        SeriesPanel(("a",), [0, 1], [1], [1.0], "D").filled(method, start)
    limit: Any = "5"
    with pytest.raises(ParameterError, match="max_rows must be an integer, not '5'"):
        SeriesPanel(("a",), [0, 1], [1], [1.0], "D").filled("zero", max_rows=limit)


@pytest.mark.parametrize(
    ("column", "values", "message"),
    [
        ("unique_id", [1.0, 2.0], "column 'unique_id' must be text or integers, not Float64"),
        (
            "ds",
            ["2000-01-01", "2000-01-02"],
            "not String: str.to_datetime() of polars or to_datetime() of pandas",
        ),
        ("y", ["1", "2"], "column 'y' must hold numbers, not String"),
        ("unique_id", ["a", None], "column 'unique_id' has 1 missing value, the first in row 2"),
        ("y", [None, None], "column 'y' must hold numbers, not Null"),
        ("y", [None, 1.0], "column 'y' has 1 missing value, the first in row 1"),
        ("y", [1.0, float("nan")], "column 'y' has 1 missing value, the first in row 2"),
        ("y", [1.0, float("inf")], "series 'a', period 2000-01-02T00:00:00: the value is inf"),
    ],
)
def test_unusable_columns_are_refused(column: str, values: list[object], message: str) -> None:
    days = [date(2000, 1, 1), date(2000, 1, 2)]
    parts: dict[str, list[object]] = {"unique_id": ["a", "a"], "ds": list(days), "y": [1.0, 2.0]}
    with pytest.raises(DataError) as caught:
        SeriesPanel.from_frame(pl.DataFrame({**parts, column: values}), "D")
    assert message in str(caught.value)


def test_a_missing_column_is_named() -> None:
    with pytest.raises(DataError, match="column 'y' is missing"):
        SeriesPanel.from_frame(pl.DataFrame({"unique_id": ["a"], "ds": [date(2000, 1, 1)]}), "D")


@pytest.mark.parametrize("frame", [None, {"unique_id": ["a"]}])
def test_what_is_no_frame_is_refused_with_the_way_to_make_one(frame: Any) -> None:
    with pytest.raises(ParameterError, match=r"frame must be DataFrame, not \w+: polars.DataFrame makes one"):
        SeriesPanel.from_frame(frame, "D")


def test_a_lazy_frame_is_refused_with_the_way_to_collect_it() -> None:
    with pytest.raises(ParameterError, match=r"give frame.collect\(\)"):
        SeriesPanel.from_frame(frame_of({("a", 0): 1.0}).lazy(), "D")


def of_pandas(ids: list[object], times: object, y: list[object]) -> Frame:
    return Frame({"unique_id": np.array(ids, dtype=object), "ds": times, "y": np.array(y)})


def test_a_table_of_pandas_makes_the_panel_that_one_of_polars_makes() -> None:
    days = np.array(["2000-01-02", "2000-01-01", "2000-01-01"], dtype="M8[ns]")
    panel = SeriesPanel.from_frame(of_pandas(["b", "b", "a"], days, [1, 2, 3]), "D")
    polars = pl.DataFrame({"unique_id": ["b", "b", "a"], "ds": days, "y": [1, 2, 3]})
    same = SeriesPanel.from_frame(polars, "D")
    assert panel.unique_ids == same.unique_ids
    assert panel.period.tolist() == same.period.tolist()
    assert panel.values.tolist() == same.values.tolist()


@pytest.mark.parametrize(("frequency", "period"), [("D", "2000-01-01"), ("h", "1999-12-31T18")])
def test_times_of_pandas_with_a_zone_keep_local_days_and_utc_hours(frequency: str, period: str) -> None:
    utc = np.array(["1999-12-31T18:30"], dtype="M8[ns]")
    panel = SeriesPanel.from_frame(
        of_pandas(["a"], ZonedTimes(utc, np.timedelta64(330, "m")), [1]), frequency
    )
    assert panel.frequency.to_datetime(panel.period)[0] == np.datetime64(period)


@pytest.mark.parametrize(
    ("column", "values", "message"),
    [
        (
            "unique_id",
            np.array(["a", NA], dtype=object),
            "'unique_id' has 1 missing value, the first in row 2",
        ),
        ("unique_id", np.array([1.5, 2.0]), "column 'unique_id' must be text or integers, not Float64"),
        (
            "ds",
            np.array(["2000-01-01", "NaT"], dtype="M8[ns]"),
            "'ds' has 1 missing value, the first in row 2",
        ),
        ("y", np.array([1, NA], dtype=object), "'y' has 1 missing value, the first in row 2"),
        ("ds", np.array([object(), object()]), "of periods of pandas, dt.to_timestamp() makes"),
        ("y", np.array([1.0, np.nan]), "'y' has 1 missing value, the first in row 2"),  # Int64 with NA too
    ],
)
def test_missing_values_of_pandas_are_named_by_row(column: str, values: object, message: str) -> None:
    days = np.array(["2000-01-01", "2000-01-02"], dtype="M8[ns]")
    columns = {"unique_id": np.array(["a", "a"], dtype=object), "ds": days, "y": np.array([1.0, 2.0])}
    with pytest.raises(DataError) as caught:
        SeriesPanel.from_frame(Frame({**columns, column: values}), "D")
    assert message in str(caught.value)
    with pytest.raises(DataError, match="column 'ds' is missing"):
        SeriesPanel.from_frame(Frame({"unique_id": columns["unique_id"], "y": columns["y"]}), "D")


@pytest.mark.parametrize("frequency", ["x", None, 1])
def test_unknown_frequencies_are_refused(frequency: Any) -> None:
    with pytest.raises(ParameterError, match="is not a valid Frequency; there are 'h'"):
        SeriesPanel.from_frame(frame_of({("a", 0): 1.0}), frequency)
    with pytest.raises(ParameterError, match="is not a valid Frequency; there are 'h'"):
        SeriesPanel(("a",), [0, 1], [1], [1.0], frequency)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("offsets", "period", "values", "message"),
    [
        ([0, 2.7], [1, 2], [1.0, 2.0], "offsets must hold integers, not float64"),
        ([0, 2], [1.5, 2.5], [1.0, 2.0], "period must hold integers, not float64"),
        ([0, 2], ["1", "2"], [1.0, 2.0], "period must hold integers, not <U1"),
        ([0, 2], [False, True], [1.0, 2.0], "period must hold integers, not bool"),
        ([0, 2], [1, 2**62], [1.0, 2.0], "period 4611686018427387904 is beyond the calendar"),
        ([0, 2], np.array([1, 2**63 + 1], np.uint64), [1.0, 2.0], "which is beyond 64 bits"),
        ([0, 1], [1, 2], [1.0, 2.0], "offsets must rise"),
        ([0, 2, 1], [1, 2], [1.0, 2.0], r"offsets \(2,\)"),
        ([0, 2], [1], [1.0, 2.0], "must be"),
        ([0, 2], [2, 1], [1.0, 2.0], "comes too late"),
        ([0, 2], [1, 1], [1.0, 2.0], "appears twice"),
        ([0, 2], [1, 2], [1.0, np.inf], "the value is inf"),
    ],
)
def test_impossible_panels_are_refused(offsets: Any, period: Any, values: list[float], message: str) -> None:
    with pytest.raises(DataError, match=message):
        SeriesPanel(("a",), offsets, period, np.array(values), Frequency.DAY)

"""Times of a table: which texts sort as time does, and which are refused."""

from __future__ import annotations

import polars as pl
import pytest

from ccmtl_core import DataError
from ccmtl_core.reproduce.times import sortable


@pytest.mark.parametrize(
    "in_order",
    [
        [9, 10],
        ["2024-12-31", "2025-01-01 07:30", "2025-01-01T08:00"],
        ["2025-10-26T02:30+02:00", "2025-10-26T02:00+01:00"],
        ["2024-12", "2025-01"],
        ["2024/12/31", "2025/01/01"],
        ["W01", "W02", "W10"],
        ["07:30", "10:00"],
    ],
)
def test_times_sort_as_time_does(in_order: list[object]) -> None:
    assert sortable(pl.Series("time", in_order[::-1])).arg_sort().to_list() == [*range(len(in_order))][::-1]


@pytest.mark.parametrize(
    "texts",
    [
        ["1/31/2025", "12/31/2024"],
        ["01/31/2025", "12/31/2024"],
        ["1.1.2025", "2.1.2025"],
        ["W1", "W10"],
        ["Jan 2025", "Feb 2025"],
        ["2025-01-31 9:30", "2025-01-31 10:30"],
        ["2025-01-31T09:30", "2025-01-31T09:30Z"],
    ],
)
def test_times_that_do_not_sort_are_refused(texts: list[str]) -> None:
    with pytest.raises(DataError, match=r"in column 'time' do not sort .* ISO 8601"):
        sortable(pl.Series("time", texts))

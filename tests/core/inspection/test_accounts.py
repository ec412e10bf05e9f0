"""Whatever a table holds and whichever policies are chosen: a row is used, merged, or dropped by a code."""

from __future__ import annotations

from datetime import date, timedelta

import numpy as np
import polars as pl
from hypothesis import given, settings
from hypothesis import strategies as st

from ccmtl_core.inspection import Policies, inspect
from ccmtl_core.inspection.policies import CHOICES

DAYS = [date(2024, 1, 1) + timedelta(days=n) for n in range(75)]
cells = st.sampled_from(["0", "0", "1", "2.5", "-3", "", "x", "1e400"])
days = st.sampled_from([*map(str, DAYS), "", "soon"])
rows = st.lists(st.tuples(st.sampled_from(["a", "b", "c", "01", "1", ""]), days, cells), max_size=40)
policies = st.fixed_dictionaries({name: st.sampled_from(values) for name, values in CHOICES.items()}).filter(
    lambda chosen: (chosen["fill"], chosen["fill_start"]) != ("forward", "dataset")
)


@settings(max_examples=40)
@given(rows=rows, chosen=policies, frequency=st.sampled_from([None, "D", "B", "W", "W-FRI", "ME", "QS"]))
def test_each_row_is_used_merged_or_dropped(
    rows: list[tuple[str, str, str]], chosen: dict[str, str], frequency: str | None
) -> None:
    table = pl.DataFrame(
        rows, schema=["unique_id", "ds", "y"], orient="row", schema_overrides={"ds": pl.String}
    )
    report = inspect(table, frequency=frequency, policies=Policies(**chosen), today=date(2025, 1, 1))
    accounts = report.accounts
    assert accounts.rows_read == len(rows)
    assert accounts.rows_read == accounts.rows_used + accounts.rows_merged + sum(
        accounts.rows_dropped.values()
    )
    assert all(finding.count > 0 and finding.message for finding in report.findings)
    assert len(report.counts) == len(report.findings)
    if report.panel is None:
        assert report.errors or not accounts.rows_used
        return
    added = accounts.values_added.get("fill", 0)
    assert len(report.panel.values) == report.values == accounts.rows_used + added
    assert np.isfinite(report.panel.values).all()
    assert chosen["negatives"] != "clip" or (report.panel.values >= 0).all()
    told = {code for code in accounts.rows_dropped if code != "faulty_rows"}
    assert told <= report.counts.keys()

"""How the dates of a column are written, and what must be stated where two readings are left."""

from __future__ import annotations

import polars as pl

from ccmtl_core.tables.dates.inference import infer_dates


def test_a_text_that_is_a_date_in_one_of_two_readings_alone_is_named() -> None:
    found = infer_dates(pl.Series(["1000-1", "1000-01-01"]))
    assert found.is_ambiguous
    assert found.example == "1000-1"
    assert {when for _, when in found.readings} == {"1000-01-01", "no date"}

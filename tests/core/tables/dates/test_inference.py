"""How the dates of a column are written, and what must be stated where two readings are left."""

from __future__ import annotations

import polars as pl
import pytest

from ccmtl_core.tables.dates.inference import infer_dates


def test_a_text_that_is_a_date_in_one_of_two_readings_alone_is_named() -> None:
    found = infer_dates(pl.Series(["1000-1", "1000-01-01"]))
    assert found.is_ambiguous
    assert found.example == "1000-1"
    assert {when for _, when in found.readings} == {"1000-01-01", "no date"}


FORMATS = {
    "%d. %b %Y": ["5. März 2024", "6. Mai 2024", "31. Dez. 2024"],
    "%d %b %Y": ["01 févr. 2024", "2 août 2024", "3 SEPT 2024"],
    "%d de %B de %Y": ["1 de enero de 2024", "12 de dic. de 2024"],
    "%b %y": ["Mrz 24", "Okt 24", "Mai 24"],
    "KW %V %G": ["KW 09 2024", "KW 10 2024"],
    "CW%V/%G": ["CW9/2024", "CW52/2024"],
    "%G-W%V": ["2024-W9", "2024-W10"],
    "%G%V": ["202409", "202413"],
    "%Y%m": ["202409", "202412"],
}


@pytest.mark.parametrize("ds_format", FORMATS)
def test_dates_of_other_languages_and_weeks_are_told(ds_format: str) -> None:
    assert infer_dates(pl.Series(FORMATS[ds_format])).format == ds_format


def test_numbers_that_a_spreadsheet_may_mean_as_days_are_told_with_these_days() -> None:
    found = infer_dates(pl.Series(["45292", "45322"]))
    assert found.is_ambiguous
    assert "2024-01-01 to 2024-01-31" in found.question
    assert "ds_format='excel'" in found.question

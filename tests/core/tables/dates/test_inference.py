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
    "%d%m%Y": ["31122024", "01012025"],
    "%Y%j": ["2024001", "2024366"],
    "%Y%m%d%H%M": ["202401010000", "202401012300"],
    "%Y": ["2001", "2002"],
}


@pytest.mark.parametrize("ds_format", FORMATS)
def test_dates_of_other_languages_and_weeks_are_told(ds_format: str) -> None:
    assert infer_dates(pl.Series(FORMATS[ds_format])).format == ds_format


def test_numbers_that_a_spreadsheet_may_mean_as_days_are_told_with_these_days() -> None:
    found = infer_dates(pl.Series(["45292", "45322"]))
    assert found.is_ambiguous
    assert "2024-01-01 to 2024-01-31" in found.question
    assert "ds_format='excel'" in found.question


def days(written: str, n: int = 366, step: int = 1) -> pl.Series:
    start = pl.date(2020, 1, 1)
    dates = pl.select(pl.date_range(start, start + pl.duration(days=(n - 1) * step), f"{step}d")).to_series()
    return dates.dt.strftime(written)


@pytest.mark.parametrize("written", ["%y%m%d", "%d%m%y", "%m%d%y"])
def test_days_of_six_digits_are_asked_for_and_never_taken_for_weeks_or_months(written: str) -> None:
    for texts in (days(written), days(written, 12), days(written, 40, 7)):
        found = infer_dates(texts)
        assert found.is_ambiguous
        assert f"ds_format='{written}'" in found.question


def test_months_of_six_digits_are_told_from_days_by_many_of_them() -> None:
    months = pl.Series([f"{year}{month:02}" for year in (2010, 2011) for month in range(1, 13)])
    assert infer_dates(months).format == "%Y%m"
    assert infer_dates(months[:12]).is_ambiguous
    tenths = pl.Series([f"20{month:02}{day}" for month in range(1, 13) for day in ("01", "10")])
    assert infer_dates(tenths).is_ambiguous, "these may be days"


def test_twelve_weeks_look_like_months_unless_the_column_is_called_so() -> None:
    texts = pl.Series([f"2024{week:02}" for week in range(1, 13)])
    found = infer_dates(texts)
    assert found.format == "%Y%m"
    assert "`ds_format='%G%V'`" in found.evidence
    assert {infer_dates(texts, column=name).format for name in ("Week", "yyyyww", "KW")} == {"%G%V"}


def test_four_digits_may_be_months_weeks_or_numbers() -> None:
    found = infer_dates(pl.Series(["2401", "2402", "2501"]))
    assert found.is_ambiguous
    for written in ("%y%m", "%g%V", "integer"):
        assert f"ds_format='{written}'" in found.question
    assert infer_dates(pl.Series(["1000", "1001"])).format == "integer"


def test_a_reading_that_numbers_cannot_have_is_not_offered() -> None:
    assert "integer" not in infer_dates(pl.Series(["991399", "993199"])).question

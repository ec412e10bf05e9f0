"""How the dates of a column are written, and what must be stated where two readings are left."""

from __future__ import annotations

import polars as pl
import pytest

from ccmtl_core.tables.dates.inference import CENTURY_RULE, infer_dates
from ccmtl_core.tables.dates.timestamps import time_format


@pytest.mark.parametrize(
    ("texts", "told"),
    [
        (["1000-1", "1000-01-01"], "'1000-01-01' as ISO 8601, '1000-1' as %Y-%m, and"),
        (
            ["03/04/2024", "31/01/2024", "02/13/2024"],
            "'31/01/2024' as %d/%m/%Y, '02/13/2024' as %m/%d/%Y, and",
        ),
    ],
)
def test_dates_that_contradict_each_other_are_named(texts: list[str], told: str) -> None:
    found = infer_dates(pl.Series(texts))
    assert found.is_ambiguous
    assert found.example in told
    assert f"contradict each other: {told}" in found.question


def test_a_text_that_is_no_date_contradicts_none() -> None:
    found = infer_dates(pl.Series(["01/02/2024", "n/a", "03/04/2024", "05/06/2024"]))
    assert {written for written, _ in found.readings} == {"%d/%m/%Y", "%m/%d/%Y"}


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
    "%Y-%m-%d": ["2024-1-5", "2024-01-06", "2024-12-31"],
    "%Y-%m-%d %H:%M": ["2024-1-5 0:00", "2024-1-6 0:00"],
    "%Y%m%d %H:%M": ["20240105 00:00", "20240106 00:00"],
    "%Y年%m月%d日": ["2024年1月5日", "2024年12月31日"],
    "%Y年%m月": ["2024年1月", "2024年12月"],
    "%m-%Y": ["1-2024", "12-2024"],
    "%YM%m": ["2024M01", "2024M12"],
    "%b/%y": ["Jan/24", "Dez/24"],
    "%G-%V": ["2024-01", "2024-13", "2024-52"],
    "%V/%G": ["1/2024", "52/2024"],
    "%a, %d %b %Y": ["Mon, 01 Jan 2024", "Wed, 31 Jan 2024"],
    "%A, %B %d, %Y": ["Monday, January 1, 2024"],
    "%d%b%Y": ["01JAN2024", "31DEC2024"],
    "%Y.%m.%d.": ["2024.01.05.", "2024.12.31."],
    "%b '%y": ["Jan '24", "Dec '24"],
    "%Y-%m-%d %H:%M:%S %z": ["2024-01-05 00:00:00 UTC", "2024-01-05 01:00:00 +0100"],
    "%qQ%y": ["1Q24", "4Q24"],
    "Q%q'%y": ["Q1'24", "Q4'23"],
    "Q%q %y": ["Q1 24", "Q4 99"],
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
    assert "`ds_format='%m%y'` reads 0122 as 2022-01-01" in infer_dates(pl.Series(["0122", "1223"])).question


def test_a_reading_that_numbers_cannot_have_is_not_offered() -> None:
    assert "integer" not in infer_dates(pl.Series(["991399", "993199"])).question


def test_quarters_of_two_digit_years_fall_into_the_century_that_is_told() -> None:
    times = time_format("%qQ%y").parse(pl.col("ds"))
    found = pl.DataFrame({"ds": ["1Q24", "4Q69", "2Q70"]}).select(times).to_series()
    assert found.dt.strftime("%Y-%m-%d").to_list() == ["2024-01-01", "2069-10-01", "1970-04-01"]
    assert CENTURY_RULE in infer_dates(pl.Series(["1Q24", "4Q69"])).evidence


@pytest.mark.parametrize(
    ("column", "ds_format", "other"),
    [("month", "%Y-%m", "%G-%V"), ("Week", "%G-%V", "%Y-%m"), ("KW", "%G-%V", "%Y-%m")],
)
def test_weeks_that_may_be_months_are_told_by_the_name_of_the_column(
    column: str, ds_format: str, other: str
) -> None:
    found = infer_dates(pl.Series(["2024-01", "2024-12"]), column=column)
    assert found.format == ds_format
    assert other in found.evidence


def test_fiscal_periods_that_may_be_days_of_the_year_must_be_stated() -> None:
    found = infer_dates(pl.Series(["2024001", "2024012"]))
    assert dict(found.readings) == {"%Y%j": "2024-01-12", "%Y0%m": "2024-12-01"}
    assert infer_dates(pl.Series(["2024001", "2024013"])).format == "%Y%j"


def test_a_thirteenth_month_is_no_week() -> None:
    texts = pl.Series(["202401", "202413"])
    assert infer_dates(texts).format == "%G%V"
    for column in ("month", "fiscal period"):
        found = infer_dates(texts, column=column)
        assert found.is_ambiguous
        assert "%G%V" not in found.question


@pytest.mark.parametrize("texts", [["Jan 10", "Jan 11", "Jan 26"], ["Jan 01", "Feb 14", "Feb 28", "Jan 31"]])
def test_months_of_years_that_may_be_days_must_be_stated(texts: list[str]) -> None:
    found = infer_dates(pl.Series(texts))
    assert found.is_ambiguous
    assert "`ds_format='%b %y'`" in found.question
    assert "`year`" in found.question


def test_months_of_many_years_are_no_days() -> None:
    months = ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"]
    texts = [f"{month} {year}" for year in range(10, 25) for month in months]
    assert infer_dates(pl.Series(texts)).format == "%b %y"


@pytest.mark.parametrize("texts", [["2005/06", "2006/07", "2023/24"], ["1999-00", "2000-01"]])
def test_years_that_end_in_the_next_one_are_no_months(texts: list[str]) -> None:
    found = infer_dates(pl.Series(texts))
    assert found.is_ambiguous
    assert "a year that ends in the next one" in found.question


QUARTERS = [f"{year}-{quarter}" for year in (2023, 2024) for quarter in range(1, 5)]


@pytest.mark.parametrize("column", ["quarter", "Fiscal Quarter", "Quartal", "trimestre", "Kwartaal", "qtr"])
def test_quarters_that_may_be_months_are_told_by_the_name_of_the_column(column: str) -> None:
    turned = [f"{text[5:]}/{text[:4]}" for text in QUARTERS]
    assert infer_dates(pl.Series(QUARTERS), column=column).format == "%Y-%q"
    assert infer_dates(pl.Series(turned), column=column).format == "%q/%Y"


@pytest.mark.parametrize("column", ["", "period", "season"])
def test_numbers_to_four_of_several_years_must_be_stated(column: str) -> None:
    found = infer_dates(pl.Series(QUARTERS), column=column)
    assert dict(found.readings) == {"%Y-%m": "2023-02-01", "%Y-%q": "2023-04-01"}
    assert infer_dates(pl.Series(QUARTERS[:4]), column=column).format == "%Y-%m"
    assert infer_dates(pl.Series([*QUARTERS, "2024-5"]), column=column).format == "%Y-%m"


@pytest.mark.parametrize(("column", "texts"), [("quarter", ["2023-02", "2023-03"]), ("quarter", ["202302"]),
                                               ("Halbjahr", ["2023-1", "2023-2"]), ("Semestre", ["202302"]),
                                               ("half", ["01/2023", "02/2023"])])  # fmt: skip
def test_parts_of_years_are_no_months(column: str, texts: list[str]) -> None:
    found = infer_dates(pl.Series(texts), column=column)
    assert found.is_ambiguous
    assert f"the column is called {column!r}" in found.question
    assert infer_dates(pl.Series(texts), column="month").is_known


@pytest.mark.parametrize(("column", "texts"), [("quarter", ["2023-01", "2023-04", "2023-07", "2023-10"]),
                                               ("half", ["2023-01", "2023-07"]), ("semana", ["2023-02"]),
                                               ("quarter", ["2023-03", "2023-06"])])  # fmt: skip
def test_months_that_begin_or_end_parts_of_years_are_read(column: str, texts: list[str]) -> None:
    assert infer_dates(pl.Series(texts), column=column).is_known


@pytest.mark.parametrize("texts", [["22-Jan", "22-Feb", "23-Jan", "23-Feb"], ["01-Jan", "08-Jan"]])
def test_numbers_before_months_may_be_days_or_years(texts: list[str]) -> None:
    found = infer_dates(pl.Series(texts))
    assert found.is_ambiguous
    assert "`ds_format='%y-%b'`" in found.question
    assert found.may_lack_year


def test_the_year_is_where_it_hardly_changes() -> None:
    assert infer_dates(pl.Series(["29.01.24", "30.01.24", "31.01.24", "01.02.24"])).format == "%d.%m.%y"
    assert infer_dates(pl.Series(["24.01.29", "24.01.30", "24.02.01"])).format == "%y.%m.%d"
    assert infer_dates(pl.Series(["01.02.03", "02.03.04"])).is_ambiguous


def test_a_text_without_digits_among_months_is_told() -> None:
    assert infer_dates(pl.Series(["\0", "1000-1"])).format == "%Y-%m"

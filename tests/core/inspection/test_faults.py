"""Small files, each with one fault or one way to write dates, and the report that it gets."""

from __future__ import annotations

import gzip
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import date
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest

from ccmtl_core.inspection import Policies, inspect
from ccmtl_core.inspection.row_checks import id_findings
from ccmtl_core.tables import ReadOptions

TODAY = date(2025, 6, 30)
DAYS = [f"2024-03-{day:02d}" for day in range(1, 31)]


@dataclass(frozen=True)
class File:
    """A file and its report: the count of each code, and what else is said of it."""

    text: str
    counts: Mapping[str, int]
    policies: Mapping[str, str] = field(default_factory=dict)
    stated: Mapping[str, Any] = field(default_factory=dict)
    traits: Mapping[str, str | None] = field(default_factory=dict)
    dropped: Mapping[str, int] = field(default_factory=dict)
    values: tuple[float, ...] | None = None
    rows: tuple[int, ...] | None = None
    """Rows that the first finding names."""
    is_usable: bool = True


def rows_of(*series: tuple[str, list[str], list[float]]) -> str:
    lines = [
        f"{one},{day},{y:g}" for one, days, values in series for day, y in zip(days, values, strict=True)
    ]
    return "unique_id,ds,y\n" + "\n".join(lines) + "\n"


def daily(**series: list[float]) -> str:
    return rows_of(*((name, DAYS[: len(values)], values) for name, values in series.items()))


def dated(dates: list[str]) -> str:
    return rows_of(("a", dates, [float(i % 5 + 1) for i in range(len(dates))]))


UP = [float(i % 6 + 1) for i in range(30)]
SHORT = {"short_series": 1}
BAD = {"faulty_rows": 1}
WORKDAYS = np.busday_offset("2024-04-01", np.arange(40)).astype(str).tolist()

FILES = {
    "nothing": File(daily(a=UP), {}),
    # rows
    "two rows of a period": File(
        daily(a=UP) + "a,2024-03-02,5\n",
        {"duplicate_period": 1, "unsorted_rows": 1},
        dropped={"duplicate_period": 1},
        rows=(31,),
        is_usable=False,
    ),
    "two rows of a period, added": File(
        daily(a=UP[:7]) + "a,2024-03-07,5\n",
        {"duplicate_period": 1, **SHORT},
        {"duplicates": "sum"},
        values=(*UP[:6], UP[6] + 5),
    ),
    "two rows of a period, averaged": File(
        daily(a=UP[:7]) + "a,2024-03-07,5\n",
        {"duplicate_period": 1, **SHORT},
        {"duplicates": "mean"},
        values=(*UP[:6], (UP[6] + 5) / 2),
    ),
    "two rows of a period, the last": File(
        daily(a=UP[:7]) + "a,2024-03-07,5\n",
        {"duplicate_period": 1, **SHORT},
        {"duplicates": "last"},
        values=(*UP[:6], 5.0),
    ),
    "a gap": File(
        rows_of(("a", [DAYS[0], *DAYS[3:13]], UP[:11])),
        {"absent_periods": 2},
        stated={"frequency": "D"},
    ),
    "a gap of zeros": File(
        rows_of(("a", [DAYS[0], *DAYS[3:10]], UP[:8])),
        {},
        {"fill": "zero"},
        {"frequency": "D"},
        values=(UP[0], 0.0, 0.0, *UP[1:8]),
    ),
    "a gap that repeats the value before": File(
        rows_of(("a", [DAYS[0], *DAYS[3:10]], UP[:8])),
        {},
        {"fill": "forward"},
        {"frequency": "D"},
        values=(UP[0], UP[0], UP[0], *UP[1:8]),
    ),
    "rows out of order": File(
        rows_of(("a", DAYS[9::-1], UP[:10])), {"unsorted_rows": 9}, rows=(2, 3, 4, 5, 6)
    ),
    "returns": File(daily(a=[*UP[:9], -2.0]), {"negative_values": 1}, rows=(10,)),
    "returns as zero": File(
        daily(a=[*UP[:7], -2.0]), {"negative_values": 1}, {"negatives": "clip"}, values=(*UP[:7], 0.0)
    ),
    "returns refused": File(
        daily(a=[*UP[:9], -2.0]), {"negative_values": 1}, {"negatives": "error"}, is_usable=False
    ),
    "not sold yet": File(daily(a=[0.0, 0.0, *UP[:8]], b=UP[:10]), {"leading_zeros": 2}, rows=(1, 2)),
    "not sold yet, dropped": File(
        daily(a=[0.0, 0.0, *UP[:8]]),
        {"leading_zeros": 2},
        {"leading_zeros": "drop"},
        dropped={"leading_zeros": 2},
        values=tuple(UP[:8]),
    ),
    "no value": File(
        daily(a=UP[:9]) + "a,2024-03-10,\n",
        {"empty_number": 1},
        dropped={"faulty_rows": 1},
        rows=(10,),
        is_usable=False,
    ),
    "no value, absent": File(
        daily(a=UP[:9]) + "a,2024-03-10,\n",
        {"empty_number": 1},
        {"missing": "absent"},
        dropped={"empty_number": 1},
        values=tuple(UP[:9]),
    ),
    "more fields than names": File(
        daily(a=UP[:9]) + "a,2024-03-10,5,7\n",
        {"csv_field_count": 1},
        dropped={"faulty_rows": 1},
        rows=(10,),
        is_usable=False,
    ),
    "no number": File(
        daily(a=UP[:9]) + "a,2024-03-10,many\n",
        {"unparseable_number": 1},
        dropped=BAD,
        rows=(10,),
        is_usable=False,
    ),
    "after today": File(
        rows_of(("a", [f"2025-07-{day:02d}" for day in range(1, 11)], UP[:10])), {"future_dates": 10}
    ),
    "years of another calendar": File(dated([f"1403/01/{d:02d}" for d in range(1, 29)]), {"past_dates": 28}),
    "a mistyped year": File(
        rows_of(("a", [*DAYS[:9], "2042-03-10"], UP[:10])),
        {"isolated_period": 1, "future_dates": 1, "absent_periods": 6574},
        stated={"frequency": "D"},
    ),
    "no id": File(
        daily(a=UP[:9]) + ",2024-03-10,5\n", {"empty_id": 1}, dropped=BAD, rows=(10,), is_usable=False
    ),
    # series
    "ended": File(
        rows_of(("a", DAYS, UP), ("b", DAYS[:10], UP[:10])), {"series_ended": 1}, stated={"frequency": "D"}
    ),
    "constant": File(daily(a=UP, b=[4.0] * 30), {"constant_series": 1}),
    "zeros": File(daily(a=UP, b=[0.0] * 30), {"all_zero": 1}),
    "short": File(rows_of(("a", DAYS, UP), ("b", DAYS[-3:], [1.0, 2.0, 3.0])), {"short_series": 1}),
    "an outlier": File(daily(a=[*UP[:29], 4000.0]), {"outliers": 1}, rows=(30,)),
    "mixed frequencies": File(
        rows_of(("a", DAYS, UP), ("b", DAYS[1::4], UP[:8])), {"mixed_frequencies": 1, "absent_periods": 21}
    ),
    # ids
    "ids that differ by a space inside": File(
        daily(**{"Tea 1": UP, "Tea  1": UP, "Tea\u00a01": UP, "cup": UP}), {"similar_ids": 3}
    ),
    "a row of totals": File(daily(a=UP, Total=UP), {"total_rows": 1}),
    "names of other languages": File(
        daily(a=UP).replace("unique_id,ds,y", "Artikel,Datum,Quantité"),
        {},
        traits={"unique_id": "Artikel", "ds": "Datum", "y": "Quantité"},
    ),
    "ids that differ by zeros": File(daily(**{"001": UP, "1": UP}), {"similar_ids": 2}),
    "ids that differ by case and space": File(
        daily(**{"Tea": UP, "tea ": UP, "cup": UP}), {"similar_ids": 2}
    ),
    "ids of a spreadsheet": File(daily(**{"4.00638E+12": UP, "b": UP}), {"spreadsheet_ids": 1}),
    "ids that became dates": File(
        daily(**{"10-Mar": UP, "Sep-01": UP, "01. Mrz": UP, "b": UP}), {"spreadsheet_ids": 3}
    ),
    "ids that became fractions": File(daily(**{"101.0": UP, "102.0": UP}), {"spreadsheet_ids": 2}),
    "an id with a fraction": File(daily(**{"101.0": UP, "b": UP}), {}),
    "ids that are formulas": File(daily(x1=UP, b=UP).replace("x1", '"=""00101"""'), {"text_formulas": 30}),
    "ids that say there is none": File(
        daily(**{"nan": UP, "NULL": UP, "#N/A": UP, "None": UP, "<NA>": UP, "Nan": UP, "Nullo": UP}),
        {"similar_ids": 2, "spreadsheet_ids": 6},
    ),
    "a series without a value": File(
        daily(a=UP, b=UP).replace("b,2024-03-30,6", "b,2024-03-30,6\nc,2024-03-30,"),
        {"empty_number": 1, "empty_series": 1},
        {"missing": "absent"},
        dropped={"empty_number": 1},
    ),
    "a series that is dropped": File(
        rows_of(("a", [f"2024-0{m}-{d:02d}" for m in range(1, 7) for d in (5, 28)], UP[:12]))
        + "a,2024-07-05,3\nb,2024-07-05,4\n",
        {"partial_last": 2, "duplicate_period": 6, "empty_series": 1, "short_series": 1},
        {"partial_last": "drop", "duplicates": "sum"},
        {"frequency": "MS"},
        dropped={"partial_last": 2},
    ),
    # dates
    "day first": File(dated([f"{d}/03/2024" for d in range(1, 21)]), {}, traits={"ds_format": "%d/%m/%Y"}),
    "month first": File(dated([f"3/{d}/2024" for d in range(1, 21)]), {}, traits={"ds_format": "%m/%d/%Y"}),
    "day or month first": File(
        dated([f"0{d}/03/2024" for d in range(1, 10)]),
        {"ambiguous_dates": 1},
        dropped={"faulty_rows": 9},
        is_usable=False,
    ),
    "day or month first, stated": File(
        dated([f"0{d}/03/2024" for d in range(1, 10)]), {}, stated={"ds_format": "%d/%m/%Y", "frequency": "D"}
    ),
    "with dots": File(dated([f"{d}.3.2024" for d in range(1, 21)]), {}, traits={"ds_format": "%d.%m.%Y"}),
    "digits": File(dated([f"202403{d:02d}" for d in range(1, 21)]), {}, traits={"ds_format": "%Y%m%d"}),
    "two-digit years": File(
        dated(["01/02/03", "02/03/04", "03/04/05"]),
        {"ambiguous_dates": 1},
        dropped={"faulty_rows": 3},
        is_usable=False,
    ),
    "two-digit years at the other end of years that lie far apart": File(
        dated([f"{d:02d}/03/24" for d in range(13, 29)]), {"two_digit_years": 16}
    ),
    "two-digit years, stated": File(
        dated([f"{d:02d}/03/24" for d in range(13, 29)]),
        {"two_digit_years": 16},
        stated={"ds_format": "%d/%m/%y", "frequency": "D"},
    ),
    "a century that cannot be": File(
        dated([f"{d:02d}/03/69" for d in range(13, 29)]),
        {"future_century": 16, "two_digit_years": 16},
        stated={"ds_format": "%d/%m/%y", "frequency": "D"},
        is_usable=False,
    ),
    "ISO weeks": File(
        dated([f"2024-W{w:02d}" for w in range(1, 21)]), {}, traits={"ds_format": "%G-W%V", "frequency": "W"}
    ),
    "quarters": File(
        dated([f"{y}Q{q}" for y in (2021, 2022, 2023) for q in (1, 2, 3, 4)]),
        {},
        traits={"ds_format": "%YQ%q", "frequency": "QS"},
    ),
    "months in words": File(
        dated([f"{m} {y}" for y in (2022, 2023) for m in ("Jan", "Feb", "Mar", "Apr")]),
        {"absent_periods": 8, **SHORT},
        traits={"ds_format": "%b %Y", "frequency": "MS"},
    ),
    "years": File(
        dated([str(y) for y in range(2001, 2012)]), {}, traits={"ds_format": "%Y", "frequency": "YS"}
    ),
    "Excel serials": File(
        dated([str(45_292 + d) for d in range(10)]),
        {"ambiguous_dates": 1},
        dropped={"faulty_rows": 10},
        is_usable=False,
    ),
    "Excel serials, stated": File(
        dated([str(45_292 + d) for d in range(10)]),
        {},
        stated={"ds_format": "excel"},
        traits={"frequency": "D"},
    ),
    "Excel serials in a column that is called by a time": File(
        dated([str(45_292 + d) for d in range(10)]).replace("unique_id,ds,y", "sku,date,qty"),
        {"ambiguous_dates": 1},
        dropped={"faulty_rows": 10},
        is_usable=False,
    ),
    "Excel serials, stated alone": File(
        dated([str(45_292 + d) for d in range(10)]).replace("unique_id,ds,y", "sku,date,qty"),
        {},
        stated={"ds_format": "excel"},
        traits={"ds": "date", "frequency": "D"},
    ),
    "numbered weeks in a column that is called so": File(
        dated([str(w) for w in range(1, 11)]).replace("unique_id,ds,y", "sku,week,qty"),
        {},
        traits={"ds": "week", "frequency": "1"},
    ),
    "months in German": File(
        dated([f"{d}. März 2024" for d in range(1, 21)]), {}, traits={"ds_format": "%d. %b %Y"}
    ),
    "days without a year": File(
        dated([f"{d:02d}-Mar" for d in range(1, 21)]),
        {"ambiguous_dates": 1},
        dropped={"faulty_rows": 20},
        is_usable=False,
    ),
    "days without a year, stated": File(
        dated([f"{d:02d}-Mar" for d in range(1, 21)]),
        {},
        stated={"dialect": ReadOptions(year=2024)},
        traits={"ds_format": "%d-%b %Y", "frequency": "D"},
    ),
    "epoch seconds, stated": File(
        dated([str(1_704_067_200 + 3600 * h) for h in range(30)]),
        {},
        stated={"ds_format": "epoch"},
        traits={"frequency": "h"},
    ),
    "whole numbers": File(dated([str(n) for n in range(10)]), {}, traits={"frequency": "1"}),
    "numbered weeks": File(dated([f"W{n}" for n in range(10)]), {}, traits={"frequency": "1"}),
    "an impossible date": File(
        daily(a=UP[:28]) + "a,2024-02-30,5\n",
        {"unparseable_date": 1},
        dropped=BAD,
        rows=(29,),
        is_usable=False,
    ),
    # frequencies
    "hours": File(
        dated([f"2024-03-{d:02d}T{h:02d}:00" for d in (1, 2) for h in range(24)]),
        {},
        traits={"frequency": "h"},
    ),
    "times with a zone": File(
        dated([f"2024-03-{d:02d}T10:30:00+01:00" for d in range(1, 21)]),
        {"moved_to_period_start": 20},
        traits={"frequency": "D"},
    ),
    "weeks to Friday": File(
        dated(["2024-03-01", "2024-03-08", "2024-03-15"]), {**SHORT}, traits={"frequency": "W-FRI"}
    ),
    "business days": File(
        dated(WORKDAYS),
        {},
        traits={"frequency": "B"},
    ),
    "closed on Sundays": File(
        dated([f"2024-04-{d:02d}" for d in range(1, 31) if d % 7]), {}, traits={"frequency": "D-SUN"}
    ),
    "month ends": File(
        dated(["2024-01-31", "2024-02-29", "2024-03-31"]), {**SHORT}, traits={"frequency": "ME"}
    ),
    "a date on a closed day": File(
        dated(["2024-03-01", "2024-03-02", "2024-03-04"]),
        {"duplicate_period": 1, "closed_day_rows": 1, "moved_to_period_start": 1, **SHORT},
        stated={"frequency": "B"},
        dropped={"duplicate_period": 1},
        is_usable=False,
    ),
    "a partial last month": File(
        dated([f"2024-0{m}-{d:02d}" for m in (1, 2) for d in range(1, 30)] + ["2024-03-01", "2024-03-02"]),
        {"partial_last": 2, "duplicate_period": 57, **SHORT},
        {"duplicates": "sum"},
        {"frequency": "MS"},
    ),
    "a partial last month, dropped": File(
        dated([f"2024-0{m}-{d:02d}" for m in (1, 2) for d in range(1, 30)] + ["2024-03-01", "2024-03-02"]),
        {"partial_last": 2, "duplicate_period": 56, **SHORT},
        {"duplicates": "sum", "partial_last": "drop"},
        {"frequency": "MS"},
        dropped={"partial_last": 2},
    ),
    "a single date": File(
        rows_of(("a", ["2024-03-01"], [1.0])),
        {"unknown_frequency": 1},
        dropped={"unknown_frequency": 1},
        is_usable=False,
    ),
    "no column of values": File(
        "unique_id,ds,price\na,2024-03-01,5\n",
        {"unknown_column": 1},
        dropped={"faulty_rows": 1},
        is_usable=False,
    ),
}


@pytest.mark.parametrize("name", FILES)
def test_a_file_gets_its_report_and_each_row_is_accounted_for(name: str, tmp_path: Path) -> None:
    file = FILES[name]
    path = tmp_path / "file.csv"
    path.write_text(file.text)
    report = inspect(path, **file.stated, policies=Policies(**file.policies), today=TODAY)
    assert report.counts == file.counts
    assert {trait: report.traits[trait].value for trait in file.traits} == file.traits
    assert report.accounts.rows_dropped == file.dropped
    assert (report.panel is not None) == file.is_usable
    accounts = report.accounts
    assert accounts.rows_read == file.text.count("\n") - 1
    assert accounts.rows_read == accounts.rows_used + accounts.rows_merged + sum(
        accounts.rows_dropped.values()
    )
    if file.values is not None:
        assert report.require_panel().values.tolist() == list(file.values)
    if file.rows is not None:
        assert tuple(sample.row for sample in report.findings[0].samples) == file.rows


def test_two_columns_make_one_id(tmp_path: Path) -> None:
    path = tmp_path / "file.csv"
    path.write_text("shop,article,ds,y\n1,007,2024-03-01,1\n1,12,2024-03-01,2\n,12,2024-03-02,3\n")
    report = inspect(path, unique_id=["shop", "article"], frequency="D", today=TODAY)
    assert report.counts["empty_id"] == 1
    path.write_text("shop,article,ds,y\n1,007,2024-03-01,1\n1,12,2024-03-01,2\n2,12,2024-03-01,3\n")
    panel = inspect(path, unique_id=["shop", "article"], frequency="D", today=TODAY).require_panel()
    assert panel.unique_ids == ("1-007", "1-12", "2-12")


@pytest.mark.parametrize("other", ["store", "week"])
def test_rows_of_one_period_name_the_column_that_tells_them_apart(other: str) -> None:
    rows = pl.DataFrame(
        {"item": ["a", "b"] * 20, "day": [day for day in DAYS[:10] for _ in range(4)]}
    ).with_columns(pl.Series(other, ["01", "01", "02", "02"] * 10), sold=1, receipt=pl.int_range(40))
    finding = next(one for one in inspect(rows, today=TODAY).findings if one.code == "duplicate_period")
    assert f"differ in 1 column [{other}]" in finding.message
    assert f"state `unique_id=['item', '{other}']`" in finding.message


def test_rows_of_one_year_name_the_column_that_has_the_month() -> None:
    rows = pl.DataFrame({"item": ["a"] * 3, "year": [2024] * 3, "month": [1, 2, 3], "sold": [5, 6, 7]})
    finding = next(one for one in inspect(rows, today=TODAY).findings if one.code == "duplicate_period")
    assert finding.message.endswith("write both in one column, as its name says: 'year' and 'month'.")


def test_the_columns_of_a_packed_file_are_compared_too(tmp_path: Path) -> None:
    path = tmp_path / "file.csv.gz"
    text = "".join(f"{store},a,{day},1\n" for store in ("01", "02") for day in DAYS)
    path.write_bytes(gzip.compress(f"store,item,day,sold\n{text}".encode()))
    finding = next(one for one in inspect(path, today=TODAY).findings if one.code == "duplicate_period")
    assert "state `unique_id=['item', 'store']`" in finding.message


def test_a_first_row_that_is_taken_for_names_is_told(tmp_path: Path) -> None:
    path = tmp_path / "file.csv"
    path.write_text("\n".join(daily(a=UP).splitlines()[1:]))
    assert "state `header_row=0`" in inspect(path).findings[0].message


def test_a_file_of_names_alone_is_told_to_have_no_rows(tmp_path: Path) -> None:
    path = tmp_path / "file.csv"
    path.write_text("product,date,qty\n")
    assert "there are no rows below the header" in inspect(path).findings[0].message


@pytest.mark.parametrize(
    ("cell", "told"),
    [
        ("3 €", "state `currency='€'`"),
        ("$3.50", "state `currency='$'`"),
        ("EUR 3", "state `currency='EUR'`"),
        ("n/a", "state `empty='n/a'`"),
    ],
)
def test_a_cell_that_is_nearly_a_number_is_told_what_reads_it(tmp_path: Path, cell: str, told: str) -> None:
    path = tmp_path / "file.csv"
    path.write_text(daily(a=UP) + f"a,2024-03-31,{cell}\n")
    (finding,) = (one for one in inspect(path, today=TODAY).findings if one.code == "unparseable_number")
    assert told in finding.message


def test_a_word_for_no_value_is_read_where_it_is_stated(tmp_path: Path) -> None:
    path = tmp_path / "file.csv"
    path.write_text(daily(a=UP) + "a,2024-03-31,NA\na,2024-04-01, NA \n")
    options, policies = ReadOptions(empty="NA"), Policies(missing="absent")
    accounts = inspect(path, dialect=options, policies=policies, today=TODAY).accounts
    assert accounts.rows_dropped == {"empty_number": 2}
    (finding,) = inspect(path, dialect=ReadOptions(empty="NaN"), policies=policies, today=TODAY).errors
    assert finding.code == "unparseable_number"


def test_lines_within_quotes_that_look_like_rows_are_a_warning(tmp_path: Path) -> None:
    rows = [f"a,2024-01-{day:02},{day},{note}" for day, note in enumerate(["x", '"y', "z", 'w"', "v"] * 4, 1)]
    path = tmp_path / "file.csv"
    path.write_text("\n".join(["product,date,qty,note", *rows]))
    (finding,) = (one for one in inspect(path, today=TODAY).findings if one.code == "quoted_lines")
    assert (finding.severity, finding.count, finding.unit) == ("warning", 8, "lines")
    assert [sample.row for sample in finding.samples] == [2, 5, 8, 11]
    path.write_text(
        "product,date,qty,note\n" + 'a,2024-01-01,1,"two\nlines, of\ntext"\n' + "\n".join(rows[:1])
    )
    assert not [one for one in inspect(path, today=TODAY).findings if one.code == "quoted_lines"]


def test_weeks_without_a_year_take_the_stated_one(tmp_path: Path) -> None:
    path = tmp_path / "file.csv"
    path.write_text("product,date,qty\n" + "".join(f"a,KW {week:02},{week}\n" for week in range(1, 20)))
    report = inspect(path, dialect=ReadOptions(year=2024), today=TODAY)
    assert (report.traits["frequency"].value, report.traits["ds_format"].value) == ("W", "KW %V %G")
    path.write_text("product,date,qty\na,KW 51,1\na,KW 52,2\na,KW 01,3\n")
    (finding,) = inspect(path, dialect=ReadOptions(year=2024), today=TODAY).errors
    assert "'KW 01' follows 'KW 52'" in finding.message


def test_each_row_after_a_later_one_is_unsorted(tmp_path: Path) -> None:
    path = tmp_path / "file.csv"
    days = [5, 1, 2, 3, 6]
    path.write_text("product,date,qty\n" + "".join(f"a,2024-01-0{day},{day}\n" for day in days))
    (finding,) = (one for one in inspect(path, today=TODAY).findings if one.code == "unsorted_rows")
    assert (finding.count, [sample.row for sample in finding.samples]) == (3, [2, 3, 4])


def test_a_week_of_a_two_digit_year_after_today_is_no_plan(tmp_path: Path) -> None:
    path = tmp_path / "file.csv"
    path.write_text("product,date,qty\n" + "".join(f"a,68{week:02},{week}\n" for week in range(1, 20)))
    codes = {one.code for one in inspect(path, ds_format="%g%V", today=TODAY).findings}
    assert {"future_century", "two_digit_years"} <= codes


SUMS = ["Gesamtergebnis", "Total général", "Eindtotaal", "Totale complessivo", "Общий итог", "Suma końcowa",
        "Genel Toplam", "Totalsumma", "Hovedtotal", "Celkový součet", "Végösszeg", "총합계", "总计", "總計",
        "総計", "Zwischensumme", "Sous-total", "Insgesamt", "Сумма", "Ukupno", "Yhteensä", "Kokonaissumma",
        "Σ", "Total:", "Summe "]  # fmt: skip


@pytest.mark.parametrize("word", SUMS)
def test_rows_of_sums_are_told_by_the_words_of_spreadsheets(word: str) -> None:
    _, finding = id_findings(pl.Series([word, "Totally Tea", "Sommer", "Summer"]))
    assert (finding.code, finding.count, finding.samples[0].unique_id) == ("total_rows", 1, word)


def test_a_series_of_sums_is_told_whatever_it_is_called(tmp_path: Path) -> None:
    path = tmp_path / "sales.csv"
    back = UP[::-1]
    path.write_text(daily(a=UP, b=back, c=UP, everything=[2 * y + z for y, z in zip(UP, back, strict=True)]))
    (finding,) = inspect(path, today=TODAY).findings
    assert (finding.code, finding.count, finding.samples[0].unique_id) == ("total_rows", 1, "everything")
    assert "'everything' is the sum of all others in nearly every period" in finding.message

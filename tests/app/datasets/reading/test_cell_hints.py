"""What is said of a bad cell is true: the format that is named reads it."""

from __future__ import annotations

import re

import pytest

from app.datasets.upload.option_names import in_request
from ccmtl_core.tables.cell_hints import date_hint
from tests.app.datasets.conftest import Shop


@pytest.mark.parametrize(
    ("text", "formats"),
    [
        ("01.01.2024", ["%d.%m.%Y"]),
        ("1.2.24", ["%d.%m.%y"]),
        ("31.01.2024 09:30", ["%d.%m.%Y %H:%M"]),
        ("20240103", ["%Y%m%d"]),
        ("2024/01/03", ["%Y/%m/%d"]),
        ("2024/01/03T10:00:00", ["%Y/%m/%dT%H:%M:%S"]),
        ("13/02/2024", ["%d/%m/%Y"]),
        ("02/13/2024", ["%m/%d/%Y"]),
        ("02-03-2024", ["%m-%d-%Y", "%d-%m-%Y"]),
        ("2024-13-01", []),
        ("20241301", []),
        ("31.02.2024", []),
        ("01.01.0999", []),
        ("01.01.2024 ", []),
        ("001.01.2024", []),
        ("13/13/2024", []),
        ("soon", []),
        ("", []),
    ],
)
def test_the_named_format_reads_the_date(shop: Shop, text: str, formats: list[str]) -> None:
    assert re.findall(r"'(%[^']*)'", date_hint(text)) == formats
    beside = "unique_id,ds,y\na,2024-05-01,1\na,2024-05-02,1\n"
    (fault,) = shop.refused(shop.series(), f"{beside}a,{text},1\n")["errors"]
    if text:
        assert fault["message"].startswith("not a date in the format YYYY-MM-DD")
        assert fault["message"].endswith(in_request(date_hint(text)))
    for ds_format in formats:
        assert shop.accepted(shop.series(ds_format=ds_format), f"unique_id,ds,y\na,{text},1\n")["rows"] == 1


@pytest.mark.parametrize(
    ("text", "hint"),
    [
        ("6,5", "; the decimal sign must be a point, not a comma: 6.5; or state `decimal=,`"),
        ("-1.234,5", "; the decimal sign must be a point, not a comma: -1234.5; or state `decimal=,`"),
        (
            "1,234",
            "; the decimal sign must be a point, and nothing may stand between thousands; or state "
            "`decimal=,`, or `decimal=.` if the comma is one between thousands",
        ),
        ("many", ""),
    ],
)
def test_a_comma_in_a_number_is_named(shop: Shop, text: str, hint: str) -> None:
    (fault,) = shop.refused(shop.series(), f'unique_id,ds,y\na,2024-01-01,"{text}"\n')["errors"]
    assert fault["message"] == "not a number such as -1234.5 or 1e-3" + hint

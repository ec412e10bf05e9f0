"""Lines of JSON become a table, and a line that does not fit is named with its fault."""

from __future__ import annotations

from pathlib import Path

import pytest

from ccmtl_core.inspection import inspect
from ccmtl_core.tables import ReadOptions, read_table
from ccmtl_core.tables.faults import TableError

LINE = '{"id": "a", "y": 1}\n'
FAULTS = {
    "a name twice": ('{"id": "a", "y": 1, "y": 2}', "name 'y' twice"),
    "a name twice, once as an escape": ('{"id": "a", "y": 1, "\\u0079": 2}', "name 'y' twice"),
    "NaN": ('{"id": "a", "y": NaN}', "NaN and Infinity are no values of JSON"),
    "a number beyond all": ('{"id": "a", "y": 1e999}', "the number is too large"),
    "a list": ('{"id": "a", "y": [1]}', "the value is a list or an object"),
    "half of a pair": ('{"id": "a\\ud800", "y": 1}', "half of a surrogate pair"),
    "true among numbers": ('{"id": "a", "y": true}', "true or false stands among other values"),
    "no object": ("[1]", "the line is no JSON object"),
    "half an object": ('{"id":', "the line is no JSON object"),
}


@pytest.mark.parametrize("kind", FAULTS)
def test_a_line_that_does_not_fit_is_named(kind: str, tmp_path: Path) -> None:
    line, told = FAULTS[kind]
    path = tmp_path / "sales.ndjson"
    path.write_text(LINE + "\n" + line + "\n" + LINE)
    with pytest.raises(TableError, match=told) as refused:
        read_table(path)
    assert refused.value.counts == {"not_json_lines": 1}
    assert refused.value.listed[0].row == 3


def test_names_within_values_are_no_names_twice(tmp_path: Path) -> None:
    path = tmp_path / "sales.ndjson"
    path.write_text('{"id": "a", "more": {"id": 1, "\\u00e4": 2}, "note": "\\"id\\": 5"}\n')
    assert read_table(path).frame["id"].to_list() == ["a"]


def test_a_mark_before_lines_and_blank_lines_are_no_rows(tmp_path: Path) -> None:
    path = tmp_path / "sales.ndjson"
    path.write_text("\ufeff" + LINE + "\n\n" + LINE)
    table = read_table(path)
    assert table.frame.height == 2
    (note,) = table.notes
    assert (note.code, note.count) == ("blank_lines", 2)


@pytest.mark.parametrize("turned", [False, True])
def test_texts_among_numbers_are_refused_where_they_may_be_numbers(tmp_path: Path, *, turned: bool) -> None:
    lines = [
        '{"sku": "a", "ds": "2024-01-01", "y": 22.125}',
        '{"sku": "a", "ds": "2024-01-02", "y" : "1.234,50"}',
    ]
    text = "\n".join(reversed(lines) if turned else lines)
    path = tmp_path / "sales.ndjson"
    path.write_text(text)
    assert "text_among_numbers" in {finding.code for finding in inspect(path).findings}
    path.write_text(text.replace("1.234,50", "22"))
    panel = inspect(path, dialect=ReadOptions(decimal=",")).require_panel()
    assert sorted(panel.values.tolist()) == [22.0, 22.125]

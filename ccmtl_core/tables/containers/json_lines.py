"""Read lines of JSON objects as a table, or say which lines are none and why."""

from __future__ import annotations

import codecs
import json
import re
import shutil
from collections.abc import Iterator
from dataclasses import replace
from math import isinf
from pathlib import Path
from typing import Any

import polars as pl

from ccmtl_core.base.display import quoted
from ccmtl_core.tables.containers.sheet_child import LIKE_A_NUMBER
from ccmtl_core.tables.faults import FaultList
from ccmtl_core.tables.header import refuse_long_line, refuse_too_many
from ccmtl_core.tables.table import CellKinds, Note, Table

_KEYS = re.compile(rb'"((?:[^"\\]|\\.)*)"\s*:')


def open_json_lines(path: Path, folder: Path, faults: FaultList) -> Table:
    """Open lines of JSON objects, whose names are the columns; blank lines are no rows.

    A line that is no object, or has a name twice, is a `TableError`. ``folder`` takes a copy without a
    byte-order mark.
    """
    unreadable = "not_json_lines", "the lines of JSON cannot be read as a table"
    path = _without_mark(path, folder)
    n_rows, n_lines = 0, 0
    for n_lines, line in _lines(path):
        refuse_long_line(len(line), n_lines, faults)
        n_rows += 1
        keys = _KEYS.findall(line)
        if not line.startswith(b"{") or len(set(keys)) < len(keys) or b"\\u" in line:
            _add_fault(line, n_lines, faults, values=False)
    if faults:
        raise faults.refusal()
    try:
        frame = pl.read_ndjson(path, infer_schema_length=None)
    except (pl.exceptions.PolarsError, pl.exceptions.PanicException):
        for number, line in _lines(path):
            _add_fault(line, number, faults, values=True)
        raise faults.refusal() if faults else faults.refusal_for(*unreadable) from None
    if frame.height != n_rows:
        raise faults.refusal_for(*unreadable)
    refuse_too_many(frame.columns, faults)
    message = "blank lines were skipped, and rows are counted without them"
    notes = [Note("blank_lines", message, n_lines - n_rows)] if n_lines > n_rows else []
    kinds = _cell_kinds(path, frame)
    return replace(Table.of_frame(frame), unreadable=unreadable, notes=tuple(notes), kinds=kinds)


def _cell_kinds(path: Path, frame: pl.DataFrame) -> CellKinds:
    """Which columns have numbers with a fraction and texts; polars makes text of these numbers."""
    fractions: set[int] = set()
    texts: dict[int, str] = {}
    for place, name in enumerate(frame.columns):
        column = frame.to_series(place)
        if column.dtype != pl.String or not column.str.contains(r"^-?[0-9]+\.[0-9]+$").any():
            continue
        key = re.escape(json.dumps(name, ensure_ascii=False).encode())
        number = re.compile(key + rb"\s*:\s*-?[0-9]+\.[0-9]")
        text = re.compile(key + rb'\s*:\s*"([^"\\]+)"')
        for _, line in _lines(path):
            if number.search(line):
                fractions.add(place)
            elif (found := text.search(line)) and LIKE_A_NUMBER.fullmatch(found[1].decode()):
                texts.setdefault(place, found[1].decode())
    return CellKinds(frozenset(fractions), texts)


def _without_mark(path: Path, folder: Path) -> Path:
    with path.open("rb") as file:
        if file.read(len(codecs.BOM_UTF8)) != codecs.BOM_UTF8:
            return path
        plain = folder / "plain.ndjson"
        with plain.open("wb") as out:
            shutil.copyfileobj(file, out)
    return plain


def _lines(path: Path) -> Iterator[tuple[int, bytes]]:
    with path.open("rb") as file:
        yield from ((number, line.strip()) for number, line in enumerate(file, start=1) if line.strip())


class _Object(list[tuple[str, Any]]):
    """The names and values of a JSON object as they stand."""


def _add_fault(line: bytes, number: int, faults: FaultList, *, values: bool) -> None:
    """Note what is wrong with a line, if anything is; with ``values`` also of those that no cell can hold."""
    shown = line[:80].decode("utf-8", "replace")
    try:
        parsed = json.loads(line, object_pairs_hook=_Object, parse_constant=_no_number)
    except (ValueError, RecursionError) as error:
        known = f": {error}" if str(error).startswith("NaN") else ""
        faults.add("not_json_lines", f"the line is no JSON object{known}", row=number, value=shown)
        return
    if not isinstance(parsed, _Object):
        faults.add("not_json_lines", "the line is no JSON object", row=number, value=shown)
        return
    seen = set[str]()
    for name, value in parsed:
        if name in seen:
            message = f"the object has the name {quoted(name)} twice"
        elif _is_cut(name) or (isinstance(value, str) and _is_cut(value)):
            message = "the text has half of a surrogate pair, which is no character"
        elif values and isinstance(value, list):
            message = "the value is a list or an object; a cell holds a text, a number or nothing"
        elif values and isinstance(value, float) and isinf(value):
            message = "the number is too large to be read"
        elif values and isinstance(value, bool):
            message = "true or false stands among other values: write 1 or 0"
        else:
            seen.add(name)
            continue
        faults.add("not_json_lines", message, row=number, column=name, value=shown)
        return


def _no_number(constant: str) -> None:
    raise ValueError(f"NaN and Infinity are no values of JSON, write null (there is {constant})")


def _is_cut(text: str) -> bool:
    return any("\ud800" <= letter <= "\udfff" for letter in text)

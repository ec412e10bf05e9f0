"""The process that reads a workbook: a script that imports little, for a small file may take all memory.

``python sheet_child.py WORKBOOK FOLDER BYTES [SHEET]`` writes each sheet with cells to FOLDER as CSV, called
0.csv, 1.csv, …, and prints a JSON list of objects, each with the ``name`` of a sheet, how many ``formulas``
in it have no value, the ``first`` of their places, the columns with ``fractions`` that are numbers, and the
first text of each column that is written like a number (``like_numbers``); or an object with the ``error``.

The reader of workbooks gives nothing for errors and for formulas without a value, and rounds whole numbers.
The XML of ``.xlsx`` has these cells as they were written, and so they come through.
"""

from __future__ import annotations

import csv
import datetime
import json
import re
import resource
import sys
import zipfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from xml.etree import ElementTree
from xml.parsers import expat

from python_calamine import (
    CalamineError,
    CalamineSheet,
    CalamineWorkbook,
    PasswordError,
    SheetTypeEnum,
    SheetVisibleEnum,
    WorksheetNotFound,
)

MAX_SECONDS = 120
_EXACT = 2**53
LIKE_A_NUMBER = re.compile(
    r"(?!(?:19|20)[0-9]{2}[.,][0-9]{1,2}$)"  # but for months, as columns are called
    r"[-+(]?(?:[0-9]{1,3}(?:[., '’\u00a0\u202f][0-9]{3})+(?:[.,][0-9]+)?|[0-9]+[.,][0-9]+)[)-]?"
)
"""Texts that a person may mean as a number, but for whole ones."""
_PIECE, _FIRST, _LONGEST = 1 << 20, 5, 60
_CLOSED, _NO_VALUE = rb"</(?:\w+:)?", rb"(?:<(?:\w+:)?v\s*/>|<(?:\w+:)?v></(?:\w+:)?v>)?"
_ODD = re.compile(
    rb"\bt=[\"']e[\"']|<(?:\w+:)?v>-?[0-9]{16,}<"
    rb"|(?:" + _CLOSED + rb"f>|<(?:\w+:)?f\b[^>]*/>)\s*" + _NO_VALUE + rb"\s*" + _CLOSED + rb"c>"
)
"""An error, a number of many digits, or a formula without a value."""


def main(path: str, folder: str, max_bytes: str, sheet: str | None = None) -> None:
    """Write the sheets, within limits of memory and time."""
    resource.setrlimit(resource.RLIMIT_AS, (int(max_bytes), int(max_bytes)))
    resource.setrlimit(resource.RLIMIT_CPU, (MAX_SECONDS, MAX_SECONDS))
    try:
        answer: object = list(_written(CalamineWorkbook.from_path(path), Path(path), Path(folder), sheet))
    except PasswordError:
        answer = {"error": "it is protected by a password"}
    except WorksheetNotFound:
        answer = {"error": "no such sheet", "sheets": CalamineWorkbook.from_path(path).sheet_names}
    except CalamineError as error:
        answer = {"error": str(error)}
    print(json.dumps(answer))  # noqa: T201 - the answer


def _written(
    book: CalamineWorkbook, path: Path, folder: Path, wanted: str | None
) -> Iterator[dict[str, object]]:
    if wanted is not None:
        book.get_sheet_by_name(wanted)
    names = [
        sheet.name
        for sheet in book.sheets_metadata
        if sheet.typ is SheetTypeEnum.WorkSheet and sheet.visible is SheetVisibleEnum.Visible
    ]
    for name in names if wanted is None else [wanted]:
        sheet = book.get_sheet_by_name(name)
        cells = _odd_cells(path, name)
        if sheet.start is not None or cells.texts:
            kinds = _CellKinds()
            with (folder / f"{len(list(folder.iterdir()))}.csv").open(
                "w", encoding="utf-8", newline=""
            ) as out:
                csv.writer(out, lineterminator="\n").writerows(_rows(sheet, cells.texts, kinds))
            yield {
                "name": name,
                "formulas": len(cells.formulas),
                "first": cells.formulas[:_FIRST],
                "fractions": sorted(kinds.fractions),
                "like_numbers": kinds.like_numbers,
            }


class _CellKinds:
    """Which columns of the CSV file have fractions that are numbers, and texts that are written like one."""

    def __init__(self) -> None:
        self.fractions: set[int] = set()
        self.like_numbers: dict[int, str] = {}

    def note(self, row: Sequence[object], first: int) -> None:
        """Look at the cells of a row, the first of which is in this column."""
        for column, cell in enumerate(row, start=first):
            if isinstance(cell, float):
                if not cell.is_integer():
                    self.fractions.add(column)
            elif isinstance(cell, str) and LIKE_A_NUMBER.fullmatch(cell):
                self.like_numbers.setdefault(column, cell)


def _rows(sheet: CalamineSheet, odd: dict[int, dict[int, str]], kinds: _CellKinds) -> Iterator[list[str]]:
    """The rows as text, those without a cell empty, without columns that are empty at both ends."""
    odd_columns = [column for texts in odd.values() for column in texts]
    first = sheet.start[1] if sheet.start else min(odd_columns)  # of the cells that `iter_rows` gives
    left, right = min([first, *odd_columns]), max(odd_columns, default=-1) + 1
    for row in sheet.iter_rows():
        right = max([right, *(first + i + 1 for i, cell in enumerate(row) if cell != "")])
    rows = sheet.iter_rows()
    for i in range(max([*(sheet.end or ())[:1], *odd]) + 1):
        row = next(rows, [])
        kinds.note(row, first - left)
        cells = [""] * (first - left) + list(map(_text, row))
        cells = cells[: right - left] + [""] * (right - left - len(cells))
        for column, text in odd.get(i, {}).items():
            cells[column - left] = text
        yield cells if any(cells) else []


class _OddCells:
    """Errors, formulas without a value and long whole numbers of a sheet of XML, as its elements go by."""

    def __init__(self) -> None:
        self.texts: dict[int, dict[int, str]] = {}
        """By row and column from 0."""
        self.formulas: list[str] = []
        """The places of formulas without a value, such as C2."""
        self._row, self._column, self._kind, self._of = -1, -1, "n", ""
        self._found: dict[str, str] = {}

    def start(self, name: str, given: dict[str, str]) -> None:
        """Note the place of a cell, and which part of it begins."""
        name = name.rpartition(":")[2]
        if name == "row":
            self._row, self._column = int(given.get("r", self._row + 2)) - 1, -1
        elif name == "c":
            letters = re.match("[A-Z]*", given.get("r", ""))
            self._column = (_column(letters[0]) if letters and letters[0] else self._column + 2) - 1
            self._kind, self._found = given.get("t", "n"), {}
        elif name in ("v", "f"):
            self._of, self._found[name] = name, ""

    def text(self, data: str) -> None:
        """Add text to the part of a cell."""
        if self._of:
            self._found[self._of] += data

    def end(self, name: str) -> None:
        """Keep the cell that ends if it is an odd one."""
        name, self._of = name.rpartition(":")[2], ""
        if name != "c":
            return
        formula, value = self._found.get("f"), self._found.get("v")
        if self._kind == "e":
            self._keep(value or "#N/A")
        elif formula is not None and (value is None or (not value and self._kind != "str")):
            self._keep(f"={formula[:_LONGEST]}")
            self.formulas.append(f"{_letters(self._column + 1)}{self._row + 1}")
        elif self._kind == "n" and value and re.fullmatch("-?[0-9]{16,}", value) and _is_rounded(value):
            self._keep(value)

    def _keep(self, text: str) -> None:
        self.texts.setdefault(self._row, {})[self._column] = text


def _odd_cells(path: Path, sheet: str) -> _OddCells:
    """Those of a sheet of ``.xlsx``; none of another file, and none where its XML has no sign of one."""
    found = _OddCells()
    if not zipfile.is_zipfile(path):
        return found
    with zipfile.ZipFile(path) as book:
        part = _part_of(book, sheet)
        if part is None or not any(map(_ODD.search, _overlapping(book, part))):
            return found
        parser = expat.ParserCreate()
        parser.buffer_text = True
        parser.StartElementHandler, parser.EndElementHandler = found.start, found.end
        parser.CharacterDataHandler = found.text
        with book.open(part) as xml:
            parser.ParseFile(xml)
    return found


def _part_of(book: zipfile.ZipFile, sheet: str) -> str | None:
    """The file with the XML of a sheet."""
    names, parts = "xl/workbook.xml", "xl/_rels/workbook.xml.rels"
    if not {names, parts} <= set(book.namelist()):
        return None
    listed = [one for one in ElementTree.fromstring(book.read(names)).iter() if one.get("name") == sheet]
    links = {one.get("Id"): one.get("Target") for one in ElementTree.fromstring(book.read(parts))}
    for one in listed:
        for name, value in one.items():
            target = links.get(value) if name.endswith("}id") else None
            if target is not None:
                part = target.lstrip("/") if target.startswith("/") else f"xl/{target}"
                return part if part in book.namelist() else None
    return None


def _overlapping(book: zipfile.ZipFile, part: str) -> Iterator[bytes]:
    """The bytes of a file in pieces, each with the end of the one before."""
    end = b""
    with book.open(part) as file:
        while piece := file.read(_PIECE):
            yield end + piece
            end = piece[-1000:]


def _column(letters: str) -> int:
    number = 0
    for letter in letters:
        number = 26 * number + ord(letter) - ord("A") + 1
    return number


def _letters(number: int) -> str:
    letters = ""
    while number:
        number, rest = divmod(number - 1, 26)
        letters = chr(ord("A") + rest) + letters
    return letters


def _is_rounded(digits: str) -> bool:
    return len(digits) > 300 or int(digits) != int(float(digits))


def _text(cell: object) -> str:
    if isinstance(cell, bool):
        return "true" if cell else "false"
    if isinstance(cell, float) and cell.is_integer() and abs(cell) < _EXACT:
        return str(int(cell))
    if isinstance(cell, datetime.datetime):
        is_date = cell.time() == datetime.time()
        return cell.date().isoformat() if is_date else cell.isoformat()
    if isinstance(cell, datetime.date | datetime.time):
        return cell.isoformat()
    return str(cell)


if __name__ == "__main__":
    main(*sys.argv[1:])

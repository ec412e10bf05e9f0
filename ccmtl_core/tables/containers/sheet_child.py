"""The process that reads a workbook: a script that imports little, for a small file may take all memory.

``python sheet_child.py WORKBOOK FOLDER BYTES [SHEET]`` writes each sheet with cells to FOLDER as CSV, called
0.csv, 1.csv, …, and prints a JSON list of their names; or an object with the ``error``.
"""

from __future__ import annotations

import csv
import datetime
import json
import resource
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path

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


def main(path: str, folder: str, max_bytes: str, sheet: str | None = None) -> None:
    """Write the sheets, within limits of memory and time."""
    resource.setrlimit(resource.RLIMIT_AS, (int(max_bytes), int(max_bytes)))
    resource.setrlimit(resource.RLIMIT_CPU, (MAX_SECONDS, MAX_SECONDS))
    try:
        answer: object = list(_written(CalamineWorkbook.from_path(path), Path(folder), sheet))
    except PasswordError:
        answer = {"error": "it is protected by a password"}
    except WorksheetNotFound:
        answer = {"error": "no such sheet", "sheets": CalamineWorkbook.from_path(path).sheet_names}
    except CalamineError as error:
        answer = {"error": str(error)}
    print(json.dumps(answer))  # noqa: T201 - the answer


def _written(book: CalamineWorkbook, folder: Path, wanted: str | None) -> Iterator[str]:
    if wanted is not None:
        book.get_sheet_by_name(wanted)
    names = [
        sheet.name
        for sheet in book.sheets_metadata
        if sheet.typ is SheetTypeEnum.WorkSheet and sheet.visible is SheetVisibleEnum.Visible
    ]
    for name in names if wanted is None else [wanted]:
        sheet = book.get_sheet_by_name(name)
        if sheet.start is not None:
            with (folder / f"{len(list(folder.iterdir()))}.csv").open(
                "w", encoding="utf-8", newline=""
            ) as out:
                csv.writer(out, lineterminator="\n").writerows(_rows(sheet))
            yield name


def _rows(sheet: CalamineSheet) -> Iterator[list[str]]:
    """The rows as text, those without a cell empty, without columns that are empty at the right."""
    width = max((_width(row) for row in sheet.iter_rows()), default=0)
    for row in sheet.iter_rows():
        cells = [_text(cell) for cell in row[:width]]
        yield cells if any(cells) else []


def _width(row: Sequence[object]) -> int:
    return max((i + 1 for i, cell in enumerate(row) if cell != ""), default=0)


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

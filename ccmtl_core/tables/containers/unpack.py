"""Take the table out of what it was packed in: gzip, zstd and zip, also one in another, within limits."""

from __future__ import annotations

import codecs
import errno
import lzma
import re
import struct
import zipfile
import zlib
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass
from fnmatch import fnmatchcase
from itertools import chain
from pathlib import Path
from typing import IO

from ccmtl_core.base.display import counted
from ccmtl_core.tables.containers.formats import DAMAGED_ZIP, Format, format_of, is_workbook
from ccmtl_core.tables.decompression import CompressedDataError, GzipDecoder, ZstdDecoder
from ccmtl_core.tables.dialects.dialect import NOTHING_KNOWN, Dialect, ReadOptions
from ccmtl_core.tables.dialects.layout import has_names, is_parted
from ccmtl_core.tables.faults import FaultList, Parts, TableError

MAX_DEPTH = 4
MAX_MEMBERS = 1000
USUAL_BYTES, USUAL_RATIO = 1 << 31, 300
"""What is unpacked of any file, and as a multiple of its own bytes; more is taken for a bomb."""
TOO_LARGE = "too_large_unpacked"

_READ_BYTES, _HEAD_BYTES, _LISTED = 1 << 20, 1 << 16, 12
_DECODERS: dict[Format, Callable[[], GzipDecoder | ZstdDecoder]] = {
    Format.GZIP: GzipDecoder,
    Format.ZSTD: ZstdDecoder,
}
_DAMAGED = (*DAMAGED_ZIP, zlib.error, lzma.LZMAError, struct.error)


@dataclass(frozen=True)
class Unpacked:
    """A file that is not packed any more."""

    path: Path
    format: Format
    dialect: Dialect
    parts: Parts = ()
    """Of files that were put one after another, how many lines there are before each."""


@dataclass(frozen=True)
class _Leaf:
    """A file in an archive."""

    place: tuple[int, ...]
    """Where it stands in the list of its archive, and before that where each archive around it does."""
    name: str
    """After those of the archives that it lies in; two files of an archive may have the same."""
    head: bytes
    size: int
    checksum: int


def unpacked(
    path: Path,
    folder: Path,
    wanted: Collection[str],
    options: ReadOptions,
    faults: FaultList,
    max_bytes: int | None = None,
) -> Unpacked:
    """Return the file at ``path``, or what was packed in it, written to ``folder``.

    Of several files in an archive the one that ``options`` names is taken, or the only one with the columns
    ``wanted``. What cannot be unpacked, or becomes larger than ``max_bytes``, is a `TableError`.
    """
    limit = max_bytes or max(USUAL_BYTES, USUAL_RATIO * path.stat().st_size)
    dialect, parts = NOTHING_KNOWN, Parts()
    for depth in range(MAX_DEPTH):
        found = format_of(path, faults)
        if found in _DECODERS:
            plain = folder / f"unpacked-{depth}"
            _decompress(path, plain, found, limit, faults)
            dialect = dialect.guessed("compression", found.title, "the first bytes")
            path = plain
        elif found in (Format.ZIP, Format.EMPTY_ZIP):
            path, dialect, parts = _out_of_zip(
                path, folder / f"unpacked-{depth}", wanted, options, dialect, limit, faults
            )
        else:
            known = dialect.guessed("format", found.title, "its content")
            return Unpacked(path, found, known, parts if len(parts) > 1 else ())
    raise faults.refusal_for("packed_too_often", f"the file is packed more than {MAX_DEPTH} times: unpack it")


def _decompress(path: Path, plain: Path, found: Format, limit: int, faults: FaultList) -> None:
    decoder = _DECODERS[found]()

    def pieces() -> Iterator[bytes]:
        with path.open("rb") as file:
            while data := file.read(_READ_BYTES):
                yield from decoder.feed(data)
        decoder.finish()

    try:
        _write(pieces(), plain, limit, faults)
    except CompressedDataError as error:
        message = f"the file begins as {found.title} and cannot be decompressed: {error}"
        raise faults.refusal_for("undecodable_file", message) from error


def _write(pieces: Iterable[bytes], plain: Path, limit: int, faults: FaultList) -> None:
    n_bytes = 0
    with plain.open("wb") as out:
        for piece in pieces:
            n_bytes += len(piece)
            if n_bytes > limit:
                message = f"unpacked, the file has more than {limit:,} bytes: unpack it first, if it is meant"
                raise faults.refusal_for(TOO_LARGE, message)
            out.write(piece)


def _out_of_zip(
    path: Path,
    plain: Path,
    wanted: Collection[str],
    options: ReadOptions,
    dialect: Dialect,
    limit: int,
    faults: FaultList,
) -> tuple[Path, Dialect, Parts]:
    try:
        with path.open("rb") as file:
            leaves = list(_leaves(file, (), "", limit, faults))
            chosen, evidence = _chosen(leaves, wanted, options, faults)
            starts = _write_parts(file, chosen, plain, options, limit, faults)
    except TableError:
        raise
    except (*_DAMAGED, OSError) as error:
        if isinstance(error, OSError) and error.errno != errno.EINVAL:  # which damaged offsets lead to
            raise
        if "password" in str(error):
            reason = "it is protected by a password"
        elif isinstance(error, zipfile.BadZipFile) and "not a zip file" in str(error):
            reason = "it was cut off or damaged: the list of what it holds, at its end, is missing"
        else:
            reason = f"it was cut off or damaged ({str(error) or 'its end is missing'})"
        message = f"the file begins as zip, as .xlsx and .ods do too, and cannot be unpacked: {reason}"
        raise faults.refusal_for("undecodable_file", message) from error
    name = chosen[0].name if len(chosen) == 1 else f"{chosen[0].name} … {chosen[-1].name}"
    known = dialect.guessed("member", name, evidence) if evidence else dialect.stated("member", name)
    return plain, known, tuple(zip((leaf.name for leaf in chosen), starts, strict=True))


def _write_parts(
    file: IO[bytes], leaves: list[_Leaf], plain: Path, options: ReadOptions, limit: int, faults: FaultList
) -> list[int]:
    """Write files one after another, without the header but of the first; return the lines before each."""
    starts: list[int] = []

    def pieces() -> Iterator[bytes]:
        n_lines = 0
        for leaf in leaves:
            file.seek(0)
            starts.append(n_lines)
            content = _content(file, leaf.place)
            if len(leaves) == 1:
                yield from content
                continue
            is_named = options.header_row != 0 and len(starts) > 1
            for piece in _without_ends(content, len(_header(leaf, options)) if is_named else 0):
                n_lines += piece.count(b"\n")
                yield piece

    _write(pieces(), plain, limit, faults)
    return starts


def _without_ends(pieces: Iterator[bytes], n_header: int) -> Iterator[bytes]:
    """A text without its header and byte-order mark, and with one line end in place of those at its end."""
    first = next(pieces, b"").removeprefix(codecs.BOM_UTF8)[n_header:]
    kept = b""
    for piece in chain([first], pieces):
        text = kept + piece
        shown = text.rstrip(b"\r\n")
        kept = text[len(shown) :]
        yield shown
    yield b"\n"


def _header(leaf: _Leaf, options: ReadOptions) -> bytes:
    """The first lines of a text in UTF-8 or a code page, to its header; nothing of any other file."""
    lines = re.match(
        rb"(?:[^\n\0]*\n){%d}" % (options.header_row or 1), leaf.head.removeprefix(codecs.BOM_UTF8)
    )
    is_text = lines and not any(lines[0].startswith(known.magic) for known in Format if known.magic)
    return lines[0] if lines and is_text else b""


def _are_parts(leaves: list[_Leaf], options: ReadOptions) -> bool:
    """Whether files are texts with the same header, or stated to have none, and no two the same."""
    headers = {_header(leaf, options).replace(b"\r\n", b"\n") for leaf in leaves}
    contents = {(leaf.size, leaf.checksum) for leaf in leaves}
    are_alike = len(headers) == 1 or options.header_row == 0
    return are_alike and b"" not in headers and len(contents) == len(leaves)


def _may_be_table(leaf: _Leaf) -> bool:
    """Whether a file is of a format of tables, or a text of which a mark parts the lines."""
    if any(leaf.head.startswith(known.magic) for known in Format if known.magic):
        return True
    return leaf.head.lstrip()[:1] in (b"{", b"[") or is_parted(leaf.head)


def _in_order(leaf: _Leaf) -> list[tuple[int, str]]:
    """What files are put in order by: their names, with numbers by their size."""
    return [(int(part), "") if part.isdigit() else (-1, part) for part in re.split("([0-9]+)", leaf.name)]


def _leaves(
    file: IO[bytes], place: tuple[int, ...], names: str, limit: int, faults: FaultList
) -> Iterator[_Leaf]:
    """The files in an archive and in the archives in it, but for what systems put beside them."""
    with zipfile.ZipFile(file) as archive:
        infos = archive.infolist()
        if len(infos) > MAX_MEMBERS or len(place) > MAX_DEPTH:
            message = (
                f"the archive holds more than {MAX_MEMBERS} files, or archives in archives: unpack it first"
            )
            raise faults.refusal_for(TOO_LARGE, message)
        for number, info in enumerate(infos):
            name = info.filename
            if info.is_dir() or name.startswith("__MACOSX/") or name.rpartition("/")[2].startswith("."):
                continue
            inner, full = (*place, number), names + name
            with archive.open(info) as member:
                head = member.read(_HEAD_BYTES)
                if not head.startswith(Format.ZIP.magic) or is_workbook(member):
                    yield _Leaf(inner, full, head, info.file_size, info.CRC)
                    continue
                if info.file_size > limit:
                    message = f"an archive in the archive has {info.file_size:,} bytes: unpack it first"
                    raise faults.refusal_for(TOO_LARGE, message)
                member.seek(0)
                yield from _leaves(member, inner, f"{full}/", limit, faults)


def _content(file: IO[bytes], place: tuple[int, ...]) -> Iterator[bytes]:
    with zipfile.ZipFile(file) as archive, archive.open(archive.infolist()[place[0]]) as member:
        if len(place) > 1:
            yield from _content(member, place[1:])
            return
        while data := member.read(_READ_BYTES):
            yield data


def _chosen(
    leaves: list[_Leaf], wanted: Collection[str], options: ReadOptions, faults: FaultList
) -> tuple[list[_Leaf], str]:
    """The files to read, and why; no reason where they were stated."""
    if not leaves:
        raise faults.refusal_for("empty_archive", "the archive holds no file")
    names = ", ".join(leaf.name for leaf in leaves[:_LISTED]) + (", …" if len(leaves) > _LISTED else "")
    if options.member is not None:
        asked = options.member.strip("/")
        fitting = [leaf for leaf in leaves if leaf.name == asked]
        fitting = fitting or [leaf for leaf in leaves if leaf.name.startswith(f"{asked}/")]
        fitting = fitting or [leaf for leaf in leaves if leaf.name.endswith(f"/{asked}")]
        fitting = fitting or [leaf for leaf in leaves if fnmatchcase(leaf.name, asked)]
        if len(fitting) != 1 and not _are_parts(fitting, options):
            how_many = counted(len(fitting), "file") if fitting else "no file"
            message = f"the archive has {how_many} {options.member!r}; state the `member`, one of {names}"
            raise faults.refusal_for("no_such_member", message)
        return sorted(fitting, key=_in_order), ""
    if len(leaves) == 1:
        return leaves, "the only file in the archive"
    fitting = [leaf for leaf in leaves if wanted and has_names(leaf.head, wanted)]
    if len(fitting) == 1:
        return fitting, "the only one of the files in the archive with the columns asked for"
    together = fitting or leaves
    if _are_parts(together, options):
        together = sorted(together, key=_in_order)
        listed = ", ".join(leaf.name for leaf in together[:_LISTED]) + (", …" if together[_LISTED:] else "")
        return together, f"{len(together):,} files with the same columns, one after another: {listed}"
    tables = [leaf for leaf in leaves if _may_be_table(leaf)]
    if not fitting and len(tables) == 1:
        return tables, "the only one of the files in the archive that is a table"
    message = f"the archive holds {counted(len(leaves), 'file')}: state the `member`, one of {names}"
    raise faults.refusal_for("ambiguous_member", message)

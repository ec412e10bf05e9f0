"""Take the table out of what it was packed in: gzip, zstd and zip, also one in another, within limits."""

from __future__ import annotations

import codecs
import errno
import lzma
import struct
import zipfile
import zlib
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import chain
from pathlib import Path
from typing import IO

from ccmtl_core.tables.containers.formats import DAMAGED_ZIP, Format, format_of, is_workbook
from ccmtl_core.tables.containers.members import Chosen, Member, chosen
from ccmtl_core.tables.decompression import CompressedDataError, GzipDecoder, ZstdDecoder
from ccmtl_core.tables.dialects.dialect import NOTHING_KNOWN, Dialect, ReadOptions
from ccmtl_core.tables.faults import FaultList, PartLines, TableError
from ccmtl_core.tables.table import Note

MAX_DEPTH = 4
MAX_MEMBERS = 1000
USUAL_BYTES, USUAL_RATIO = 1 << 31, 300
"""What is unpacked of any file, and as a multiple of its own bytes; more is taken for a bomb."""
TOO_LARGE = "too_large_unpacked"

_READ_BYTES, _HEAD_BYTES = 1 << 20, 1 << 16
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
    parts: PartLines = ()
    """The files that were put one after another; empty for a single file."""
    notes: tuple[Note, ...] = ()
    """What is told of files beside it in an archive."""


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
    known = Unpacked(path, Format.TEXT, NOTHING_KNOWN)
    for depth in range(MAX_DEPTH):
        found, plain = format_of(known.path, faults), folder / f"unpacked-{depth}"
        if found in _DECODERS:
            _decompress(known.path, plain, found, limit, faults)
            dialect = known.dialect.guessed("compression", found.title, "the first bytes")
            known = replace(known, path=plain, dialect=dialect)
        elif found in (Format.ZIP, Format.EMPTY_ZIP):
            known = _out_of_zip(known, plain, wanted, options, limit, faults)
        else:
            dialect = known.dialect.guessed("format", found.title, "its content")
            parts = known.parts if len(known.parts) > 1 else ()
            return replace(known, format=found, dialect=dialect, parts=parts)
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
    packed: Unpacked,
    plain: Path,
    wanted: Collection[str],
    options: ReadOptions,
    limit: int,
    faults: FaultList,
) -> Unpacked:
    """The file that is to be read of an archive; its format is not looked at yet."""
    try:
        with packed.path.open("rb") as file:
            members = list(_members(file, (), "", limit, faults))
            read = chosen(members, wanted, options, faults)
            starts = _write_parts(file, read, plain, limit, faults)
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
    dialect = packed.dialect.stated("member", read.name)
    if read.evidence:
        dialect = packed.dialect.guessed("member", read.name, read.evidence)
    parts = tuple(zip((member.name for member in read.members), starts, strict=True))
    return replace(packed, path=plain, dialect=dialect, parts=parts, notes=(*packed.notes, *read.notes))


def _write_parts(file: IO[bytes], read: Chosen, plain: Path, limit: int, faults: FaultList) -> list[int]:
    """Write files one after another, without the header but of the first; return the lines before each."""
    starts: list[int] = []

    def pieces() -> Iterator[bytes]:
        n_lines = 0
        for member, n_bytes in zip(read.members, read.to_header, strict=True):
            file.seek(0)
            content = _content(file, member.place)
            if len(read.members) == 1:
                starts.append(0)
                yield from content
                continue
            n_header = n_bytes if starts else 0
            starts.append(n_lines)
            for piece in _without_ends(content, n_header):
                n_lines += piece.count(b"\n")
                yield piece

    _write(pieces(), plain, limit, faults)
    return starts


def _without_ends(pieces: Iterator[bytes], n_header: int) -> Iterator[bytes]:
    """A text without its header and byte-order mark, and with one line end in place of those at its end."""
    first = next(pieces, b"").removeprefix(codecs.BOM_UTF8)[n_header:]
    kept, has_text = b"", False
    for piece in chain([first], pieces):
        text = kept + piece
        shown = text.rstrip(b"\r\n")
        kept = text[len(shown) :]
        has_text = has_text or bool(shown)
        yield shown
    if has_text:
        yield b"\n"


def _members(
    file: IO[bytes], place: tuple[int, ...], names: str, limit: int, faults: FaultList
) -> Iterator[Member]:
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
                    yield Member(inner, full, head, info.file_size, info.CRC)
                    continue
                if info.file_size > limit:
                    message = f"an archive in the archive has {info.file_size:,} bytes: unpack it first"
                    raise faults.refusal_for(TOO_LARGE, message)
                member.seek(0)
                yield from _members(member, inner, f"{full}/", limit, faults)


def _content(file: IO[bytes], place: tuple[int, ...]) -> Iterator[bytes]:
    with zipfile.ZipFile(file) as archive, archive.open(archive.infolist()[place[0]]) as member:
        if len(place) > 1:
            yield from _content(member, place[1:])
            return
        while data := member.read(_READ_BYTES):
            yield data

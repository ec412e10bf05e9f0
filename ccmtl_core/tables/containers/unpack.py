"""Take the table out of what it was packed in: gzip, zstd and zip, also one in another, within limits."""

from __future__ import annotations

import errno
import lzma
import struct
import zipfile
import zlib
from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from ccmtl_core.base.display import counted
from ccmtl_core.tables.containers.formats import DAMAGED_ZIP, Format, format_of, is_workbook
from ccmtl_core.tables.decompression import CompressedDataError, GzipDecoder, ZstdDecoder
from ccmtl_core.tables.dialects.dialect import NOTHING_KNOWN, Dialect, ReadOptions
from ccmtl_core.tables.dialects.layout import has_names
from ccmtl_core.tables.faults import FaultList, TableError

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


@dataclass(frozen=True)
class _Leaf:
    """A file in an archive."""

    place: tuple[str, ...]
    """The names of the archives that it lies in, and its own."""
    head: bytes

    @property
    def name(self) -> str:
        return "/".join(self.place)


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
    dialect = NOTHING_KNOWN
    for depth in range(MAX_DEPTH):
        found = format_of(path, faults)
        if found in _DECODERS:
            plain = folder / f"unpacked-{depth}"
            _decompress(path, plain, found, limit, faults)
            dialect = dialect.guessed("compression", found.title, "the first bytes")
            path = plain
        elif found in (Format.ZIP, Format.EMPTY_ZIP):
            path, dialect = _out_of_zip(
                path, folder / f"unpacked-{depth}", wanted, options, dialect, limit, faults
            )
        else:
            return Unpacked(path, found, dialect.guessed("format", found.title, "its content"))
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
) -> tuple[Path, Dialect]:
    try:
        with path.open("rb") as file:
            leaves = list(_leaves(file, (), limit, faults))
            leaf, evidence = _chosen(leaves, wanted, options, faults)
            file.seek(0)
            _write(_content(file, leaf.place), plain, limit, faults)
    except TableError:
        raise
    except (*_DAMAGED, OSError) as error:
        if isinstance(error, OSError) and error.errno != errno.EINVAL:  # which damaged offsets lead to
            raise
        reason = (
            "it is protected by a password"
            if "password" in str(error)
            else str(error) or "its end is missing"
        )
        message = f"the file begins as zip and cannot be unpacked: {reason}"
        raise faults.refusal_for("undecodable_file", message) from error
    if evidence:
        return plain, dialect.guessed("member", leaf.name, evidence)
    return plain, dialect.stated("member", leaf.name)


def _leaves(file: IO[bytes], place: tuple[str, ...], limit: int, faults: FaultList) -> Iterator[_Leaf]:
    """The files in an archive and in the archives in it, but for what systems put beside them."""
    with zipfile.ZipFile(file) as archive:
        infos = archive.infolist()
        if len(infos) > MAX_MEMBERS or len(place) > MAX_DEPTH:
            message = (
                f"the archive holds more than {MAX_MEMBERS} files, or archives in archives: unpack it first"
            )
            raise faults.refusal_for(TOO_LARGE, message)
        for info in infos:
            name = info.filename
            if info.is_dir() or name.startswith("__MACOSX/") or name.rpartition("/")[2].startswith("."):
                continue
            inner = (*place, name)
            with archive.open(info) as member:
                head = member.read(_HEAD_BYTES)
                if not head.startswith(Format.ZIP.magic) or is_workbook(member):
                    yield _Leaf(inner, head)
                    continue
                if info.file_size > limit:
                    message = f"an archive in the archive has {info.file_size:,} bytes: unpack it first"
                    raise faults.refusal_for(TOO_LARGE, message)
                member.seek(0)
                yield from _leaves(member, inner, limit, faults)


def _content(file: IO[bytes], place: tuple[str, ...]) -> Iterator[bytes]:
    with zipfile.ZipFile(file) as archive, archive.open(place[0]) as member:
        if len(place) > 1:
            yield from _content(member, place[1:])
            return
        while data := member.read(_READ_BYTES):
            yield data


def _chosen(
    leaves: list[_Leaf], wanted: Collection[str], options: ReadOptions, faults: FaultList
) -> tuple[_Leaf, str]:
    """The file to read, and why; no reason where it was stated."""
    if not leaves:
        raise faults.refusal_for("empty_archive", "the archive holds no file")
    names = ", ".join(leaf.name for leaf in leaves[:_LISTED]) + (", …" if len(leaves) > _LISTED else "")
    if options.member is not None:
        asked = options.member.strip("/")
        fitting = [leaf for leaf in leaves if leaf.name == asked]
        fitting = fitting or [leaf for leaf in leaves if leaf.name.startswith(f"{asked}/")]
        fitting = fitting or [leaf for leaf in leaves if leaf.name.endswith(f"/{asked}")]
        if len(fitting) != 1:
            how_many = counted(len(fitting), "file") if fitting else "no file"
            message = f"the archive has {how_many} {options.member!r}; state the member, one of {names}"
            raise faults.refusal_for("no_such_member", message)
        return fitting[0], ""
    if len(leaves) == 1:
        return leaves[0], "the only file in the archive"
    fitting = [leaf for leaf in leaves if wanted and has_names(leaf.head, wanted)]
    if len(fitting) == 1:
        return fitting[0], "the only one of the files in the archive with the columns asked for"
    message = f"the archive holds {counted(len(leaves), 'file')}: state the member, one of {names}"
    raise faults.refusal_for("ambiguous_member", message)

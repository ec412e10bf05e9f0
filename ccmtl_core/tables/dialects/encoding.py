"""Find out how the text of a file is encoded, and copy what is not UTF-8 into UTF-8.

UTF-8 proves itself, UTF-16 by its mark or its zero bytes, and ISO-2022 by its escapes. Code pages do not: one
is guessed only where the words of the file look like words in it, and where the other likely ones read the
very same text.
"""

from __future__ import annotations

import codecs
import re
import unicodedata
from contextlib import suppress
from pathlib import Path

import numpy as np

from ccmtl_core.base.display import counted, quoted
from ccmtl_core.kernels.csv_scan import scan_csv
from ccmtl_core.tables.dialects.code_pages import CODE_PAGES, likely_code_pages
from ccmtl_core.tables.dialects.dialect import Dialect
from ccmtl_core.tables.faults import FaultList, TableError

BLOCK_BYTES = 1 << 22
SAMPLE_BYTES = 1 << 20
FEWEST_WORDS, FEWEST_ALIKE, MOST_WORDS = 3, 2, 3000
"""How many words tell a code page; fewer of a file do where several code pages read the same in them."""

_MARKS = {
    codecs.BOM_UTF8: "utf-8",
    codecs.BOM_UTF32_LE: "utf-32",
    codecs.BOM_UTF32_BE: "utf-32",
    codecs.BOM_UTF16_LE: "utf-16",
    codecs.BOM_UTF16_BE: "utf-16",
}
_WORD = re.compile(rb'[^,;\t\r\n"]*[\x80-\xff][^,;\t\r\n"]*')

_ESCAPE = b"\x1b$"
_BY_ESCAPES = ("iso2022_jp", "iso2022_jp_ext", "iso2022_kr")
_SHIFTED = re.compile(rb"\+([A-Za-z0-9+/]*)")


def in_utf8(
    path: Path, stated: str | None, dialect: Dialect, folder: Path, faults: FaultList
) -> tuple[Path, Dialect]:
    """Return a file with the text at ``path`` in UTF-8, itself or a copy in ``folder``, and what it was in.

    A file that is not text in the ``stated`` encoding, or in none that can be told, is a `TableError`.
    """
    with path.open("rb") as file:
        head = file.read(SAMPLE_BYTES)
    if stated is not None:
        dialect = dialect.stated("encoding", stated)
        if codecs.lookup(stated).name in ("utf-8", "utf-8-sig", "ascii"):
            if (place := _not_utf8(path)) is not None:
                raise _refusal(path, place, "state another `encoding`", faults)
            return path, dialect
        return _copied(path, stated, folder, faults), dialect
    for mark, name in _MARKS.items():
        if head.startswith(mark):
            dialect = dialect.guessed("encoding", name, "the byte-order mark")
            if name != "utf-8":
                return _copied(path, name, folder, faults), dialect
            if (place := _not_utf8(path)) is not None:
                raise _refusal(path, place, "its mark says UTF-8: state another `encoding`", faults)
            return path, dialect
    if wide := _of_two_bytes(head):
        dialect = dialect.guessed("encoding", wide, "every second byte is zero")
        return _copied(path, wide, folder, faults), dialect
    place = _not_utf8(path)
    if place is None:
        _refuse_utf7(head, faults)
        if _ESCAPE in head:
            escaped = _of_escapes(head, faults)
            dialect = dialect.guessed("encoding", escaped, "its escapes")
            return _copied(path, escaped, folder, faults), dialect
        evidence = "all bytes are ASCII" if head.isascii() and len(head) < SAMPLE_BYTES else "all bytes fit"
        return path, dialect.guessed("encoding", "utf-8", evidence)
    code_page, evidence = _code_page(path, place, faults)
    return _copied(path, code_page, folder, faults), dialect.guessed(
        "encoding", CODE_PAGES[code_page], evidence
    )


def _of_two_bytes(head: bytes) -> str | None:
    """Return the kind of UTF-16 whose ASCII characters have zeros where these bytes have them."""
    if b"\0" not in head:
        return None
    zeros = np.frombuffer(head[: len(head) // 2 * 2], np.uint8).reshape(-1, 2) == 0
    if len(zeros) < 2:
        return None
    first, second = zeros.mean(axis=0)
    if second > 0.4 and first < 0.05:
        return "utf-16-le"
    return "utf-16-be" if first > 0.4 and second < 0.05 else None


def _of_escapes(head: bytes, faults: FaultList) -> str:
    """Return the encoding that these bytes with escapes are in, as Japanese and Korean mail is."""
    for name in _BY_ESCAPES:
        with suppress(UnicodeDecodeError):
            codecs.getincrementaldecoder(name)().decode(head)
            return name
    message = "the text has escapes as of ISO-2022 in it, and is none that is known: state the `encoding`"
    raise faults.refusal_for("undecodable_text", message)


def _refuse_utf7(head: bytes, faults: FaultList) -> None:
    """Refuse ASCII if what stands behind each plus in it is a letter beyond ASCII as UTF-7 writes it."""
    runs = {run for run in _SHIFTED.findall(head[: head.rfind(b"\n") + 1]) if run}
    scripts, text = set(), ""
    for run in runs:
        try:
            text = (b"+" + run + b"-").decode("utf-7")
        except UnicodeDecodeError:
            return
        if not text.isalpha() or text.isascii() or max(text) >= "\u2000":
            return
        scripts |= {unicodedata.name(letter).partition(" ")[0] for letter in text}
    if len(scripts) == 1:
        message = (
            f"the text may be in UTF-7, in which {quoted(f'+{run.decode()}-')} is {quoted(text)}: state "
            "`encoding` utf-7 if so, and utf-8 if it stands for itself"
        )
        raise faults.refusal_for("undecodable_text", message)


def _not_utf8(path: Path) -> int | None:
    """Return where the first byte stands that is no UTF-8, None where all are."""
    decoder = codecs.getincrementaldecoder("utf-8")()
    start = 0
    with path.open("rb") as file:
        while True:
            block = file.read(BLOCK_BYTES)
            pending = len(decoder.getstate()[0])
            try:
                if pending or not block.isascii():  # which takes a tenth of decoding
                    decoder.decode(block, final=not block)
            except UnicodeDecodeError as error:
                return start - pending + error.start
            if not block:
                return None
            start += len(block)


def _code_page(path: Path, place: int, faults: FaultList) -> tuple[str, str]:
    """Return the code page of a file whose byte at ``place`` is no UTF-8, and what speaks for it."""
    with path.open("rb") as file:
        file.seek(max(0, place - 200))
        words = sorted(set(_WORD.findall(file.read(SAMPLE_BYTES))))[:MOST_WORDS]
    likely = likely_code_pages(words)
    are_all = path.stat().st_size < place + SAMPLE_BYTES - 200
    fewest = FEWEST_ALIKE if len(likely) > 1 and are_all else FEWEST_WORDS
    if len(words) >= fewest and len({text for _, text in likely}) == 1:
        n_words = counted(len(words), "word")
        others = [CODE_PAGES[name] for name, _ in likely[1:]]
        same = f"; {', '.join(others)} would read the same" if others else ""
        return likely[0][0], f"{n_words} with other letters than English ones read well in it{same}"
    readings = [
        f"{CODE_PAGES[name]} reads {quoted(word.strip()[:30])}"
        for (name, _), word in zip(likely[:4], _that_differ([text for _, text in likely[:4]]), strict=True)
    ]
    told = f" ({', '.join(readings)})" if readings else ""
    example = CODE_PAGES[likely[0][0]] if likely else "windows-1252"
    remedy = f"save it as UTF-8, or state the `encoding`, such as {example}{told}"
    raise _refusal(path, place, remedy, faults)


def _that_differ(texts: list[str]) -> list[str]:
    """The first word of each reading that not all read alike; the first one if they all do."""
    words = list(zip(*(text.split("\n") for text in texts), strict=False))
    differing = next((of_all for of_all in words if len(set(of_all)) > 1), None)
    return list(differing or [text.split("\n")[0] for text in texts])


def _refusal(path: Path, place: int, remedy: str, faults: FaultList) -> TableError:
    data = np.memmap(path, np.uint8, mode="r").view(np.ndarray)
    row, _ = scan_csv(data[:place], 1).end
    blocks = (data[start : min(place, start + BLOCK_BYTES)] for start in range(0, place, BLOCK_BYTES))
    line = 1 + sum(int(np.count_nonzero(block == ord("\n"))) for block in blocks)
    where = f"byte 0x{data[place]:02X} at offset {place} (line {line:,}) is no character"
    faults.add("not_utf8", f"the file is not UTF-8: {where}; {remedy}", row=row or None)
    return faults.refusal()


def _copied(path: Path, encoding: str, folder: Path, faults: FaultList) -> Path:
    """Return a copy of the text in UTF-8, without byte-order mark."""
    plain, decoder = folder / "utf8.csv", codecs.getincrementaldecoder(encoding)()
    start, is_first = 0, True
    with path.open("rb") as file, plain.open("w", encoding="utf-8", newline="") as out:
        while True:
            block = file.read(BLOCK_BYTES)
            try:
                text = decoder.decode(block, final=not block)
                out.write(text.removeprefix("\ufeff") if is_first and text else text)
            except UnicodeError as error:
                place = start + getattr(error, "start", 0)
                message = (
                    f"the file is not {encoding}: the bytes near offset {place} are no character in it; "
                    "state another `encoding`"
                )
                raise faults.refusal_for("undecodable_text", message) from None
            is_first = is_first and not text
            start += len(block)
            if not block:
                return plain

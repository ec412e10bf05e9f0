"""Workbooks as bytes, the least that is one."""

from __future__ import annotations

import base64
import io
import struct
import zipfile
import zlib
from collections.abc import Mapping, Sequence
from html import escape

DAYS_FROM_1900 = {"2024-01-01": 45292, "2024-01-02": 45293}
_MAIN = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
_LINKS = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
_PACKAGE = "http://schemas.openxmlformats.org/package/2006"
Cell = str | float | bool | bytes | None
"""Bytes are XML: what stands in a cell, with its attributes before it."""
Sheets = Mapping[str, Sequence[Sequence[Cell]]]


def _cell(value: Cell, place: str) -> str:
    if value is None:
        return ""
    if isinstance(value, bytes):
        return f'<c r="{place}" {value.decode()}</c>'
    if isinstance(value, bool):
        return f'<c r="{place}" t="b"><v>{int(value)}</v></c>'
    if isinstance(value, str) and value in DAYS_FROM_1900:
        return f'<c r="{place}" s="1"><v>{DAYS_FROM_1900[value]}</v></c>'
    if isinstance(value, str):
        return f'<c r="{place}" t="inlineStr"><is><t>{escape(value)}</t></is></c>'
    return f'<c r="{place}"><v>{value}</v></c>'


def xlsx(sheets: Sheets, *, hidden: Sequence[str] = ()) -> bytes:
    """A workbook of Excel; texts that are days in ``DAYS_FROM_1900`` become dates."""
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("[Content_Types].xml", f'<Types xmlns="{_PACKAGE}/content-types"></Types>')
        archive.writestr(
            "_rels/.rels",
            f'<Relationships xmlns="{_PACKAGE}/relationships"><Relationship Id="r" '
            f'Type="{_LINKS}/officeDocument" Target="xl/workbook.xml"/></Relationships>',
        )
        listed, links = "", f'<Relationship Id="s" Type="{_LINKS}/styles" Target="styles.xml"/>'
        for i, (name, rows) in enumerate(sheets.items(), start=1):
            state = ' state="hidden"' if name in hidden else ""
            listed += f'<sheet name="{escape(name)}" sheetId="{i}" r:id="r{i}"{state}/>'
            links += f'<Relationship Id="r{i}" Type="{_LINKS}/worksheet" Target="worksheets/{i}.xml"/>'
            lines = ""
            for r, row in enumerate(rows, start=1):
                cells = "".join(_cell(value, f"{chr(65 + c)}{r}") for c, value in enumerate(row))
                lines += f'<row r="{r}">{cells}</row>'
            sheet = f'<worksheet xmlns="{_MAIN}"><sheetData>{lines}</sheetData></worksheet>'
            archive.writestr(f"xl/worksheets/{i}.xml", sheet)
        archive.writestr(
            "xl/workbook.xml",
            f'<workbook xmlns="{_MAIN}" xmlns:r="{_LINKS}"><sheets>{listed}</sheets></workbook>',
        )
        archive.writestr(
            "xl/_rels/workbook.xml.rels",
            f'<Relationships xmlns="{_PACKAGE}/relationships">{links}</Relationships>',
        )
        archive.writestr(
            "xl/styles.xml",
            f'<styleSheet xmlns="{_MAIN}"><cellXfs count="2"><xf numFmtId="0"/><xf numFmtId="14"/></cellXfs>'
            "</styleSheet>",
        )
    return file.getvalue()


def ods(rows: Sequence[Sequence[str | float]]) -> bytes:
    """A workbook of LibreOffice with one sheet."""
    office = "urn:oasis:names:tc:opendocument:xmlns"

    def cell(value: str | float) -> str:
        if value in DAYS_FROM_1900:
            return f'<table:table-cell office:value-type="date" office:date-value="{value}"/>'
        if isinstance(value, str):
            text = f"<text:p>{escape(value)}</text:p>"
            return f'<table:table-cell office:value-type="string">{text}</table:table-cell>'
        return f'<table:table-cell office:value-type="float" office:value="{value}"/>'

    lines = "".join(f"<table:table-row>{''.join(map(cell, row))}</table:table-row>" for row in rows)
    content = (
        f'<office:document-content xmlns:office="{office}:office:1.0" xmlns:table="{office}:table:1.0" '
        f'xmlns:text="{office}:text:1.0"><office:body><office:spreadsheet><table:table table:name="Sales">'
        f"{lines}</table:table></office:spreadsheet></office:body></office:document-content>"
    )
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr("mimetype", "application/vnd.oasis.opendocument.spreadsheet")
        archive.writestr("META-INF/manifest.xml", "<manifest/>")
        archive.writestr("content.xml", content)
    return file.getvalue()


def _record(kind: int, content: bytes = b"") -> bytes:
    """A record of a binary workbook: its kind and length in seven bits a byte, and its content."""
    length = (
        bytes([len(content)]) if len(content) < 128 else bytes([len(content) & 127 | 128, len(content) >> 7])
    )
    return (bytes([kind]) if kind < 128 else bytes([kind & 127 | 128, kind >> 7])) + length + content


def _wide(text: str) -> bytes:
    return struct.pack("<I", len(text)) + text.encode("utf-16-le")


def xlsb(rows: Sequence[Sequence[str | float]]) -> bytes:
    """A binary workbook of Excel with one sheet."""
    sheet = (
        _record(129) + _record(148, struct.pack("<4I", 0, len(rows) - 1, 0, len(rows[0]) - 1)) + _record(145)
    )
    for r, row in enumerate(rows):
        sheet += _record(0, struct.pack("<IIH3BIII", r, 0, 300, 0, 0, 0, 1, 0, len(row) - 1))
        for c, value in enumerate(row):
            place, is_text = struct.pack("<II", c, 0), isinstance(value, str)
            content = _wide(str(value)) if is_text else struct.pack("<d", value)
            sheet += _record(6 if is_text else 5, place + content)
    book = _record(156, struct.pack("<II", 0, 1) + _wide("r1") + _wide("Sales"))
    links = f'<Relationship Id="r1" Type="{_LINKS}/worksheet" Target="worksheets/1.bin"/>'
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w") as archive:
        archive.writestr("[Content_Types].xml", f'<Types xmlns="{_PACKAGE}/content-types"></Types>')
        archive.writestr(
            "_rels/.rels",
            f'<Relationships xmlns="{_PACKAGE}/relationships"><Relationship Id="r" '
            f'Type="{_LINKS}/officeDocument" Target="xl/workbook.bin"/></Relationships>',
        )
        archive.writestr(
            "xl/_rels/workbook.bin.rels",
            f'<Relationships xmlns="{_PACKAGE}/relationships">{links}</Relationships>',
        )
        archive.writestr("xl/workbook.bin", _record(131) + _record(143) + book + _record(144) + _record(132))
        archive.writestr("xl/worksheets/1.bin", sheet + _record(146) + _record(130))
    return file.getvalue()


XLS = zlib.decompress(
    base64.b85decode(
        r"c-rk)O-NKx6#njeGtLjrpN@eBG6<QOf<v1&`Z6q6BUX!k2x@F*A<7tI8{1^rK${?FRkRUo(Z+rjR#Z^5X%QH;2!ddymac+=2%XnC"
        r"=e<WWHGu;qDDQjRbI(2Ze)pbt|KEGF94pS>Z!6(93_wTO44|RHrYHoQL==>7nyfmppMvRPQz77|fo$;NN$9nY$B@Un1P%8*FGvEP"
        r"D4fJuj7;USi4DYl@gc3)hklX@x5yGkt9aEU@{Gu4k$0u!Q<3|`a#dtMl`X0hST;tw_u8}gnARbAVQ{?<h4VoyNwnY<&*BT$lvUP?"
        r"!Tfl7a;s#tdm6C-8tLI|E}Q3c1h)|cjuU!QsotTXBH}a)7VynX0AHQu{ygE@H`cB|_V3kp-(T#08pK-mKn?qK%>&HBJT0rLfDi^f"
        r"oa4oj^kjB=6<x9kG>FNv(b5>tkjPBaY?{%5zP==B$sivHvVlaaHjt1ktVWU<L`09t@`{q9t9QP<O^uBjr^GTVhlX{u>|n=W;vzGM"
        r"9F`pMjSeHATNt}VUXoh3i{2(OPTo@7Ioe_?2j`^BWy$TNcJ>I~89OWVF47AthaR;TJ{!A8UmPx-k1xJA=Fvf&mmxksbLde$>gEl`"
        r"W5bD+y$yX7+4{$p<kzD1yP5X+8NnK_H9|}zmr(L{)g_daU}>eC{<BgVrF5IE)nIGF=6-u79<rYgUNURtijUIF(`)c_;dyPIPP}F;"
        r"3GW9T6dDG!CM<E~w88#D5H4J}aN)v*3l}an5%`j+*%xe&b>){UywCoxvqqup{wCS7IE*QJ&e1pG0puvoW2Ub8vkhM5)TP$RasC%F"
        r"j#BG+Okhm>n5cXH(g%*Je4lj_qyKIR)!Tl#9zXwc`#%AijpRu"
    )
)
"""A workbook of Excel 97, as xlwt writes it: a title, and the rows that the tests read from all others."""

"""Refuse a CSV file whose first line already shows that no row can be read.

Otherwise each row would be reported with faults that say nothing of their cause.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from app.datasets.reading.faults import refuse

_SEPARATORS = {";": "semicolons", "\t": "tabs", "|": "bars"}


def refuse_other_formats(head: str, names: Sequence[str], wanted: Collection[str], n_bytes: int) -> None:
    """Refuse a file whose first line is that of another format.

    Parameters
    ----------
    head : str
        The file's beginning, its first line included unless that is very long.
    names : sequence of str
        The columns that it names, read as CSV.
    wanted : collection of str
        Columns that the definition asks for, which are three at least.
    n_bytes : int
        Size of the file.

    Raises
    ------
    InvalidContent
        With the one fault, and what to do.
    """
    if "\r" in head and "\n" not in head:
        raise refuse(
            "csv_lone_cr",
            "the lines end in carriage returns alone, and must in LF or CRLF. To convert the file: "
            "tr '\\r' '\\n' < FILE > NEW",
        )
    if not set(wanted) <= set(names):
        _refuse_separators(head, names, wanted)
        if not set(wanted) & set(names) and names[0].lstrip()[:1] in ("{", "[", "<"):
            raise refuse("not_csv", "the file looks like JSON or HTML, not CSV")
        refuse_without_line_breaks(head, n_bytes)


def _refuse_separators(head: str, names: Sequence[str], wanted: Collection[str]) -> None:
    line = head.partition("\n")[0].rstrip("\r")
    for separator, word in _SEPARATORS.items():
        others = {name.strip('"') for name in line.split(separator)}
        is_other = others & set(wanted) and not set(names) & set(wanted)
        if is_other or (len(names) == 1 and separator in names[0]):
            raise refuse(
                "wrong_separator",
                f"the header looks separated by {word}: only commas separate columns here. To convert the "
                'file: python3 -c "import csv, sys; csv.writer(sys.stdout).writerows(csv.reader(sys.stdin, '
                f'delimiter={separator!r}))" < FILE > NEW',
            )


def refuse_without_line_breaks(head: str, n_bytes: int) -> None:
    """Refuse a file of ``n_bytes`` that begins with ``head``, if there is text in it and no line break."""
    if head and "\n" not in head:
        raise refuse(
            "no_line_breaks",
            f"the first {len(head.encode())} of the file's {n_bytes} bytes have no line break, and so no row "
            "below the header. `curl -d @FILE` takes them out: send the file with `--data-binary @FILE`",
        )

"""Read a text of series whose cells are all plain, batch by batch."""

from __future__ import annotations

import csv
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np
import polars as pl
from numpy.typing import NDArray

from ccmtl_core.base.types import FloatArray
from ccmtl_core.inspection.id_columns import SIGN
from ccmtl_core.inspection.reading import SeriesRows, read_rows
from ccmtl_core.kernels.csv_rows import IGNORED, NotPlain
from ccmtl_core.kernels.csv_series import NUMBER, Fields, SeriesReader
from ccmtl_core.kernels.csv_texts import PADDING
from ccmtl_core.series.calendar import Frequency
from ccmtl_core.tables.csv_file import MAX_HEADER_BYTES, CsvText
from ccmtl_core.tables.dialects.number_choice import SAMPLE_ROWS, styled
from ccmtl_core.tables.faults import FaultList
from ccmtl_core.tables.sample_files import plain_decimals
from ccmtl_core.tables.table import Table

PIECE_BYTES = 1 << 22

Batch = tuple[NDArray[np.int32], NDArray[np.int32], FloatArray]
"""The numbers of ids and of times, and the values, of some rows."""
Span = tuple[int, int]
"""Where in a file rows begin, and where they end."""


@dataclass(frozen=True)
class SeriesText:
    """A text that may be plain: what its fields are, and how its first rows are written."""

    text: CsvText
    fields: Fields
    unique_id: tuple[str, ...]
    ds: str
    y: str
    head: Table

    @classmethod
    def of(
        cls, text: CsvText, unique_id: Sequence[str], ds: str, y: str, *, may_be_empty: bool
    ) -> SeriesText | None:
        """Return the text of these columns; None where it is not one row below another as it stands.

        Parameters
        ----------
        text : CsvText
            Opened.
        unique_id : sequence of str
            The columns that make the id.
        ds, y : str
            Those of the time and of the value.
        may_be_empty : bool
            Whether a row may have no value.

        Returns
        -------
        SeriesText or None
        """
        texts = {column: place for place, column in enumerate([*unique_id, ds])}
        name = SIGN.join(unique_id)
        is_copy = text.row_of is not None or text.parts or text.notes
        if is_copy or text.options.empty is not None or (len(unique_id) > 1 and name in text.columns):
            return None
        decimals = plain_decimals(text, [*texts, y], [y])
        if decimals is None:
            return None
        kinds = [NUMBER if column == y else texts.get(column, IGNORED) for column in text.columns]
        decimal = ord(decimals[y] or "\0")
        marks = ord(text.layout.delimiter), ord(text.layout.quote)
        head = styled(text.first_rows(SAMPLE_ROWS), [y], FaultList())
        fields = Fields(np.array(kinds), decimal, *marks, may_be_empty)
        return cls(text, fields, tuple(unique_id), ds, y, head)

    def reader(self) -> SeriesReader:
        """Return a reader of its rows that has read none."""
        return SeriesReader(self.fields, SIGN)

    def spans(self, n: int) -> list[Span]:
        """Return parts of the file of about the same size that begin with a row each, n or fewer.

        A text in which a line end stands within quotes is not plain, so that any line end is one of a row.
        """
        first, size = self._first_row(), self.text.path.stat().st_size
        cuts = [first]
        with self.text.path.open("rb") as file:
            for k in range(1, n):
                at = max(cuts[-1], first + k * (size - first) // n)
                file.seek(at)
                at += file.read(PIECE_BYTES).find(b"\n") + 1
                if cuts[-1] < at < size:
                    cuts.append(at)
        return list(pairwise([*cuts, size]))

    def _first_row(self) -> int:
        """Where in the file the first row begins."""
        data, layout = self.text.data, self.text.layout
        head, at = data[: MAX_HEADER_BYTES + 1].tobytes(), 0
        if layout.has_header:
            lines = (f"{line}\n" for line in head.decode("utf-8", "ignore").split("\n"))
            names = csv.reader(lines, delimiter=layout.delimiter, quotechar=layout.quote)
            next(names)
            for _ in range(names.line_num):
                at = head.find(b"\n", at) + 1 or len(head)
        return self.text.path.stat().st_size - len(data) + at

    def batches(self, reader: SeriesReader, span: Span, batch_rows: int) -> Iterator[Batch]:
        """Yield the rows, ``batch_rows`` at a time; the next batch takes the place of the arrays.

        Parameters
        ----------
        reader : SeriesReader
            Reads them.
        span : tuple of int
            Of the file, which rows.
        batch_rows : int
            The rows of a batch but the last.

        Yields
        ------
        ids, times, y : (n,) int32, int32, float64

        Raises
        ------
        NotPlain
            A cell is for other readers.
        """
        at, last = span
        ids, times, y = np.empty(batch_rows, np.int32), np.empty(batch_rows, np.int32), np.empty(batch_rows)
        piece, n_kept, n_rows = np.zeros(PIECE_BYTES + PADDING, np.uint8), 0, 0
        with self.text.path.open("rb", buffering=0) as file:
            file.seek(at)
            while n_read := file.readinto(piece.data[n_kept : min(PIECE_BYTES, n_kept + last - at)]):
                end, start, at = n_kept + n_read, 0, at + n_read
                if at == last and piece[end - 1] != ord("\n"):  # the last row has no line end
                    piece[end] = ord("\n")
                    end += 1
                piece[end : end + PADDING] = 0
                while True:
                    n, start = reader.read(piece, start, end, ids[n_rows:], times[n_rows:], y[n_rows:])
                    n_rows += n
                    if n_rows < batch_rows:
                        break
                    yield ids, times, y
                    n_rows = 0
                n_kept = end - start
                piece[:n_kept] = piece[start:end]
        if n_kept:
            raise NotPlain
        if n_rows:
            yield ids[:n_rows], times[:n_rows], y[:n_rows]

    def understood(
        self,
        times: pl.Series,
        faults: FaultList,
        *,
        ds_format: str | None,
        frequency: Frequency,
        missing: str,
    ) -> SeriesRows:
        """Return how the text is understood, with one row for each of its distinct times.

        Parameters
        ----------
        times : polars Series of str
            As they appear in the text.
        faults : FaultList
            Takes what is wrong with them.
        ds_format, frequency, missing
            See :func:`ccmtl_core.inspection.reading.read_rows`.

        Returns
        -------
        SeriesRows

        Raises
        ------
        TableError
            The times cannot be read.
        """
        name = SIGN.join(self.unique_id)
        frame = pl.DataFrame({name: pl.repeat("1", len(times), eager=True), self.ds: times, self.y: 0.0})
        rows = Table.of_frame(frame)
        table = replace(rows, dialect=self.head.dialect, options=self.text.options)
        columns = {"unique_id": name, "y": self.y, "ds": self.ds}
        return read_rows(table, columns, faults, ds_format=ds_format, frequency=frequency, missing=missing)

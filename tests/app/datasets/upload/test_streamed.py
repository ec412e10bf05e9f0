"""A large text that is read batch by batch becomes what it becomes when it is read whole."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.datasets.definition import DEFINITION
from app.datasets.receive import Bounds
from app.datasets.schemas import OverlapPolicy, UploadMode
from app.datasets.stored import segment_file
from app.datasets.stored.period_values import segment_frame
from app.datasets.stored.segment_file import segment_writer, write_segment
from app.datasets.upload import ingest, streamed
from app.datasets.upload.ingest import Upload
from app.http.errors import InvalidContent
from app.persistence.storage import Storage
from ccmtl_core.forecasting import Frequency
from ccmtl_core.inspection.parts import aside, in_pieces, series_text
from ccmtl_core.inspection.policies import CHOICES
from ccmtl_core.tables import ReadOptions
from tests.support.examples import FEW

HEADER = "store,note,product,date,units\n"
DEFINED = {
    "kind": "series",
    "frequency": "D",
    "columns": {"unique_id": ["store", "product"], "ds": "date", "y": "units"},
}


class Reading:
    """Reads texts with and without batches, and tells what becomes of them."""

    def __init__(self, folder: Path, patch: pytest.MonkeyPatch) -> None:
        self.storage, self.folder, self.patch = Storage(folder / "var"), folder, patch
        self.streamed: list[bool] = []
        read = streamed.streamed

        def watched(*arguments: Any) -> streamed.Taken | None:
            done = read(*arguments)
            self.streamed.append(done is not None)
            return done

        patch.setattr(ingest, "streamed", watched)

    def of(self, text: str | bytes, definition: dict[str, Any], least_bytes: int) -> tuple[str, ...]:
        """The report, the summary and the segment, or the refusal."""
        path = self.folder / "file"
        path.write_bytes(text.encode() if isinstance(text, str) else text)
        self.patch.setattr(streamed, "STREAMED_FROM_BYTES", least_bytes)
        upload = Upload(path, ReadOptions(), UploadMode.APPEND, OverlapPolicy.REFUSE, False)
        defined, bounds = DEFINITION.validate_python(definition), Bounds(1 << 30, 100)
        with self.storage.incoming() as to:
            try:
                extent, report = ingest.ingest(
                    upload, defined, None, bounds, None, lambda segment: None, self.storage, to
                )
            except InvalidContent as refusal:
                return (refusal.problem.model_dump_json(),)
            if extent.segment is not None:
                write_segment(extent.segment, to)
            told = report.model_dump_json(), json.dumps(extent.summary.series.to_dict(as_series=False))
            return *told, to.read_bytes().hex()

    def alike(self, text: str | bytes, definition: dict[str, Any]) -> bool:
        """Compare both ways; return whether batches were enough."""
        whole = self.of(text, definition, 1 << 40)
        assert self.of(text, definition, 0) == whole
        assert not list((self.folder / "var" / "incoming").iterdir()), "nothing stays behind"
        return self.streamed[-1]


@pytest.fixture(scope="module")
def reading(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Reading]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(series_text, "PIECE_BYTES", 100)
        for module in (aside, in_pieces):
            patch.setattr(module, "BATCH_ROWS", 3)
        patch.setattr(in_pieces, "BLOCK_ROWS", 4)
        patch.setattr(segment_file, "GROUP_ROWS", 5)
        yield Reading(tmp_path_factory.mktemp("streamed"), patch)


def cells(draw: st.DrawFn, frequency: str) -> Iterator[tuple[str, str, str]]:
    """Rows of some series, mostly a value in each period."""
    step = timedelta(hours=1) if frequency == "h" else timedelta(days=draw(st.sampled_from([1, 1, 7, 30])))
    hours = draw(st.sampled_from([0, 0, 5]))
    names = st.sampled_from(["1-a", "007", "7", "Total", "é x", "4.1E+10", "a,b", "x", "y", "X"])
    values = st.sampled_from(["0", "0", "1", "2", "7.25", "-1", "1000", "-0"])
    for name in draw(st.lists(names, min_size=1, max_size=5)):
        store, period = draw(st.sampled_from(["S1", "S1", "S2"])), draw(st.integers(0, 9))
        for value in draw(st.lists(values, min_size=1, max_size=14)):
            moment = datetime(2024, 1, 1, hours) + period * step
            yield f"{store},n", name, f"{moment:%Y-%m-%d %H:%M}" + f",{value}"
            period += draw(st.sampled_from([1, 1, 1, 1, 2, 0, 50]))


@st.composite
def uploads(draw: st.DrawFn) -> tuple[str, dict[str, Any]]:
    frequency = draw(st.sampled_from(["D", "D", "W", "W-FRI", "MS", "B", "D-SUN", "h", "ME"]))
    rows = list(cells(draw, frequency))
    if draw(st.booleans()):
        rows = draw(st.permutations(rows))
    elif draw(st.booleans()):
        rows.sort(key=lambda row: row[2][:10])
    chosen = {
        name: draw(st.sampled_from([*values, *(one for one in values if one != "error")]))
        for name, values in CHOICES.items()
        if not name.startswith("fill")
    }
    fill = draw(st.sampled_from([None, ("zero", "series"), ("zero", "dataset"), ("forward", "series")]))
    chosen["fill"] = fill and {"method": fill[0], "start": fill[1]}
    lines = [f'{front},"{name}",{rest}' for front, name, rest in rows]
    if chosen["missing"] == "absent" and draw(st.booleans()):
        lines = [line.removesuffix(",2") + "," if line.endswith(",2") else line for line in lines]
    end = draw(st.sampled_from(["\n", "\r\n"]))
    text = HEADER + end.join(lines) + end * draw(st.booleans())
    return text, {**DEFINED, "frequency": frequency, **chosen}


@FEW
@given(uploads())
def test_batches_and_blocks_give_the_report_and_the_bytes_of_the_whole(
    reading: Reading, upload: tuple[str, dict[str, Any]]
) -> None:
    reading.alike(*upload)


def shop(n_days: int = 5) -> list[str]:
    """Rows by product and day."""
    return [f"S1,,{name},2024-01-{day + 1:02d},{day % 3}" for name in "abc" for day in range(n_days)]


@pytest.mark.parametrize("order", ["by series", "series back to front", "by day", "days back to front"])
@pytest.mark.parametrize("policy", [{}, {"leading_zeros": "drop"}, {"fill": {"method": "zero"}}])
def test_rows_may_come_in_any_order(reading: Reading, order: str, policy: dict[str, Any]) -> None:
    lines = sorted(shop(), key=lambda line: line[9:19] if "day" in order else line[:8])
    lines = lines[::-1] if "back" in order else lines
    assert reading.alike(HEADER + "\n".join(lines), {**DEFINED, **policy})


def test_ids_of_one_column_and_times_of_any_notation_are_read_in_batches(reading: Reading) -> None:
    definition = {"kind": "series", "frequency": "D"}
    text = "unique_id;ds;y\n" + "".join(f"p{i % 2};{1 + i // 2}.{i}.2023;{i},5\n" for i in range(1, 12))
    assert reading.alike(text, definition)
    assert reading.alike(text.replace(";", "|"), {**definition, "missing": "absent"})


@pytest.mark.parametrize("header", ['"store",note,"product","date\n",units', "store,note,product,day,units"])
@pytest.mark.parametrize("end", ["\n", "\r\n"])
def test_rows_begin_below_the_header_however_it_is_written(reading: Reading, header: str, end: str) -> None:
    columns = {**DEFINED["columns"], "ds": "date\n" if "date" in header else "day"}
    text = "\ufeffSales of May" + end + header + end + end.join(shop())
    assert reading.alike(text, {**DEFINED, "columns": columns})
    assert not reading.alike(header, {**DEFINED, "columns": columns})


@pytest.mark.parametrize(
    "line",
    ["S1,,a,2024-01-09,much", "S1,,a,soon,1", "S1,,,2024-01-09,1", "S1,,a,2024-01-01,1", "S1,a,2024-01-09,1",
     "S1,,a,2024-01-09T00:00Z,1", "S1,,a,2024-01-09,1e3", 'S1,,"a""",2024-01-09,1', "S1,,a,2024-01-09,",
     f"S1,{'n' * 200},a,2024-01-09,1", ""],
)  # fmt: skip
def test_what_is_not_plain_or_is_refused_is_told_as_of_a_file_that_is_read_whole(
    reading: Reading, line: str
) -> None:
    lines = shop()
    lines.insert(7, line)
    assert not reading.alike(HEADER + "\n".join(lines), DEFINED)
    assert not reading.alike(HEADER + "\n".join([*lines, line]), {**DEFINED, "negatives": "error"})


@pytest.mark.parametrize("header", ["store,note,product,day,units", "store,note,product,date,date", "a,b,c"])
def test_a_text_without_the_columns_is_refused_alike(reading: Reading, header: str) -> None:
    assert not reading.alike("\n".join([header, *shop()]), DEFINED)


def test_equal_ids_of_different_parts_are_one_series_and_read_whole(reading: Reading) -> None:
    text = HEADER + "".join(f"{id},2024-01-{day},1\n" for id, day in (("1-2,,3", "01"), ("1,,2-3", "02")))
    assert not reading.alike(text, DEFINED)
    assert json.loads(reading.of(text, DEFINED, 0)[0])["series"] == 1


def test_policies_that_refuse_rows_leave_the_text_to_the_reader_of_whole_files(reading: Reading) -> None:
    lines = [*shop(), "S1,,a,2024-01-20,-4"]
    text = HEADER + "\n".join(lines)
    assert reading.alike(text, DEFINED)
    assert not reading.alike(text, {**DEFINED, "negatives": "error"})
    text = HEADER + "\n".join(line.rpartition(",")[0] + "," for line in lines)
    assert not reading.alike(text, {**DEFINED, "missing": "absent"})


def test_a_full_disk_is_told_by_what_writes_the_segment() -> None:
    n = np.zeros(9, dtype=np.int64)
    frame = segment_frame(pl.Series(["a"]), n, np.arange(9), np.ones(9), n, Frequency.DAY)

    def write_many() -> None:
        with segment_writer(Path("/dev/full")) as write:
            for _ in range(50):
                write(frame)

    with pytest.raises(OSError, match="No space left"):
        write_many()

"""Parquet files: typed columns of many kinds, and files that are cut off or damaged."""

from __future__ import annotations

import io
from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal
from typing import Any

import polars as pl
import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.datasets import receive
from app.datasets.upload import apart, ingest
from tests.app.datasets.conftest import PARQUET, Shop, faults
from tests.support.examples import FEW

DAY = date(2000, 11, 1)


def parquet(columns: dict[str, Any] | pl.DataFrame, **options: Any) -> bytes:
    file = io.BytesIO()
    pl.DataFrame(columns).write_parquet(file, **options)
    return file.getvalue()


GOOD = parquet({"unique_id": ["0001", "2"], "ds": [DAY, DAY], "y": [1.0, 2.5]})


@pytest.mark.usefixtures("not_decoded_apart")
@pytest.mark.parametrize(
    "columns",
    [
        {"unique_id": ["0001", "2"], "ds": [DAY, DAY], "y": [1.0, 2.5]},
        {"unique_id": ["0001", "2"], "ds": ["2000-11-01", "2000-11-01"], "y": ["1", "2.5"]},
        {"unique_id": pl.Series(["0001", "2"], dtype=pl.Categorical()), "ds": [DAY] * 2, "y": [1.0, 2.5]},
        {"unique_id": ["0001", "2"], "ds": [datetime(2000, 11, 1)] * 2, "y": [Decimal("1"), Decimal("2.5")]},
        {
            "unique_id": ["0001", "2"],
            "ds": pl.Series([datetime(2000, 11, 1)] * 2, dtype=pl.Datetime("ns")),
            "y": pl.Series([1.0, 2.5], dtype=pl.Float32),
        },
    ],
    ids=["plain", "text", "categorical", "decimal", "narrow types"],
)
def test_types_that_mean_the_same_make_the_same_file_as_csv(shop: Shop, columns: dict[str, Any]) -> None:
    from_csv, from_parquet = shop.series(), shop.series()
    shop.accepted(from_csv, "unique_id,ds,y\n0001,2000-11-01,1\n2,2000-11-01,2.5\n")
    before = shop.files()
    shop.accepted(from_parquet, parquet(columns), PARQUET)
    assert shop.files() == before


@pytest.mark.usefixtures("not_decoded_apart")
def test_whole_numbers_as_ids_become_their_digits(shop: Shop) -> None:
    content = parquet({"unique_id": [7, -3, 7], "ds": [DAY] * 3, "y": [1, 2, 3]})
    problem = shop.refused(shop.series(), content, PARQUET)
    assert faults(problem) == [("duplicate_period", 3, None, "7")]


@pytest.mark.usefixtures("not_decoded_apart")
def test_aware_hours_become_utc_and_aware_days_stay_local(shop: Shop) -> None:
    evening = datetime(2000, 11, 1, 23, 0, tzinfo=timezone(timedelta(hours=-2))).astimezone(UTC)
    times = pl.Series([evening]).dt.convert_time_zone("America/Noronha")
    content = parquet({"unique_id": ["a"], "ds": times, "y": [1]})
    report = shop.accepted(shop.series(frequency="h"), content, PARQUET)
    assert (report["time_zone"], report["first"]) == ("UTC", "2000-11-02T01:00:00")
    report = shop.accepted(shop.series(), content, PARQUET)
    assert (report["time_zone"], report["first"]) == ("local", "2000-11-01")


@pytest.mark.usefixtures("not_decoded_apart")
@pytest.mark.parametrize(
    ("column", "values"),
    [
        ("unique_id", [1.5]),
        ("unique_id", [b"a"]),
        ("unique_id", [True]),
        ("ds", [20001101.0]),
        ("y", [[1.0]]),
        ("y", [None]),
    ],
)
def test_a_column_of_a_wrong_type_is_refused(shop: Shop, column: str, values: list[Any]) -> None:
    columns = {"unique_id": ["a"], "ds": [DAY], "y": [1.0], column: values}
    problem = shop.refused(shop.series(), parquet(columns), PARQUET)
    assert [(e["code"], e["column"]) for e in problem["errors"]] == [("wrong_type", column)]


@pytest.mark.usefixtures("not_decoded_apart")
def test_bad_cells_are_placed(shop: Shop) -> None:
    columns = {
        "unique_id": ["a", None, "", "c", "d"],
        "ds": [DAY, DAY, DAY, None, date(999, 1, 1)],
        "y": [None, 1.0, float("nan"), float("inf"), 1.0],
    }
    assert faults(shop.refused(shop.series(), parquet(columns), PARQUET)) == [
        ("empty_number", 1, "y", None),
        ("empty_id", 2, "unique_id", None),
        ("empty_id", 3, "unique_id", ""),
        ("not_finite", 3, "y", "NaN"),
        ("empty_date", 4, "ds", None),
        ("not_finite", 4, "y", "inf"),
        ("unparseable_date", 5, "ds", "0999-01-01"),
    ]


@pytest.mark.usefixtures("not_decoded_apart")
@pytest.mark.parametrize(
    "ds",
    [
        pl.Series([-(2**31)], dtype=pl.Int32).cast(pl.Date),
        pl.Series([2**62], dtype=pl.Int64).cast(pl.Datetime("ms")),
        pl.Series([2**62], dtype=pl.Int64).cast(pl.Datetime("ms", "Europe/Berlin")),
        pl.Series([-(2**62)], dtype=pl.Int64).cast(pl.Datetime("ms", "UTC")),
    ],
)
def test_times_that_no_calendar_holds_are_placed(shop: Shop, ds: pl.Series) -> None:
    file = parquet({"unique_id": ["a"], "ds": ds, "y": [1.0]})
    assert faults(shop.refused(shop.series(), file, PARQUET)) == [("unparseable_date", 1, "ds", None)]


def test_a_file_without_columns_is_refused(shop: Shop) -> None:
    problem = shop.refused(shop.series(), parquet({}), PARQUET)
    assert {code for code, *_ in faults(problem)} == {"missing_column"}
    assert "the file has no columns" in problem["errors"][0]["message"]


@pytest.mark.usefixtures("not_decoded_apart")
def test_missing_columns_are_named(shop: Shop) -> None:
    problem = shop.refused(shop.series(), parquet({"Unique_ID": ["a"], "ds": [DAY]}), PARQUET)
    assert [(e["code"], e["column"]) for e in problem["errors"]] == [
        ("missing_column", "unique_id"),
        ("missing_column", "y"),
    ]
    assert "did you mean 'Unique_ID'?" in problem["errors"][0]["message"]


@pytest.mark.parametrize(
    ("content", "code", "hint"),
    [
        (b"", "empty_file", "empty"),
        (b"\x1f\x8b\x08rest", "undecodable_file", "gzip"),
        (b"PAR1", "not_parquet", "cannot be read"),
        (b"PAR1PAR1", "not_parquet", "cannot be read"),
        (GOOD[:-1], "not_parquet", "cut off"),
        (GOOD[: len(GOOD) // 2], "not_parquet", "cut off"),
        (GOOD[:40] + GOOD[-8:], "not_parquet", "cannot be read"),
        (parquet({"unique_id": [], "ds": [], "y": []}), "no_rows", "no rows"),
    ],
)
def test_a_file_that_is_not_whole_parquet_is_refused(
    shop: Shop, content: bytes, code: str, hint: str
) -> None:
    (fault,) = shop.refused(shop.series(), content, PARQUET)["errors"]
    assert fault["code"] == code
    assert hint in fault["message"]


def test_a_small_file_with_very_many_rows_is_too_large(shop: Shop) -> None:
    n_rows = 1_000_000
    columns = {
        "unique_id": pl.repeat("a", n_rows, eager=True),
        "ds": pl.repeat(DAY, n_rows, eager=True),
        "y": pl.repeat(1.0, n_rows, eager=True),
    }
    content = parquet(columns)
    assert len(content) < 100_000
    assert shop.refused(shop.series(), content, PARQUET, status=413)["code"] == "upload_too_large"


def as_arrow(frame: pl.DataFrame, *, is_stream: bool) -> bytes:
    file = io.BytesIO()
    if is_stream:
        frame.write_ipc_stream(file, compression="zstd")
    else:
        frame.write_ipc(file, compression="zstd")
    return file.getvalue()


@pytest.mark.parametrize("kind", ["parquet", "arrow", "arrow stream"])
def test_few_bytes_of_very_many_rows_are_refused_as_a_bomb(
    shop: Shop, monkeypatch: pytest.MonkeyPatch, kind: str
) -> None:
    monkeypatch.setattr(receive, "EXPANSION_FROM", 1 << 20)
    n_rows = 250_000
    columns = {"unique_id": pl.repeat("a", n_rows, eager=True), "ds": pl.repeat(DAY, n_rows, eager=True)}
    frame = pl.DataFrame({**columns, "y": pl.repeat(1.0, n_rows, eager=True)})
    packed = parquet(frame) if kind == "parquet" else as_arrow(frame, is_stream="stream" in kind)
    assert len(packed) * 200 < n_rows * 24
    problem = shop.refused(shop.series(), packed, "application/octet-stream", status=413)
    assert problem["code"] == "expands_too_much"


@pytest.mark.parametrize("is_stream", [False, True])
def test_a_stream_that_takes_too_much_memory_to_decode_is_too_large(
    shop: Shop, monkeypatch: pytest.MonkeyPatch, *, is_stream: bool
) -> None:
    monkeypatch.setattr(ingest, "DECODING_SPARE_BYTES", 96 * 1024**2)
    monkeypatch.setattr(apart, "STREAM_FROM_BYTES", 50_000)
    text = pl.Series([chr(97 + i) * 16 * 1024**2 for i in range(16)])
    packed = as_arrow(pl.DataFrame({"unique_id": text, "ds": [DAY] * 16, "y": 1.0}), is_stream=is_stream)
    problem = shop.refused(shop.series(), packed, "application/octet-stream", status=413)
    assert problem["code"] == "upload_too_large"


@pytest.mark.parametrize("kind", ["parquet", "arrow", "arrow stream"])
def test_rows_without_columns_are_refused(shop: Shop, kind: str) -> None:
    frame = pl.DataFrame(height=500)
    packed = parquet(frame) if kind == "parquet" else as_arrow(frame, is_stream="stream" in kind)
    problem = shop.refused(shop.series(), packed, "application/octet-stream")
    assert {fault["code"] for fault in problem["errors"]} == {"missing_column"}


def test_two_columns_of_one_name_are_named(shop: Shop) -> None:
    content = parquet({"unique_id": ["a"], "ds": [DAY], "y": [1.0], "note_1": [1], "note_2": [2]})
    (fault,) = shop.refused(shop.series(), content.replace(b"note_2", b"note_1"), PARQUET)["errors"]
    assert fault["code"] == "repeated_column"
    assert "'note_1'" in fault["message"]


def test_a_file_that_takes_too_much_memory_to_decode_is_too_large(
    shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(ingest, "DECODING_SPARE_BYTES", 128 * 1024**2)
    text = pl.Series([chr(97 + i) * 16 * 1024**2 for i in range(16)])
    content = parquet({"unique_id": text, "ds": [DAY] * 16, "y": [1.0] * 16})
    assert len(content) < 100_000
    problem = shop.refused(shop.series(), content, PARQUET, status=413)
    assert problem["code"] == "upload_too_large"
    assert "bytes of memory" in problem["detail"]


def test_a_file_that_takes_too_long_to_decode_is_refused(shop: Shop, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ingest, "DECODING_SECONDS", 0.01)
    (fault,) = shop.refused(shop.series(), GOOD, PARQUET)["errors"]
    assert fault["code"] == "parquet_takes_too_long"
    assert "over 0.01 seconds" in fault["message"]


@pytest.mark.parametrize("position", [47, 168, 262])
def test_bytes_that_abort_the_decoder_are_refused(shop: Shop, position: int) -> None:
    content = bytearray(GOOD)
    content[position] = 1
    (fault,) = shop.refused(shop.series(), bytes(content), PARQUET)["errors"]
    assert fault["code"] == "not_parquet"


@FEW
@given(
    position=st.integers(4, len(GOOD) - 5),
    byte=st.integers(0, 255),
    footer=st.booleans(),
)
def test_damaged_bytes_never_break_the_service(shop: Shop, position: int, byte: int, footer: bool) -> None:
    if footer:  # where the structure is
        start = len(GOOD) - 8 - int.from_bytes(GOOD[-8:-4], "little")
        position = start + position % (len(GOOD) - 4 - start)
    content = bytearray(GOOD)
    content[position] = byte
    answer = shop.upload(shop.series(aggregation="sum"), bytes(content), PARQUET, dry_run=True)
    assert answer.status_code in {200, 413, 422}, answer.text

"""The upload, ``ccmtl fit`` and statistics from files read the same files, and say the same of bad ones."""

from __future__ import annotations

import base64
import gzip
import io
import os
import re
from collections.abc import Callable
from datetime import datetime
from pathlib import Path
from typing import Any

import numpy as np
import polars as pl
import pytest
import zstandard
from typer.testing import CliRunner

from app.commands.cli import cli
from app.commands.option_names import in_command
from app.datasets.upload.option_names import in_request
from ccmtl_core import read_statistics, statistics_from_files
from ccmtl_core.tables.faults import TableError
from ccmtl_core.tables.sample_files import read_task_dataset
from tests.app.datasets.conftest import CSV, PARQUET, Shop

pytestmark = pytest.mark.usefixtures("not_decoded_apart")
NAMES: dict[str, Any] = {"task": "store", "target": "sold", "features": ["price"]}
FIT = ["fit", "--task", "store", "--target", "sold", "--features", "price", "--fusion-strength", "1"]
GOOD = "store,sold,price\n001,3,1.5\n002,4,2\n"


def parquet(**columns: Any) -> bytes:
    file = io.BytesIO()
    pl.DataFrame({"store": ["001", "002"], "sold": [3, 4], "price": [1.5, 2.0], **columns}).write_parquet(
        file
    )
    return file.getvalue()


def arrow_stream() -> bytes:
    file = io.BytesIO()
    pl.read_parquet(parquet()).write_ipc_stream(file)
    return file.getvalue()


def in_zone(content: bytes, zone: str) -> bytes:
    """The Parquet file with another zone in place of Poland, as other programs write it into the schema."""

    def replaced(found: re.Match[bytes]) -> bytes:
        return base64.b64encode(base64.b64decode(found[0]).replace(b"Poland", zone.encode()))

    return re.sub(rb"[A-Za-z0-9+/]{100,}={0,2}", replaced, content)


def twice_named() -> bytes:
    """A Parquet file with two columns called price."""
    return parquet(prize=[1.0, 2.0]).replace(b"prize", b"price")


def zoned(zone: str, **columns: Any) -> bytes:
    times = pl.Series([datetime(2023, 12, 31, 18, 30), datetime(2024, 1, 1, 18, 30)], dtype=pl.Datetime("us"))
    local = times.dt.replace_time_zone("UTC").dt.convert_time_zone("Poland")
    return in_zone(parquet(when=local, **columns), zone)


BAD = {
    "a stray comma": "store,sold,price\n001,3,1.5\n002,4,2,\n",
    "a short row": "store,sold,price\n001,3\n002,4,2\n",
    "a stray comma and a bad cell": "store,sold,price\n001,3,1.5,\n002,x,2\n",
    "spaces in cells": "store,sold,price\n001, 3,1.5\n002,4 ,2\n",
    "decimal commas": 'store,sold,price\n001,"3,5",1.5\n',
    "Latin-1": GOOD.replace("002", "Café").encode("latin-1"),
    "binary": b"\x7fELF\0\0\0\1",
    "a workbook": b"PK\x03\x04" + b"\0" * 30,
    "nothing": b"",
    "a header alone": "store,sold,price\n",
    "another column": GOOD.replace("price", "Price"),
    "a column twice": "store,sold,price,price\n001,1,2,3\n",
    "empty and odd cells": "store,sold,price\n,nan,\n002,1e999,many\n",
    "a NUL": "store,sold,price\na\0b,1,2\n",
    "a long id": f"store,sold,price\n{'x' * 513},1,2\n",
    "an open quote": 'store,sold,price\n"001,3,1.5\n',
    "integers beyond 2**53": "store,sold,price\n1,9007199254740993,9007199254740992\n2,4,-9007199254740993\n",
    "JSON": '[{"store": "001"}]\n',
    "lone carriage returns": GOOD[:-1].replace("\n", "\r") + "\n",
    "Parquet cut off": parquet()[:-3],
    "a header of a megabyte": ",".join(["store,sold,price", *(f"{i:0255}" for i in range(5000))]) + "\n1,2\n",
    "Parquet with changed bytes": b"PAR1" + b"\xff" * 20 + b"PAR1",
    "Parquet with two columns of a name": twice_named(),
    "Parquet of other types": parquet(store=[1.5, 2.5], price=[[1.0], [2.0]]),
    "Parquet with empty cells": parquet(store=["", None], sold=[None, 1], price=[float("nan"), 1.0]),
    "Parquet of integers beyond 2**53": parquet(sold=[2**53 + 1, 2**53]),
    "Parquet without a row": parquet(store=[], sold=[], price=[]),
}
CODES = {
    "a stray comma": "csv_field_count",
    "a header of a megabyte": "no_line_breaks",
    "integers beyond 2**53": "inexact_number",
    "Parquet with two columns of a name": "repeated_column",
    "Parquet of integers beyond 2**53": "inexact_number",
}
FINE = {
    "a byte-order mark": b"\xef\xbb\xbf" + GOOD.encode(),
    "CRLF": GOOD.replace("\n", "\r\n"),
    "quotes": '"store","sold","price"\n"001","3","1.5"\n"002","4","2"\n',
    "spaces after commas": 'store, sold, price\n001, 3, 1.5\n"002", "4", 2\n',
    "semicolons": GOOD.replace(",", ";"),
    "semicolons and decimal commas": "store;sold;price\n001;3,0;1,5\n002;4,0;2\n",
    "UTF-16": GOOD.encode("utf-16"),
    "a blank line first": "\n" + GOOD,
    "a title first": "Prices, from 2024 on\n" + GOOD,
    "comments": GOOD.replace("002", "# until here it was summer\n002"),
    "columns that are not asked for": "more,store,sold,price\nx,001,3,1.5\n,002,4,2\n",
    "blank lines at the end": GOOD + "\n\n",
    "Arrow in a stream": arrow_stream(),
    "lines of JSON": '{"store": "001", "sold": 3, "price": 1.5}\n{"store": "002", "sold": 4, "price": 2}\n',
    "gzip in zstd": zstandard.compress(gzip.compress(GOOD.encode())),
    "Parquet in gzip": gzip.compress(parquet()),
    "Parquet": parquet(),
    "Parquet with categories": parquet(store=pl.Series(["001", "002"], dtype=pl.Categorical())),
    "Parquet with numbers as text": parquet(sold=["3", "4"]),
    "Parquet with numbers as decimals": parquet(sold=pl.Series([3, 4]).cast(pl.Decimal(38, 2))),
    **{f"Parquet with a column of {zone}": zoned(zone) for zone in ("+05:30", "+05:45", "-03:30", "Mars/X")},
}


def bytes_of(content: str | bytes) -> bytes:
    return content.encode() if isinstance(content, str) else content


def media_type(content: bytes) -> str:
    return PARQUET if content.startswith(b"PAR1") else CSV


@pytest.mark.parametrize("name", BAD)
def test_a_bad_file_has_the_same_faults_wherever_it_is_read(shop: Shop, tmp_path: Path, name: str) -> None:
    content = bytes_of(BAD[name])
    dataset = shop.regression(["price"], unique_id="store", y="sold")
    problem = shop.refused(dataset, content, media_type(content))
    told = [(e["code"], e["row"], e["column"], e["value"], e["message"]) for e in problem["errors"]]
    assert told
    assert CODES.get(name, told[0][0]) == told[0][0]
    (tmp_path / "sales").write_bytes(content)
    for read in (read_task_dataset, statistics_from_files):
        with pytest.raises(TableError) as refused:
            read(tmp_path / "sales", **NAMES)
        faults = refused.value.listed
        words = [in_request(f.message, f.code) for f in faults]
        assert [(f.code, f.row, f.column, f.value, w) for f, w in zip(faults, words, strict=True)] == told
        assert refused.value.n_faults == problem["error_count"]
        assert refused.value.faults == [
            f"{tmp_path / 'sales'}{', ' if fault.row else ': '}{fault}" for fault in faults
        ]
    done = CliRunner().invoke(cli, [*FIT, str(tmp_path / "sales")])
    assert done.exit_code == 1
    assert in_command(str(faults[0])) in done.stderr


@pytest.mark.parametrize("name", FINE)
def test_a_good_file_is_read_everywhere(shop: Shop, tmp_path: Path, name: str) -> None:
    content = bytes_of(FINE[name])
    dataset = shop.regression(["price"], unique_id="store", y="sold")
    assert shop.accepted(dataset, content, media_type(content))["rows"] == 2
    (tmp_path / "sales").write_bytes(content)
    data = read_task_dataset(tmp_path / "sales", **NAMES)
    assert (data.task_ids, data.y.tolist(), data.X.tolist()) == (("001", "002"), [3, 4], [[1.5], [2]])
    statistics = statistics_from_files(tmp_path / "sales", **NAMES)
    assert (statistics.task_ids, statistics.yty.tolist()) == (("001", "002"), [9, 16])


@pytest.mark.parametrize("kind", [pl.Boolean, pl.Int8, pl.Float32])
def test_truth_values_are_zero_and_one_everywhere(shop: Shop, tmp_path: Path, kind: Any) -> None:
    content = parquet(price=pl.Series([1, 0]).cast(kind))
    dataset = shop.regression(["price"], unique_id="store", y="sold")
    shop.accepted(dataset, content, PARQUET)
    (tmp_path / "sales").write_bytes(content)
    assert read_task_dataset(tmp_path / "sales", **NAMES).X.tolist() == [[1], [0]]
    np.testing.assert_array_equal(statistics_from_files(tmp_path / "sales", **NAMES).xty, [[3], [0]])


@pytest.mark.parametrize(("yes", "no"), [("TRUE", "FALSE"), ("true", "false"), ("True", "0")])
def test_words_of_truth_in_csv_are_zero_and_one_everywhere(
    shop: Shop, tmp_path: Path, yes: str, no: str
) -> None:
    content = f"store,sold,price\n001,3,{yes}\n002,4,{no}\n".encode()
    shop.accepted(shop.regression(["price"], unique_id="store", y="sold"), content)
    (tmp_path / "sales").write_bytes(content)
    assert read_task_dataset(tmp_path / "sales", **NAMES).X.tolist() == [[1], [0]]
    np.testing.assert_array_equal(statistics_from_files(tmp_path / "sales", **NAMES).xty, [[3], [0]])


@pytest.mark.parametrize("name", ["*", "^s.*$", "^$", "0", "row", "faulty", "raw_y"])
def test_a_column_may_have_any_name(shop: Shop, tmp_path: Path, name: str) -> None:
    """Also one that is a pattern of names to the library that reads Parquet."""
    dataset = shop.regression([name], unique_id="store", y="sold")
    for content in (parquet(**{name: [5.0, 6.0]}), f"store,sold,{name}\n001,3,5\n002,4,6\n".encode()):
        shop.accepted(dataset, content, media_type(content))
        (tmp_path / "sales").write_bytes(content)
        assert read_task_dataset(tmp_path / "sales", **NAMES | {"features": [name]}).X.tolist() == [[5], [6]]


def test_decimals_without_a_fraction_may_be_ids(shop: Shop) -> None:
    """As databases write whole numbers of any length."""
    dataset = shop.regression(["price"], unique_id="store", y="sold")
    problem = shop.refused(dataset, parquet(store=pl.Series([1.0, 2.0]).cast(pl.Decimal(38, 1))), PARQUET)
    assert problem["errors"][0]["code"] == "wrong_type"
    content = parquet(store=pl.Series(["4006381333931000000001", "2"]).cast(pl.Decimal(38, 0)))
    assert shop.accepted(dataset, content, PARQUET)["series"] == 2


@pytest.mark.parametrize(
    "content", [b"ARROW1", b"ARROW1\0\0ARROW1", b"ARROW1\0\0", b"ARROW1" + b"\x7f" * 20 + b"ARROW1"]
)
def test_an_arrow_file_that_was_cut_off_is_refused(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "sales").write_bytes(content)
    with pytest.raises(TableError, match=r"Arrow file .*cut off"):
        read_task_dataset(tmp_path / "sales", **NAMES)


def test_a_pipe_is_not_read_half(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    with pytest.raises(TableError, match="pipe: this is a pipe or a device"):
        read_task_dataset(tmp_path / "pipe", **NAMES)


STATISTICS = (
    "task_id,features,n_samples,n_null,gram_1_1,xty_1,yty,x_sum_1,y_sum\n"
    'a,"[""x""]",2,0,5,3,2,3,2\nb,"[""x""]",1,0,4,2,1,2,1\n'
)


@pytest.mark.parametrize(
    ("change", "code", "row"),
    [
        (lambda text: text.replace("a,", "a,,", 1), "csv_field_count", 1),
        (lambda text: text.replace(",5,", ", 5,"), "unparseable_number", 1),
        (lambda text: text.replace(",4,", ",,"), "empty_number", 2),
        (lambda text: b"", "empty_file", None),
        (lambda text: text.replace("yty", "xty_1"), "repeated_column", None),
        (lambda text: text.partition("\n")[0] + "\n", "no_rows", None),
    ],
)
def test_a_table_of_statistics_is_read_by_the_same_rules(
    tmp_path: Path, change: Callable[[str], str | bytes], code: str, row: int | None
) -> None:
    (tmp_path / "sums").write_bytes(bytes_of(change(STATISTICS)))
    with pytest.raises(TableError) as refused:
        read_statistics(tmp_path / "sums")
    assert (refused.value.listed[0].code, refused.value.listed[0].row) == (code, row)


def test_sums_beyond_2_to_the_53_are_those_of_float64(tmp_path: Path) -> None:
    (tmp_path / "sums").write_text(STATISTICS.replace(",5,", ",123456789012345680001,"))
    assert read_statistics(tmp_path / "sums").gram[0, 0, 0] == 123456789012345680001.0


@pytest.mark.parametrize("pack", ["gzip", "zstd"])
def test_compressed_csv_is_checked_as_plain_csv_is(tmp_path: Path, pack: str) -> None:
    def packed(text: str) -> bytes:
        return {"gzip": gzip.compress, "zstd": zstandard.compress}[pack](text.encode())

    path = tmp_path / "sales"
    path.write_bytes(packed(GOOD))
    assert read_task_dataset(path, **NAMES).task_ids == ("001", "002")
    path.write_bytes(packed(str(BAD["a stray comma"])))
    with pytest.raises(TableError, match=r"row 2, '002,4,2,': the row has 4 fields, the header 3 \(line 3\)"):
        statistics_from_files(path, **NAMES)
    path.write_bytes(packed(GOOD)[:-4])
    with pytest.raises(TableError, match=f"begins as {pack} and cannot be decompressed"):
        statistics_from_files(path, **NAMES)


def test_spaces_after_commas_belong_to_names_that_are_asked_for_with_them(shop: Shop) -> None:
    named_with_spaces = shop.series(columns={"unique_id": "unique_id", "ds": " ds", "y": " y"})
    problem = shop.refused(named_with_spaces, "unique_id, ds, y\na, 2024-01-01, 3\n")
    assert all(e["message"].endswith("; leave out the spaces around it") for e in problem["errors"])


@pytest.mark.parametrize(
    ("zone", "first", "first_hour"),
    [
        ("+05:30", "2024-01-01", "2023-12-31T18:00:00"),
        ("+05:45", "2024-01-01", "2023-12-31T18:00:00"),
        ("-03:30", "2023-12-31", "2023-12-31T18:00:00"),
    ],
)
def test_parquet_times_of_an_odd_offset_are_read(shop: Shop, zone: str, first: str, first_hour: str) -> None:
    content = zoned(zone, unique_id=["a", "a"], y=[1.0, 2.0])
    columns = {"unique_id": "unique_id", "ds": "when", "y": "y"}
    report = shop.accepted(shop.series(columns=columns), content, PARQUET)
    assert (report["first"], report["time_zone"], report["periods"]) == (first, "local", 2)
    report = shop.accepted(shop.series(columns=columns, frequency="h"), content, PARQUET)
    assert (report["first"], report["time_zone"]) == (first_hour, "UTC")


def test_a_zone_that_nobody_knows_is_named(shop: Shop) -> None:
    columns = {"unique_id": "store", "ds": "when", "y": "sold"}
    (fault,) = shop.refused(shop.series(columns=columns), zoned("Mars/X"), PARQUET)["errors"]
    assert (fault["code"], fault["column"]) == ("unknown_time_zone", "when")
    assert "'Mars/X'" in fault["message"]
    assert shop.accepted(shop.series(columns=columns, frequency="h"), zoned("Mars/X"), PARQUET)["rows"] == 2


def test_ids_that_a_spreadsheet_destroyed_are_warned_of(shop: Shop, tmp_path: Path) -> None:
    ids = ("4.00638E+12", "4.00638E+12", "7", "1.2E+15")
    text = "unique_id,ds,y\n" + "".join(f"{id_},2024-01-01,1\n" for id_ in ids)
    report = shop.accepted(shop.series(aggregation="sum"), text)
    (warning,) = [one for one in report["warnings"] if one["code"] == "spreadsheet_ids"]
    assert warning["count"] == 2
    assert "2 ids look as a spreadsheet shows long numbers ('1.2E+15', '4.00638E+12')" in warning["message"]
    rows = "".join(f"4.00638E+12,{i},{i * i}\n002,{i},{i + 1}\n" for i in range(5))
    (tmp_path / "sales").write_text("store,sold,price\n" + rows)
    done = CliRunner().invoke(cli, [*FIT, str(tmp_path / "sales")])
    assert "1 id looks as a spreadsheet shows long numbers ('4.00638E+12')" in done.stdout

"""The same sales in five dialects become one dataset: the same bytes are stored, whatever was uploaded."""

from __future__ import annotations

import gzip
import io

import polars as pl

from tests.app.datasets.conftest import Shop
from tests.core.tables.containers.workbooks import xlsx

DAYS = [f"2024-01-{day:02d}" for day in range(1, 21)]
SALES = {"007": [1234.5 + day for day in range(20)], "7": [float(day % 5) for day in range(20)]}
PLAIN = "unique_id,ds,y\n" + "".join(
    f"{one},{day},{y:g}\n" for one, values in SALES.items() for day, y in zip(DAYS, values, strict=True)
)


def german() -> bytes:
    lines = [
        f"{one};{int(day[-2:])}. Jän. 2024;{f'{y:,.2f}'.translate(str.maketrans(',.', '.,'))} €\r\n"
        for one, values in SALES.items()
        for day, y in zip(DAYS, values, strict=True)
    ]
    return ("Umsatz im Januar\r\n\r\nunique_id;ds;y\r\n" + "".join(lines)).encode("utf-16")


def wide() -> bytes:
    head = "unique_id\t" + "\t".join(DAYS)
    rows = [f"{one}\t" + "\t".join(f"{y:g}" for y in values) for one, values in SALES.items()]
    return gzip.compress("\n".join([head, *rows]).encode())


def workbook() -> bytes:
    rows = [line.split(",") for line in PLAIN.splitlines()]
    return xlsx({"Sales": [rows[0], *([one, day, float(y)] for one, day, y in rows[1:])]})


def parquet() -> bytes:
    file = io.BytesIO()
    frame = pl.read_csv(io.StringIO(PLAIN), schema_overrides={"unique_id": pl.String}, try_parse_dates=True)
    frame.write_parquet(file)
    return file.getvalue()


DIALECTS = {"plain": PLAIN.encode, "German": german, "wide": wide, "workbook": workbook, "Parquet": parquet}


def test_the_same_sales_in_five_dialects_are_one_dataset(shop: Shop) -> None:
    """Segments are called by the hash of their content: the first upload writes one, the others none."""
    before, extents = shop.files(), []
    for content in DIALECTS.values():
        report = shop.accepted(shop.series(), content(), "application/octet-stream")
        extents.append((report["version"], report["rows"], report["inspection"]["rows_used"]))
    assert extents == [extents[0]] * 5
    (segment,) = shop.files() - before
    kept = pl.read_parquet(segment).sort("unique_id", "ds")
    assert kept["unique_id"].cast(pl.String).to_list() == [one for one in SALES for _ in DAYS]
    assert kept["ds"].dt.to_string("%Y-%m-%d").to_list() == 2 * DAYS
    assert kept["y"].to_list() == [y for values in SALES.values() for y in values]

"""Whatever bytes are sent under whatever label: an answer, and never a failure of the service."""

from __future__ import annotations

import csv
import gzip
import io

import zstandard
from hypothesis import example, given
from hypothesis import strategies as st

from tests.app.datasets.conftest import CSV, PARQUET, Shop
from tests.support.examples import FEW

ENCODE = {None: bytes, "gzip": gzip.compress, "zstd": zstandard.compress}
TOKENS = [
    b"unique_id",
    b"ds",
    b"y",
    b",",
    b'"',
    b"\n",
    b"\r",
    b"\r\n",
    b"a",
    b"2000-01-01",
    b"1",
    b"",
    b"\0",
    b"\xe9",
]
csv_like = st.lists(st.sampled_from(TOKENS), max_size=40).map(b"".join)


@given(
    body=st.binary(max_size=300) | csv_like | csv_like.map(lambda rows: b"unique_id,ds,y\n" + rows),
    content_type=st.sampled_from([CSV, PARQUET]),
    encoding=st.sampled_from([None, "gzip", "zstd"]),
    encoded=st.booleans(),
)
@example(b"PAR1" + b"\xff" * 8 + b"PAR1", PARQUET, None, False)
@example(b'unique_id,ds,y\n"', CSV, None, False)
def test_no_bytes_break_the_service(
    shop: Shop, body: bytes, content_type: str, encoding: str | None, encoded: bool
) -> None:
    sent = ENCODE[encoding](body) if encoded else body
    answer = shop.upload(shop.series(aggregation="sum"), sent, content_type, encoding=encoding, dry_run=True)
    assert answer.status_code in {200, 400, 413, 422}, answer.text
    if answer.status_code != 200:
        problem = answer.json()
        assert problem["detail"]
        assert len(problem["errors"]) <= problem["error_count"]
    assert not any("incoming" in file for file in shop.files())


odd_text = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=40)


@FEW
@given(rows=st.lists(st.tuples(odd_text, st.floats(allow_nan=False, allow_infinity=False)), min_size=1))
def test_an_upload_is_accepted_exactly_when_its_ids_are_acceptable(
    shop: Shop, rows: list[tuple[str, float]]
) -> None:
    file = io.StringIO()
    writer = csv.writer(file, quoting=csv.QUOTE_ALL)
    writer.writerow(["unique_id", "ds", "y"])
    writer.writerows((name, f"{2000 + i}-01-01", repr(y)) for i, (name, y) in enumerate(rows))
    answer = shop.upload(shop.series(frequency="MS"), file.getvalue(), dry_run=True)
    bad = [i for i, (name, _) in enumerate(rows, start=1) if "\0" in name or len(name.encode()) > 512]
    if bad:
        assert [e["row"] for e in answer.json()["errors"]] == bad
    else:
        assert answer.status_code == 200, answer.text
        assert answer.json()["report"]["series"] == len({name for name, _ in rows})

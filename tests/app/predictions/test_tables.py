"""Arrow streams are predicted as JSON is, to the last bit; what cannot be read is refused, without harm."""

from __future__ import annotations

from io import BytesIO
from typing import Any

import numpy as np
import polars as pl
import pytest
from fastapi.testclient import TestClient

from app.http.names import ARROW_STREAM
from app.persistence.database import Database
from tests.support.models import add_version, trained

N = 3000
RNG = np.random.default_rng(0)
IDS = [f"{t:05d}" for t in range(50)]
WEIGHTS = RNG.normal(size=(50, 2))
FRAME = pl.DataFrame(
    {
        "x": RNG.normal(size=N),
        "unique_id": [IDS[t] for t in RNG.integers(0, 50, N)],
        "z": RNG.integers(0, 9, N),
    }
)


@pytest.fixture(scope="module")
def database_kind() -> str:
    return "sqlite"


@pytest.fixture(autouse=True)
def _published(database: Database) -> None:
    add_version(database, trained(WEIGHTS, IDS, feature_names=["x", "z"]))


def stream(frame: pl.DataFrame, **options: Any) -> bytes:
    file = BytesIO()
    frame.write_ipc_stream(file, **options)
    return file.getvalue()


def post(client: TestClient, content: bytes) -> Any:
    return client.post("/v1/models/sales/predict", content=content, headers={"Content-Type": ARROW_STREAM})


@pytest.mark.parametrize("level", [pl.CompatLevel.oldest(), pl.CompatLevel.newest()])
def test_arrow_is_answered_as_json_is(client: TestClient, level: pl.CompatLevel) -> None:
    answer = post(client, stream(FRAME, compat_level=level))
    assert answer.headers["content-type"] == ARROW_STREAM
    found = pl.read_ipc_stream(BytesIO(answer.content))
    columns = {
        "unique_id": FRAME["unique_id"].to_list(),
        "features": FRAME.select("x", "z").to_dict(as_series=False),
    }
    expected = client.post("/v1/models/sales/predict", json=columns).json()
    assert found.to_dict(as_series=False) == {
        name: expected[name] for name in ("unique_id", "yhat", "status")
    }


def test_rows_without_an_answer_have_a_status(client: TestClient) -> None:
    frame = pl.DataFrame({"unique_id": ["nobody", "00001"], "x": [1.0, 1e308], "z": [1.0, 1e308]})
    answer = pl.read_ipc_stream(BytesIO(post(client, stream(frame)).content))
    assert answer["status"].to_list()[0] == "unknown_unique_id"
    assert answer["yhat"].to_list()[0] is None


@pytest.mark.parametrize(
    ("frame", "location"),
    [
        (FRAME.drop("x"), "body.x"),
        (FRAME.with_columns(w=1), "body.w"),
        (FRAME.with_columns(x=pl.lit("1")), "body.x"),
        (FRAME.with_columns(x=pl.lit(None)), "body.x"),
        (FRAME.with_columns(x=pl.when(pl.col("z") > 4).then(1.0)), None),
        (FRAME.with_columns(x=pl.lit(float("nan"))), "body.x.0"),
        (FRAME.with_columns(unique_id=pl.lit(7)), "body.unique_id"),
        (FRAME.with_columns(unique_id=pl.lit("a" * 513)), "body.unique_id"),
        (FRAME.with_columns(pl.col("unique_id").cast(pl.Categorical)), "body.unique_id"),
        (FRAME.clear(), "body.unique_id"),
    ],
)
def test_tables_that_do_not_fit_are_refused(
    client: TestClient, frame: pl.DataFrame, location: str | None
) -> None:
    answer = post(client, stream(frame))
    assert answer.status_code == 422, answer.text
    assert location in (None, answer.json()["errors"][0]["location"])


@pytest.mark.parametrize("compression", ["lz4", "zstd"])
def test_compressed_buffers_are_refused_since_they_may_be_bombs(client: TestClient, compression: Any) -> None:
    answer = post(client, stream(FRAME, compression=compression))
    assert (answer.status_code, answer.json()["code"]) == (415, "arrow_compressed")


def test_streams_that_are_cut_off_or_changed_do_no_harm(client: TestClient) -> None:
    content = stream(FRAME[:5], compat_level=pl.CompatLevel.oldest())
    for cut in range(0, len(content) - 8, 7):
        assert post(client, content[:cut]).status_code in (400, 422)
    for place in range(0, len(content), 3):
        changed = bytearray(content)
        changed[place] ^= 0xFF
        assert post(client, bytes(changed)).status_code in (200, 400, 415, 422)

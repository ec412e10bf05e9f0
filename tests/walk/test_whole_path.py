"""From a file to forecasts through a real service, and the same forecasts after a restart."""

from __future__ import annotations

import csv
import io
import json
from typing import Any
from urllib.parse import quote

import httpx2
import numpy as np
import pytest

from app.persistence.database import Database
from app.registry import service as registry
from app.settings import Settings
from ccmtl_core import CCMTLModel
from tests.support.database_kinds import quickly_on
from tests.support.processes import PATIENCE
from tests.support.service import read_job, start_training, upload_csv
from tests.walk.conftest import StartService

pytestmark = [quickly_on("postgresql"), pytest.mark.landing]

LAGS = 3
ODD_IDS = [
    "0001",
    "1",
    " 1",
    "1 ",
    "a/b",
    "../etc",
    "a%2Fb",
    "a+b c",
    "?x=1&y=2#z",
    "日本茶",
    "Ωμέγα",
    "é",
    "e\u0301",
    'say "hi", twice',
    "1e3",
    "NaN",
    "null",
    "-",
    "x" * 512,
]
RNG = np.random.default_rng(11)
SALES = RNG.gamma(2.0, 3.0, (len(ODD_IDS), 40))


def sales_file() -> bytes:
    """One row per product and day, in the columns and date format of some other system."""
    text = io.StringIO()
    writer = csv.writer(text, quoting=csv.QUOTE_ALL)
    writer.writerow(["PRODUCT", "DAY", "AMOUNT"])
    first = np.datetime64("2024-02-01")
    for day in range(SALES.shape[1]):
        year, month, number = str(first + day).split("-")
        for product, unique_id in enumerate(ODD_IDS):
            amount = repr(float(SALES[product, day]))
            writer.writerow([unique_id, f"{int(month)}/{int(number)}/{year}", amount])
    return text.getvalue().encode()


DEFINITION = {
    "name": "odd",
    "kind": "series",
    "columns": {"unique_id": "PRODUCT", "ds": "DAY", "y": "AMOUNT"},
    "ds_format": "%m/%d/%Y",
    "frequency": "D",
    "duplicates": "sum",
    "fill": {"method": "zero", "start": "dataset"},
}


def train(client: httpx2.Client) -> dict[str, Any]:
    """Go from the file to a published model; return the job at its end."""
    assert client.post("/v1/datasets", json=DEFINITION).status_code == 201
    report = upload_csv(client, "odd", sales_file())["report"]
    assert (report["series"], report["rows"]) == (len(ODD_IDS), SALES.size)
    job_id = start_training(client, dataset="odd", model="odd", fusion_strength=3.0, lags=LAGS)
    with client.stream("GET", f"/v1/training-jobs/{job_id}/events", timeout=PATIENCE) as stream:
        events = [json.loads(line[6:]) for line in stream.iter_lines() if line.startswith("data: ")]
    job = dict(read_job(client, job_id))
    assert job == {**events[-1], "request": job["request"], "data": job["data"]}
    assert job["state"] == "succeeded", job
    return job


def stored_model(settings: Settings) -> CCMTLModel:
    """The published model, read from the service's database and given to the library."""
    database = Database(settings)
    with database.read() as session:
        stored = registry.load(session, "odd", 1)
    database.dispose()
    return CCMTLModel(stored.weights, tuple(stored.rows), tuple(stored.feature_names))


def answers(client: httpx2.Client, features: Any) -> dict[str, Any]:
    """Ask for everything that a store would, in each way that there is."""
    columns = {f"lag_{p + 1}": features[:, p].tolist() for p in range(LAGS)}
    rows = [
        {"unique_id": i, "features": {name: values[k] for name, values in columns.items()}}
        for k, i in enumerate(ODD_IDS)
    ]
    one_by_one = [
        client.get(f"/v1/models/odd/forecast?unique_id={quote(i, safe='')}&h=1").json() for i in ODD_IDS
    ]
    return {
        "columns": client.post(
            "/v1/models/odd/predict", json={"unique_id": ODD_IDS, "features": columns}
        ).json(),
        "rows": client.post("/v1/models/odd/predict", json={"rows": rows}).json(),
        "forecasts": client.post("/v1/models/odd/forecast", json={"unique_id": ODD_IDS, "h": 7}).json(),
        "one_by_one": [answer["forecasts"] for answer in one_by_one],
        "model": client.get("/v1/models/odd").json(),
    }


def test_from_a_file_to_forecasts_that_outlive_the_process(start_service: StartService) -> None:
    features = RNG.normal(size=(len(ODD_IDS), LAGS)) * 10.0 ** RNG.integers(-9, 9, (len(ODD_IDS), 1))
    with start_service() as service:
        job = train(service.client)
        before = answers(service.client, features)
    assert job["model"] == {"name": "odd", "version": 1}
    assert {"read", "statistics", "holdout_solve", "evaluation", "solve", "publication"} <= set(
        job["progress"]["phases"]
    )
    metrics = before["model"]["newest"]["metrics"]
    assert metrics["n_tasks_scored"] == len(ODD_IDS)
    assert metrics["rmse_mean_of_tasks"]["ccmtl"] < metrics["rmse_mean_of_tasks"]["zero"]

    model = stored_model(service.settings)
    expected = model.predict(features, ODD_IDS).tolist()
    assert before["columns"]["yhat"] == expected
    assert [row["yhat"] for row in before["rows"]["predictions"]] == expected
    assert [row["unique_id"] for row in before["rows"]["predictions"]] == ODD_IDS

    one_step = model.predict(SALES[:, -1 : -1 - LAGS : -1], ODD_IDS).tolist()
    assert [rows[0]["yhat"] for rows in before["one_by_one"]] == one_step
    assert [(rows[0]["unique_id"], rows[0]["ds"]) for rows in before["one_by_one"]] == [
        (i, "2024-03-12") for i in ODD_IDS
    ]
    batch = before["forecasts"]["forecasts"]
    assert [row["yhat"] for row in batch[::7]] == one_step
    assert [row["ds"] for row in batch[:7]] == [f"2024-03-{12 + k}" for k in range(7)]

    with start_service() as service:
        assert answers(service.client, features) == before

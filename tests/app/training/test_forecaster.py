"""A request with a horizon becomes a version whose forecasts are the library's, to the last bit."""

from __future__ import annotations

import io
from datetime import date, timedelta
from typing import Any

import numpy as np
import polars as pl
import pytest
from fastapi.testclient import TestClient

from app.persistence.database import Database
from app.registry import service as registry
from app.registry.schemas import ModelVersionDetail
from ccmtl_core import ModelChoices
from ccmtl_core.forecasting import ForecastModel, SeriesPanel, fit_forecaster
from tests.app.training.conftest import Run
from tests.support.database_kinds import quickly_on
from tests.support.training import add_regression, add_series, locations, n_jobs, post

H = 2
HORIZON = {"dataset": "sales", "model": "m", "horizon": H}
IDS = ("a/b", "0001", "constant", "ended", "zero")


def values_csv() -> str:
    rng = np.random.default_rng(4)
    days = [date(2025, 1, 1) + timedelta(d) for d in range(24)]
    season = np.tile([1.0, 3.0, 2.0, 8.0, 5.0, 4.0, 2.0], 4)[:24]
    columns = {
        "a/b": 3.0 * season + rng.normal(size=24),
        "0001": season + rng.normal(size=24) + 5.0,
        "constant": np.full(24, 2.5),
        "ended": (2.0 * season + rng.normal(size=24))[:20],
        "zero": np.zeros(24),
    }
    rows = [f"{name},{days[d]},{y!r}" for name, own in columns.items() for d, y in enumerate(own.tolist())]
    return "\n".join(["unique_id,ds,y", *rows]) + "\n"


def library(**arguments: Any) -> ForecastModel:
    frame = pl.read_csv(
        io.StringIO(values_csv()), schema_overrides={"unique_id": pl.String}, try_parse_dates=True
    )
    choices = [ModelChoices(metric="mahalanobis", fit_intercept=each) for each in (False, True)]
    return fit_forecaster(SeriesPanel.from_frame(frame, "D"), H, **{"choices": choices, **arguments})


@pytest.fixture(scope="module")
def expected() -> ForecastModel:
    return library()


def train(run: Run, body: dict[str, Any]) -> dict[str, Any]:
    answer = post(run.client, body)
    assert answer.status_code == 202, answer.text
    run()
    version: dict[str, Any] = run.client.get("/v1/models/m").json()["newest"]
    return version


def test_the_forecasts_are_those_of_the_library_to_the_last_bit(
    run: Run, client: TestClient, database: Database, expected: ForecastModel
) -> None:
    add_series(client, content=values_csv())
    version = train(run, HORIZON)
    for h in (1, H, 5):
        frame = expected.forecast(h).with_columns(pl.col("ds").cast(pl.String))
        body = {"unique_id": sorted(IDS), "h": h}
        answer = client.post("/v1/models/m/forecast", json=body).json()["forecasts"]
        assert [(f["unique_id"], f["ds"], f["yhat"]) for f in answer] == frame.rows()
        assert {f["status"] for f in answer} == {"ok"}
        lines = client.get("/v1/models/m/forecasts", params={"h": h})
        assert lines.headers["content-location"] == "/v1/models/m/versions/1/forecasts"
        assert pl.read_ndjson(lines.content).to_dicts() == answer
    one = client.get("/v1/models/m/forecast", params={"unique_id": "a/b"}).json()["forecasts"]
    assert [f["yhat"] for f in one] == expected.forecast(unique_ids=["a/b"])["yhat"].to_list()
    assert version["feature_names"] == list(expected.features.names)
    with database.read() as session:
        stored = registry.load(session, "m", 1)
    assert stored.forecaster is not None
    assert np.array_equal(stored.forecaster.tail, expected.tail, equal_nan=True)
    assert np.array_equal(stored.weights, expected.model.weights)


@quickly_on("sqlite")
def test_ranges_and_quantiles_are_those_of_the_library_to_the_last_bit(
    run: Run, client: TestClient, expected: ForecastModel
) -> None:
    add_series(client, content=values_csv())
    train(run, HORIZON)
    asked: dict[str, Any] = {"level": [80, 97.5], "quantiles": [0.1, 0.995]}
    frame = expected.forecast(3, **asked).with_columns(pl.col("ds").cast(pl.String))
    names = {"yhat-lo-80": "yhat_lo_80", "yhat-hi-80": "yhat_hi_80"}
    names |= {"yhat-lo-97.5": "yhat_lo_97.5", "yhat-hi-97.5": "yhat_hi_97.5"}
    names |= {"yhat-q-10": "yhat_q_10", "yhat-q-99.5": "yhat_q_99.5"}
    rows = [{**row, "status": "ok"} for row in frame.rename(names).to_dicts()]
    body = {"unique_id": sorted(IDS), "h": 3, **asked}
    assert client.post("/v1/models/m/forecast", json=body).json()["forecasts"] == rows
    query: dict[str, Any] = {"h": 3, **asked}
    assert pl.read_ndjson(client.get("/v1/models/m/forecasts", params=query).content).to_dicts() == rows
    one = client.get("/v1/models/m/forecast", params={**query, "unique_id": "a/b"}).json()["forecasts"]
    assert one == [row for row in rows if row["unique_id"] == "a/b"]
    zero = [row for row in rows if row["unique_id"] == "zero"]
    assert {row[name] for row in zero for name in ("yhat", *names.values())} == {0.0}
    assert client.get("/v1/models/m/forecast", params={"unique_id": "a/b", "h": [1, 2]}).status_code == 422
    for path in ("forecast?unique_id=zero&", "forecasts?"):
        refused = client.get(f"/v1/models/m/{path}quantiles=0.5&quantiles=90").json()
        assert [fault["location"] for fault in refused["errors"]] == ["query.quantiles.1"]


@quickly_on("sqlite")
def test_products_are_listed_page_by_page(run: Run, client: TestClient) -> None:
    add_series(client, content=values_csv())
    train(run, HORIZON)
    first = client.get("/v1/models/m/products", params={"limit": 3}).json()
    assert first == {"items": sorted(IDS)[:3], "next_cursor": "3"}
    rest = client.get("/v1/models/m/versions/1/products", params={"limit": 3, "cursor": "3"}).json()
    assert rest == {"items": sorted(IDS)[3:], "next_cursor": None}
    assert client.get("/v1/models/n/products").status_code == 404
    assert client.get("/v1/models/m/versions/2/products").status_code == 404


def test_a_version_says_what_was_tried_and_how_wrong_it_was_by_step(
    run: Run, client: TestClient, expected: ForecastModel
) -> None:
    add_series(client, content=values_csv())
    version = train(run, HORIZON)
    detail = ModelVersionDetail.model_validate(version)
    report = expected.report
    chosen = {**version["configuration"], "frequency": "D", "horizon": H, "rows": report["rows"]}
    assert {**chosen, **report["choices"], "fusion_strength": "auto"} == version["configuration"]
    assert version["metrics"] == {**report["held_out"], "n_periods_filled": 0}
    assert len(version["metrics"]["errors_by_step"]["ccmtl"]) == H
    assert detail.report.forecaster is not None
    parts = [detail.metrics, detail.report, detail.report.rows, detail.report.forecaster]
    parts += [*detail.report.history, *detail.report.forecaster.tried, *detail.report.forecaster.rows_tried]
    assert [part and part.model_extra for part in parts] == [{}] * len(parts)
    assert version["report"]["forecaster"]["tried"] == report["tried"]
    assert version["report"]["forecaster"]["rows_tried"] == report["rows_tried"]
    assert version["report"]["forecaster"]["n_constant"] == 2
    assert version["report"]["fusion_strength"] == report["fusion_strength"]
    assert version["report"]["status"] == "converged"
    used, left_out = report["n_rows"], report["n_left_out"]
    assert version["report"]["rows"]["used"] == used
    assert version["report"]["rows"]["values"] == used + left_out
    assert version["report"]["not_forecast"] == {"count": 0, "examples": []}


@quickly_on("sqlite")
def test_the_job_tells_its_phases_and_keeps_what_is_left_to_validation(run: Run, client: TestClient) -> None:
    add_series(client, content=values_csv())
    train(run, HORIZON)
    job = client.get("/v1/training-jobs").json()["items"][0]
    phases = [phase for phase in job["progress"]["phases"] if phase != "compiling"]
    assert phases == ["read", "rows", "statistics", "selection", "residuals", "publication"]
    assert job["progress"]["selection"]["fits_done"] == job["progress"]["selection"]["fits"]
    request = job["request"]
    assert (request["horizon"], request["lags"], request["fusion_strength"]) == (H, None, "auto")
    assert (request["n_neighbors"], request["fit_intercept"], request["metric"]) == (None, None, None)


@quickly_on("sqlite")
def test_choices_that_are_given_are_kept(run: Run, client: TestClient) -> None:
    add_series(client, content=values_csv())
    given = {"fit_intercept": True, "n_neighbors": 2, "metric": "euclidean", "fusion_strength": 2.0}
    version = train(run, {**HORIZON, **given})
    assert {name: version["configuration"][name] for name in given} == given
    assert [tried["choices"]["fit_intercept"] for tried in version["report"]["forecaster"]["tried"]] == [True]
    model = library(
        choices=ModelChoices(fit_intercept=True, n_neighbors=2, metric="euclidean"), fusion_strength=2.0
    )
    answer = client.post("/v1/models/m/forecast", json={"unique_id": sorted(IDS)}).json()["forecasts"]
    assert [f["yhat"] for f in answer] == model.forecast()["yhat"].to_list()


@quickly_on("sqlite")
def test_a_value_that_may_be_mistyped_is_told_and_stays_in_the_data(run: Run, client: TestClient) -> None:
    rows = [f"a,2025-01-{d:02d},{3 if d != 5 else 40000}" for d in range(1, 11)]
    add_series(client, content="\n".join(["unique_id,ds,y", *rows]))
    report = train(run, HORIZON)["report"]
    assert report["forecaster"]["n_cut"] == 1
    assert report["forecaster"]["cut"] == [
        {"unique_id": "a", "ds": "2025-01-05", "y": 40000.0, "counted_as": 3.0}
    ]
    assert "1 series has one value far above all others" in report["notes"][0]
    assert "'a' 2025-01-05: 40000 as 3." in report["notes"][0]
    answer = client.get("/v1/models/m/forecast", params={"unique_id": "a", "h": 1}).json()
    assert answer["forecasts"][0]["yhat"] == 3.0


@quickly_on("sqlite")
def test_constant_series_alone_are_forecast_by_their_constant(run: Run, client: TestClient) -> None:
    rows = [f"{name},2025-01-{d:02d},{y}" for name, y in (("a", 0), ("b", 3)) for d in range(1, 9)]
    add_series(client, content="\n".join(["unique_id,ds,y", *rows]) + "\n")
    version = train(run, HORIZON)
    answer = client.post("/v1/models/m/forecast", json={"unique_id": ["a", "b"], "h": 1}).json()
    assert [f["yhat"] for f in answer["forecasts"]] == [0.0, 3.0]
    ranged = client.get("/v1/models/m/forecast?unique_id=b&level=80").json()["forecasts"][0]
    assert (ranged["yhat_lo_80"], ranged["yhat_hi_80"]) == (3.0, 3.0)
    assert version["metrics"] is None
    assert version["report"]["notes"] == ["No series ever changed: each is forecast by its constant."]


@quickly_on("sqlite")
def test_six_points_of_history_are_enough(run: Run, client: TestClient) -> None:
    rows = [f"a,2025-0{m}-01,{m % 4}" for m in range(1, 7)]
    add_series(client, content="\n".join(["unique_id,ds,y", *rows]) + "\n", frequency="MS")
    train(run, HORIZON)
    answer = client.get("/v1/models/m/forecast", params={"unique_id": "a"}).json()["forecasts"]
    assert [f["ds"] for f in answer] == ["2025-07-01", "2025-08-01"]
    assert all(f["status"] == "ok" for f in answer)


@quickly_on("sqlite")
def test_a_rival_that_is_better_is_named_in_the_notes(run: Run, client: TestClient) -> None:
    rng = np.random.default_rng(0)
    rows = [f"p{t},2025-01-{d + 1:02d},{rng.choice([-1.0, 1.0])}" for t in range(3) for d in range(30)]
    add_series(client, content="\n".join(["unique_id,ds,y", *rows]) + "\n")
    version = train(run, HORIZON)
    errors = version["metrics"]["errors"]
    assert errors["zero"] < 0.999 * errors["ccmtl"]
    assert any("the rival zero has a smaller error" in note for note in version["report"]["notes"])


@pytest.mark.parametrize(
    ("field", "location"),
    [
        ({"lags": 3}, "body.lags"),
        ({"holdout": 0.5}, "body.holdout"),
        ({"refit": False}, "body.refit"),
        ({"folds": "rolling"}, "body.folds"),
        ({"n_folds": 3}, "body.n_folds"),
        ({"rule": "best"}, "body.rule"),
        ({"loss_scaling": "spread"}, "body.loss_scaling"),
        ({"accept_gaps": True}, "body.accept_gaps"),
        ({"fusion_strength": [1, 2]}, "body.fusion_strength"),
        ({"horizon": 0}, "body.horizon"),
        ({"horizon": 367}, "body.horizon"),
        ({"horizon": "7"}, "body.horizon"),
        ({"horizon": 12}, "body.horizon"),
        ({"n_neighbors": 0}, "body.n_neighbors"),
        ({"aim": "both"}, "body.aim"),
        ({"horizon": None, "fusion_strength": 1, "aim": "totals"}, "body.aim"),
    ],
)
@quickly_on("sqlite")
def test_what_has_no_effect_beside_a_horizon_is_refused_by_name(
    client: TestClient, database: Database, field: dict[str, Any], location: str
) -> None:
    add_series(client)
    answer = post(client, {**HORIZON, **field})
    assert (answer.status_code, locations(answer)) == (422, [location])
    assert n_jobs(database) == 0


@quickly_on("sqlite")
def test_null_beside_a_horizon_says_nothing(client: TestClient) -> None:
    add_series(client)
    nothing = dict.fromkeys(("lags", "holdout", "folds", "n_neighbors", "fit_intercept", "metric"))
    assert post(client, {**HORIZON, **nothing}).status_code == 202


def test_the_same_request_with_the_same_key_is_the_same_job(client: TestClient) -> None:
    add_series(client)
    first, again = (post(client, HORIZON, **{"Idempotency-Key": "k"}).json() for _ in range(2))
    assert first == again


@quickly_on("sqlite")
def test_without_horizon_or_strength_the_strength_is_missing(client: TestClient) -> None:
    add_series(client)
    (fault,) = post(client, {"dataset": "sales", "model": "m"}).json()["errors"]
    assert (fault["location"], fault["message"]) == (
        "body.fusion_strength",
        "is missing; of series give a `horizon` instead, how many periods ahead to forecast, which lets it "
        'be chosen, for example 7; else a number or "auto"',
    )


@quickly_on("sqlite")
def test_history_too_short_for_the_horizon_is_refused_in_words(client: TestClient) -> None:
    add_series(client, content="unique_id,ds,y\na,2025-01-01,1\nb,2025-01-09,1\n")
    (fault,) = post(client, HORIZON).json()["errors"]
    assert fault["message"].startswith("no series has two values")
    add_regression(client)
    (fault,) = post(client, {**HORIZON, "dataset": "rows"}).json()["errors"]
    assert fault["message"] == "regression data has no periods to forecast; `horizon` is for series"

"""A claimed job becomes exactly one version that answers as the library does, or it leaves nothing."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from fastapi.testclient import TestClient
from sqlalchemy import func, select, update

from app.http.errors import AppError
from app.jobs.queue import StaleAttempt
from app.persistence.database import Database
from app.persistence.models import MatrixChunk, ModelVersion, TaskRow, TrainingJob
from app.settings import Settings
from ccmtl_core import CCMTLModel, DataError, SolveStatus, SufficientStatistics, fit
from tests.app.datasets.stored.test_coverage import forget
from tests.app.training.conftest import IDS, N_DAYS, N_PRODUCTS, SALES, Run, lagged, sales_csv, weights
from tests.support.database_kinds import quickly_on
from tests.support.training import add_regression, add_series, job, upload


def test_the_version_is_the_library_s_fit_of_all_rows(run: Run, client: TestClient) -> None:
    add_series(client, content=sales_csv())
    version = run.trained(lags=3, fusion_strength=5.0, n_neighbors=4, tolerance=1e-6)
    expected = fit(
        SufficientStatistics.from_dataset(lagged(3, N_DAYS)),
        fusion_strength=5.0,
        n_neighbors=4,
        tolerance=1e-6,
    )
    served = weights(client)
    assert np.allclose(served, expected.model.weights, atol=1e-4)
    assert version["report"]["objective"] == pytest.approx(expected.report.objective, rel=2e-6)
    assert version["report"]["status"] == "converged"
    assert version["report"]["gap"] <= 1e-6
    assert version["report"]["advice"].startswith(SolveStatus.CONVERGED.advice)
    assert version["report"]["history"]
    for unique_id in IDS[:3]:
        task = client.get("/v1/models/m/tasks", params={"unique_id": unique_id}).json()
        assert task["n_samples"] == N_DAYS - 3
        edges = expected.graph.edges[(expected.graph.edges == IDS.index(unique_id)).any(axis=1)]
        joined = {IDS[t] for t in edges.ravel()} - {unique_id}
        assert {other["unique_id"] for other in task["neighbors"]} == joined
    model = CCMTLModel(served, tuple(IDS), ("lag_1", "lag_2", "lag_3"))
    last = SALES[:, -1:-4:-1]
    forecasts = client.post("/v1/models/m/forecast", json={"unique_id": IDS}).json()["forecasts"]
    assert [f["ds"] for f in forecasts] == ["2025-01-31"] * N_PRODUCTS
    assert [f["yhat"] for f in forecasts] == model.predict(last, IDS).tolist()


def test_the_model_s_choices_reach_the_fit_the_database_and_the_forecasts(
    run: Run, client: TestClient
) -> None:
    add_series(client, content=sales_csv())
    choices: dict[str, Any] = {"fit_intercept": True, "loss_scaling": "spread"}
    version = run.trained(lags=3, fusion_strength=5.0, tolerance=1e-6, **choices)
    assert {name: version["configuration"][name] for name in choices} == choices
    expected = fit(lagged(3, N_DAYS), fusion_strength=5.0, tolerance=1e-6, **choices)
    assert version["report"]["objective"] == pytest.approx(expected.report.objective, rel=2e-6)
    zero = {name: [0.0] * N_PRODUCTS for name in version["feature_names"]}
    body = {"unique_id": IDS, "features": zero}
    intercept = np.array(client.post("/v1/models/m/predict", json=body).json()["yhat"])
    assert np.allclose(intercept, expected.model.intercept, atol=1e-3)
    assert abs(intercept).min() > 0.0
    slopes = weights(client) - intercept[:, None]
    last = SALES[:, -1:-4:-1]
    forecasts = client.post("/v1/models/m/forecast", json={"unique_id": IDS}).json()["forecasts"]
    assert np.allclose([f["yhat"] for f in forecasts], (slopes * last).sum(axis=1) + intercept)
    fitted = fit(lagged(3, 16), fusion_strength=5.0, tolerance=1e-6, **choices).model
    held_out = lagged(16, N_DAYS)
    residuals = held_out.y - fitted.predict(held_out.X, [IDS[t] for t in held_out.task_index])
    by_hand = np.sqrt((residuals.reshape(N_PRODUCTS, -1) ** 2).mean(axis=1)).mean()
    assert version["metrics"]["rmse_mean_of_tasks"]["ccmtl"] == pytest.approx(by_hand, rel=0.02)


@quickly_on("sqlite")
def test_without_refit_the_fit_of_the_metrics_is_published(run: Run, client: TestClient) -> None:
    add_series(client, content=sales_csv())
    run.trained(lags=2, fusion_strength=5.0, refit=False, tolerance=1e-6)
    earlier, everything = (
        fit(lagged(2, last, lags=2), fusion_strength=5.0, tolerance=1e-6).model.weights
        for last in (16, N_DAYS)
    )
    served = weights(client, 2)
    assert np.allclose(served, earlier, atol=1e-4)
    assert not np.allclose(served, everything, atol=1e-3)


@pytest.mark.parametrize("holdout", [None, 0.5])
@pytest.mark.parametrize(
    "other",
    [{"loss_scaling": "spread"}, {"loss_scaling": "spread", "metric": "mahalanobis"}],
)
@quickly_on("sqlite")
def test_models_with_intercepts_are_served_with_them(
    run: Run, client: TestClient, holdout: float | None, other: dict[str, str]
) -> None:
    add_series(client, content=sales_csv())
    choices: dict[str, Any] = {"fit_intercept": True, **other}
    version = run.trained(lags=2, fusion_strength=5.0, tolerance=1e-6, holdout=holdout, **choices)
    assert {name: version["configuration"][name] for name in choices} == choices
    expected = fit(lagged(2, N_DAYS, lags=2), fusion_strength=5.0, tolerance=1e-6, **choices).model
    assert expected.intercept.any()
    names = {"lag_1": [1.0] * N_PRODUCTS, "lag_2": [2.0] * N_PRODUCTS}
    body = {"unique_id": IDS, "features": names}
    served = client.post("/v1/models/m/predict", json=body).json()["yhat"]
    assert served == pytest.approx(expected.predict([[1.0, 2.0]] * N_PRODUCTS, IDS).tolist(), abs=1e-3)
    forecasts = client.post("/v1/models/m/forecast", json={"unique_id": IDS}).json()["forecasts"]
    yhat = expected.predict(SALES[:, -1:-3:-1], IDS).tolist()
    assert [f["yhat"] for f in forecasts] == pytest.approx(yhat, abs=1e-3)
    if holdout is not None:
        held_out = SufficientStatistics.from_dataset(lagged(16, N_DAYS, lags=2))
        half = fit(lagged(2, 16, lags=2), fusion_strength=5.0, tolerance=1e-6, **choices).model
        squares = held_out.squared_error(half.weights, half.intercept)
        by_hand = np.sqrt(squares / held_out.n_samples).mean()
        assert version["metrics"]["rmse_mean_of_tasks"]["ccmtl"] == pytest.approx(by_hand, rel=1e-4)


@quickly_on("sqlite")
def test_regression_rows_are_trained_and_predicted(run: Run, client: TestClient) -> None:
    add_regression(client)
    version = run.trained(dataset="rows", holdout=0.25, fusion_strength=0.0)
    assert version["configuration"]["kind"] == "regression"
    assert "lags" not in version["configuration"]
    assert version["feature_names"] == ["x", "z"]
    assert version["metrics"]["n_test_rows"] == 4
    x, z = np.arange(8.0), np.arange(8.0) % 4
    alone = np.linalg.lstsq(np.stack([x, z], axis=1), np.arange(8.0) % 3)[0]
    assert np.allclose(weights(client, 2, ids=["a", "b"]), np.tile(alone, (2, 1)))
    assert client.get("/v1/models/m/forecast?unique_id=a").status_code == 409


def test_the_job_tells_phases_and_what_it_published(run: Run, client: TestClient) -> None:
    add_series(client, content=sales_csv())
    run.trained()
    told = client.get("/v1/training-jobs").json()["items"][0]
    assert told["state"] == "succeeded"
    assert told["model"] == {"name": "m", "version": 1}
    phases = told["progress"]["phases"]
    assert list(phases) == [
        "read",
        "rows",
        "statistics",
        "holdout_start",
        "holdout_graph",
        "holdout_solve",
        "evaluation",
        "start",
        "graph",
        "solve",
        "publication",
    ]
    assert told["progress"]["elapsed_seconds"] == pytest.approx(sum(phases.values()), abs=0.02)
    assert run.records[0]["phase"] == "read"


def test_each_success_is_the_next_version(run: Run, client: TestClient) -> None:
    add_series(client, content=sales_csv())
    assert [run.trained(lags=lags)["version"] for lags in (1, 2)] == [1, 2]
    assert client.get("/v1/models/m/versions/1").json()["feature_names"] == ["lag_1"]


def test_the_job_s_own_version_of_the_data_is_read(run: Run, client: TestClient) -> None:
    add_series(client, content=sales_csv())
    client.post("/v1/training-jobs", json=job(holdout=None))
    upload(client, "sales", "unique_id,ds,y\n" + "".join(f"new,2025-01-0{d},1\n" for d in range(1, 9)))
    run()
    assert client.get("/v1/models/m").json()["newest"]["n_tasks"] == N_PRODUCTS


def nothing_was_published(database: Database) -> bool:
    with database.read() as session:
        tables = (ModelVersion, MatrixChunk, TaskRow)
        return not any(session.scalar(select(func.count()).select_from(table)) for table in tables)


def test_a_run_that_lost_its_job_publishes_nothing(run: Run, client: TestClient, database: Database) -> None:
    add_series(client, content=sales_csv())
    client.post("/v1/training-jobs", json=job())

    def lose(record: dict[str, Any]) -> None:
        with database.write() as session:
            session.execute(update(TrainingJob).values(attempt=2))

    with pytest.raises(StaleAttempt):
        run(lose)
    assert nothing_was_published(database)


def test_a_cancelled_run_publishes_nothing(run: Run, client: TestClient, database: Database) -> None:
    add_series(client, content=sales_csv())
    job_id = client.post("/v1/training-jobs", json=job()).json()["id"]

    def cancel(record: dict[str, Any]) -> None:
        client.post(f"/v1/training-jobs/{job_id}/cancel")

    with pytest.raises(StaleAttempt):
        run(cancel)
    assert nothing_was_published(database)
    assert client.get("/v1/models").json()["items"] == []


def test_what_the_receiver_raises_ends_the_fit(run: Run, client: TestClient, database: Database) -> None:
    add_series(client, content=sales_csv())
    client.post("/v1/training-jobs", json=job())
    with pytest.raises(InterruptedError):
        run(_interrupt)
    assert nothing_was_published(database)


def _interrupt(record: dict[str, Any]) -> None:
    raise InterruptedError


@quickly_on("sqlite")
def test_values_too_large_to_square_fail_in_words(run: Run, client: TestClient, database: Database) -> None:
    add_series(
        client,
        content=sales_csv().replace(f"{IDS[3]},2025-01-09,{SALES[3, 8]}", f"{IDS[3]},2025-01-09,1e200"),
    )
    client.post("/v1/training-jobs", json=job())
    with pytest.raises(DataError, match=IDS[3]):
        run()
    assert nothing_was_published(database)


@quickly_on("sqlite")
def test_damaged_data_fails_in_words(
    run: Run, client: TestClient, database: Database, settings: Settings
) -> None:
    add_series(client, content=sales_csv())
    client.post("/v1/training-jobs", json=job())
    [file] = settings.data_dir.rglob("*.parquet")
    file.write_bytes(file.read_bytes()[:-1] + b"x")
    with pytest.raises(AppError, match="has changed on disk"):
        run()
    assert nothing_was_published(database)


def test_a_version_from_before_there_was_a_coverage_is_judged_by_the_worker_once(
    run: Run, client: TestClient, database: Database
) -> None:
    add_series(client, content=sales_csv())
    forget(database)
    assert client.post("/v1/training-jobs", json=job(lags=N_DAYS)).status_code == 202
    with pytest.raises(AppError, match="no series has 31 consecutive periods") as refusal:
        run()
    assert refusal.value.problem.code == "invalid_training_request"
    assert client.post("/v1/training-jobs", json=job(lags=N_DAYS)).status_code == 422
    assert run.trained(lags=3, parallel=True)["n_tasks"] == N_PRODUCTS

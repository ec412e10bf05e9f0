"""A claimed job becomes exactly one version that answers as the library does, or it leaves nothing."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from fastapi import FastAPI
from fastapi.testclient import TestClient
from sqlalchemy import func, select, update

import ccmtl_core
from app.http.errors import AppError
from app.jobs import queue
from app.jobs.queue import ClaimedJob, StaleAttempt
from app.persistence.database import Database
from app.persistence.models import MatrixChunk, ModelVersion, TaskRow, TrainingJob
from app.persistence.storage import Storage
from app.registry.schemas import ModelVersionDetail
from app.settings import Settings
from app.training import pipeline, progress
from app.training.pipeline import plain
from ccmtl_core import CCMTLModel, DataError, SolveStatus, SufficientStatistics, TaskDataset, fit
from tests.app.datasets.stored.test_coverage import forget
from tests.support.training import add_regression, add_series, job, upload

RNG = np.random.default_rng(3)
N_DAYS, N_PRODUCTS = 30, 12
SALES = RNG.poisson(3.0, (N_PRODUCTS, N_DAYS)).astype(float)
IDS = [f"{t:04d}" for t in range(N_PRODUCTS)]


def sales_csv() -> str:
    rows = [
        f"{IDS[t]},{np.datetime64('2025-01-01') + d},{SALES[t, d]}"
        for t in range(N_PRODUCTS)
        for d in range(N_DAYS)
    ]
    return "\n".join(["unique_id,ds,y", *rows]) + "\n"


def lagged(first: int, last: int, lags: int = 3) -> TaskDataset:
    """Rows whose targets are the days ``first`` to ``last`` - 1."""
    X = [np.stack([SALES[t, d - lags : d][::-1] for d in range(first, last)]) for t in range(N_PRODUCTS)]
    names = [f"lag_{p + 1}" for p in range(lags)]
    return TaskDataset.from_arrays(X, [SALES[t, first:last] for t in range(N_PRODUCTS)], IDS, names)


@dataclass
class Run:
    """Claims the oldest job and runs it here."""

    client: TestClient
    database: Database
    storage: Storage
    records: list[dict[str, Any]]

    def __call__(self, on_progress: Callable[[dict[str, Any]], None] | None = None) -> ClaimedJob:
        with self.database.write() as session:
            claimed = queue.claim(session, "worker", 60.0, 3)
        assert claimed is not None
        pipeline.run(self.database, self.storage, claimed, on_progress or self.records.append)
        return claimed

    def trained(self, **fields: Any) -> dict[str, Any]:
        """Queue, run, and return the newest version."""
        answer = self.client.post("/v1/training-jobs", json=job(**fields))
        assert answer.status_code == 202, answer.text
        self()
        version: dict[str, Any] = self.client.get(f"/v1/models/{fields.get('model', 'm')}").json()["newest"]
        return version


@pytest.fixture
def run(client: TestClient, api: FastAPI, database: Database) -> Run:
    return Run(client, database, api.state.storage, [])


def weights(client: TestClient, features: int = 3, model: str = "m", ids: list[str] = IDS) -> np.ndarray:
    """Read the served weights back by predicting unit vectors."""
    columns = []
    for p in range(features):
        names = client.get(f"/v1/models/{model}").json()["newest"]["feature_names"]
        values = {name: [float(i == p)] * len(ids) for i, name in enumerate(names)}
        body = {"unique_id": ids, "features": values}
        columns.append(client.post(f"/v1/models/{model}/predict", json=body).json()["yhat"])
    return np.array(columns).T


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


def test_metrics_are_those_of_a_fit_on_the_earlier_half(run: Run, client: TestClient) -> None:
    add_series(client, content=sales_csv())
    version = run.trained(lags=2, holdout=0.5, fusion_strength=5.0, tolerance=1e-6)
    # 28 target days from the third on: the last 14 are held out.
    training, held_out = lagged(2, 16, lags=2), lagged(16, N_DAYS, lags=2)
    fitted = fit(training, fusion_strength=5.0, tolerance=1e-6).model
    residuals = held_out.y - fitted.predict(held_out.X, [IDS[t] for t in held_out.task_index])
    by_hand = np.sqrt((residuals.reshape(N_PRODUCTS, 14) ** 2).mean(axis=1)).mean()
    metrics = version["metrics"]
    assert metrics["rmse_mean_of_tasks"]["ccmtl"] == pytest.approx(by_hand, rel=1e-6)
    zero = np.sqrt((SALES[:, 16:] ** 2).mean(axis=1)).mean()
    assert metrics["rmse_mean_of_tasks"]["zero"] == pytest.approx(zero, rel=1e-9)
    assert set(metrics["rmse_mean_of_tasks"]) == {
        "ccmtl", "pooled", "single_task", "pooled_same_choices", "single_task_same_choices", "zero"
    }  # fmt: skip
    assert metrics["first_held_out"] == "2025-01-17T00:00:00"
    assert (metrics["n_train_rows"], metrics["n_test_rows"]) == (168, 168)
    assert metrics["n_tasks_scored"] == N_PRODUCTS


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


def test_without_holdout_there_are_no_metrics(run: Run, client: TestClient) -> None:
    add_series(client, content=sales_csv())
    version = run.trained(lags=3, holdout=None)
    assert version["metrics"] is None
    assert version["configuration"]["holdout"] is None


@pytest.mark.parametrize("strength", [2.0, [1.0, 2.0]])
def test_all_of_metrics_and_report_is_documented(run: Run, client: TestClient, strength: Any) -> None:
    add_series(client, content=sales_csv())
    version = run.trained(lags=2, fusion_strength=strength)
    detail = ModelVersionDetail.model_validate(version)
    assert detail.metrics is not None
    parts = [detail.metrics, detail.report, detail.report.rows, detail.report.not_forecast]
    parts += detail.report.history
    if isinstance(strength, list):
        assert detail.report.selection is not None
        parts.append(detail.report.selection)
    assert [part and part.model_extra for part in parts] == [{}] * len(parts)


def test_a_version_says_how_it_was_made(run: Run, client: TestClient) -> None:
    add_series(client, content=sales_csv(), aggregation="sum", fill={"method": "zero", "start": "series"})
    version = run.trained(fusion_strength=2)
    assert version["configuration"] == {
        "kind": "series",
        "frequency": "D",
        "aggregation": "sum",
        "fill": {"method": "zero", "start": "series"},
        "lags": 5,
        "fusion_strength": 2.0,
        "folds": None,
        "n_folds": 5,
        "rule": "best",
        "n_neighbors": 10,
        "fit_intercept": False,
        "loss_scaling": "none",
        "metric": "euclidean",
        "accept_gaps": False,
        "holdout": 0.5,
        "tolerance": 1e-4,
        "refit": True,
    }
    assert version["feature_names"] == ["lag_1", "lag_2", "lag_3", "lag_4", "lag_5"]
    assert version["n_tasks"] == N_PRODUCTS


def test_the_strength_is_chosen_on_the_rows_for_training_alone(run: Run, client: TestClient) -> None:
    add_series(client, content=sales_csv())
    version = run.trained(lags=2, fusion_strength="auto", n_folds=3, tolerance=1e-6)
    training = lagged(2, 16, lags=2)
    expected = ccmtl_core.select(training, folds="rolling", n_folds=3, tolerance=1e-6)
    chosen, report = version["report"]["selection"], version["report"]
    assert version["configuration"]["fusion_strength"] == "auto"
    assert report["fusion_strength"] == pytest.approx(expected.fusion_strength, rel=1e-6)
    assert chosen["fusion_strengths"] == pytest.approx(expected.fusion_strengths.tolist(), rel=1e-6)
    assert chosen["errors"] == pytest.approx(expected.errors.tolist(), rel=1e-2)
    assert chosen["fusion_strengths"][chosen["chosen"]] == report["fusion_strength"]
    assert chosen["largest_gap"] <= 1e-3
    assert (chosen["folds"], chosen["n_folds"], chosen["rule"]) == ("rolling", 3, "best")
    assert chosen["order"] == "time"
    assert set(chosen["rivals"]) == set(expected.rivals)
    for rival, errors in expected.rivals.items():
        assert chosen["rivals"][rival] == pytest.approx(errors.mean(), rel=1e-6)
    assert {"shrunk", "shrunk_same_choices"} < set(version["metrics"]["rmse_mean_of_tasks"])
    everything = fit(lagged(2, N_DAYS, lags=2), fusion_strength=report["fusion_strength"], tolerance=1e-6)
    assert np.allclose(weights(client, 2), everything.model.weights, atol=1e-4)
    error = version["metrics"]["rmse_mean_of_tasks"]["ccmtl"]
    held_out = SufficientStatistics.from_dataset(lagged(16, N_DAYS, lags=2))
    by_hand = np.sqrt(held_out.squared_error(expected.fit.model.weights) / held_out.n_samples).mean()
    assert error == pytest.approx(by_hand, rel=1e-4)


def test_a_report_says_where_a_plain_rival_did_better(run: Run, client: TestClient) -> None:
    add_series(client, content=sales_csv())
    # Nothing is shared at strength 0, and the series are noise about one level: pooled is better.
    lost = run.trained(lags=3, fusion_strength=[0, 1e-9], n_folds=2)
    folds, held_out, *_, to_try = lost["report"]["notes"]
    selection, errors = lost["report"]["selection"], lost["metrics"]["rmse_mean_of_tasks"]
    least = min(selection["rivals"].values())
    assert f"{least:.6g} against {selection['errors'][selection['chosen']]:.6g}" in folds
    assert f"{min(errors.values()):.6g} against {errors['ccmtl']:.6g}" in held_out
    assert "loss_scaling spread" in to_try
    assert "more or fewer lags" in to_try
    assert lost["report"]["advice"].endswith("needs nothing more. `notes` says what limits the model.")
    alone = run.trained(lags=3, fusion_strength=0, holdout=None)["report"]
    assert alone["notes"] == []
    assert alone["advice"] == SolveStatus.CONVERGED.advice


def test_a_report_says_what_was_left_out_and_who_cannot_be_forecast(run: Run, client: TestClient) -> None:
    whole, short = [f"p{t}" for t in range(8)], ["new", "gone"]
    days = [np.datetime64("2025-01-06") + 7 * week + day for week in range(26) for day in range(5)]
    rows = [f"{name},{day},{50 + t % 3}" for name in whole for t, day in enumerate(days)]
    rows += [f"{name},{day},1" for name in short for day in days[:3]]
    add_series(client, content="\n".join(["unique_id,ds,y", *rows]) + "\n")
    report = run.trained(lags=4, accept_gaps=True, fit_intercept=True)["report"]
    n_values = 8 * 130 + 2 * 3
    assert report["rows"] == {"values": n_values, "used": 8 * 26, "share": 8 * 26 / n_values}
    assert report["not_forecast"] == {"count": 2, "examples": ["gone", "new"]}
    assert f"Only {8 * 26} of {n_values} values (20%) could be trained on" in report["notes"][0]
    assert report["notes"][1].endswith("in their last 4 periods: 'gone', 'new'.")


def test_a_report_says_when_all_rows_were_used(run: Run, client: TestClient) -> None:
    add_regression(client)
    assert run.trained(dataset="rows")["report"]["rows"] == {"values": 16, "used": 16, "share": 1.0}
    add_series(client, content=sales_csv())
    report = run.trained(lags=3)["report"]
    assert report["rows"]["share"] == (N_DAYS - 3) / N_DAYS
    assert report["not_forecast"] == {"count": 0, "examples": []}


def test_a_job_that_chooses_tells_the_errors_of_strengths_as_they_come(
    run: Run, client: TestClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(progress, "MIN_SECONDS_BETWEEN", 0.0)
    add_series(client, content=sales_csv())
    run.trained(lags=2, fusion_strength=[1, 100, 10], n_folds=2, holdout=None)
    steps = [record["selection"] for record in run.records if record["selection"]]
    assert (steps[-1]["fits_done"], steps[-1]["fits"]) == (7, 7)
    assert steps[-1]["fusion_strengths"] == [1.0, 10.0, 100.0]
    (job,) = client.get("/v1/training-jobs").json()["items"]
    assert job["progress"]["selection"] == steps[-1]
    assert "selection" in job["progress"]["phases"]
    assert job["request"]["fusion_strength"] == [1.0, 100.0, 10.0]


def test_regression_rows_are_folded_at_random(run: Run, client: TestClient) -> None:
    add_regression(client)
    version = run.trained(dataset="rows", fusion_strength="auto", n_folds=2, rule="one_standard_error")
    chosen = version["report"]["selection"]
    assert (chosen["folds"], chosen["order"], chosen["rule"]) == ("random", None, "one_standard_error")
    assert chosen["errors"][0] == pytest.approx(chosen["rivals"]["single_task"], rel=1e-6)
    without = run.trained(dataset="rows", fusion_strength=[0, 1e6], n_folds=2, holdout=None)
    assert without["metrics"] is None
    assert without["report"]["fusion_strength"] in (0.0, 1e6)


@pytest.mark.parametrize("holdout", [None, 0.5])
@pytest.mark.parametrize(
    "other",
    [{"loss_scaling": "spread"}, {"loss_scaling": "spread", "metric": "mahalanobis"}],
)
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


def test_values_too_large_to_square_fail_in_words(run: Run, client: TestClient, database: Database) -> None:
    add_series(
        client,
        content=sales_csv().replace(f"{IDS[3]},2025-01-09,{SALES[3, 8]}", f"{IDS[3]},2025-01-09,1e200"),
    )
    client.post("/v1/training-jobs", json=job())
    with pytest.raises(DataError, match=IDS[3]):
        run()
    assert nothing_was_published(database)


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
    assert run.trained(lags=3)["n_tasks"] == N_PRODUCTS


def test_a_report_becomes_json() -> None:
    rows = lagged(3, N_DAYS)
    report = plain(fit(rows, fusion_strength=1.0).report)
    assert json.loads(json.dumps(report, allow_nan=False)) == report
    assert report["status"] == "converged"
    assert plain({"gap": float("nan"), "all": (1.5, float("inf"))}) == {"gap": None, "all": [1.5, None]}

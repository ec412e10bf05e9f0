"""What a version tells of its training: errors on held-out rows, the strength chosen, what was left out."""

from __future__ import annotations

import json
from datetime import date, timedelta
from typing import Any

import numpy as np
import pytest
from fastapi.testclient import TestClient

import ccmtl_core
from app.registry.schemas import ModelVersionDetail
from app.training import progress
from app.training.pipeline import plain
from ccmtl_core import SolveStatus, SufficientStatistics, fit
from tests.app.training.conftest import IDS, N_DAYS, N_PRODUCTS, SALES, Run, lagged, sales_csv, weights
from tests.support.database_kinds import quickly_on
from tests.support.training import add_regression, add_series


@quickly_on("sqlite")
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


@quickly_on("sqlite")
def test_without_holdout_there_are_no_metrics(run: Run, client: TestClient) -> None:
    add_series(client, content=sales_csv())
    version = run.trained(lags=3, holdout=None)
    assert version["metrics"] is None
    assert version["configuration"]["holdout"] is None


@pytest.mark.parametrize("strength", [2.0, [1.0, 2.0]])
@quickly_on("sqlite")
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
        "duplicates": "sum",
        "fill": {"method": "zero", "start": "series"},
        "lags": 5,
        "aim": "products",
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


@quickly_on("sqlite")
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


@quickly_on("sqlite")
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


@quickly_on("sqlite")
def test_a_report_says_what_was_left_out_and_who_cannot_be_forecast(run: Run, client: TestClient) -> None:
    whole, short = [f"p{t}" for t in range(8)], ["new", "gone"]
    days = [date(2025, 1, 6) + timedelta(7 * week + day) for week in range(26) for day in range(5)]
    rows = [f"{name},{day},{50 + t % 3}" for name in whole for t, day in enumerate(days)]
    rows += [f"{name},{day},1" for name in short for day in days[:3]]
    add_series(client, content="\n".join(["unique_id,ds,y", *rows]) + "\n")
    report = run.trained(lags=4, accept_gaps=True, fit_intercept=True)["report"]
    n_values = 8 * 130 + 2 * 3
    assert report["rows"] == {"values": n_values, "used": 8 * 26, "share": 8 * 26 / n_values}
    assert report["not_forecast"] == {"count": 2, "examples": ["gone", "new"]}
    assert f"Only {8 * 26} of {n_values:,} values (20%) could be trained on" in report["notes"][0]
    assert report["notes"][1].endswith("in their last 4 periods: 'gone', 'new'.")


@quickly_on("sqlite")
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


@quickly_on("sqlite")
def test_regression_rows_are_folded_at_random(run: Run, client: TestClient) -> None:
    add_regression(client)
    version = run.trained(dataset="rows", fusion_strength="auto", n_folds=2, rule="one_standard_error")
    chosen = version["report"]["selection"]
    assert (chosen["folds"], chosen["order"], chosen["rule"]) == ("random", None, "one_standard_error")
    assert chosen["errors"][0] == pytest.approx(chosen["rivals"]["single_task"], rel=1e-6)
    without = run.trained(dataset="rows", fusion_strength=[0, 1e6], n_folds=2, holdout=None)
    assert without["metrics"] is None
    assert without["report"]["fusion_strength"] in (0.0, 1e6)


def test_a_report_becomes_json() -> None:
    rows = lagged(3, N_DAYS)
    report = plain(fit(rows, fusion_strength=1.0).report)
    assert json.loads(json.dumps(report, allow_nan=False)) == report
    assert report["status"] == "converged"
    assert plain({"gap": float("nan"), "all": (1.5, float("inf"))}) == {"gap": None, "all": [1.5, None]}

"""What stands for an object in a notebook: one short line that says what is in it."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

import numpy as np
import polars as pl
import pytest

from ccmtl_core import (
    FitResult,
    FusionPath,
    Selection,
    SufficientStatistics,
    TaskDataset,
    TriangularStatistics,
    fit,
    fit_path,
    fusion_threshold,
    random_coefficients,
    select,
)
from ccmtl_core.data.synthetic import syn
from ccmtl_core.forecasting import SeriesPanel, lag_dataset

DATA = syn(np.random.default_rng(0), n_tasks=200, n_features=40, n_samples=90).dataset
PANEL = SeriesPanel(("a", "b"), [0, 3, 4], [1, 2, 3, 2], [1.0, 2.0, 3.0, 4.0], "D")
FEATURES = "40 features [x_1, x_2, x_3, x_4, x_5, …]"


@cache
def selection() -> Selection:
    return select(DATA, [0.0, 1.0, 1e4], n_folds=3)


@cache
def path() -> FusionPath:
    return fit_path(DATA, [0.0, 1e4])


def result() -> FitResult:
    return selection().fit


def statistics() -> TriangularStatistics:
    return TriangularStatistics.from_dataset(DATA)


@pytest.mark.parametrize(
    ("made", "said"),
    [
        (lambda: DATA, [f"TaskDataset(200 tasks, {FEATURES}, 18,000 rows, 90 per task)"]),
        (statistics, [f"TriangularStatistics(200 tasks, {FEATURES}, 18,000 rows)"]),
        (
            lambda: SufficientStatistics.from_dataset(DATA),
            [f"SufficientStatistics(200 tasks, {FEATURES}, 18,000 rows)"],
        ),
        (result, ["FitResult(200 tasks", "fusion_strength 1,", " groups, gap ", ", converged)"]),
        (lambda: result().model, [f"CCMTLModel(200 tasks, {FEATURES})"]),
        (lambda: result().report, ["SolveReport(converged, gap ", " of 0.0001, objective ", " rounds)"]),
        (selection, ["Selection(200 tasks", "fusion_strength 1 of 3, ", " on 3 random folds, best rival "]),
        (path, ["FusionPath(200 tasks, 2 fusion_strengths from 0 to 1e+04, 5 to 200 groups, largest gap "]),
        (lambda: path().points[0], ["PathPoint(fusion_strength 0, 200 groups, gap ", ", converged)"]),
        (lambda: random_coefficients(statistics()), ["RandomCoefficients(40 features, noise "]),
        (
            lambda: fusion_threshold(statistics(), result().graph),
            ["FusionThreshold(5 components, each fused from between "],
        ),
        (
            lambda: PANEL,
            ["SeriesPanel(2 series, 4 values, frequency D, 1970-01-02T00:00 to 1970-01-04T00:00)"],
        ),
        (
            lambda: lag_dataset(PANEL, 1),
            ["LaggedPanel(TaskDataset(2 tasks, 1 feature [lag_1], 2 rows, 0 to 2 per"],
        ),
    ],
)
def test_one_line_says_what_is_in_it(made: Callable[[], object], said: list[str]) -> None:
    line = repr(made())
    assert [part for part in said if part not in line] == [], line
    assert len(line) < 250
    assert "\n" not in line


def test_a_graph_tells_its_edges() -> None:
    graph = result().graph
    assert repr(graph) == f"TaskGraph(200 tasks, {len(graph.edges):,} edges)"


def test_intercepts_are_told() -> None:
    assert repr(fit(DATA, fusion_strength=1.0, fit_intercept=True).model).endswith(", with intercepts)")


def test_nothing_is_too_empty_to_be_shown() -> None:
    frame = pl.DataFrame(schema={"unique_id": pl.String, "ds": pl.Date, "y": pl.Float64})
    assert repr(SeriesPanel.from_frame(frame, "D")).startswith("SeriesPanel(0 series, 0 values")
    assert repr(TaskDataset(np.empty((0, 1)), np.empty(0), [0, 0], ("a",), ("x" * 80,))) == (
        f"TaskDataset(1 task, 1 feature [{'x' * 29}…], 0 rows, 0 per task)"
    )

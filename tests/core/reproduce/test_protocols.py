"""Protocols change rows by those for training, measure in the unit of the file, and are compared."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from ccmtl_core import TaskDataset
from ccmtl_core.reproduce import EXPERIMENTS, Cell, Report, draw
from ccmtl_core.reproduce.cells import run_cells
from ccmtl_core.reproduce.experiments import _of_protocols
from ccmtl_core.reproduce.protocols import Protocol
from ccmtl_core.reproduce.readers import Split, lagged, random_split
from ccmtl_core.reproduce.rivals import RIVALS
from ccmtl_core.statistics.sufficient_statistics import SufficientStatistics


def series() -> TaskDataset:
    rng = np.random.default_rng(0)
    return lagged(rng.poisson(np.array([[2.0], [20.0], [0.0]]), (3, 40)).astype(np.float64), ["a", "b", "c"])


def split(protocol: Protocol, data: TaskDataset | None = None) -> Split:
    return protocol.split(data or series(), 0.5, 5, np.random.default_rng(0))


def equal(a: SufficientStatistics, b: SufficientStatistics) -> bool:
    return all(
        np.allclose(getattr(a, name), getattr(b, name)) for name in ("gram", "xty", "yty", "n_samples")
    )


def test_the_protocol_of_the_tables_is_a_random_split() -> None:
    ours, theirs = split(Protocol()), random_split(series(), 0.5, 5, np.random.default_rng(0))
    assert equal(ours.training, theirs.training)
    assert equal(ours.held_out, theirs.held_out)
    assert all(equal(a, b) for a, b in zip(ours.folds, theirs.folds, strict=True))


def test_the_first_rows_of_each_task_train() -> None:
    data = series()
    first = np.arange(len(data.y)) % 30 < 15
    training, held_out = SufficientStatistics.by_fold(data, (~first).astype(np.int64), 2)
    found = split(Protocol(first_rows_train=True))
    assert equal(found.training, training)
    assert equal(found.held_out, held_out)


@pytest.mark.parametrize("divided_by", ["maximum", "spread"])
def test_dividing_changes_neither_least_squares_of_a_task_nor_the_unit_of_errors(divided_by: str) -> None:
    plain, divided = split(Protocol()), split(Protocol(divided_by=divided_by))
    assert divided.unit is not None
    weights = [s.training.least_squares.weights for s in (plain, divided)]
    np.testing.assert_allclose(*weights, atol=1e-9)
    errors = [s.held_out.squared_error(W) for s, W in zip((plain, divided), weights, strict=True)]
    np.testing.assert_allclose(errors[1] * divided.unit**2, errors[0], atol=1e-8)
    assert divided.unit[2] == 1.0  # a task of zeros


def test_the_maximum_and_the_spread_are_those_of_rows_for_training() -> None:
    data = series()
    first = np.arange(30) < 15
    for divided_by, size in (("maximum", lambda y: y.max()), ("spread", np.std)):
        found = split(Protocol(first_rows_train=True, divided_by=divided_by)).unit
        assert found is not None
        assert found[1] == pytest.approx(size(data.y[30:60][first]))


def test_centred_tasks_have_the_slopes_of_a_constant() -> None:
    centred, constant = (
        split(p).training.least_squares.weights for p in (Protocol(centred=True), Protocol(constant=True))
    )
    np.testing.assert_allclose(centred, constant[:, :5], atol=1e-8)


def test_a_feature_that_is_constant_in_each_task_is_zero_once_it_is_centred() -> None:
    data = series()
    constant = np.array([0.1, 0.7, 1.3])[data.task_index]
    longer = replace(data, X=np.column_stack([data.X, constant]), feature_names=tuple("abcdef"))
    found = split(Protocol(standardised=True, centred=True), longer)
    for statistics in (found.training, found.held_out):
        assert not statistics.gram[:, 5].any()


def test_standardised_features_have_no_mean_and_spread_one_where_they_vary() -> None:
    data = series()
    with_ones = replace(
        data, X=np.column_stack([data.X, np.ones(len(data.X))]), feature_names=tuple("abcdef")
    )
    training = split(Protocol(standardised=True), with_ones).training.pooled()
    n = float(training.n_samples[0])
    np.testing.assert_allclose(np.diag(training.gram[0]) / n, 1.0)
    np.testing.assert_allclose(training.gram[0][5, :5] / n, 0.0, atol=1e-9)


def test_a_protocol_sets_the_graph_and_whether_a_ridge_is_searched() -> None:
    protocol = Protocol(ridge=False, n_neighbors=3)
    assert protocol.rival(RIVALS["CCMTL"]).model.get_params()["n_neighbors"] == 3
    assert protocol.rival(RIVALS["ITL"]).grid(quick=False) == [{"ridge": 0.0}]
    assert RIVALS["CCMTL"].model.get_params()["n_neighbors"] == 10


def test_protocols_are_compared_in_one_table_with_the_papers_figures(tmp_path: Path) -> None:
    protocols = {"plain": Protocol(n_neighbors=2), "first": Protocol(first_rows_train=True, n_neighbors=2)}
    experiment = _of_protocols(
        "Small",
        EXPERIMENTS["syn"].source,
        lambda folder, n_lags: series(),
        0.5,
        EXPERIMENTS["sales"].score,
        protocols,
        {"STL": "9.9"},
    )
    cells = run_cells(
        experiment, tmp_path / "a.jsonl", folder=tmp_path, methods=("STL", "CCMTL"),
        settings=experiment.settings, repeats=2, quick=True, limit=60.0, on_cell=lambda *_: None,
    )  # fmt: skip
    assert [(cell.setting, cell.repeat) for cell in cells[::2]] == [("plain", 0), ("plain", 1), ("first", 0)]
    report = Report(experiment, cells)
    head, _, paper, plain, first = report.markdown().split("\n\n")[0].splitlines()
    assert head == "| mean RMSE of tasks | STL | CCMTL | CCMTL / STL |"
    assert paper == "| paper | 9.9 | – | – |"
    means = [report.values("plain", method).mean() for method in ("STL", "CCMTL")]
    assert plain.startswith("| plain | ")
    assert plain.endswith(f"| {means[1] / means[0]:.3f} |")
    assert first.startswith("| first | ")
    draw(report, tmp_path / "a.png")
    assert (tmp_path / "a.png").stat().st_size > 0


def test_a_stopped_protocol_has_no_ratio() -> None:
    cells = [Cell("least squares", 0, m, v, 1.0, 1.0, {}, True) for m, v in (("STL", 2.0), ("CCMTL", None))]
    assert (
        "| least squares | **2.000** | stopped | – |"
        in Report(EXPERIMENTS["sales-protocols"], cells).markdown()
    )

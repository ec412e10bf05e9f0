"""The comparison of models: whole and disjoint splits, choices that see no held-out row, honest bars."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from benchmarks.selection import data
from benchmarks.selection.data import PeriodRows, Split
from benchmarks.selection.models import (
    EXPECTED,
    FAIR,
    PARTS,
    PLAIN,
    WEIGHED,
    Tried,
    bars_of,
    compare,
    rows_of,
)
from ccmtl_core import SufficientStatistics, TaskDataset
from ccmtl_core.fitting.scoring import mean_of_task_rmse
from tests.support.real_data import DATA, needs

needs_data = needs(DATA)


@pytest.fixture(scope="module")
def split() -> Split:
    """Tasks with slopes in common and levels of their own."""
    rng = np.random.default_rng(0)
    X = [rng.standard_normal((60, 2)) for _ in range(20)]
    y = [x @ [1.0, -1.0] + 5.0 * rng.standard_normal() + rng.standard_normal(60) for x in X]
    rows = TaskDataset.from_arrays(X, y)
    *folds, held_out = SufficientStatistics.by_fold(rows, np.tile(np.arange(60) % 4, 20), 4)
    return Split(folds, held_out)


@pytest.fixture(scope="module")
def noisy_split() -> Split:
    """Tasks that share slopes, in periods of which every other one is ten times as noisy as the rest."""
    rng = np.random.default_rng(0)
    X, period = rng.standard_normal((20, 40, 2)), np.tile(np.arange(40), 20)
    noise = np.where(np.arange(40) % 2, 1.0, 10.0)
    y = (
        X @ [1.0, -1.0]
        + 0.3 * rng.standard_normal((20, 1)) * X[:, :, 0]
        + noise * rng.standard_normal((20, 40))
    )
    rows, fold = TaskDataset.from_arrays(X, y), period // 2 % 4
    *folds, held_out = SufficientStatistics.by_fold(rows, fold, 4)
    training = TaskDataset.from_arrays(*(a[:, fold[:40] < 3] for a in (X, y)))
    kept = fold < 3
    return Split(folds, held_out, PeriodRows(training, fold[kept], period[kept]))


def test_the_better_model_is_the_one_that_validates_best(split: Split) -> None:
    tried = compare(split, mean_of_task_rmse)
    parts = [name for name in PARTS if not name.endswith(WEIGHED)]
    assert set(tried) == {"pooled", "single task", "shrunk", EXPECTED, *parts, *FAIR, "better"}
    best = min(parts, key=lambda name: tried[name].validated)
    assert tried["better"] == Tried(tried[best].validated, tried[best].held_out, best)
    assert PARTS[best].fit_intercept
    assert tried["better"].held_out < 0.5 * tried["pooled"].held_out
    # The tasks differ in their levels alone: with the same intercepts the pooled model is as good.
    assert tried["pooled, same choices"].held_out == pytest.approx(tried["better"].held_out, rel=0.05)
    assert tried["better"].held_out == pytest.approx(1.0, rel=0.1)  # the noise itself
    assert [row["model"] for row in rows_of([tried, tried])] == list(tried)


def test_choices_do_not_depend_on_what_is_held_out(split: Split) -> None:
    other = Split(split.folds, replace(split.held_out, xty=-split.held_out.xty))
    one, two = compare(split, mean_of_task_rmse), compare(other, mean_of_task_rmse)
    for name in one:
        assert (one[name].chosen, one[name].validated) == (two[name].chosen, two[name].validated)
    assert one["better"].held_out != two["better"].held_out


def test_periods_are_weighed_by_the_rows_that_train(noisy_split: Split) -> None:
    rows = noisy_split.rows
    assert rows is not None
    part = rows.weighed(without=1)
    assert part.n_samples.tolist() == [20] * 20
    assert part.weight is not None
    other = rows.dataset.y.copy()
    other[rows.fold == 1] = 1e3
    changed = replace(rows.dataset, y=other)
    np.testing.assert_array_equal(replace(rows, dataset=changed).weighed(without=1).xty, part.xty)
    assert not np.array_equal(replace(rows, dataset=changed).weighed().xty, rows.weighed().xty)


def test_weighing_noisy_periods_validates_better(noisy_split: Split) -> None:
    tried = compare(noisy_split, mean_of_task_rmse)
    assert set(PARTS) < set(tried)
    assert tried[f"+ {WEIGHED}"].validated < tried[PLAIN].validated
    assert tried[f"{EXPECTED}, {WEIGHED}"].validated < tried[EXPECTED].validated
    assert tried["better"].chosen.endswith(WEIGHED)


def tried_with(better: float, shrunk: float, plain: float) -> dict[str, Tried]:
    errors = {"pooled": 9.0, "single task": 9.0, "shrunk": shrunk, PLAIN: plain, "better": better}
    errors |= dict.fromkeys(FAIR, 9.0)
    return {name: Tried(0.0, error, "") for name, error in errors.items()}


def test_bars_hold_the_nearest_rival_and_school_its_noise() -> None:
    bar, fair = bars_of("Sales", [tried_with(better=9.7, shrunk=9.8, plain=10.0)])
    assert not bar.met
    assert not fair.met
    assert bar.measured < 0
    bar, fair = bars_of("Sales", [tried_with(better=8.0, shrunk=9.8, plain=10.0)])
    assert bar.met
    assert fair.met
    assert bar.measured == pytest.approx(0.1)
    (bar,) = bars_of("School", [tried_with(better=10.0, shrunk=9.0, plain=10.0)])
    assert bar.met
    (bar,) = bars_of("School", [tried_with(better=10.5, shrunk=9.0, plain=10.0)])
    assert not bar.met


@needs_data
def test_sales_are_the_paper_s_rows_half_of_each_product_for_training() -> None:
    split = data.sales(DATA, 0)
    assert set(split.training.n_samples) == set(split.held_out.n_samples) == {21}
    assert split.training.n_tasks * 42 == 34_062
    assert sorted({int(n) for part in split.folds for n in part.n_samples}) == [4, 5]
    again, other = data.sales(DATA, 0), data.sales(DATA, 1)
    assert np.array_equal(split.training.xty, again.training.xty)
    assert not np.array_equal(split.training.xty, other.training.xty)


@needs_data
def test_walmart_is_in_units_of_each_series_own_naive_error() -> None:
    split = data.walmart(DATA)
    assert split.training.n_tasks == 2660
    assert set(split.held_out.n_samples) == {8}
    assert split.training.feature_names[-1] == "one"
    naive = np.zeros(9)
    naive[0] = 1.0  # last week's value, on training rows: about one by the choice of unit
    error = split.training.squared_error(naive) / split.training.n_samples
    assert 0.5 < np.median(error) < 1.5
    rows = split.rows
    assert rows is not None
    again = SufficientStatistics.by_fold(rows.dataset, rows.fold, len(split.folds))
    assert all(np.array_equal(a.xty, b.xty) for a, b in zip(again, split.folds, strict=True))
    assert set(rows.period) == set(range(90 - 8))  # weeks that are not held out


@needs_data
def test_a_fifth_of_the_pupils_of_each_school_is_for_training() -> None:
    split = data.school(DATA, 0.2, 0)
    total = split.training.n_samples + split.held_out.n_samples
    assert total.sum() == 15_362
    np.testing.assert_allclose(split.training.n_samples, 0.2 * total, atol=0.51)

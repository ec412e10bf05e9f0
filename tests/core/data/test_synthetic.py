"""Generated tasks have the stated structure, come again from the same seed, and scale."""

from __future__ import annotations

import numpy as np
import pytest

from ccmtl_core import ParameterError, TriangularStatistics
from ccmtl_core.data.synthetic import scale_syn, syn


def test_the_same_seed_gives_the_same_bits() -> None:
    one, other = (syn(np.random.default_rng(5)) for _ in range(2))
    assert one.dataset.X.tobytes() == other.dataset.X.tobytes()
    assert one.dataset.y.tobytes() == other.dataset.y.tobytes()
    assert one.dataset.y.tobytes() != syn(np.random.default_rng(6)).dataset.y.tobytes()


def test_spreads_are_those_asked_for() -> None:
    tasks = syn(
        np.random.default_rng(0),
        n_tasks=4000,
        n_features=5,
        n_samples=20,
        n_clusters=400,
        center_spread=3.0,
        task_spread=0.25,
        noise=0.5,
    )
    means = np.array([tasks.weights[tasks.cluster == c].mean(axis=0) for c in range(400)])
    assert means.std() == pytest.approx(3.0, rel=0.05)
    within = (tasks.weights - means[tasks.cluster]).std() / np.sqrt(0.9)
    assert within == pytest.approx(0.25, rel=0.05)
    error = TriangularStatistics.from_dataset(tasks.dataset).squared_error(tasks.weights)
    assert np.sqrt(error.sum() / len(tasks.dataset.y)) == pytest.approx(0.5, rel=0.02)


def test_clusters_differ_in_size_by_at_most_one() -> None:
    sizes = np.bincount(syn(np.random.default_rng(0), n_tasks=17, n_clusters=5).cluster)
    assert (sizes.min(), sizes.max()) == (3, 4)


def test_equal_tasks_when_nothing_spreads() -> None:
    tasks = syn(np.random.default_rng(0), n_clusters=1, task_spread=0.0, noise=0.0)
    assert (tasks.weights == tasks.weights[0]).all()


def test_the_large_set_has_the_shape_of_the_papers() -> None:
    tasks = scale_syn(np.random.default_rng(0), 1000)
    assert tasks.dataset.X.shape == (100_000, 10)
    assert np.bincount(tasks.cluster).tolist() == [100] * 10
    assert (tasks.dataset.n_samples == 100).all()


@pytest.mark.parametrize(
    "wrong", [{"n_tasks": 0}, {"n_samples": 0}, {"noise": -1.0}, {"center_spread": np.nan}]
)
def test_impossible_shapes_are_refused(wrong: dict[str, float]) -> None:
    with pytest.raises(ParameterError, match=next(iter(wrong))):
        syn(np.random.default_rng(0), **wrong)  # type: ignore[arg-type]
    with pytest.raises(ParameterError, match="tasks_per_cluster"):
        scale_syn(np.random.default_rng(0), 10, tasks_per_cluster=0)

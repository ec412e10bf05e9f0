"""Directions with and without data of each component, against the pooled Gram matrices themselves."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings

from ccmtl_core import TaskGraph
from ccmtl_core.solver.systems.pooled_spectrum import PooledSpectrum
from tests.core.fusion_problems import Instance, instances

property_test = settings(derandomize=True, max_examples=80)


def pooled(instance: Instance) -> np.ndarray:
    component, gram = instance.graph.component, instance.statistics.gram
    return np.array([gram[component == c].sum(axis=0) for c in range(instance.graph.n_components)])


@property_test
@given(instance=instances())
def test_null_directions_have_no_data_and_all_others_at_least_the_smallest(instance: Instance) -> None:
    spectrum = instance.spectrum
    assert spectrum.size.tolist() == np.bincount(instance.graph.component).tolist()
    for c, gram in enumerate(pooled(instance)):
        P = len(gram)
        null = np.zeros((P, P)) if spectrum.null is None else spectrum.null[c]
        assert null == pytest.approx(null.T, abs=1e-12)
        assert null @ null == pytest.approx(null, abs=1e-12)
        length = np.sqrt(np.diag(gram))
        unit = np.outer(np.where(length > 0, length, 1.0), np.where(length > 0, length, 1.0))
        rank = np.linalg.matrix_rank(gram / unit, tol=1e-11, hermitian=True)
        assert round(np.trace(null)) == P - rank
        # Lengths in the null space, each feature in its own unit: no data.
        assert np.abs(gram @ null / unit.max(axis=1)[:, None]).max() <= 1e-6 * max(length.max(), 1e-300)
        keep = np.linalg.eigh(np.eye(P) - null)[1][:, P - rank :]
        if rank:
            assert spectrum.smallest[c] <= np.linalg.eigvalsh(keep.T @ gram @ keep).min() * (1 + 1e-6) + (
                1e-14 * np.trace(gram)
            )
            assert spectrum.smallest[c] > 0
        else:
            assert spectrum.smallest[c] == np.inf


@property_test
@given(instance=instances())
def test_remove_null_takes_only_the_common_part(instance: Instance) -> None:
    rng = np.random.default_rng(0)
    x = rng.standard_normal((instance.n_tasks, instance.n_features))
    y = x.copy()
    instance.spectrum.remove_null(y)
    taken = x - y
    for c in range(instance.graph.n_components):
        part = taken[instance.graph.component == c]
        assert part == pytest.approx(np.tile(part[0], (len(part), 1)), abs=1e-12)
        if instance.spectrum.null is not None:
            left = instance.spectrum.null[c] @ y[instance.graph.component == c].mean(axis=0)
            assert left == pytest.approx(np.zeros(len(left)), abs=1e-12)


def test_means_of_components() -> None:
    graph = TaskGraph([[0, 2]], [1], n_tasks=3)
    spectrum = PooledSpectrum.of(np.ones((3, 1, 1)), graph.component, graph.n_components)
    assert spectrum.mean(np.array([[1.0], [5.0], [3.0]])).tolist() == [[2.0], [5.0]]
    assert spectrum.null is None
    assert spectrum.smallest == pytest.approx([2.0, 1.0])

"""Parts of one pass: even, complete, and with the same result on any number of threads."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numba import config
from threadpoolctl import threadpool_info, threadpool_limits

from ccmtl_core import ModelChoices, SufficientStatistics, select
from ccmtl_core.base import threads
from ccmtl_core.base.threads import one_blas_thread, sharing, slices
from ccmtl_core.solver import dual_ascent
from ccmtl_core.solver.dual_ascent import DualAscent, Inverse
from ccmtl_core.statistics import task_statistics
from tests.core.fusion_problems import random_graph, regular


@given(n=st.integers(0, 1000), n_parts=st.integers(1, 9))
def test_parts_cover_everything_once_and_evenly(n: int, n_parts: int) -> None:
    parts = slices(n, n_parts)
    assert [i for part in parts for i in range(n)[part]] == list(range(n))
    sizes = [part.stop - part.start for part in parts]
    assert max(sizes) - min(sizes) <= 1


@pytest.mark.parametrize("n_threads", [1, 2])
def test_results_come_in_order_and_errors_come_through(
    n_threads: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(config, "NUMBA_NUM_THREADS", n_threads)
    with sharing(3) as share:
        assert share(lambda part: 10 * part, [3, 1, 2]) == [30, 10, 20]
        with pytest.raises(ZeroDivisionError):
            share(lambda part: 1 / part, [1, 0])


@pytest.fixture
def no_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    """As in a process that has not limited BLAS yet, as that of the tests has."""
    monkeypatch.setattr(threads, "_BLAS_LIMIT", threads._BlasLimit())


def blas_threads() -> set[int]:
    return {pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas"}


@pytest.mark.usefixtures("no_limit")
def test_blas_has_one_thread_until_the_last_of_overlapping_uses_ends() -> None:
    with threadpool_limits(limits=2, user_api="blas"):
        before = blas_threads()
        first, second = one_blas_thread(), one_blas_thread()
        first.__enter__()
        second.__enter__()
        first.__exit__(None, None, None)
        assert blas_threads() == {1}
        second.__exit__(None, None, None)
        assert blas_threads() == before


@pytest.mark.usefixtures("no_limit")
def test_a_selection_has_one_blas_thread_from_the_metric_to_the_rivals(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    seen: list[set[int]] = []
    prepare = ModelChoices.prepare
    monkeypatch.setattr(
        ModelChoices, "prepare", lambda *args: (seen.append(blas_threads()), prepare(*args))[1]
    )
    data = regular(np.random.default_rng(0), random_graph(np.random.default_rng(1), 9, 0.3), 3).dataset
    with threadpool_limits(limits=2, user_api="blas"):
        select(data, n_folds=2, n_neighbors=3)
    assert len(seen) == 5
    assert all(limited == {1} for limited in seen)


def test_shared_steps_do_not_depend_on_the_number_of_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    instance = regular(np.random.default_rng(0), random_graph(np.random.default_rng(1), 40, 0.3), 3)
    problem = instance.with_strength(2.0).problem
    inverse = Inverse.of(problem)
    assert inverse is not None

    def climbed() -> DualAscent:
        state = DualAscent(problem, inverse)
        state.climb(20)
        return state

    alone = climbed()
    monkeypatch.setattr(dual_ascent, "WORTH_SHARING", 1)
    flows = []
    for n_threads in (1, 2):
        monkeypatch.setattr(config, "NUMBA_NUM_THREADS", n_threads)
        flows.append(climbed().flows)
    assert flows[0].tobytes() == flows[1].tobytes()
    assert flows[0] == pytest.approx(alone.flows, rel=1e-9, abs=1e-12)


def test_shared_passes_over_rows_give_the_same_statistics(monkeypatch: pytest.MonkeyPatch) -> None:
    dataset = regular(np.random.default_rng(0), random_graph(np.random.default_rng(1), 9, 0.3), 3).dataset
    alone = SufficientStatistics.from_dataset(dataset)
    monkeypatch.setattr(task_statistics, "WORTH_SHARING", 1)
    monkeypatch.setattr(config, "NUMBA_NUM_THREADS", 2)
    shared = SufficientStatistics.from_dataset(dataset)
    for name in ("gram", "xty", "yty", "x_sum", "y_sum"):
        assert getattr(alone, name).tobytes() == getattr(shared, name).tobytes()

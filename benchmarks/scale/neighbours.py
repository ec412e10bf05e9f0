"""Measure our search for neighbours among the weights of many tasks, beside SciPy's k-d tree.

Both find the ten nearest others of every point, on the same number of threads (``NUMBA_NUM_THREADS``). The
tree is asked for the points as they come, and in its own order, in which one search finds in the cache what
the search before it read.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import partial
from pathlib import Path

import numpy as np
from numba import config
from scipy.spatial import KDTree

from benchmarks.report import Bar, Row, Section, step
from benchmarks.scale.many_tasks import SPREADS
from benchmarks.solver import ta_feng
from benchmarks.stopwatch import best_of
from ccmtl_core import SufficientStatistics, single_task_weights
from ccmtl_core.base.types import FloatArray, IntArray
from ccmtl_core.data.synthetic import scale_syn
from ccmtl_core.graph.leaf_search import nearest_by_leaves
from examples.ta_feng import NotToBeHad

N_TASKS = 40_000
K = 11  # ten, and the point itself
LEAFSIZE = 32
LEAST_RATIO = 2.0  # in a cloud; where a tree is as fast, our search is not worth its lines


def measure(folder: Path, n_tasks: int = N_TASKS) -> Section:
    """Search Ta-Feng's weights, if its file can be had, and those of tasks in clusters and in one cloud."""
    rows = [compare(name, points) for name, points in _sets(folder, n_tasks)]
    bar = Bar("overlapping: tree over blocks", rows[-1]["tree / blocks"], LEAST_RATIO, at_least=True)
    notes = [
        "Processor seconds where nothing else is said; the ratio is that of the faster of the two trees."
    ]
    return Section({f"{K - 1} nearest others of each point": rows}, [bar], notes)


def _sets(folder: Path, n_tasks: int) -> Iterator[tuple[str, FloatArray]]:
    """The overlapping set comes last."""
    with suppress(NotToBeHad):
        yield "Ta-Feng", np.unique(single_task_weights(ta_feng.read(folder)), axis=0)
    for name, spread in SPREADS.items():
        dataset = scale_syn(np.random.default_rng(0), n_tasks, center_spread=spread).dataset
        yield name, single_task_weights(SufficientStatistics.from_dataset(dataset))


def compare(name: str, points: FloatArray) -> Row:
    """Time our search and both ways to ask the tree on one set of points."""
    step(f"  {len(points):,} points: {name}")
    nearest_by_leaves(points[:1000], K)  # load the compiled kernels
    searches: dict[str, Callable[[], IntArray]] = {
        "blocks": partial(nearest_by_leaves, points, K),
        "tree": partial(_by_tree, points),
        "tree, in its order": partial(_by_tree_in_order, points),
    }
    timed = {way: best_of(1, search) for way, search in searches.items()}
    cpu = {way: seconds.cpu for way, (_, seconds) in timed.items()}
    found = {way: np.sort(neighbours, axis=1) for way, (neighbours, _) in timed.items()}
    return {
        "points of": name,
        "points": len(points),
        "features": points.shape[1],
        **cpu,
        **{f"{way}, wall": seconds.wall for way, (_, seconds) in timed.items()},
        "tree / blocks": min(cpu["tree"], cpu["tree, in its order"]) / cpu["blocks"],
        "rows that differ": int((found["tree"] != found["blocks"]).any(axis=1).sum()),
    }


def _by_tree(points: FloatArray) -> IntArray:
    return np.asarray(KDTree(points, LEAFSIZE).query(points, K, workers=_n_threads())[1], dtype=np.int64)


def _by_tree_in_order(points: FloatArray) -> IntArray:
    tree, found = KDTree(points, LEAFSIZE), np.empty((len(points), K), dtype=np.int64)
    found[tree.indices] = tree.query(points[tree.indices], K, workers=_n_threads())[1]
    return found


def _n_threads() -> int:
    threads: int = config.NUMBA_NUM_THREADS  # type: ignore[attr-defined] # made at run time
    return threads

"""Generate regression tasks in clusters: the synthetic sets Syn and ScaleSyn of the paper.

Tasks of one cluster share a centre (He et al., AAAI 2019, section "Synthetic datasets"):
centre ~ N(0, center_spread² I), w_t = centre + N(0, task_spread² I), x ~ N(0, I),
y = x · w_t + N(0, noise²).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from ccmtl_core.base.arguments import check_integer
from ccmtl_core.base.exceptions import ParameterError
from ccmtl_core.base.types import FloatArray, IntArray
from ccmtl_core.data.task_dataset import TaskDataset


class SyntheticTasks(NamedTuple):
    """Generated tasks with the truth behind them: weights w_t (T, P), and the cluster of each task (T,)."""

    dataset: TaskDataset
    weights: FloatArray
    cluster: IntArray


def syn(
    rng: np.random.Generator,
    *,
    n_tasks: int = 50,
    n_features: int = 15,
    n_samples: int = 30,
    n_clusters: int = 5,
    center_spread: float = 5.0,
    task_spread: float = 0.5,
    noise: float = 1.0,
) -> SyntheticTasks:
    """Generate few tasks in clusters, with few samples each.

    Tasks are dealt to the clusters in turn, so that sizes differ by at most one. A small ``center_spread``
    lets clusters overlap; ``task_spread`` 0 makes the tasks of a cluster equal.

    Raises
    ------
    ParameterError
        A count below 1 or a negative spread.

    Examples
    --------
    >>> tasks = syn(np.random.default_rng(0), n_tasks=4, n_features=2, n_samples=3, n_clusters=2)
    >>> tasks.dataset.X.shape, tasks.cluster
    ((12, 2), array([0, 1, 0, 1]))
    """
    counts = {"n_tasks": n_tasks, "n_features": n_features, "n_samples": n_samples, "n_clusters": n_clusters}
    spreads = {"center_spread": center_spread, "task_spread": task_spread, "noise": noise}
    for name, count in counts.items():
        check_integer(count, name, least=1)
    for name, spread in spreads.items():
        if not (np.isfinite(spread) and spread >= 0):
            raise ParameterError(f"{name} must be finite and not negative, not {spread}")
    centers = center_spread * rng.standard_normal((n_clusters, n_features))
    cluster = np.arange(n_tasks) % n_clusters
    weights = centers[cluster] + task_spread * rng.standard_normal((n_tasks, n_features))
    X = rng.standard_normal((n_tasks * n_samples, n_features))
    y = np.matmul(X.reshape(n_tasks, n_samples, n_features), weights[:, :, None]).ravel()
    y += noise * rng.standard_normal(len(y))
    task_ids = tuple(f"task_{t}" for t in range(n_tasks))
    names = tuple(f"x_{p + 1}" for p in range(n_features))
    offsets = np.arange(n_tasks + 1) * n_samples
    return SyntheticTasks(TaskDataset(X, y, offsets, task_ids, names), weights, cluster)


def grouped_syn(
    rng: np.random.Generator,
    *,
    n_groups: int = 3,
    tasks_per_group: int = 10,
    n_samples: int = 100,
    group_spread: float = 1.5,
    task_spread: float = 0.15,
    noise: float = 1.0,
) -> SyntheticTasks:
    """Generate tasks in groups, of which each has five features of its own: the set Syn of the tables.

    Group g weighs the features 5g to 5g + 4 by N(0, group_spread²), the same in all its tasks; to this each
    task adds N(0, task_spread²) on all features. x ~ N(0, 1) and y = x · w_t + N(0, noise²).

    Returns
    -------
    SyntheticTasks
        By default 30 tasks of 15 features and 100 rows.

    Examples
    --------
    >>> tasks = grouped_syn(np.random.default_rng(0), tasks_per_group=2, n_samples=4)
    >>> tasks.dataset.X.shape, tasks.cluster
    ((24, 15), array([0, 1, 2, 0, 1, 2]))
    """
    check_integer(n_groups, "n_groups", least=1)
    n_features, n_tasks = 5 * n_groups, n_groups * tasks_per_group
    drawn = syn(
        rng,
        n_tasks=n_tasks,
        n_features=n_features,
        n_samples=n_samples,
        n_clusters=n_groups,
        center_spread=0.0,
        task_spread=task_spread,
        noise=noise,
    )
    own = np.arange(n_features)[None] // 5 == drawn.cluster[:, None]
    centers = group_spread * rng.standard_normal(n_features) * own
    data = drawn.dataset
    y = data.y + np.einsum("np,np->n", data.X, centers[data.task_index])
    dataset = TaskDataset(data.X, y, data.offsets, data.task_ids, data.feature_names)
    return SyntheticTasks(dataset, drawn.weights + centers, drawn.cluster)


def scale_syn(
    rng: np.random.Generator,
    n_tasks: int,
    *,
    n_features: int = 10,
    n_samples: int = 100,
    tasks_per_cluster: int = 100,
    center_spread: float = 5.0,
    task_spread: float = 0.1,
    noise: float = 1.0,
) -> SyntheticTasks:
    """Generate many tasks in clusters of a fixed size: the set on which run time is measured.

    As :func:`syn`; a ``center_spread`` near ``task_spread`` joins all tasks in one component of the graph.

    Examples
    --------
    >>> tasks = scale_syn(np.random.default_rng(0), 250, n_samples=4)
    >>> tasks.dataset.n_tasks, int(tasks.cluster.max()) + 1
    (250, 3)
    """
    check_integer(tasks_per_cluster, "tasks_per_cluster", least=1)
    return syn(
        rng,
        n_tasks=n_tasks,
        n_features=n_features,
        n_samples=n_samples,
        n_clusters=max(1, -(-n_tasks // tasks_per_cluster)),
        center_spread=center_spread,
        task_spread=task_spread,
        noise=noise,
    )

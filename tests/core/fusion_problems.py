"""Small fusion problems for tests: random ones with every kind of trouble, and graphs of every shape."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from hypothesis import strategies as st

from ccmtl_core import SufficientStatistics, TaskDataset, TaskGraph, TriangularStatistics
from ccmtl_core.solver.certificate import Certifier
from ccmtl_core.solver.objective import FusionProblem
from ccmtl_core.solver.systems.multigrid import Multigrid
from ccmtl_core.solver.systems.pooled_spectrum import PooledSpectrum

Statistics = SufficientStatistics | TriangularStatistics


@dataclass(frozen=True, eq=False)
class Instance:
    """Rows of each task, a graph and a strength."""

    X: tuple[np.ndarray, ...]
    y: tuple[np.ndarray, ...]
    graph: TaskGraph
    strength: float

    @cached_property
    def dataset(self) -> TaskDataset:
        return TaskDataset.from_arrays(self.X, self.y)

    @cached_property
    def statistics(self) -> SufficientStatistics:
        return SufficientStatistics.from_dataset(self.dataset)

    @cached_property
    def problem(self) -> FusionProblem:
        return FusionProblem(self.statistics.quadratic, self.graph, self.strength)

    @cached_property
    def spectrum(self) -> PooledSpectrum:
        graph = self.graph
        return PooledSpectrum.of(self.statistics.gram, graph.component, graph.n_components)

    @cached_property
    def multigrid(self) -> Multigrid:
        return Multigrid(self.graph.edges, self.statistics.gram, self.spectrum)

    @cached_property
    def certifier(self) -> Certifier:
        return Certifier(self.problem, self.multigrid, self.spectrum)

    @property
    def n_tasks(self) -> int:
        return len(self.X)

    @property
    def n_features(self) -> int:
        return self.X[0].shape[1]

    def objective(self, W: np.ndarray) -> float:
        """J(W) from the rows, in extended precision."""
        W = W.astype(np.longdouble)
        loss = sum((((x * w).sum(axis=1) - y) ** 2).sum() for x, y, w in zip(self.X, self.y, W, strict=True))
        i, j = self.graph.edges.T
        lengths = np.sqrt(((W[i] - W[j]) ** 2).sum(axis=1))
        return float((loss + self.strength * (self.graph.multiplicity * lengths).sum()) / 2)

    def rounding(self, W: np.ndarray) -> float:
        """How far rounding can move J(W), and its least value, when they come from the statistics."""
        fits = self.statistics.least_squares
        D = np.abs(W - fits.weights)
        loss = np.einsum("tp,tpq,tq->", D, np.abs(self.statistics.gram), D)
        i, j = self.graph.edges.T
        penalty = self.problem.radius @ (np.abs(W[i]) + np.abs(W[j])).sum(axis=1)
        error = 4 * np.finfo(float).eps * (loss + penalty + 8 * self.statistics.total_yty)
        return float(error + fits.residual_error.sum())

    def with_strength(self, strength: float) -> Instance:
        return replace(self, strength=strength)


def regular(rng: np.random.Generator, graph: TaskGraph, P: int, n: int = 12, noise: float = 0.5) -> Instance:
    """Tasks in three clusters, each with more rows than features: the optimum is unique."""
    centres = 2.0 * rng.standard_normal((3, P))
    W = centres[rng.integers(0, 3, graph.n_tasks)] + 0.2 * rng.standard_normal((graph.n_tasks, P))
    X = tuple(rng.standard_normal((n, P)) for _ in W)
    y = tuple(x @ w + noise * rng.standard_normal(n) for x, w in zip(X, W, strict=True))
    return Instance(X, y, graph, 1.0)


def random_graph(rng: np.random.Generator, T: int, share: float) -> TaskGraph:
    """Each pair with probability ``share``, once or twice."""
    pairs = np.argwhere(np.triu(np.ones((T, T)), 1))
    edges = pairs[rng.random(len(pairs)) < share]
    return TaskGraph(edges, rng.integers(1, 3, len(edges)), T)


def troubled(
    rng: np.random.Generator, max_tasks: int = 6, max_features: int = 3, wild: bool = False
) -> Instance:
    """Tasks that may be empty, short, equal to another or collinear; wild: on scales far apart."""
    P = int(rng.integers(1, max_features + 1))
    scale = 10.0 ** rng.uniform(-6, 6, P) if wild else np.ones(P)
    centres = rng.standard_normal((2, P))
    noise = rng.choice([0.01, 0.1, 1.0])
    X: list[np.ndarray] = []
    y: list[np.ndarray] = []
    for _ in range(rng.integers(1, max_tasks + 1)):
        if X and rng.random() < 0.25:
            twin = rng.integers(0, len(X))
            X.append(X[twin].copy())
            y.append(y[twin].copy())
            continue
        x = rng.standard_normal((rng.choice([0, 1, 2, 3, 8]), P))
        if P > 1 and rng.random() < 0.3:
            x[:, -1] = x[:, :-1].sum(axis=1)
        if rng.random() < 0.1:
            x[:, 0] = 0.0
        weights = centres[rng.integers(0, 2)] + 0.3 * rng.standard_normal(P)
        own_scale = 10.0 ** rng.uniform(-4, 4) if wild and rng.random() < 0.5 else 1.0
        X.append(x * scale * own_scale)
        y.append(x @ weights + noise * rng.standard_normal(len(x)))
    graph = random_graph(rng, len(X), rng.choice([0.3, 0.6, 1.0]))
    pull = [np.linalg.norm(x.T @ target) for x, target in zip(X, y, strict=True) if len(x)]
    strength = 10.0 ** rng.uniform(-4, 4) * (np.median(pull) if pull else 1.0)
    return Instance(tuple(X), tuple(y), graph, float(strength))


@st.composite
def instances(draw: st.DrawFn, max_tasks: int = 6, max_features: int = 3, wild: bool = True) -> Instance:
    """Any of :func:`troubled`; with ``wild``, half of them on wild scales."""
    rng = np.random.default_rng(draw(st.integers(0, 2**32)))
    return troubled(rng, max_tasks, max_features, wild and draw(st.booleans()))


def chain(T: int) -> TaskGraph:
    return TaskGraph(np.stack([np.arange(T - 1), np.arange(1, T)], axis=1), np.ones(T - 1), T)


def star(T: int) -> TaskGraph:
    return TaskGraph(np.stack([np.zeros(T - 1), np.arange(1, T)], axis=1), np.ones(T - 1), T)


def complete(T: int) -> TaskGraph:
    edges = np.argwhere(np.triu(np.ones((T, T)), 1))
    return TaskGraph(edges, np.full(len(edges), 2), T)


def disconnected(T: int) -> TaskGraph:
    """Chains of three, single tasks between them."""
    edges = [(i, i + 1) for i in range(T - 1) if i % 4 < 2]
    return TaskGraph(edges, np.ones(len(edges)), T)


def hubs(T: int) -> TaskGraph:
    """Every task tied to some of a few hubs, hubs to each other, and some tasks to the next."""
    rng = np.random.default_rng(T)
    n_hubs = max(2, T // 50)
    source = [np.arange(n_hubs, T)] * 3 + [np.arange(n_hubs - 1), np.arange(n_hubs, T - 1, 5)]
    target = [rng.integers(0, n_hubs, T - n_hubs) for _ in range(3)]
    target += [np.arange(1, n_hubs), np.arange(n_hubs + 1, T, 5)[: len(source[-1])]]
    return TaskGraph.from_directed(np.concatenate(source), np.concatenate(target), T)


GRAPHS = {"chain": chain, "star": star, "complete": complete, "disconnected": disconnected, "hubs": hubs}

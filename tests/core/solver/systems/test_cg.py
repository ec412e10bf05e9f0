"""Conjugate gradients: exact in as many steps as eigenvalues, monotone, honest about how they end."""

from __future__ import annotations

import numpy as np
import pytest

from ccmtl_core.solver.systems.cg import flexible_cg


def spd(rng: np.random.Generator, values: np.ndarray) -> np.ndarray:
    Q, _ = np.linalg.qr(rng.standard_normal((len(values), len(values))))
    return (Q * values) @ Q.T


def same(r: np.ndarray) -> np.ndarray:
    return r


@pytest.mark.parametrize("n_values", [1, 2, 5])
def test_takes_as_many_steps_as_there_are_eigenvalues(n_values: int) -> None:
    rng = np.random.default_rng(n_values)
    A = spd(rng, np.resize(10.0 ** np.arange(n_values), 12))
    b = rng.standard_normal((12, 1))
    solved = flexible_cg(lambda x: A @ x, same, b, rtol=1e-9)
    assert solved.converged
    assert solved.iterations in (n_values, n_values + 1)  # rounding may ask for one more
    assert solved.x == pytest.approx(np.linalg.solve(A, b), rel=1e-7)
    assert solved.residual == pytest.approx(b - A @ solved.x, abs=1e-8)


def test_a_preconditioner_that_changes_costs_few_steps() -> None:
    rng = np.random.default_rng(0)
    A = spd(rng, np.logspace(0, 4, 60))
    C = np.linalg.cholesky(np.linalg.inv(A))

    def rough(r: np.ndarray) -> np.ndarray:
        return C @ (np.exp(0.3 * rng.standard_normal(60)) * (C.T @ r))

    solved = flexible_cg(lambda x: A @ x, rough, np.ones(60), rtol=1e-10, max_iterations=40)
    assert solved.converged, "conjugate gradients that are not flexible need a hundred"
    assert A @ solved.x == pytest.approx(np.ones(60), abs=1e-7)


def test_every_step_lowers_the_energy() -> None:
    rng = np.random.default_rng(1)
    A, b, x = spd(rng, np.logspace(-3, 3, 20)), rng.standard_normal(20), rng.standard_normal(20)
    start = x.copy()
    energies = [0.5 * x @ A @ x - b @ x]
    for steps in range(1, 15):
        x = flexible_cg(lambda x: A @ x, same, b, x0=start, rtol=1e-12, max_iterations=steps).x
        energies.append(0.5 * x @ A @ x - b @ x)
    assert (np.diff(energies) < 0).all()
    assert start.tolist() != x.tolist(), "the start is copied"


def test_singular_systems_are_solved_on_their_range() -> None:
    A = np.diag([2.0, 1.0, 0.0])
    solved = flexible_cg(lambda x: A @ x, same, np.array([2.0, 3.0, 0.0]), rtol=1e-12)
    assert solved.converged
    assert solved.x == pytest.approx([1.0, 3.0, 0.0])


def test_an_empty_direction_ends_the_solve() -> None:
    A = np.diag([1.0, 0.0])
    solved = flexible_cg(lambda x: A @ x, same, np.array([0.0, 1.0]), rtol=1e-12)
    assert not solved.converged
    assert solved.x.tolist() == [0.0, 0.0]
    assert solved.residual.tolist() == [0.0, 1.0]


def test_says_when_the_steps_run_out() -> None:
    A = np.diag(np.arange(1.0, 21.0))
    solved = flexible_cg(lambda x: A @ x, same, np.ones(20), rtol=1e-12, max_iterations=3)
    assert (solved.converged, solved.iterations) == (False, 3)
    exact = flexible_cg(lambda x: A @ x, same, np.ones(20), rtol=1e-12, max_iterations=20)
    assert (exact.converged, exact.iterations) == (True, 20)


def test_nothing_to_do_at_the_solution() -> None:
    A = np.diag([1.0, 2.0])
    x = np.array([1.0, 1.0])
    solved = flexible_cg(lambda x: A @ x, same, A @ x, x0=x, rtol=1e-3)
    assert (solved.converged, solved.iterations, solved.x.tolist()) == (True, 0, [1.0, 1.0])


def test_an_absolute_goal_ends_it_too() -> None:
    A = np.diag([1.0, 100.0])
    loose = flexible_cg(lambda x: A @ x, same, np.array([1e-3, 1e-3]), rtol=0.0, atol=1e-2)
    assert (loose.converged, loose.iterations) == (True, 0)

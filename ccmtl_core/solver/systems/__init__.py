"""The solvers' linear systems: conjugate gradients, preconditioned by multigrid."""

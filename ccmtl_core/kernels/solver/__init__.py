"""Loops of the solvers over tasks and edges."""

"""Fusion problems in, times of the solver beside those of its rivals out: ``python -m benchmarks.solver``."""

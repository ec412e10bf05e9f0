"""The solver's times beside those of other ways to the same optimum: ``python -m benchmarks.solver``."""

"""What many tasks, many rows and new rows cost: ``python -m benchmarks.scale``."""

"""The nearest-neighbour graph of the tasks."""

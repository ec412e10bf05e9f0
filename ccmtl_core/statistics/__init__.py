"""Sufficient statistics of the rows of each task, and what follows from them without the rows."""

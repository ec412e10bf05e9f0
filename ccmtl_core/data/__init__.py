"""Rows of many tasks: the validated dataset, blocks of rows, weights of rows, invented data."""

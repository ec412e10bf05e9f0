"""Loops over rows and blocks of statistics."""

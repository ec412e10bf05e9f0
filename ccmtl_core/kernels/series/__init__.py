"""Compiled loops over series."""

"""Repeatable measurements, run by `make bench`; each prints what it measured and how."""

"""Loops compiled by numba, and the vectors in registers that they are written in."""

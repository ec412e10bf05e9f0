"""Read a list of names with commas between them."""

from __future__ import annotations

import csv


def listed(names: str) -> list[str]:
    """Split names as a line of CSV: one that has a comma itself is quoted.

    Examples
    --------
    >>> listed('price, "sold, online"')
    ['price', 'sold, online']
    """
    return next(csv.reader([names], skipinitialspace=True), [])

"""Lists of names and numbers on the command line."""

from __future__ import annotations

import csv

import typer


def listed(names: str) -> list[str]:
    """Split names as a line of CSV: one that has a comma itself is quoted.

    Examples
    --------
    >>> listed('price, "sold, online"')
    ['price', 'sold, online']
    """
    return next(csv.reader([names], skipinitialspace=True), [])


def levels(text: str) -> str:
    """Return the text; refuse what is no list of numbers from 1 to 99."""
    return _within(text, 1.0, 99.0, "80,95")


def quantiles(text: str) -> str:
    """Return the text; refuse what is no list of numbers from 0.005 to 0.995."""
    return _within(text, 0.005, 0.995, "0.1,0.9")


def _within(text: str, least: float, most: float, example: str) -> str:
    try:
        if all(least <= number <= most for number in numbers(text)):
            return text
    except ValueError:
        pass
    raise typer.BadParameter(f"{text!r} is no list of numbers from {least:g} to {most:g}, such as {example}")


def numbers(text: str) -> list[float]:
    """Return the numbers between commas."""
    return [float(part) for part in text.split(",")] if text else []

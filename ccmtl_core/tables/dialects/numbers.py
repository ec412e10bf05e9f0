"""Read numbers as people write them: decimal commas, marks between thousands, negatives in brackets."""

from __future__ import annotations

import re
from dataclasses import dataclass

import polars as pl

SPACES = " \u00a0\u202f\u2009"
APOSTROPHES = "'’"
INDIAN = "[0-9]{1,2}(?:,[0-9]{2})+,[0-9]{3}"
"""A pattern of whole numbers with commas after thousands, lakhs and crores."""
MINUS = "−–"
"""Signs that stand for the hyphen before a number."""
CURRENCIES = "$€£¥₹₩₽₺฿"
"""Signs that are taken off where all numbers of a file have the same one, or none."""


@dataclass(frozen=True)
class NumberStyle:
    """How the numbers of a column are written.

    Examples
    --------
    >>> NumberStyle(",", ".").parse(pl.Series(["1.234,5", "(7,25)", "3-", "−2", "1.5"])).to_list()
    [1234.5, -7.25, -3.0, -2.0, None]
    >>> NumberStyle(".", "none", currency="€").parse(pl.Series(["€ 3.20", "4€"])).to_list()
    [3.2, 4.0]
    """

    decimal: str = "."
    thousands: str = "none"
    has_marks: bool = False
    """Whether numbers below zero may stand in brackets, or have their sign at the end or no hyphen for it."""
    currency: str | None = None

    @property
    def is_plain(self) -> bool:
        """Whether numbers are as programs write them."""
        return self == NumberStyle()

    def parse(self, texts: pl.Series) -> pl.Series:
        """Return the numbers that texts stand for; null where one is none."""
        if self.is_plain:
            return texts.cast(pl.Float64, strict=False)
        core, is_negative = unsigned(pl.col("text"), self.currency)
        digits = f"(?:[0-9]{{1,3}}(?:{self._group}[0-9]{{3}})+|[0-9]+)" if self._group else "[0-9]+"
        if self.thousands == ",":
            digits = f"(?:{digits}|{INDIAN})"
        mark = re.escape(self.decimal)
        guard = f"^[+-]?(?:{digits}(?:{mark}[0-9]*)?|{mark}[0-9]+)(?:[eE][+-]?[0-9]+)?$"
        plain = core.str.replace_all(self._group, "") if self._group else core
        number = plain.str.replace(self.decimal, ".", literal=True).cast(pl.Float64, strict=False)
        signed = pl.when(is_negative).then(-number).otherwise(number)
        twice = is_negative & core.str.contains("^[+-]")
        return (
            texts.alias("text")
            .to_frame()
            .select(pl.when(core.str.contains(guard) & ~twice).then(signed))
            .to_series()
        )

    @property
    def _group(self) -> str:
        """A pattern of what stands between thousands; empty where nothing does."""
        if self.thousands == " ":
            return f"[{SPACES}]"
        if self.thousands == "'":
            return f"[{APOSTROPHES}]"
        return "" if self.thousands == "none" else re.escape(self.thousands)


def unsigned(text: pl.Expr, currency: str | None) -> tuple[pl.Expr, pl.Expr]:
    """Return numbers without brackets, other signs than hyphens before them and currency, and whether these
    say "negative"."""
    around = f"[{SPACES}]*"
    if currency is not None:
        text = text.str.replace(f"{around}{re.escape(currency)}{around}", "")
    marked = rf"^\((.*)\)$|^([^-]*[0-9])-$|^[{MINUS}](.*)$"
    return text.str.replace(marked, "$1$2$3"), text.str.contains(marked)

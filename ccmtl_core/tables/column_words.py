"""Tell by its name what a column may hold: the series, the time, the value, or something else."""

from __future__ import annotations

import re
from collections.abc import Sequence
from unicodedata import combining, normalize

WORDS = {
    "unique_id": ("unique_id", "product_id", "item_id", "sku", "article", "product", "product_code", "item",
                  "series", "material", "part", "code", "artikel", "artikelnummer", "artikel_nr", "produkt",
                  "produit", "producto", "articulo", "prodotto", "articolo", "upc", "ean", "gtin", "asin",
                  "barcode", "route", "stop", "id", "store", "dept", "name", "column"),
    "ds": ("ds", "date", "day", "week", "month", "period", "time", "timestamp", "datetime", "dt",
           "transaction_dt", "datum", "tag", "woche", "monat", "jour", "semaine", "mois", "fecha", "data",
           "year", "quarter"),
    "y": ("y", "quantity", "qty", "units", "demand", "sold", "menge", "absatz", "anzahl", "quantite",
          "cantidad", "quantita", "sales", "weekly_sales", "ventes", "ventas", "vendite", "volume", "amount",
          "value", "count", "revenue", "umsatz"),
}  # fmt: skip
"""Words that name columns of each role, the surest first."""
_OTHERS = {"price", "cost", "discount", "customer", "group", "min", "max", "promotion", "holiday"}
"""Words of columns that are none of these, whatever else their names say."""
_NO_VALUES = {"stock", "inventory", "forecast", "budget", "target", "average", "avg"}
_ENDS_OF_CODES = {"no", "nr", "number", "id", "code", "org", "rep", "person", "tax", "date"}
"""Words by which a column holds no values that were sold: anywhere in its name, or at its end."""
_OTHER_TIMES = {"delivery", "ship", "shipping", "updated", "created", "modified", "due", "expiry", "birth"}
_DATES = ("date", "datum", "fecha")
_VAGUE = {"data", "tag", "dt", "part", "column", "code", "name"}
"""Words of a role that may as well name a column of another."""


def rank(column: str, words: Sequence[str]) -> float:
    """Return how sure a name is, the less the surer; names that hold a word come after those that are one."""
    plain = _plain(column)
    if plain in words:
        return words.index(plain)
    if "date" in words and is_named_date(column):
        return words.index("date") + 0.5
    ranks = [len(words) + words.index(part) for part in plain.split("_") if part in words]
    return min(ranks, default=2 * len(words))


def is_named_for_another(column: str, role: str) -> bool:
    """Return whether a column's name is a word of another role than this one, and means nothing else."""
    plain = _plain(column)
    words = [word for other, those in WORDS.items() if other != role for word in those]
    return plain in words and plain not in WORDS[role] and plain not in _VAGUE


def is_named_date(column: str) -> bool:
    """Return whether a column's name has a word for dates in it, as Sales Date has."""
    return any(part.endswith(_DATES) and part != "update" for part in _plain(column).split("_"))


def is_a_word(column: str, role: str) -> bool:
    """Return whether a column's name is a word of a role, such as sku of ids, and means nothing else."""
    plain = _plain(column)
    return plain in WORDS[role] and plain not in _VAGUE


def is_surer(column: str, other: str, role: str) -> bool:
    """Return whether a column's name tells more of a role than another's."""
    return rank(column, WORDS[role]) < rank(other, WORDS[role])


def is_time(column: str) -> bool:
    """Return whether a column's name has a word of times, such as a month."""
    return rank(column, WORDS["ds"]) < 2 * len(WORDS["ds"])


def is_other(column: str, role: str | None = None) -> bool:
    """Return whether a column's name says that it has none of the roles, as of a price, or not this one."""
    parts = _plain(column).split("_")
    words = _OTHERS | {"y": _NO_VALUES, "ds": _OTHER_TIMES}.get(role or "", set())
    return not words.isdisjoint(parts) or (role == "y" and len(parts) > 1 and parts[-1] in _ENDS_OF_CODES)


def _plain(column: str) -> str:
    spaced = re.sub("([a-z])([A-Z])", r"\1_\2", column)
    bare = "".join(sign for sign in normalize("NFKD", spaced) if not combining(sign))
    return re.sub("[^a-z0-9]+", "_", bare.casefold()).strip("_")

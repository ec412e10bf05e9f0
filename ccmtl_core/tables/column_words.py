"""Tell by its name what a column may hold: the series, the time, the value, or something else."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import pairwise
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
_OTHERS = {"price", "cost", "discount", "customer", "group", "min", "max", "promotion", "holiday", "prix",
           "precio", "prezzo", "preco", "prijs"}  # fmt: skip
"""Words of columns that are none of these, whatever else their names say."""
_NO_VALUES = {"stock", "inventory", "forecast", "budget", "target", "average", "avg", "minimum", "maximum",
              "moq", "reorder", "safety", "rank", "ranking", "available", "onhand", "bestand", "existencias",
              "giacenza", "voorraad", "estoque", "returns", "returned", "retouren"}  # fmt: skip
_ENDS_OF_NO_VALUES = ("preis", "prijs", "steuer", "bestand", "rabatt", "kosten")
_TAXES = {"tax", "vat", "mwst", "tva", "iva", "btw"}
_ENDS_OF_CODES = {"no", "nr", "number", "id", "code", "org", "rep", "person", "date", *_TAXES}
"""Words by which a column holds no values that were sold: anywhere in its name, as the end of a word, or
at its end."""
_TAXED = re.compile(
    "_(?:(?:in|ex)cl(?:uding)?|inkl|exkl|ex|with|without|before|after|ohne|mit|vor|nach|hors|sin|con|senza)"
    "_(?:tax(?:es)?|vat|mwst|ust|steuern?|tva|iva|btw)(?=_|$)"
)
"""Sales with or without tax are sales."""
_PER = {"per", "pro", "par", "por", "je"}
_SPANS = {"hour", "day", "week", "month", "quarter", "year", "period", "stunde", "tag", "woche", "monat",
          "jahr", "heure", "jour", "semaine", "mois", "hora", "dia", "semana", "mes"}  # fmt: skip
"""Values may be told per day, but what is told per case or pack was not sold."""
_CODES = {"id", "ids", "code", "codes", "no", "nr", "nbr", "num", "number", "numero", "nummer", "key", "sku",
          "upc", "ean", "gtin", "asin", "barcode", "uuid"}  # fmt: skip
_AMOUNTS = {*WORDS["y"], *_OTHERS, *_TAXES, "margin", "profit", "weight", "rating", "returns", "returned",
            "total", "area", "traffic", "turnover", "income", "kosten", "preis", "marge", "gewicht", "steuer",
            "rabatt"} - {"y", "customer", "group", "promotion", "holiday"}  # fmt: skip
"""Words at the end of a name by which it is one of codes, and those of amounts, by which it is none."""
_OTHER_TIMES = {"delivery", "ship", "shipping", "updated", "created", "modified", "due", "expiry", "birth",
                "print", "printed", "export", "exported", "import", "imported", "launch"}  # fmt: skip
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
    plain = _TAXED.sub("", _plain(column))
    parts = plain.split("_")
    if not _OTHERS.isdisjoint(parts):
        return True
    if role == "ds":
        return not _OTHER_TIMES.isdisjoint(parts)
    return role == "y" and (
        not _NO_VALUES.isdisjoint(parts)
        or any(part.endswith(_ENDS_OF_NO_VALUES) for part in parts)
        or any(one in _PER and other not in _SPANS for one, other in pairwise(parts))
        or "on_hand" in plain
        or (len(parts) > 1 and parts[-1] in _ENDS_OF_CODES)
    )


def is_amount(column: str) -> bool:
    """Return whether a column's name is of amounts, such as Product Sales, though it has a word of ids."""
    parts = _plain(column).split("_")
    is_of_amounts = not _AMOUNTS.isdisjoint(parts) or parts[-1] in _NO_VALUES or parts[:2] == ["number", "of"]
    return is_of_amounts and not is_code(column)


def is_code(column: str) -> bool:
    """Return whether a column's name ends in a word for codes, as Item Number does."""
    return _plain(column).split("_")[-1] in _CODES


def _plain(column: str) -> str:
    spaced = re.sub("([a-z])([A-Z])", r"\1_\2", column)
    bare = "".join(sign for sign in normalize("NFKD", spaced) if not combining(sign))
    return re.sub("[^a-z0-9]+", "_", bare.casefold()).strip("_")

"""The names of months in several languages, and texts with English ones in their place."""

from __future__ import annotations

import polars as pl

_ENGLISH = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
_OTHERS = (
    "januar jänner jän januari janvier janv enero ene gennaio gen janeiro",
    "februar feber februari février févr fév fevrier fevr febrero febbraio fevereiro fev",
    "märz mär mrz maerz maart mrt mars marzo março marco",
    "avril avr abril abr aprile",
    "mai mei mayo maggio mag maio",
    "juni juin junio giugno giu junho",
    "juli juillet juil julio luglio lug julho",
    "augustus août aout aoû agosto ago",
    "sept septembre septiembre settembre sett setembro set",
    "oktober okt octobre octubre ottobre ott outubro out",
    "novembre noviembre novembro",
    "dezember dez décembre déc decembre diciembre dic dicembre dezembro",
)
"""German, French, Spanish, Italian, Portuguese and Dutch, from January on. No word stands for two months."""
_MONTHS = {word: english for english, words in zip(_ENGLISH, _OTHERS, strict=True) for word in words.split()}
OTHER_WORDS = "|".join(sorted(_MONTHS, key=len, reverse=True))
"""A pattern of the names that English does not have."""
_WORDS = rf"(?i)(?:{OTHER_WORDS})\.?|(?:{'|'.join(_ENGLISH)})\."


def in_english(text: pl.Expr) -> pl.Expr:
    """Return texts with the short English name in place of a month's other one, null where there is none.

    Parameters
    ----------
    text : polars Expr
        Of texts.

    Returns
    -------
    polars Expr

    Examples
    --------
    >>> texts = pl.Series(["5. März 2024", "févr. 2024", "Sept. 2024", "5 March"])
    >>> pl.select(in_english(pl.lit(texts))).to_series().to_list()
    ['5. Mar 2024', 'Feb 2024', 'Sep 2024', None]
    """
    word = text.str.extract(f"({_WORDS})").str.to_lowercase().str.strip_suffix(".")
    known = {english.lower(): english for english in _ENGLISH} | _MONTHS
    month = word.replace_strict(known, default=None, return_dtype=pl.String)
    before, after = text.str.extract(f"^(.*?)(?:{_WORDS})"), text.str.extract(f"^.*?(?:{_WORDS})(.*)$")
    return pl.when(month.is_not_null()).then(pl.concat_str(before, month, after))

"""Times of a table as values that sort as time goes on."""

from __future__ import annotations

import re
from datetime import UTC, datetime

import polars as pl

from ccmtl_core.base.exceptions import DataError

_DIGIT = re.compile("[0-9]")
_DAY_OR_MONTH_FIRST = re.compile(r"[0-9]{1,2}[-/. ][0-9]")


def sortable(times: pl.Series) -> pl.Series:
    """Return times of which a later one is greater.

    Parameters
    ----------
    times : series
        Numbers; or texts: dates or times of ISO 8601, or texts that differ in digits alone, the year first.

    Returns
    -------
    series
        Texts of ISO 8601 as moments, those with a time zone in UTC; all else as it was.

    Raises
    ------
    DataError
        Texts whose order is not that of time, such as 1/31/2025, or W1 beside W10.

    Examples
    --------
    >>> sortable(pl.Series(["2024-01-02", "2024-01-01T07:30"])).arg_sort().to_list()
    [1, 0]
    """
    if times.dtype != pl.String:
        return times
    texts = times.unique().sort().to_list()
    moments = [moment for text in texts if (moment := _moment(text)) is not None]
    zoned = [moment for moment in moments if moment.tzinfo is not None]
    if len(moments) == len(texts) and len(zoned) in (0, len(texts)):
        new = [moment.astimezone(UTC).replace(tzinfo=None) for moment in zoned] or moments
        return times.replace_strict(texts, new, return_dtype=pl.Datetime)
    shapes = {_DIGIT.sub("0", text): text for text in texts}
    if zoned or len(shapes) > 1 or _DAY_OR_MONTH_FIRST.match(texts[0]):
        examples = " or ".join(map(repr, [*shapes.values()][:2]))
        raise DataError(
            f"times such as {examples} in column {times.name!r} do not sort as text; write all as dates "
            "or times of ISO 8601 (2025-01-31, 2025-01-31T07:30), numbers, or with zeros in front (W01 … W10)"
        )
    return times


def _moment(text: str) -> datetime | None:
    try:
        return datetime.fromisoformat(text)
    except ValueError:
        return None

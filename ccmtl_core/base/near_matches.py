"""Find the known ids that are most like a mistyped one, quickly even among a million ids."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Callable, Iterable, Sequence
from difflib import SequenceMatcher

import numpy as np
from numpy.typing import NDArray

WINDOW = 24
MIN_RATIO = 0.6


class NearMatches:
    """Finds ids that resemble a text.

    Candidates are the neighbours of the text in the alphabet, read forwards and backwards, since one wrong
    letter leaves a long beginning or a long end, and the ids that differ only in case, outer spaces or
    leading zeros.

    Parameters
    ----------
    ids : iterable of str
        The known ids.
    orders : (3, n) int32, optional
        What :func:`orders_of` returns for them, where it is known.

    Examples
    --------
    >>> NearMatches(["0471", "0472", "9999"]).find("471")
    ['0471']
    """

    def __init__(self, ids: Iterable[str], orders: NDArray[np.int32] | None = None) -> None:
        self._ids = ids if isinstance(ids, Sequence) else tuple(ids)
        self._forwards, self._backwards, self._alike = orders_of(self._ids) if orders is None else orders

    def find(self, text: str, limit: int = 3) -> list[str]:
        """Return up to ``limit`` ids that resemble the text, best first."""
        candidates = {
            *self._around(self._forwards, text, str),
            *self._around(self._backwards, text, _reversed),
        }
        ratios = {}
        for name in candidates:
            matcher = SequenceMatcher(None, text, name)
            if matcher.real_quick_ratio() >= MIN_RATIO and (ratio := matcher.ratio()) >= MIN_RATIO:
                ratios[name] = ratio
        at = self._place(self._alike, text, _plain)
        if at < len(self._alike) and _plain(same := self._ids[self._alike[at]]) == _plain(text):
            ratios[same] = 2.0
        ratios.pop(text, None)
        return sorted(ratios, key=lambda name: (-ratios[name], name))[:limit]

    def _place(self, order: NDArray[np.int32], text: str, key: Callable[[str], str]) -> int:
        return bisect_left(order, key(text), key=lambda row: key(self._ids[row]))

    def _around(self, order: NDArray[np.int32], text: str, key: Callable[[str], str]) -> list[str]:
        middle = self._place(order, text, key)
        return [self._ids[row] for row in order[max(0, middle - WINDOW) : middle + WINDOW]]


def orders_of(ids: Sequence[str]) -> NDArray[np.int32]:
    """Return the places of ids in three orders: read forwards, backwards, and without what does not count.

    Parameters
    ----------
    ids : sequence of str
        Known ids.

    Returns
    -------
    (3, n) int32
        What :class:`NearMatches` finds them by.

    Examples
    --------
    >>> orders_of(["b1", "a2", "A0"]).tolist()
    [[2, 1, 0], [2, 0, 1], [2, 1, 0]]
    """
    found = np.empty((3, len(ids)), dtype=np.int32)
    forwards = sorted(range(len(ids)), key=ids.__getitem__)
    backwards = [_reversed(name) for name in ids]
    alike = [_plain(name) for name in ids]
    found[0], found[1] = forwards, sorted(forwards, key=backwards.__getitem__)
    found[2] = sorted(forwards, key=alike.__getitem__)
    return found


def _reversed(text: str) -> str:
    return text[::-1]


def _plain(text: str) -> str:
    return text.strip().casefold().lstrip("0")

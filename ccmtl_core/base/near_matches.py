"""Find the known ids that are most like a mistyped one, quickly even among a million ids."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterable
from difflib import SequenceMatcher

WINDOW = 24
MIN_RATIO = 0.6


class NearMatches:
    """Finds ids that resemble a text.

    Candidates are the neighbours of the text in the alphabet, read forwards and backwards, since one wrong
    letter leaves a long beginning or a long end, and the ids that differ only in case, outer spaces or
    leading zeros.

    Examples
    --------
    >>> NearMatches(["0471", "0472", "9999"]).find("471")
    ['0471']
    """

    def __init__(self, ids: Iterable[str]) -> None:
        self._forwards = sorted(ids)
        self._backwards = sorted(name[::-1] for name in self._forwards)
        self._plain: dict[str, str] = {}
        for name in self._forwards:
            self._plain.setdefault(_plain(name), name)

    def find(self, text: str, limit: int = 3) -> list[str]:
        """Return up to ``limit`` ids that resemble the text, best first."""
        candidates = set(_around(self._forwards, text))
        candidates.update(name[::-1] for name in _around(self._backwards, text[::-1]))
        ratios = {}
        for name in candidates:
            matcher = SequenceMatcher(None, text, name)
            if matcher.real_quick_ratio() >= MIN_RATIO and (ratio := matcher.ratio()) >= MIN_RATIO:
                ratios[name] = ratio
        if same := self._plain.get(_plain(text)):
            ratios[same] = 2.0
        ratios.pop(text, None)
        return sorted(ratios, key=lambda name: (-ratios[name], name))[:limit]


def _plain(text: str) -> str:
    return text.strip().casefold().lstrip("0")


def _around(ordered: list[str], text: str) -> list[str]:
    middle = bisect_left(ordered, text)
    return ordered[max(0, middle - WINDOW) : middle + WINDOW]

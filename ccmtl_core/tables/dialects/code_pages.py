"""Tell in which code pages the words of a file look like words.

A code page does not prove itself: bytes that are words in one are letters in many. What speaks against a
reading is seen in its words: letters of two scripts in one, capitals within, signs where letters are, or
characters that the language of the code page hardly uses.
"""

from __future__ import annotations

import re
import unicodedata
from collections import Counter
from contextlib import suppress

from charset_normalizer import from_bytes

CODE_PAGES = {
    "cp1252": "windows-1252",
    "cp1250": "windows-1250",
    "cp1251": "windows-1251",
    "cp1253": "windows-1253",
    "cp1254": "windows-1254",
    "cp1255": "windows-1255",
    "cp1256": "windows-1256",
    "cp1257": "windows-1257",
    "iso8859_2": "iso-8859-2",
    "koi8_r": "koi8-r",
    "mac_roman": "macintosh",
    "cp850": "cp850",
    "cp852": "cp852",
    "cp866": "cp866",
    "gb18030": "gb18030",
    "big5": "big5",
    "cp932": "shift_jis",
    "cp949": "euc_kr",
    "euc_jp": "euc_jp",
}
"""What is tried, by Python's names, each with the name that people state."""
_WESTERN = [
    "äöüß",
    "àâçèéêëîïôùûüÿœæ",
    "áéíñóúüïç",
    "àèéìíîòóùú",
    "áàâãçéêíóôõúü",
    "æøåéäö",
    "åäöé",
    "éëïöüèáíóú",
    "áðéíóúýþæö",
    "àçèéíïòóúü",
]
_CENTRAL = ["ąćęłńóśźż", "áčďéěíňóřšťúůýž", "áäčďéíĺľňóôŕšťúýž", "áéíóöőúüű", "čćđšž", "ăâîşţ", "äöüß", "ëç"]
_LANGUAGES = {
    **dict.fromkeys(["cp1252", "mac_roman", "cp850"], _WESTERN),
    **dict.fromkeys(["cp1250", "iso8859_2", "cp852"], _CENTRAL),
    "cp1254": ["çğıöşüâîû"],
    "cp1257": ["ąčęėįšųūž", "āčēģīķļņšūž", "äõöüšž"],
}
"""The small letters beyond a to z of German, French, Spanish and other languages that code pages are for."""
_AS_LIKELY, _MOST_DOUBT = 0.06, 0.4
_WITHOUT_ITS_OWN = 0.2
"""How much less likely Japanese is without a sign of its syllables, or Arabic without its letters."""
_OWN = {"cp1255": re.compile("[\u05d0-\u05ea]"), "cp1256": re.compile("[\u0621-\u064a]")}
_KANA = re.compile("[\u3041-\u30fa\uff66-\uff9d]")
_FULL_WIDTH = re.compile("[\u3041-\u30fa\u3400-\u9fff]")
_HANZI = re.compile("[\u3400-\u9fff]")
_JAPANESE = {"CJK", "HIRAGANA", "KATAKANA", "HALFWIDTH", "FULLWIDTH", "KATAKANA-HIRAGANA"}
_IN_WORDS, _BEHIND_WORDS = (
    "\u2019\u2018\u00b7\u2013\u2014",
    "\u00b0\u00b2\u00b3\u00ae\u2122\u00a9\u2026\u00bb\u201d",
)
"""Signs that stand between letters (apostrophes, dots, dashes), and behind words (degrees, trade marks)."""
_BOXES = re.compile("[\u2500-\u259f]")
_ACCENTED = re.compile("[\u0386-\u0390\u03aa-\u03b0\u03ca-\u03ce]")
_VOWELS = {
    "CYRILLIC": re.compile("(?i)[аеёиоуыэюяіїєў]"),
    "GREEK": re.compile("(?i)[αεηιουωάέήίόύώϊϋΐΰ]"),
    "ARABIC": re.compile("[اويةىأإآؤئ]"),
}
_FEWEST_LETTERS = 3
"""A longer word has a vowel; one of Greek in small letters an accent."""
_TWO_BYTES = ("gb18030", "big5", "cp932", "cp949", "euc_jp")


def likely_code_pages(words: list[bytes]) -> list[tuple[str, str]]:
    """Return the code pages in which words look like words, with the words, the likeliest first.

    Parameters
    ----------
    words : list of bytes
        With a byte beyond ASCII each.

    Returns
    -------
    list of (str, str)
        Python's names of code pages, each with all words as it reads them, a line each. Several where nothing
        tells which is meant.
    """
    sample = b"\n".join(words)
    chaos = {
        name: match.chaos
        for match in reversed(list(from_bytes(sample, cp_isolation=[*_TWO_BYTES], threshold=0.3)))
        for name in [match.encoding, *match.could_be_from_charset]
    }
    read = []
    for at, name in enumerate(CODE_PAGES):
        if name in chaos or name not in _TWO_BYTES:
            with suppress(UnicodeDecodeError):
                text = sample.decode(name)
                read.append((chaos.get(name, 0.0) + _doubt(text, name), at, name, text))
    read = [one for one in read if one[0] <= _MOST_DOUBT]
    read.sort()
    return [(name, text) for doubt, _, name, text in read if doubt <= read[0][0] + _AS_LIKELY]


def _doubt(text: str, name: str) -> float:
    """The share of words that do not look like words of a language that is written in a code page."""
    words = text.split("\n")
    doubt = sum(_is_odd(word, name) for word in words) / len(words)
    if name in ("cp932", "euc_jp") and not (_KANA.search(text) and _FULL_WIDTH.search(text)):
        doubt += _WITHOUT_ITS_OWN
    if name in _OWN and not _OWN[name].search(text):
        doubt += _WITHOUT_ITS_OWN
    if name in _LANGUAGES:
        letters = Counter(letter for letter in text.lower() if letter.isalpha() and not letter.isascii())
        strange = [letters.total() - sum(letters[one] for one in language) for language in _LANGUAGES[name]]
        doubt += min(strange) / max(letters.total(), 1)
    return doubt


def _is_odd(word: str, name: str) -> bool:
    if name in ("gb18030", "big5", "cp949") and (_KANA.search(word) or _is_rare(word, name)):
        return True
    return any(_is_odd_run(run, name) for run in re.split(r"[\x00-@\[-`{-\x7f\u00a0\u3000]+", word) if run)


def _is_rare(word: str, name: str) -> bool:
    """Whether a word has Chinese characters that its language hardly uses."""
    if name == "cp949":
        return bool(_HANZI.search(word)) or not all(_is_in(one, "euc_kr") for one in word)
    if name == "big5":
        return any(one.encode("big5")[0] > 0xC6 for one in _HANZI.findall(word))
    return not all(_is_in(one, "gb2312") for one in _HANZI.findall(word))


def _is_in(character: str, name: str) -> bool:
    with suppress(UnicodeEncodeError):
        return len(character.encode(name)) <= 2  # euc_kr writes others with eight
    return False


def _is_odd_run(run: str, name: str) -> bool:
    """Whether characters without a space between them are no word."""
    if _BOXES.search(run) or any(unicodedata.category(letter) == "Cc" for letter in run):
        return True
    scripts = set()
    for before, letter, after in zip(" " + run[:-1], run, run[1:] + " ", strict=True):
        if letter.isalpha():
            scripts.add(unicodedata.name(letter, "").partition(" ")[0])
        elif before.isalpha() and not letter.isascii() and name not in _TWO_BYTES:
            is_behind = letter in _BEHIND_WORDS and not after.isalpha()
            if not (is_behind or letter in _IN_WORDS):
                return True
        if letter.isupper() and before.islower() and not (letter.isascii() and before.isascii()):
            return True
    if len(scripts) != 1:
        return "HALFWIDTH" in scripts or not scripts <= _JAPANESE
    (script,) = scripts
    if len(run) <= _FEWEST_LETTERS:
        return False
    lacks_vowel = script in _VOWELS and not _VOWELS[script].search(run)
    return lacks_vowel or (script == "GREEK" and not run.isupper() and not _ACCENTED.search(run))

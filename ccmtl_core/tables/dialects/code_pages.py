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
from typing import NamedTuple

from charset_normalizer import from_bytes

_SELDOM = {
    "cp874": "cp874",
    "cp737": "cp737",
    "cp857": "cp857",
    "cp862": "cp862",
    "cp720": "cp720",
    "cp855": "cp855",
    "cp869": "cp869",
    "cp775": "cp775",
    "cp860": "cp860",
    "cp861": "cp861",
    "cp1125": "cp1125",
    "koi8_u": "koi8-u",
    "iso8859_5": "iso-8859-5",
    "iso8859_6": "iso-8859-6",
    "iso8859_16": "iso-8859-16",
    "mac_cyrillic": "mac-cyrillic",
    "mac_greek": "mac-greek",
    "mac_turkish": "mac-turkish",
    "mac_latin2": "mac-latin2",
    "johab": "johab",
}
"""Code pages that few files are in."""
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
    **_SELDOM,
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
    "äõöüšž",
]
_CENTRAL = ["ąćęłńóśźż", "áčďéěíňóřšťúůýž", "áäčďéíĺľňóôŕšťúýž", "áéíóöőúüű", "čćđšž", "ăâîşţ", "äöüß", "ëç"]
_TURKISH, _BALTIC = ["çğıöşüâîû"], ["ąčęėįšųūž", "āčēģīķļņšūž", "äõöüšž"]
_CYRILLIC = [
    "абвгдеёжзийклмнопрстуфхцчшщъыьэюя",
    "абвгґдеєжзиіїйклмнопрстуфхцчшщьюя",
    "абвгдеёжзійклмнопрстуўфхцчшыьэюя",
    "абвгдђежзијклљмнњопрстћуфхцчџш",
    "абвгдѓежзѕијклљмнњопрстќуфхцчџш",
]
_LANGUAGES = {
    **dict.fromkeys(["cp1252", "mac_roman", "cp850", "cp860", "cp861"], _WESTERN),
    **dict.fromkeys(["cp1250", "iso8859_2", "cp852", "mac_latin2", "iso8859_16"], _CENTRAL),
    **dict.fromkeys(["cp1254", "cp857", "mac_turkish"], _TURKISH),
    **dict.fromkeys(["cp1257", "cp775"], _BALTIC),
    **dict.fromkeys(["cp1251", "koi8_r", "koi8_u", "cp866", "cp1125", "cp855"], _CYRILLIC),
    "cp874": ["กขคงจฉชซญณดตถทธนบปผฝพฟภมยรลวศษสหอะาำเแโใไ"],
    **dict.fromkeys(["mac_cyrillic", "iso8859_5"], _CYRILLIC),
}
"""The small letters beyond a to z of German, French, Spanish and other languages that code pages are for."""
_AS_LIKELY, _MOST_DOUBT = 0.06, 0.4
_FIRST, _FAR = 200, 0.25
"""How many of many words tell which code pages need not be tried: those with so much more doubt."""
_WITHOUT_ITS_OWN = 0.2
"""How much less likely Japanese is without a sign of its syllables, or Arabic without its letters."""
_IF_SELDOM = 0.05
"""How much less likely a code page is that few files are in: of two that fit alike it does not win."""
_LETTERS = {
    "[\u05d0-\u05ea]": ["cp1255", "cp862"],
    "[\u0621-\u064a]": ["cp1256", "cp720", "iso8859_6"],
    "[\u0391-\u03c9]": ["cp1253", "cp737", "cp869", "mac_greek"],
    "[\u0410-\u044f]": [
        "cp1251",
        "koi8_r",
        "koi8_u",
        "cp866",
        "cp1125",
        "cp855",
        "mac_cyrillic",
        "iso8859_5",
    ],
    "[\u0e01-\u0e2e]": ["cp874"],
    "[\uac00-\ud7a3]": ["johab"],
}
_OWN = {name: re.compile(letters) for letters, names in _LETTERS.items() for name in names}
_KANA = re.compile("[\u3041-\u30fa\uff66-\uff9d]")
_FULL_WIDTH = re.compile("[\u3041-\u30fa\u3400-\u9fff]")
_NO_HANGUL = re.compile("[\u3131-\u318e\u3400-\u9fff]")
_OPEN_SYLLABLE = re.compile(f"[{''.join(map(chr, range(0xAC00, 0xD7A4, 28)))}]")
_HANZI = re.compile("[\u3400-\u9fff]")
_JAPANESE = {"CJK", "HIRAGANA", "KATAKANA", "HALFWIDTH", "FULLWIDTH", "KATAKANA-HIRAGANA"}
_IN_WORDS, _BEHIND_WORDS = (
    "\u2019\u2018\u00b7\u2013\u2014",
    "\u00b0\u00b2\u00b3\u00ae\u2122\u00a9\u2026\u00bb\u201d",
)
"""Signs that stand between letters (apostrophes, dots, dashes), and behind words (degrees, trade marks)."""
_BEFORE_WORDS = "«»„“”‘‚‹¿¡€£¥•·½¼¾°²³§№…"
_QUOTES = {"„": "“", "‘": "’", "‹": "›", "‚": "‘"}
"""What opens quotes in words, each with what closes them."""
_BOXES = re.compile("[\u2500-\u259f]")
_ACCENTED = re.compile("[\u0386-\u0390\u03aa-\u03b0\u03ca-\u03ce]")
_VOWELS = {
    "CYRILLIC": re.compile("(?i)[аеёиоуыэюяіїєў]"),
    "GREEK": re.compile("(?i)[αεηιουωάέήίόύώϊϋΐΰ]"),
    "ARABIC": re.compile("[اويةىأإآؤئ]"),
}
_MISSPELT = {
    "GREEK": re.compile("ς[α-ώ]|σ$|[άέήίόύώΐΰ].*[άέήίόύώΐΰ]"),
    "HEBREW": re.compile("[ךםןףץ][א-ת]"),
    "ARABIC": re.compile("[ةى][ء-ي]"),
    "CYRILLIC": re.compile("(?i)^[ьыъ]|[аеёиоуыэюяіїє][ьъ]|[бвгджзклмнпрстфхцчшщ]й(?!о)"),
    "THAI": re.compile("[เ-ไ](?![ก-ฮ])|^[ะาำ]|[เ-ไ][ะาำ]|ำ[ะาำ]|[็-์]{2}|[ัิ-ู]{2}"),
    "HALFWIDTH": re.compile("^[ﾞﾟｰｧ-ｯ]|[^ｳｶ-ﾄﾊ-ﾎ]ﾞ|[^ﾊ-ﾎ]ﾟ|[^ｷｼﾁﾆﾋﾐﾘﾞﾟ][ｬ-ｮ]"),
    "cp860": re.compile("(?i)ã(?![oesim]|$)|õ(?!e)"),
}
"""What words of a script do not have: forms of the end within, vowels without what they belong to."""
_FEWEST_LETTERS = 3
"""A longer word has a vowel; one of Greek in small letters an accent."""
_CHINESE_KOREAN = ("gb18030", "big5", "cp949", "johab")
_TWO_BYTES = (*_CHINESE_KOREAN, "cp932", "euc_jp")


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
    names = list(CODE_PAGES)
    if len(words) > _FIRST:
        first = _readings(words[:: len(words) // _FIRST], names)
        near = {one.name for one in first if one.doubt <= first[0].doubt + _FAR}
        names = [name for name in names if name in near]
    read = _readings(words, names)
    return [(one.name, one.text) for one in read if one.doubt <= min(_MOST_DOUBT, read[0].doubt + _AS_LIKELY)]


class _Reading(NamedTuple):
    doubt: float
    at: int
    name: str
    text: str


def _readings(words: list[bytes], names: list[str]) -> list[_Reading]:
    """Words as code pages read them, those with the least doubt first; none where they cannot."""
    sample, read = b"\n".join(words), []
    chaos = {
        name: match.chaos
        for match in reversed(list(from_bytes(sample, cp_isolation=[*_TWO_BYTES], threshold=0.3)))
        for name in [match.encoding, *match.could_be_from_charset]
    }
    for at, name in enumerate(names):
        with suppress(UnicodeDecodeError):
            text = sample.decode(name)
            is_half_width = name in ("cp932", "euc_jp") and not _FULL_WIDTH.search(text)
            if name in chaos or name not in _TWO_BYTES or is_half_width:
                read.append(_Reading(chaos.get(name, 0.0) + _doubt(text, name), at, name, text))
    return sorted(read)


def _doubt(text: str, name: str) -> float:
    """The share of words that do not look like words of a language that is written in a code page."""
    words = text.split("\n")
    doubt = sum(_is_odd(word, name) for word in words) / len(words)
    if name in _SELDOM:
        doubt += _IF_SELDOM
    if name in ("cp932", "euc_jp"):
        has_kana, has_full_width = _KANA.search(text), _FULL_WIDTH.search(text)
        if not has_full_width:
            doubt += 2 * _IF_SELDOM
        elif not has_kana:
            doubt += _WITHOUT_ITS_OWN if name == "cp932" else _IF_SELDOM
    if name == "cp949" and not _OPEN_SYLLABLE.search(text):
        doubt += _IF_SELDOM
    if name in _OWN and not _OWN[name].search(text):
        doubt += _WITHOUT_ITS_OWN
    if name in _LANGUAGES:
        letters = Counter(letter for letter in text.lower() if letter.isalpha() and not letter.isascii())
        strange = [letters.total() - sum(letters[one] for one in language) for language in _LANGUAGES[name]]
        doubt += min(strange) / max(letters.total(), 1)
    return doubt


def _is_odd(word: str, name: str) -> bool:
    if name in _CHINESE_KOREAN and _KANA.search(word):
        return True
    if name in _TWO_BYTES and name != "cp932" and _is_rare(word, name):
        return True
    if name not in _TWO_BYTES and (
        any(opening in word and closing not in word for opening, closing in _QUOTES.items())
        or word.startswith("\u00a0")
        or (word.startswith("\u201c") and "\u201d" not in word)
    ):
        return True
    return any(_is_odd_run(run, name) for run in re.split(r"[\x00-@\[-`{-\x7f\u00a0\u3000]+", word) if run)


def _is_rare(word: str, name: str) -> bool:
    """Whether a word has Chinese characters that its language hardly uses."""
    if name in ("cp949", "johab"):
        return bool(_NO_HANGUL.search(word)) or not all(_is_in(one, "euc_kr") for one in word)
    if name == "euc_jp":
        return any(one.encode(name)[0] > 0xCF for one in _HANZI.findall(word))
    if name == "big5":
        return any(one.encode("big5")[0] > 0xC6 for one in _HANZI.findall(word))
    return not all(_is_in(one, "gb2312") for one in _HANZI.findall(word))


def _is_in(character: str, name: str) -> bool:
    with suppress(UnicodeEncodeError):
        return len(character.encode(name)) <= 2  # euc_kr writes others with eight
    return False


def _is_odd_run(run: str, name: str) -> bool:
    """Whether characters without a space between them are no word."""
    if _BOXES.search(run) or any(unicodedata.category(letter) in ("Cc", "Co") for letter in run):
        return True
    scripts = {unicodedata.name(one, "").partition(" ")[0] for one in run if one.isalpha() or _is_mark(one)}
    if name not in _TWO_BYTES and _has_odd_sign(run):
        return True
    if _has_odd_capital(run):
        return True
    if len(scripts) != 1:
        return "HALFWIDTH" in scripts or not scripts <= _JAPANESE
    (script,) = scripts
    if any(_MISSPELT[one].search(run) for one in (script, name) if one in _MISSPELT):
        return True
    if len(run) <= _FEWEST_LETTERS:
        return False
    lacks_vowel = script in _VOWELS and not _VOWELS[script].search(run)
    return lacks_vowel or (script == "GREEK" and not run.isupper() and not _ACCENTED.search(run))


def _has_odd_sign(run: str) -> bool:
    """Whether signs stand where words have letters."""
    for before, letter, after in zip(" " + run[:-1], run, run[1:] + " ", strict=True):
        if letter.isalpha() or letter.isascii():
            continue
        if _is_mark(letter):
            if not (before.isalpha() or _is_mark(before)):
                return True
        elif before.isalpha() or _is_mark(before):
            is_behind = letter in _BEHIND_WORDS and not after.isalpha()
            if not (is_behind or letter in _IN_WORDS):
                return True
        elif (after.isalpha() and letter not in _BEFORE_WORDS) or not before.isascii():
            return True
    return False


def _is_mark(letter: str) -> bool:
    """Whether a character stands above or below the letter before it."""
    return unicodedata.category(letter) == "Mn"


def _has_odd_capital(run: str) -> bool:
    """Whether capitals stand behind small letters, or several of them before some."""
    for first, before, letter in zip("  " + run, " " + run, run, strict=False):
        if first.isascii() and before.isascii() and letter.isascii():
            continue
        if letter.isupper() and before.islower() and not (letter.isascii() and before.isascii()):
            return True
        if letter.islower() and before.isupper() and first.isupper():
            return True
    return False

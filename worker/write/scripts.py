"""What is known about characters: which scripts have no gaps between words, which marks tell words apart.

One place for the tables, so that folding, keys and mentions agree in every script.
"""

from __future__ import annotations

import unicodedata
from functools import lru_cache
from typing import Literal

CharClass = Literal["letter", "digit", "mark", "space", "invisible", "sign", "symbol", "gap"]

# Han, kana and Bopomofo; Hangul is written with gaps, but nobody agrees on where.
_HAN = ((0x3005, 0x3007), (0x3400, 0x4DBF), (0x4E00, 0x9FFF), (0xF900, 0xFAFF), (0x20000, 0x323AF))
_HIRAGANA = ((0x3041, 0x309F), (0x1B001, 0x1B11F))
_KATAKANA = ((0x30A1, 0x30FA), (0x30FC, 0x30FF), (0x31F0, 0x31FF))
_BOPOMOFO = ((0x3100, 0x312F), (0x31A0, 0x31BF))
_HANGUL = ((0x1100, 0x11FF), (0x3130, 0x318F), (0xA960, 0xA97F), (0xAC00, 0xD7FF))
_SOUTH_EAST = ((0x0E00, 0x0EFF), (0x1000, 0x109F), (0x1780, 0x17FF))  # Thai, Lao, Burmese, Khmer
_LATIN = ((0x41, 0x24F), (0x250, 0x2AF), (0x1D00, 0x1DBF), (0x1E00, 0x1EFF), (0x2C60, 0x2C7F), (0xA720, 0xA7FF))
_GREEK = ((0x370, 0x3FF), (0x1F00, 0x1FFF))
_CYRILLIC = ((0x400, 0x52F),)
# Vowel points that Hebrew and Arabic writing leaves out at will.
_OPTIONAL_POINTS = ((0x591, 0x5BD), (0x5BF, 0x5BF), (0x5C1, 0x5C2), (0x5C4, 0x5C5), (0x5C7, 0x5C7),
                    (0x64B, 0x652), (0x670, 0x670), (0x6D6, 0x6ED))  # fmt: skip
_STRESS = "\u0300\u0301"
_DIAERESIS = "\u0308"
_APOSTROPHES = frozenset("\u02bc\u02bb\u02b9\u02c8\u02ee\u055a\ua78c")
_INVISIBLE = frozenset("\u034f\u115f\u1160\u17b4\u17b5\u180b\u180c\u180d\u180f\u3164\uffa0\u0640\u20e3\u20e0")
_SIGNS = frozenset("+#&@.,%-")
_SIGN_LOOKALIKES = {"\u2212": "-", "\u2013": "-", "\u2010": "-", "\u2011": "-", "\ufe63": "-"}
# Latin letters that no decomposition takes apart.
_SPELLED_OUT = {"ø": "o", "ł": "l", "đ": "d", "ð": "d", "þ": "th", "æ": "ae", "œ": "oe", "ı": "i", "ħ": "h", "ŧ": "t"}
_KEPT_SYMBOLS = frozenset("°№")


def _within(char: str, *tables: tuple[tuple[int, int], ...]) -> bool:
    point = ord(char)
    return any(low <= point <= high for table in tables for low, high in table)


@lru_cache(maxsize=8192)
def is_cjk(char: str) -> bool:
    """Whether ``char`` is Chinese, Japanese or Korean writing, in which spacing does not tell names apart."""
    return _within(char, _HAN, _HIRAGANA, _KATAKANA, _BOPOMOFO, _HANGUL)


@lru_cache(maxsize=8192)
def is_gapless(char: str) -> bool:
    """Whether a word may begin or end at ``char`` without a gap: CJK, Thai, Lao, Burmese, Khmer."""
    return is_cjk(char) or _within(char, _SOUTH_EAST)


def is_hangul(char: str) -> bool:
    """Whether ``char`` is Korean: words have gaps there, but particles are written on to them."""
    return _within(char, _HANGUL)


def is_katakana(char: str) -> bool:
    """Whether ``char`` is katakana, whose runs are mostly one word."""
    return _within(char, _KATAKANA)


@lru_cache(maxsize=16384)
def char_class(char: str) -> CharClass:
    """What ``char`` is to a name. "sign": it may tell names apart where it stands; "gap": other punctuation."""
    category = unicodedata.category(char)
    if char in _INVISIBLE or category == "Cf" or _within(char, ((0xFE00, 0xFE0F), (0xE0100, 0xE01EF))):
        return "invisible"
    if char in _APOSTROPHES:
        return "gap"
    if char in _SIGNS or char in _SIGN_LOOKALIKES:
        return "sign"
    if category[0] == "Z" or category == "Cc" or char == "\u2800":
        return "space"
    if category == "Nd":
        return "digit"
    if category[0] in "LN" or category == "Sc":
        return "letter"
    if category[0] == "M":
        return "mark"
    return "symbol" if category in ("Sm", "So", "Co", "Cn") else "gap"


@lru_cache(maxsize=8192)
def keeps_mark(base: str, mark: str) -> bool:
    """Whether ``mark`` on ``base`` tells words apart. Accents of Latin letters, stress and optional points do not."""
    if _within(base, _LATIN) or _within(mark, _OPTIONAL_POINTS):
        return False
    if _within(base, _GREEK):
        return mark == _DIAERESIS
    if _within(base, _CYRILLIC):
        return mark not in _STRESS and not (mark == _DIAERESIS and base == "е")
    return not base.isascii()


def spelled_out(char: str) -> str:
    """A folded letter without what decomposition leaves on it: ø is o, æ is ae."""
    return _SPELLED_OUT.get(char, char)


def plain_sign(char: str) -> str:
    """A sign in its ASCII form (the minus sign and the dashes are "-")."""
    return _SIGN_LOOKALIKES.get(char, char)


@lru_cache(maxsize=8192)
def undecorated(char: str) -> str:
    """``char`` of a name as it is shown: emoji and ornaments go, fancy letters become plain ones."""
    kind = char_class(char)
    if kind == "invisible":
        return "" if char != "\u0640" else char
    if char in _KEPT_SYMBOLS:
        return char
    category = unicodedata.category(char)
    if category in ("So", "Sk", "Co", "Cn"):
        plain = unicodedata.normalize("NFKC", char)
        return plain if category == "So" and plain.isalnum() and char not in "\u2122\u2120" else " "
    if _within(char, ((0x1D400, 0x1D7FF), (0xFF01, 0xFF5E))):
        return unicodedata.normalize("NFKC", char)
    return char

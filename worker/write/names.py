"""Names as they are compared, and the keys made of them (behaviour: 3, 6, 8 and 14).

Everything is pure. Two spellings that fold alike are one name; what tells two names apart in any script (the signs of
C++ and C#, й and и, a vowel sign, one Chinese character) survives folding. Offsets and spelling do not.
"""

from __future__ import annotations

import hashlib
import re
import unicodedata
from collections.abc import Iterable
from functools import lru_cache

from worker.write.scripts import (
    char_class,
    is_cjk,
    is_gapless,
    is_hangul,
    is_katakana,
    keeps_mark,
    plain_sign,
    spelled_out,
    undecorated,
)

MAX_KEY_CHARS = 128
MAX_GRAMS = 20_000
_LONGEST_RUN = 12  # characters of a name in a script without word gaps
_HASH_TAIL = 10

_W = r"[^ +#&@.,%\-]"
_A = "[a-z0-9]"
# Signs that tell names or numbers apart, where they stand as such; every other sign is a gap between words.
_SIGNS = re.compile(
    rf"((?<=\d)[.,](?=\d)|(?<!{_W})-(?=\d)|(?<={_W})[+#]+(?![^ &@.,%\-])|(?<={_W})@(?={_W})|(?<=\d)%"
    rf"|(?:(?<=(?<!{_W}){_A})|(?<=(?<!{_W}){_A}{_A}))&(?={_W})|(?<={_W})&(?={_A}{{1,2}}(?!{_W})))|[+#&@.,%\-]"
)
_ASCII_GAPS = re.compile(r"[^a-z0-9+#&@.,%$\- ]+")
_SPACES = re.compile(r" {2,}")
_DIGIT_GAP = re.compile(r"(?<!\d) +| +(?!\d)")
_TRADE_MARKS = {ord(sign): None for sign in "\u2122\u2120\u00ae\u00a9"}
# "irmão de Rafael", "Rafael's brother": such a name describes somebody by another, who is mentioned as well.
_DESCRIBES = re.compile(r"^(?:[^\W\d_]+ )+(?:de|di|von) \S|'s [^\W\d_]")
_BRACKETS = {")": "(", "]": "[", "}": "{"}
_EDGE = " \t\r\n~*_\u2022|=<>\"'`\u201c\u201d\u2018\u2019\u00ab\u00bb,;:-\u2013\u2014"


def fold(text: str) -> str:
    """``text`` as names are compared: NFKC, casefolded, without Latin accents, punctuation and invisible characters.

    Single spaces stand between words, none inside a run of CJK, and one between CJK and other scripts. A text of
    nothing but symbols folds to these symbols; a blank one to "". Folding twice changes nothing.
    """
    folded = _joined(_spaced(text, symbols=False))
    if folded:
        return folded
    symbols = _symbols_only(text)
    return _joined(_spaced(symbols, symbols=False)) or symbols  # a symbol may stand for letters, as ℠ does


def words(text: str) -> list[str]:
    """The words of the folded ``text``, in order; a run of CJK is one word."""
    return fold(text).split()


def word_grams(text: str, longest: int = 6) -> list[str]:
    """Every distinct sequence of 1 to ``longest`` words of ``text``, folded: what a stored alias can equal.

    In scripts without word gaps, character sequences of up to 12 stand in for words (in Korean they begin where a word
    does, because particles only follow). At most MAX_GRAMS, short ones first.
    """
    units = _units(text)
    grams: dict[str, None] = {}
    for length in range(1, max(longest, _LONGEST_RUN) + 1):
        for first in range(len(units.starts) - length + 1):
            if not units.whole(first, first + length - 1) or units.words_in(first, first + length - 1) > longest:
                continue
            grams[units.gram(first, first + length - 1)] = None
            if len(grams) >= MAX_GRAMS:
                return list(grams)
    return list(grams)


def mentions(text: str, names: Iterable[str]) -> list[str]:
    """Which of ``names`` the ``text`` mentions as whole words, the longest first (behaviour: 8, "Entity links").

    A name that occurs only inside the mention of a longer one ("Ana" in "Ana Paula") does not count, unless that one
    is a description ("brother of Ana"). Names under three characters are skipped (under two in CJK). Names that fold
    alike are returned together.
    """
    wanted: dict[str, list[str]] = {}
    for name in names:
        folded = fold(name)
        if len(folded) >= (2 if folded and all(is_cjk(char) for char in folded) else 3):
            wanted.setdefault(folded, []).append(name)
    if not wanted:
        return []
    units = _units(text)
    longest = max(map(len, wanted))
    found: list[tuple[int, int]] = []
    for first, start in enumerate(units.starts):
        for last in range(first, len(units.starts)):
            if units.ends[last] - start > longest:
                break
            if units.whole(first, last) and units.gram(first, last) in wanted:
                found.append((start, units.ends[last]))
    found.sort(key=lambda span: (span[0] - span[1], span[0]))
    uncovered: dict[str, None] = {}
    kept: list[tuple[int, int]] = []
    for start, end in found:
        folded = units.folded[start:end]
        if not any(begin <= start and end <= stop for begin, stop in kept):
            uncovered[folded] = None
            if not all(map(_describes, wanted[folded])):
                kept.append((start, end))
    return [name for folded in uncovered for name in wanted[folded]]


def slug(name: str) -> str:
    """The stable part of a key: folded words joined by "_"; never empty, at most 128 characters.

    Latin accents go (``sao_paulo``), other scripts and meaningful signs stay (``박서준``, ``c++``). A name without any
    letter or digit becomes the code points of its symbols.
    """
    folded = _joined(_spaced(name, symbols=False))
    if folded:
        return _shortened(folded.replace(" ", "_"), MAX_KEY_CHARS)
    symbols = _symbols_only(name).replace(" ", "")
    return _shortened("_".join(f"u{ord(char):x}" for char in symbols) or "unnamed", MAX_KEY_CHARS)


def type_name(entity_type: str) -> str:
    """An entity type as it stands in keys: lower case, joined by "_", at most 40 characters; "concept" if blank."""
    folded = _joined(_spaced(entity_type, symbols=False))
    return folded.replace(" ", "_").lower()[:40].strip("_") or "concept"


def entity_key(entity_type: str, name: str) -> str:
    """``type:slug``, at most 128 characters; a longer one ends in a hash of the whole (behaviour: 6, "Keys")."""
    kind = type_name(entity_type)
    return f"{kind}:{_shortened(slug(name), MAX_KEY_CHARS - len(kind) - 1)}"


def display_name(name: str) -> str:
    """``name`` as it is shown: one line, composed, without emoji and decoration around it.

    A name of nothing but decoration stays as it is; a blank one gives "".
    """
    composed = unicodedata.normalize("NFC", name)
    plain = " ".join("".join(" " if char_class(char) == "space" else char for char in composed).split())
    kept = "".join(map(undecorated, plain))
    kept = " ".join(kept.split())
    while kept and kept != (trimmed := _trim(kept)):
        kept = trimmed
    if not any(char.isalnum() for char in kept):
        return " ".join("".join(char for char in plain if char_class(char) != "invisible").split())
    return unicodedata.normalize("NFC", kept)


def text_hash(text: str) -> bytes:
    """16 bytes that are equal for texts that differ in case, accents, punctuation and spacing only.

    Digits, signs of numbers and names ("-5", "C++", "<") and symbols count: texts that differ in them never agree.
    """
    plain = _joined(_spaced(text, symbols=True)) or _symbols_only(text)
    return hashlib.blake2b(_DIGIT_GAP.sub("", plain).encode("utf-8", "replace"), digest_size=16).digest()


def _describes(name: str) -> bool:
    found = _DESCRIBES.search(name)
    if found is None:
        return False
    return found.group()[-1].islower() if "'s " in found.group() else name[0].islower() or " von " in name


# -- folding -----------------------------------------------------------------------------------------------------------


def _normalised(text: str) -> str:
    text = text.translate(_TRADE_MARKS)
    for _ in range(2):  # casefolding can bring back what NFKC would change
        text = unicodedata.normalize("NFKC", text).casefold()
    return unicodedata.normalize("NFD", text)


def _spaced(text: str, *, symbols: bool) -> str:
    # Names come again and again; whole messages do not, and would fill the memory.
    return _spaced_name(text, symbols) if len(text) <= 120 else _respaced(text, symbols)


@lru_cache(maxsize=2048)
def _spaced_name(text: str, symbols: bool) -> str:
    return _respaced(text, symbols)


def _respaced(text: str, symbols: bool) -> str:
    """``text`` folded but for the spacing of CJK. ``symbols`` keeps mathematical and pictorial signs as words."""
    if text.isascii() and not symbols:
        cleaned = _ASCII_GAPS.sub(" ", text.lower())
    else:
        cleaned = "".join(_cleaned(_normalised(text), symbols))
    cleaned = _SIGNS.sub(lambda match: match.group(1) or " ", cleaned)
    return unicodedata.normalize("NFC", _SPACES.sub(" ", cleaned).strip())


def _cleaned(text: str, symbols: bool) -> Iterable[str]:
    base = ""
    for char in text:
        kind = char_class(char)
        if kind == "letter":
            base = char
            yield spelled_out(char)
        elif kind == "digit":
            base = char
            yield str(unicodedata.decimal(char))
        elif kind == "mark":
            if base and keeps_mark(base, char):
                yield char
        elif kind != "invisible":
            base = ""
            if kind == "sign":
                yield plain_sign(char)
            else:
                yield f" {char} " if kind == "symbol" and symbols else " "


def _joined(spaced: str) -> str:
    """The spacing of the folded form: none inside CJK, one between CJK and other letters."""
    if spaced.isascii():
        return spaced
    parts: list[str] = []
    before = ""
    for char in spaced:
        if char == " ":
            parts.append(char)
            continue
        if before and not _is_part(char):
            if parts[-1] == " " and is_cjk(before) and is_cjk(char):
                parts.pop()
            elif parts[-1] != " " and _parted(before, char):
                parts.append(" ")
        parts.append(char)
        if not _is_part(char):
            before = char
    return "".join(parts)


def _is_part(char: str) -> bool:
    return char_class(char) == "mark"


def _parted(before: str, char: str) -> bool:
    return is_gapless(before) != is_gapless(char) and before not in "+#&@.,%-" and char not in "+#&@.,%-"


def _symbols_only(text: str) -> str:
    """The symbols of a text that has no word, in the form that two writings of it share."""
    kept = (
        " " if char_class(char) == "space" else char
        for char in unicodedata.normalize("NFKC", text)
        if char_class(char) not in ("invisible", "mark")
    )
    return " ".join("".join(kept).casefold().split())  # a lone service mark becomes two letters


def _shortened(text: str, limit: int) -> str:
    if len(text) <= limit:
        return text
    tail = hashlib.blake2b(text.encode("utf-8", "replace"), digest_size=_HASH_TAIL // 2).hexdigest()
    return f"{text[: limit - _HASH_TAIL - 1].rstrip('_')}_{tail}"


def _trim(name: str) -> str:
    """``name`` without decoration at its ends; a bracket goes only where its other half is missing or goes as well."""
    stripped = name.strip(_EDGE)
    name = f"-{stripped}" if stripped[:1].isdigit() and f"-{stripped}" in name else stripped
    if name and name[0] in "([{" and name[-1] in _BRACKETS and _BRACKETS[name[-1]] == name[0]:
        inner = name[1:-1]
        return inner if name[0] not in inner else name
    if name and name[-1] in _BRACKETS and _BRACKETS[name[-1]] not in name:
        return name[:-1]
    return name.rstrip("([{")


@lru_cache(maxsize=64)
def _units(text: str) -> _Units:
    """The units of ``text``. Often many names are looked for in one text, or one text is cut for each of them."""
    return _Units(text)


class _Units:
    """A folded text cut into what a mention can begin and end with: words, or characters where words have no gaps."""

    def __init__(self, text: str) -> None:
        self.folded = ""
        self.starts: list[int] = []
        self.ends: list[int] = []
        self._may_start: list[bool] = []
        self._may_end: list[bool] = []
        self._gapless: list[bool] = []
        pieces: list[str] = []
        length = 0
        before = ""
        for token in _spaced(text, symbols=False).split():
            for nth, unit in enumerate(_cut(_joined(token))):
                gapless = is_gapless(unit[0])
                glued = before != "" and is_cjk(_edge(before)) and is_cjk(unit[0])
                glued = glued or (nth > 0 and gapless and is_gapless(_edge(before)))
                if pieces and not glued:
                    pieces.append(" ")
                    length += 1
                self._add(unit, length, gapless, nth == 0, before)
                pieces.append(unit)
                length += len(unit)
                before = unit
        self.folded = "".join(pieces)

    def _add(self, unit: str, start: int, gapless: bool, opens_token: bool, before: str) -> None:
        inside = not opens_token and before != ""
        same = inside and is_katakana(unit[0]) and is_katakana(before[0])
        if same:
            self._may_end[-1] = False
        self.starts.append(start)
        self.ends.append(start + len(unit))
        self._may_start.append(not (same or (inside and is_hangul(unit[0]) and is_hangul(before[0]))))
        self._may_end.append(True)
        self._gapless.append(gapless)

    def whole(self, first: int, last: int) -> bool:
        """Whether a mention may begin with unit ``first`` and end with unit ``last``."""
        return self._may_start[first] and self._may_end[last]

    def words_in(self, first: int, last: int) -> int:
        """How many units of that stretch are words of a script with word gaps."""
        return last - first + 1 - sum(self._gapless[first : last + 1])

    def gram(self, first: int, last: int) -> str:
        """The folded text from unit ``first`` to unit ``last``."""
        return self.folded[self.starts[first] : self.ends[last]]


def _cut(joined: str) -> list[str]:
    """The units of one token: its words, and each character (with its marks) of a gapless run."""
    units: list[str] = []
    for part in joined.split():
        fresh = True
        apart = all(is_gapless(char) or _is_part(char) for char in part)
        for char in part:
            if fresh or (apart and not _is_part(char)):
                units.append(char)
            else:
                units[-1] += char
            fresh = False
    return units


def _edge(unit: str) -> str:
    """The last character of a unit that is not a mark."""
    return next((char for char in reversed(unit) if not _is_part(char)), unit[-1])

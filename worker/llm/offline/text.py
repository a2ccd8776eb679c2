"""Characters and words: cleaning, folding, and what a capitalised name looks like in any script."""

from __future__ import annotations

import re
import unicodedata

# Upper-case letters of the alphabets that have them (Latin, Greek, Cyrillic), spelt out: ``re`` has no \p{Lu}.
UPPER = "".join(re.escape(chr(code)) for code in range(0x530) if chr(code).isupper())
# Scripts without capitals: there, a run of letters next to a Latin sentence is a name.
CASELESS = "\u0590-\u08ff\u0900-\u0dff\u0e00-\u0e7f\u1100-\u11ff\u3005\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af"

_INVISIBLE = re.compile("[\u200b-\u200f\u2060\ufeff\u00ad\u202a-\u202e]")
_CONTROL_TOKEN = re.compile(r"<\|[^|<>]{1,40}\|>")
_EMOTICON = re.compile(r"(?:(?<=\s)|(?<=\w))[:;=]['-]?[)(DPpO3/|*]+(?=\s|$|[.!?])")
_QUOTES = str.maketrans({"\u2019": "'", "\u2018": "'", "\u02bc": "'", "\u201c": '"', "\u201d": '"', "\u00a0": " "})
_WORD = re.compile(r"[^\W_]+(?:['.\-][^\W_]+)*[+#]*")


def clean(text: object) -> str:
    """Any value as text without surrogates, control characters, tokenizer literals and typographic quotes."""
    if not isinstance(text, str):
        return ""
    kept = "".join(c if c in "\n\t" or unicodedata.category(c) not in ("Cc", "Cs") else " " for c in text)
    kept = unicodedata.normalize("NFC", kept).translate(_QUOTES)
    return _EMOTICON.sub(" ", _CONTROL_TOKEN.sub(" ", _INVISIBLE.sub("", kept)))


def fold(text: str) -> str:
    """Compatibility-normalised, caseless, without Latin accents: the form in which two spellings are compared."""
    decomposed = unicodedata.normalize("NFKD", text).casefold()
    return unicodedata.normalize("NFKC", "".join(c for c in decomposed if not unicodedata.combining(c)))


def plain(text: str) -> str:
    """Folded letter by letter: as long as ``text``, so that what is found in one has the same place in the other."""
    return "".join(f if len(f := fold(c)) == 1 else c for c in text)


def word_list(spec: str) -> list[str]:
    """A table of words, written as prose."""
    return spec.split()


def word_set(spec: str) -> frozenset[str]:
    """A set of words, written as prose."""
    return frozenset(spec.split())


def words(text: str) -> list[str]:
    """The words of a text as written; ``C++`` and ``sci-fi`` stay whole."""
    return _WORD.findall(text)


def folded_words(text: str) -> list[str]:
    """The words of a text, folded."""
    return words(fold(text))


def squeeze(text: str) -> str:
    """One line, single spaces, no space before punctuation, no dangling punctuation at the ends."""
    line = re.sub(r"\s+", " ", text)
    line = re.sub(r"\s+([,.;:!?)])", r"\1", line)
    line = re.sub(r",\s*,+", ",", line)
    return line.strip(" \t\n,;:.!…-–—。！")


def mentions(text: str, name: str) -> bool:
    """Whether ``name`` stands in ``text`` as whole words (as a substring in scripts without word gaps)."""
    needle = fold(name).strip()
    if not needle:
        return False
    if re.search(f"[{CASELESS}]", needle):
        return needle in fold(text)
    return re.search(rf"(?<![^\W_]){re.escape(needle)}(?![^\W_])", fold(text)) is not None


def item(value: object, key: str, default: str = "") -> str:
    """A text field of a payload's object, cleaned; the payload may hold anything."""
    if isinstance(value, dict):
        found = value.get(key)
        return clean(found) if isinstance(found, str) else default
    return default


def items(value: object) -> list[object]:
    """A payload's list, or nothing."""
    return list(value) if isinstance(value, list | tuple) else []

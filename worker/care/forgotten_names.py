"""How the names of what is forgotten are looked for, in any text of the database or of a queue."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable

from worker.write.scripts import is_gapless

NEVER = "(?!)"  # matches nothing
SHORTEST = 3
_SPECIAL = re.compile(r"([.^$*+?()\[\]{}|\\/-])")
# A text inside JSON has its line ends written out: the letter behind the backslash is no part of a word.
_BEFORE = r"(^|[^[:alnum:]]|\\[nrtbf])"
_AFTER = r"($|[^[:alnum:]])"


def pattern(names: Iterable[str]) -> str:
    """A regular expression (PostgreSQL's) that finds whole words, over texts folded by ``mandua_folded``.

    ``names`` are folded as well. What stands between the words of a name may be any sign ("ana_souza"). Names under
    three characters are left out; where a script has no gaps between words, any place counts and two are enough.
    """
    gapped, gapless = [], []
    for name in sorted(set(names), key=lambda name: (-len(name), name)):
        words = [_SPECIAL.sub(r"\\\1", word) for word in re.split(r"[\s_]+", name) if word]
        if any(is_gapless(char) for char in name):
            if len(name) >= SHORTEST - 1:
                gapless.append("[^[:alnum:]]*".join(words))
        elif len(name.strip()) >= SHORTEST:
            gapped.append("[^[:alnum:]]+".join(words))
    found = [f"{_BEFORE}({'|'.join(gapped)}){_AFTER}"] if gapped else []
    found += [f"({'|'.join(gapless)})"] if gapless else []
    return "|".join(found) or NEVER


def folded(text: str) -> str:
    """``mandua_folded`` of the database, for texts that are not in it."""
    plain = unicodedata.normalize("NFKD", text)
    return "".join(char for char in plain if not "\u0300" <= char <= "\u036f").lower()


def python_pattern(postgres: str) -> re.Pattern[str]:
    """The same expression for Python's own matching."""
    return re.compile(postgres.replace("[^[:alnum:]]", r"[\W_]"))

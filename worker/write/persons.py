"""When two names may mean one entity: the guards that hold in every phase, and what speaks for it in the spelling.

``may_be_same`` only ever forbids: whatever an embedding or a model says, "Prado" is not "Prado Filho" and store 1 is
not store 2. ``evidence`` is what a high cosine needs beside it, because short names lie close to each other.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache

from worker.write.entity_types import compatible, is_person
from worker.write.names import words
from worker.write.scripts import is_cjk

MIN_PREFIX = 3
NO_NICKNAMES: Mapping[str, str] = {}


def _set(*lines: str) -> frozenset[str]:
    return frozenset(" ".join(lines).split())


_TITLES = _set(
    "dr dra sr sra srta mr mrs ms mx miss mister prof profa professor doutor doutora senhor senhora dona don doña seu",
    "sir madam madame mme monsieur herr frau signor signora sig capt captain rev",
)
_PARTICLES = _set("de da do das dos e del della di du des la las los le von van der den zu y bin ibn al el")
_SUFFIXES = {
    "jr": "junior", "junior": "junior", "jnr": "junior", "sr": "senior", "senior": "senior", "snr": "senior",
    "filho": "filho", "filha": "filha", "neto": "neto", "neta": "neta", "sobrinho": "sobrinho", "sobrinha": "sobrinha",
    "bisneto": "bisneto", "hijo": "hijo", "nieto": "nieto", "fils": "fils", "pere": "pere", "figlio": "figlio",
    "2nd": "ii", "3rd": "iii", "4th": "iv", "segundo": "ii", "terceiro": "iii", "tercero": "iii",
    "младший": "junior", "старший": "senior",
}  # fmt: skip
_ROMAN = {
    "ii": 2, "iii": 3, "iv": 4, "vi": 6, "vii": 7, "viii": 8, "ix": 9, "xi": 11, "xii": 12, "xiii": 13, "xiv": 14,
    "xv": 15, "xvi": 16,
}  # fmt: skip
_LEGAL = _set(
    "the inc ltd llc ltda sa gmbh ag corp corporation co company plc srl spa eireli limited o a os as el la le"
)
# "Daniela" is no short form of "Daniel": endings that make another first name of a man's.
_GENDERED = ("a", "e", "ia", "la", "le", "ne")
_DIMINUTIVES = ("zinho", "zinha", "inho", "inha", "cito", "cita", "ito", "ita", "inho", "ie", "y", "i")
_NUMBER = re.compile(r"\d+(?:[.,]\d+)*")


@dataclass(frozen=True, slots=True)
class PersonName:
    """A person's name in parts, folded. ``suffixes``: generational ones, never to be dropped."""

    first: str
    rest: tuple[str, ...]
    suffixes: frozenset[str]


@lru_cache(maxsize=1024)
def person_name(name: str) -> PersonName:
    """The parts of a person's name. A leading "Sr." is a title, a trailing one a generation."""
    tokens = words(name)
    while len(tokens) > 1 and tokens[0] in _TITLES:
        tokens = tokens[1:]
    suffixes = set()
    while len(tokens) > 1 and (tokens[-1] in _SUFFIXES or tokens[-1] in _ROMAN):
        last = tokens.pop()
        suffixes.add(_SUFFIXES.get(last, last))
    rest = tuple(token for token in tokens[1:] if token not in _PARTICLES)
    return PersonName(tokens[0] if tokens else "", rest, frozenset(suffixes))


def untitled(name: str) -> str:
    """``name`` as written, without leading titles: "Dr. Paulo" is Paulo."""
    parts = name.split()
    while len(parts) > 1 and words(parts[0])[:1] and words(parts[0])[0] in _TITLES:
        parts = parts[1:]
    return " ".join(parts)


def may_be_same(one: str, other: str, type_one: str, type_other: str) -> str | None:
    """None where two names may mean one entity; else the coded guard that forbids it.

    Guards: ``type``, ``number``, ``generation``, ``cjk_character``, ``letter``, ``surname``.
    """
    if not compatible(type_one, type_other):
        return "type"
    left, right = words(one), words(other)
    if left == right:
        return None
    if _numbers(left) != _numbers(right):
        return "number"
    if _cjk_differs("".join(left), "".join(right)):
        return "cjk_character"
    if is_person(type_one) or is_person(type_other):
        a, b = person_name(one), person_name(other)
        if a.suffixes != b.suffixes:
            return "generation"
        return "surname" if not _surnames_agree(a.rest, b.rest) else None
    apart = set(left) ^ set(right)
    return "letter" if {len(token) for token in apart} == {1} and len(apart) > 1 else None


def prefix_match(one: str, other: str, nicknames: Mapping[str, str] = NO_NICKNAMES) -> bool:
    """Whether two persons' names are one by the first-name rule (behaviour: 6.1).

    The shorter first name (3 letters at least) begins the longer one, further names are equal or absent on one side,
    generations are equal. Uniqueness is the caller's to see to. ``nicknames``: folded nickname -> folded first name.
    """
    if may_be_same(one, other, "person", "person") is not None:
        return False
    a, b = person_name(one), person_name(other)
    shorter, longer = sorted((a.first, b.first), key=len)
    if not (_first_names_fit(shorter, longer) or _nicknamed(a.first, b.first, nicknames)):
        return False
    return all(_tokens_fit(x, y) for x, y in zip(a.rest, b.rest, strict=False))


def evidence(one: str, other: str, entity_type: str) -> str | None:
    """What in the spelling speaks for one entity, coded; None where nothing does.

    For persons it is about the first name, because a shared surname is a family; for others the words must be the
    same but for legal forms and slips of spelling.
    """
    left, right = words(one), words(other)
    if not left or not right or may_be_same(one, other, entity_type, entity_type) is not None:
        return None
    if left == right or "".join(left) == "".join(right):
        return "same_words"
    if is_person(entity_type):
        return _person_evidence(person_name(one), person_name(other))
    a, b = [w for w in left if w not in _LEGAL], [w for w in right if w not in _LEGAL]
    if a == b:
        return "same_words"
    if len(a) == len(b) and all(
        x == y or _sound(x) == _sound(y) or (min(len(x), len(y)) > 5 and _slip(x, y)) for x, y in zip(a, b, strict=True)
    ):
        return "spelling"
    shorter, longer = sorted((a, b), key=len)
    if len(shorter) == 1 and len(longer) > 1 and shorter[0] == "".join(word[0] for word in longer) and len(longer) > 2:
        return "acronym"
    return None


# -- parts -------------------------------------------------------------------------------------------------------------


def _numbers(tokens: list[str]) -> list[str]:
    found: list[str] = []
    for place, token in enumerate(tokens):
        if place and token in _ROMAN:
            found.append(str(_ROMAN[token]))
        found.extend(number.lstrip("0") or "0" for number in _NUMBER.findall(token))
    return sorted(found)


def _cjk_differs(left: str, right: str) -> bool:
    """Whether two names in CJK differ in a character. Leaving some out (a family name alone) is no difference."""
    if not (left and right and all(map(is_cjk, left)) and all(map(is_cjk, right))):
        return False
    shorter, longer = sorted((left, right), key=len)
    if len(shorter) == len(longer):
        return shorter != longer
    rest = iter(longer)
    return not all(char in rest for char in shorter)


def _surnames_agree(left: tuple[str, ...], right: tuple[str, ...]) -> bool:
    if not left or not right:
        return True
    return any(_tokens_fit(x, y) or _slip(x, y) for x in left for y in right)


def _tokens_fit(one: str, other: str) -> bool:
    """Equal, or one the initial of the other."""
    return one == other or (min(len(one), len(other)) == 1 and one[0] == other[0])


def _first_names_fit(shorter: str, longer: str) -> bool:
    if shorter == longer:
        return True
    if len(shorter) < MIN_PREFIX or any(map(is_cjk, shorter)) or not longer.startswith(shorter):
        return False
    vowel_end = shorter[-1] in "aeiouyаеиоуыэюя"
    return vowel_end or len(shorter) < 4 or longer[len(shorter) :] not in _GENDERED


def _nicknamed(one: str, other: str, nicknames: Mapping[str, str]) -> bool:
    return bool(nicknames) and nicknames.get(one, one) == nicknames.get(other, other)


def _person_evidence(a: PersonName, b: PersonName) -> str | None:
    if not all(_tokens_fit(x, y) or _slip(x, y) for x, y in zip(a.rest, b.rest, strict=False)):
        return None
    shorter, longer = sorted((a.first, b.first), key=len)
    if _first_names_fit(shorter, longer):
        return "prefix" if shorter != longer else "same_first_name"
    if _sound(shorter) == _sound(longer):
        return "spelling"
    if _is_diminutive(longer, shorter) or _is_diminutive(shorter, longer):
        return "diminutive"
    common = len(_common_prefix(shorter, longer))
    if common >= MIN_PREFIX and len(shorter) - common <= 1 and len(longer) - len(shorter) >= 3:
        return "diminutive"
    return None


def _is_diminutive(short_form: str, name: str) -> bool:
    """Whether ``short_form`` is a stem of ``name`` with a diminutive ending: aninha of ana, guili of guilherme."""
    for ending in _DIMINUTIVES:
        stem = short_form.removesuffix(ending)
        if stem != short_form and len(stem) >= 2 and name.startswith(stem):
            return len(stem) >= MIN_PREFIX or name[len(stem) :] in ("a", "o", "e")
    return False


def _common_prefix(one: str, other: str) -> str:
    length = 0
    for x, y in zip(one, other, strict=False):
        if x != y:
            break
        length += 1
    return one[:length]


@lru_cache(maxsize=1024)
def _sound(word: str) -> str:
    """A word without what spellings of one name differ in: ph/f, th/t, y/i, k/c, z/s, doubled letters, a silent h."""
    for written, heard in (("ph", "f"), ("th", "t"), ("ck", "c"), ("y", "i"), ("k", "c"), ("z", "s"), ("w", "v")):
        word = word.replace(written, heard)
    word = re.sub(r"(?<!^)h(?=[^aeiou]|$)", "", re.sub(r"^h", "", word))
    return re.sub(r"(.)\1", r"\1", word)


def _slip(one: str, other: str) -> bool:
    """Whether two long enough words differ by one slip: a letter more, less, other or swapped; never the last vowel."""
    if one == other:
        return True
    if min(len(one), len(other)) < 5 or abs(len(one) - len(other)) > 1:
        return _sound(one) == _sound(other) and min(len(one), len(other)) >= 3
    common = len(_common_prefix(one, other))
    tail_one, tail_other = one[common:], other[common:]
    if len(one) == len(other):
        swapped = tail_one[1::-1] + tail_one[2:] == tail_other
        return swapped or (tail_one[1:] == tail_other[1:] and len(tail_one) > 1)
    longer, shorter = (tail_one, tail_other) if len(one) > len(other) else (tail_other, tail_one)
    return longer[1:] == shorter and bool(shorter)

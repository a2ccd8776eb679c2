"""Entity resolution: one of the candidates, only where the names themselves say so and no other one fits."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from worker.llm.offline.names import GENERATIONAL
from worker.llm.offline.text import CASELESS, clean, fold, item, items, words

Json = dict[str, Any]

# Short forms that share no beginning with the name; both directions.
_SHORT = {
    "bob": "robert roberto",
    "bill": "william",
    "will": "william",
    "dick": "richard",
    "jim": "james",
    "jack": "john",
    "peggy": "margaret",
    "liz": "elizabeth",
    "beth": "elizabeth",
    "kate": "katherine catherine",
    "tony": "anthony antonio",
    "ted": "edward theodore",
    "meg": "margaret",
    "ze": "jose",
    "zeca": "jose",
    "chico": "francisco",
    "tonho": "antonio",
    "toninho": "antonio",
    "bia": "beatriz",
    "duda": "eduarda eduardo",
    "dudu": "eduardo",
    "guto": "augusto gustavo",
    "beto": "roberto alberto humberto",
    "nando": "fernando",
    "malu": "maria",
    "lu": "luciana luiza lucia",
    "gui": "guilherme",
    "guili": "guilherme",
    "rafa": "rafael rafaela",
    "caca": "carlos caio",
    "tati": "tatiana",
    "cris": "cristina cristiane",
    "mari": "mariana marina",
    "leo": "leonardo leandro",
    "lia": "amelia",
    "nina": "marina carolina",
    "gabi": "gabriela",
    "xande": "alexandre",
    "dani": "daniel daniela",
    "ju": "juliana julia",
    "pedrinho": "pedro",
    "mike": "michael",
    "dave": "david",
    "alex": "alexander alexandre alexandra",
}
_DIMINUTIVE = re.compile(r"(?:z?inh[oa]|it[oa]|z[aã]o)$")


def resolve(payload: Mapping[str, Any]) -> Json:
    """``entity_resolution``: a decision for every name, reason first."""
    out = []
    for position, entry in enumerate(items(payload.get("names")), start=1):
        if not isinstance(entry, dict):
            continue
        number = entry.get("number")
        chosen, reason = _choose(entry)
        out.append(
            {
                "name_number": number if isinstance(number, int) else position,
                "reason": reason,
                "candidate_number": chosen,
            }
        )
    return {"resolutions": out}


def _choose(entry: Json) -> tuple[int | None, str]:
    name, kind = item(entry, "name"), item(entry, "type").lower()
    fitting: list[tuple[int, int]] = []
    for position, candidate in enumerate(items(entry.get("candidates")), start=1):
        if not isinstance(candidate, dict):
            continue
        other = item(candidate, "type").lower()
        if kind and other and kind != other:
            continue
        names = [item(candidate, "name"), *(clean(a) for a in items(candidate.get("aliases")))]
        closeness = max((fit(name, n) for n in names if n), default=0)
        if closeness:
            number = candidate.get("number")
            fitting.append((closeness, number if isinstance(number, int) else position))
    if not fitting:
        return None, "no candidate's name is a form of this one"
    top = max(closeness for closeness, _n in fitting)
    best = [number for closeness, number in fitting if closeness == top]
    if len(best) > 1 or (top < 3 and len(fitting) > 1):
        return None, "more than one candidate fits, so none is sure"
    return best[0], "the names are forms of one another, and no other candidate fits"


def fit(a: str, b: str) -> int:
    """How well two names go together: 3 the same, 2 one a form of the other, 1 a slip of the pen, 0 not."""
    x, y = _parts(a), _parts(b)
    if not x or not y:
        return 0
    if x == y or "".join(x) == "".join(y):
        return 3
    if re.search(f"[{CASELESS}]", a + b) or _guards(x) != _guards(y):
        return 0
    if len(x) > len(y):
        x, y = y, x
    if all(any(_token(s, t) for t in y) for s in x) and _token(x[0], y[0]):
        return 2
    if set(x) <= set(y) and len(x) >= 1 and x[0] in y:
        return 2
    if _initials(x, y):
        return 2
    return 1 if len(x) == len(y) and sum(_slip(s, t) for s, t in zip(x, y, strict=True)) <= 1 else 0


def _parts(name: str) -> list[str]:
    return [
        p
        for p in (fold(w).strip(".") for w in words(name))
        if p not in ("de", "da", "do", "dos", "das", "of", "the", "mr", "mrs", "ms", "dr", "dra", "sra", "dona")
    ]


def _guards(parts: list[str]) -> set[str]:
    """What must be equal: numbers and generational suffixes. "Junior" as the only name is a name."""
    return {p for i, p in enumerate(parts) if any(c.isdigit() for c in p) or (p in GENERATIONAL and i > 0)}


def _token(short: str, long: str) -> bool:
    if short == long or (len(short) == 1 and long.startswith(short)):
        return True
    if len(short) > len(long) and not _DIMINUTIVE.search(short):
        short, long = long, short
    if len(short) >= 3 and long.startswith(short):
        return True
    if long in _SHORT.get(short, "").split() or short in _SHORT.get(long, "").split():
        return True
    stem = _DIMINUTIVE.sub("", short)
    return stem != short and len(stem) >= 2 and long.startswith(stem)


def _initials(short: list[str], long: list[str]) -> bool:
    """ "J. Silva" was handled by token; this is "IBM" for "International Business Machines"."""
    return len(short) == 1 and len(long) > 1 and 2 <= len(short[0]) <= 6 and short[0] == "".join(p[0] for p in long)


def _slip(a: str, b: str) -> int:
    """0 if equal, 1 if one letter apart in words of five letters and more, else too many."""
    if a == b:
        return 0
    if min(len(a), len(b)) < 5 or abs(len(a) - len(b)) > 1:
        return 9
    i = 0
    while i < min(len(a), len(b)) and a[i] == b[i]:
        i += 1
    j = 0
    while j < min(len(a), len(b)) - i and a[-1 - j] == b[-1 - j]:
        j += 1
    swapped = len(a) == len(b) and a[i : len(a) - j] == b[i : len(b) - j][::-1] and len(a) - i - j == 2
    return 1 if swapped or max(len(a), len(b)) - i - j <= 1 else 9

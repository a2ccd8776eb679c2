"""What a sentence is about, where its verb says so beyond doubt: a guard under weak models.

A model that retires "is compliance manager at Nortec" because of "administers Nortec's GitHub" loses a true fact
(behaviour: 7). Only certain pairs are refused; of all else the model decides. English, Portuguese, Spanish.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import lru_cache

from worker.write.names import fold, words

_VERBS: dict[str, tuple[str, ...]] = {
    "lives live living lived resides mora moro morava morar reside vive vivia viver vivir": ("home",),
    "moved moves mudou mudei muda mudo mude": ("home", "job"),
    "works work worked working trabalha trabalho trabalhava trabalhar trabaja trabajaba trabajar employed hired "
    "joined contratado contratada": ("job",),
    "likes like loves love hates hate dislikes enjoys adores gosta gosto adora odeia detesta gusta encanta odia": (
        "taste",
    ),
    "married dating engaged divorced girlfriend boyfriend casado casada casou namora noivo noiva divorciou divorciado "
    "divorciada caso": ("love",),
    "administers administer manages maintains uses leads coordinates supervises teaches plays speaks reads writes "
    "develops administra gerencia mantem usa lidera coordena supervisiona ensina toca joga fala le escreve desenvolve "
    "cuida dirige ensena juega habla lee escribe": ("activity",),
    "is was became e era virou tornou es hizo": ("role", "job", "home", "love", "age"),
}
_MATTERS = {verb: frozenset(matters) for line, matters in _VERBS.items() for verb in line.split()}
_AGE = re.compile(r"\b(?:is|turned|tem|fez|tiene|cumplio) \d{1,3}(?: years| anos?| anios|$|\b(?! \w))")
_COPULAS = frozenset({"is", "was", "became", "e", "era", "virou", "tornou", "es"})
_NAME = re.compile(r"[A-ZÀ-Þ]\w+")


def of_another_matter(new: str, old: str, names: Iterable[str] = ()) -> bool:
    """Whether ``new`` certainly says nothing about what ``old`` says: a home and a taste, a role and an activity.

    A role or a job and an activity are told apart only where both are at one named place ("at Nortec", "Nortec's
    GitHub"): somebody who was a nurse may run a bakery now. ``names`` are the subject's.
    """
    subject = frozenset(token for name in names for token in words(name))
    mine, theirs = _matter(new, subject), _matter(old, subject)
    if not mine or not theirs or mine & theirs:
        return False
    if "activity" in mine | theirs and (mine | theirs) & {"role", "job"}:
        return bool(_names_in(new) & _names_in(old) - subject)
    return True


@lru_cache(maxsize=1024)
def _matter(text: str, subject: frozenset[str]) -> frozenset[str]:
    """The matters that the first telling verb leaves open; none where no verb tells."""
    if _AGE.search(fold(text)):
        return frozenset({"age"})
    tokens = [token for token in words(text) if token not in subject]
    for place, token in enumerate(tokens[:6]):
        if token in _MATTERS:
            behind = tokens[place + 1 : place + 3] if token in _COPULAS else []
            told = [_MATTERS[later] for later in behind if later in _MATTERS]
            return told[0] if told else _MATTERS[token]
    return frozenset()


def _names_in(text: str) -> frozenset[str]:
    return frozenset(token for name in _NAME.findall(text) for token in words(name))

"""Names given apart from the role: "Her name is Luna", "the teacher's name is Simone"; and the fact of a role."""

from __future__ import annotations

import re

from worker.llm.offline.lexicon import is_person_noun
from worker.llm.offline.names import NAME, is_name_word
from worker.llm.offline.roles import WORD, Role, role_of
from worker.llm.offline.state import Fact, Reading, role_edge, role_sentence
from worker.llm.offline.text import fold


def role_fact(name: str, word: str, role: Role, owner: str, state: Reading) -> None:
    """The fact and the edge of one role."""
    state.meet(owner, "person")
    state.meet(name, role.kind, gender=role.gender)
    if fold(owner) == fold(state.speaker):
        state.role_holders[role.english] = name
    if role.kind == "pet":
        text = (
            f"{owner} tem {'uma' if word.lower().endswith('a') or role.gender == 'f' else 'um'} {word} "
            f"chamad{'a' if role.gender == 'f' else 'o'} {name}"
            if state.lang == "pt"
            else f"{owner} has {'an' if word[0] in 'aeiou' else 'a'} {word} called {name}"
        )
        state.add(Fact(owner, text, category="relationship_change"))
    else:
        state.add(Fact(name, role_sentence(name, word, owner, state.lang), category="relationship_change"))
    state.link(*role_edge(role, name, owner))


_NAME_OF_ANOTHER = re.compile(
    rf"^(?:[Tt]he (?P<r1>{WORD})'s name(?: is|'s)|[Tt]he name of the (?P<r2>{WORD}) is"
    rf"|[Tt]he (?P<r3>{WORD}) is (?:called"
    rf"|named)|[Oo] nome d[oa] (?P<r4>{WORD}) é|[OoAa] (?P<r5>{WORD}) (?:se chama"
    rf"|chama-se)) (?:[oa] )?(?P<name>{NAME})$"
)
_NAMED_AT_LAST = re.compile(
    rf"^(?:[Ss]he|[Hh]e|[Ii]t|[Ee]l[ea])(?: is|'s) (?:called|named) (?P<n1>{NAME})$"
    rf"|^(?:(?:[Hh]er|[Hh]is|[Ii]ts) name(?: is|'s)|(?:[Ee]l[ea] )?[Ss]e chama"
    rf"|[Oo] nome del[ea] é) (?:[oa] )?(?P<n2>{NAME})$"
    rf"|^(?:[Aa] gente )?(?:[Ww]e|I) (?:named|called|call) (?:her|him|it) (?P<n3>{NAME})$"
)


def named_at_last(clause: str, state: Reading) -> bool:
    """ "We got a puppy! Her name is Luna": the role was told before its holder's name."""
    m = _NAMED_AT_LAST.match(clause)
    role = role_of(state.unnamed_role) if m else None
    if m is None or role is None:
        return False
    name = next(n for n in m.groups() if n)
    canonical = state.meet(state.canonical(name), role.kind, gender=role.gender)
    role_fact(canonical, state.unnamed_role, role, state.speaker, state)
    state.subject, state.unnamed_role = canonical, ""
    return True


def name_of_another(clause: str, state: Reading) -> bool:
    """ "The teacher's name is Simone": whose teacher is not said, so the sentence stays as it is."""
    m = _NAME_OF_ANOTHER.match(clause)
    word = next((w for w in m.groups()[:-1] if w), "") if m else ""
    if m is None or not is_name_word(m["name"].split()[0]) or not (role_of(word) or is_person_noun(word)):
        return False
    role = role_of(word)
    canonical = state.meet(
        state.canonical(m["name"]), role.kind if role else "person", gender=role.gender if role else ""
    )
    if role and role.kind == "pet":
        role_fact(canonical, word.lower(), role, state.speaker, state)
    else:
        text = f"{canonical} é o nome d{'a' if (role and role.gender == 'f') or word.endswith('a') else 'o'} {word}"
        if state.lang == "en":
            text = f"{canonical} is the name of the {word}"
        state.add(Fact(canonical, text, category="relationship_change"))
    state.subject = canonical
    return True

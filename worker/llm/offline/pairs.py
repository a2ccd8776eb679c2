"""Clauses about several: "Zoe and I", "Kwame and his wife", "our dogs, Rex and Bella"."""

from __future__ import annotations

import re

from worker.llm.offline import portuguese, rewriting
from worker.llm.offline.lexicon import is_person_noun
from worker.llm.offline.names import NAME, find_names, is_name_word
from worker.llm.offline.roles import ADJ, MINE, WORD, as_mine, is_plural, role_of
from worker.llm.offline.state import Reading, Told, possessive, role_edge

_WITH_SPEAKER = (
    rf"^(?P<n>(?:{MINE} (?:{WORD} ){{1,3}}?)?{NAME}|{MINE} (?:{WORD} ){{0,2}}?{WORD}) and I (?P<r>.+)$",
    rf"^I and (?P<n>{NAME}) (?P<r>.+)$",
    rf"^(?:[oaOA] )?(?P<n>(?:{MINE} (?:{WORD} ){{1,2}}?)?{NAME}|{MINE} (?:{WORD} )?{WORD}) e eu (?P<r>.+)$",
    rf"^[Ee]u (?:e|mais) (?:[oa] )?(?P<n>(?:{MINE} (?:{WORD} )??{WORD},? (?:[oa] )?)?{NAME}|{MINE} {ADJ} {WORD}"
    rf"|{MINE} {WORD}),? (?P<r>.+)$",
)


def with_speaker(clause: str, state: Reading, _continues: bool) -> Told | None:
    """ "Zoe and I got engaged", "eu e o Caio moramos juntos": the speaker's, with the other one named beside."""
    for pattern in _WITH_SPEAKER:
        m = re.match(pattern, clause)
        if not m or not (
            role_of(m["n"].split()[-1]) or is_person_noun(m["n"].split()[-1]) or re.search(rf"{NAME}$", m["n"])
        ):
            continue
        other = re.sub(rf"^{MINE} ", lambda d: f"{_THEIRS.get(d.group().strip().lower(), 'their')} ", m["n"])
        if state.lang == "pt":
            predicate = rewriting.portuguese_own(_together_pt(m["r"], state.speaker) or "", state.speaker)
            return Told(state.speaker, f"{state.speaker} e {other}", predicate or "")
        return Told(
            state.speaker,
            f"{state.speaker} and {other}",
            re.sub(r"\b(?:my|our)\b", "their", m["r"]).replace("'re ", "are ").replace("'ve ", "have "),
        )
    return None


_THEIRS = {"meu": "seu", "nosso": "seu", "minha": "sua", "nossa": "sua", "meus": "seus", "nossos": "seus",
           "minhas": "suas", "nossas": "suas"}  # fmt: skip


def _together_pt(rest: str, speaker: str) -> str | None:
    predicate = re.sub(r"^nos (?=\w+mos\b)", "se ", rest)
    head = rest.split()[0]
    known = head in portuguese.ADVERBS | {"se", "nos"} or portuguese.is_verb(head) or portuguese.first_person(head)
    return _plural_pt(predicate) if known else rewriting.portuguese_predicate(rest, speaker, guess=True)


def _plural_pt(predicate: str) -> str:
    """ "moramos" as "moram": the third person plural of the first plural."""
    tokens = predicate.split()
    for index, token in enumerate(tokens[:3]):
        for form in portuguese.known(token):
            if (form.person == 1 and form.number == 2) or (form.person == 3 and form.number == 1):
                tokens[index] = portuguese.plural(form)
                return " ".join(tokens)
    return predicate


_PLURAL_ROLE = re.compile(
    rf"^(?P<det>{MINE}) (?P<adj>(?:(?:{ADJ}|\w+) )??)(?P<role>{WORD}),? (?:[oa] )?(?P<names>{NAME}(?:(?:, | and "
    rf"| e )(?:[oa] )?{NAME})+)"
    rf"(?P<r>,? .+)$"
)


def several_in_a_role(clause: str, state: Reading, _continues: bool) -> Told | None:
    """ "Our dogs, Rex and Bella, sleep on the bed": several in one role, told of the one whose they are."""
    m = _PLURAL_ROLE.match(clause)
    role = as_mine(m["role"]) if m else None
    if not m or role is None or not is_plural(m["role"]):
        return None
    names = [n for n in find_names(m["names"], state.known_names()) if is_name_word(n.split()[0])]
    for name in names:
        canonical = state.meet(state.canonical(name), role.kind, gender=role.gender)
        state.link(*role_edge(role, canonical, state.speaker))
    noun, rest = f"{m['adj']}{m['role']}", m["r"].strip(" ,")
    if state.lang == "pt":
        shown = rewriting.owned(f"{m['det']} {noun}", state.speaker)
        shown, predicate = shown[0].upper() + shown[1:], rewriting.portuguese_other(rest, state.speaker)
    else:
        shown, predicate = f"{possessive(state.speaker)} {noun}", rewriting.english_other(rest, state.speaker)
    return Told(state.speaker, f"{shown}, {m['names']},", predicate)


_COUPLE = re.compile(
    rf"^(?P<n>{NAME}) (?P<and>and|e) (?P<their>(?:his|her|their|[oa]|seus?|suas?) {WORD}(?: d(?:ele|ela))?) (?P<r>.+)$"
)


def couple(clause: str, state: Reading, _continues: bool) -> Told | None:
    """ "Kwame and his wife moved to Accra"."""
    m = _COUPLE.match(clause)
    if not m or not is_name_word(m["n"].split()[0]) or role_of(m["their"].split()[1]) is None:
        return None
    name = state.meet(state.canonical(re.sub(r"^[OA] ", "", m["n"])), "person")
    change = rewriting.portuguese_other if state.lang == "pt" else rewriting.english_other
    return Told(name, f"{name} {m['and']} {m['their']}", change(m["r"], state.speaker))

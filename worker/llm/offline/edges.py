"""Edges from settled facts: only between two names that the fact's own text holds."""

from __future__ import annotations

import re

from worker.llm.offline.frames import Frame
from worker.llm.offline.names import NAME, find_names, is_name_word, kind_of, trim
from worker.llm.offline.roles import role_of
from worker.llm.offline.state import Reading, role_edge
from worker.llm.offline.subjects import Told
from worker.llm.offline.text import fold, mentions

_ROLE_OF = re.compile(
    rf"^(?:is|é|was|foi) (?:(?:the|an?|um|uma|o|a) )?(?:(?P<owner>{NAME})'s (?:\w+ )?(?P<role>[\w-]+)"
    rf"|(?P<role2>[^\W\d_]+)(?: \w+)? d[aeo] (?P<owner2>{NAME}))$"
)
_AT = re.compile(rf"\b(?:at|for|na|no|pela|pelo|para a) (?P<v>{NAME})")
_IN = re.compile(rf"\b(?:in|em|to|para(?: [oa])?|no|na|nos|nas|from) (?P<v>{NAME})")
_DEFAULT_KIND = {"place": "place", "organization": "organization", "person": "person", "product": "product"}


def note_edges(told: Told, frame: Frame | None, text: str, state: Reading) -> None:
    """Note the edges of a fact and meet every name in its text with the type that the sentence suggests."""
    source = told.subject
    linked: set[str] = set()
    if not told.predicate.strip():
        return  # a script that is not read by words
    _link_pair(told, state)
    if m := _ROLE_OF.match(told.predicate):
        role, owner = role_of(m["role"] or m["role2"]), m["owner"] or m["owner2"]
        if role and owner:
            owner = state.meet(state.canonical(owner), "person")
            state.link(*role_edge(role, source, owner))
            linked.add(fold(owner))
    if frame and frame.kind.rel_type:
        _link_frame(told, frame, text, state, linked)
    _work_place(told, state, linked, frame)
    _meet_others(told, text, state)


_PAIRS = (
    (
        re.compile(r"^(?:(?:are|got|just got|were) married|married|(?:se )?casaram|são casados|estão casados)"),
        "spouse_of",
    ),
    (re.compile(r"^(?:(?:are|got|just got) engaged|ficaram noivos|noivaram|estão noivos)"), "engaged_to"),
    (
        re.compile(r"^(?:are dating|started dating|are together|namoram|estão namorando|começaram a namorar)"),
        "partner_of",
    ),
    (re.compile(r"^(?:are|were|são|eram) (?:best |good |old |melhores |grandes )?(?:friends|amig[oa]s)"), "friend_of"),
    (re.compile(r"^(?:are|são) (?:siblings|brothers|sisters|twins|irmãos|irmãs|gêmeos|gêmeas)"), "sibling_of"),
)


def _link_pair(told: Told, state: Reading) -> None:
    """ "Ana e Beto casaram": two subjects, one edge."""
    m = re.match(rf"^(?P<a>{NAME}) (?:and|e) (?P<b>{NAME})$", told.shown)
    for pattern, rel_type in _PAIRS if m else ():
        if m and pattern.match(told.predicate):
            other = state.meet(state.canonical(m["b"]), "person")
            state.link(told.subject, other, rel_type)


def _is_the_subject(told: Told) -> bool:
    """Whether the sentence is about its subject itself, not about a thing or a relative of theirs."""
    shown, subject = told.shown, told.subject
    together = shown.startswith((f"{subject} and ", f"{subject} e "))
    return shown == subject or together or shown.endswith(f", {subject}") or role_of(subject) is not None


def _link_frame(told: Told, frame: Frame, text: str, state: Reading, linked: set[str]) -> None:
    """The frame's own edge. What is denied or over makes none, but for a job left, which is a former one."""
    names = [
        n
        for n in find_names(frame.value, state.known_names())
        if is_name_word(n.split()[0]) and fold(n) != fold(told.subject)
    ]
    if not names or not _is_the_subject(told):
        return
    rel_type = frame.kind.rel_type or ""
    if frame.negative or frame.ended:
        if frame.kind.name != "employer" or not frame.ended:
            return
        rel_type = "former_employee_of"
    if frame.kind.name == "has" and frame.kind.target == "product" and kind_of(names[0]) == "place":
        return
    position = frame.value.find(names[0].split()[0])
    if frame.kind.name in ("residence", "employer", "birthplace") and position > 12:
        return  # "lives in a flat near the Opera": the name is not where they live
    if frame.kind.name == "has" and re.search(r"\b(?:in|em|na|no|from|at|de|do|da|of|for)\b", frame.value[:position]):
        return  # "won a grant in Coimbra": the name is where, not what
    held = role_of(frame.value.split()[0]) if frame.kind.name == "has" and frame.value else None
    is_pet = re.match(r"adopt|adot", fold(told.predicate)) or (held is not None and held.kind == "pet")
    default = "pet" if is_pet else _DEFAULT_KIND.get(frame.kind.target, "other")
    kind = kind_of(names[0], default=default)
    if frame.kind.name == "employer" and kind == "place":
        return
    if frame.kind.name == "residence" and kind == "organization":
        kind = "place"
    if state.find(names[0]) is not None and frame.kind.target != "person":
        kind = state.find(names[0]).kind  # type: ignore[union-attr]
    if frame.kind.name == "has" and (kind == "person" or fold(names[0]) == fold(state.speaker)):
        return  # "drives Rafael crazy"
    target = state.meet(state.canonical(names[0]) if kind == "person" else names[0], kind)
    if not mentions(text, target):
        return
    state.link(told.subject, target, rel_type)
    linked.add(fold(target))


def _work_place(told: Told, state: Reading, linked: set[str], frame: Frame | None) -> None:
    """ "is compliance manager at Nortec", "studies law at X": an employer or school that another frame's value hid."""
    if frame is None or frame.negative or frame.ended or frame.kind.name not in ("occupation", "studies"):
        return
    for m in _AT.finditer(told.predicate):
        name = trim(m["v"], state.known_names())
        if (
            is_name_word(name.split()[0])
            and fold(name) not in linked
            and kind_of(name, default="organization") == "organization"
        ):
            target = state.meet(name, "organization")
            state.link(told.subject, target, "studies_at" if frame.kind.name == "studies" else "works_at")
            return


def _meet_others(told: Told, text: str, state: Reading) -> None:
    """Every other name of the sentence becomes an entity, typed by what stands before it."""
    for name in find_names(text, state.known_names()):
        name = trim(name, state.known_names())
        if fold(name) == fold(told.subject) or fold(name) == fold(state.speaker) or not is_name_word(name.split()[0]):
            continue
        thing = state.find(name)
        if thing is not None:
            state.meet(name, thing.kind)
            continue
        if any(fold(name) in (fold(t.name).split()) for t in state.things):
            continue
        state.meet(name, kind_of(name, default=_kind_by_context(name, text)))


def _kind_by_context(name: str, text: str) -> str:
    before = fold(text[: max(0, text.find(name))]).rstrip()
    if re.search(
        r"\b(?:with|com|to meet|contratou|hired|met|conheceu|married|visit(?:ed)?|for|para|de)(?: [oa])?$", before
    ):
        return "person"
    if re.search(r"\b(?:in|em|to|from|near|visiting|nos|nas)$", before):
        return "place"
    if re.search(r"\b(?:at|joined|left|da|na|no|do|pela|pelo|pra)$", before):
        return "organization"
    return "other"

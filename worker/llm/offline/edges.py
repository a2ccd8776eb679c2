"""Edges from settled facts: only between two names that the fact's own text holds."""

from __future__ import annotations

import re

from worker.llm.offline.frames import Frame
from worker.llm.offline.lexicon import ORGANISATIONS
from worker.llm.offline.names import NAME, find_names, is_name_word, kind_of, trim
from worker.llm.offline.roles import role_of
from worker.llm.offline.state import Reading, Told, role_edge
from worker.llm.offline.text import fold, mentions, plain

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
            state.meet(source, role.kind, gender=role.gender)
            state.link(*role_edge(role, source, owner))
            linked.add(fold(owner))
    if frame and frame.kind.rel_type:
        _link_frame(told, frame, text, state, linked)
    _link_called(told, state, linked)
    _work_place(told, state, linked, frame)
    _meet_others(told, text, state)


_ORG_WORDS = "|".join(sorted(ORGANISATIONS, key=len, reverse=True))
_CALLED = re.compile(
    rf"(?P<lead>.*?)\b(?:(?:an?|uma?|num|numa|the|o|a|nova?|new|their own|his own|her own|sua propria|seu proprio"
    rf"|its) )(?:[\w-]+ ){{0,3}}?"
    rf"(?P<what>{_ORG_WORDS})(?P<how>(?: [\w-]+){{0,3}}?,? (?:called|named|chamad[ao]|de nome)"
    rf"|, (?:[oa] )?(?=\S)) ?(?P<n>.+)$"
)
_DENIED = re.compile(r"\b(?:not|no longer|never|nao|nunca|mais|used to|quit|left|saiu|largou|worked|trabalhou)\b|n't\b")
_WORKS = re.compile(
    r"\b(?:works?|working|moved|switched|joined|started (?:at|with|working)|got (?:an? )?(?:\w+ )?job|is (?:at|with"
    r"|now at)|hired by"
    r"|teaches|trabalha|trabalhando|mudou|trocou|entrou|comecou (?:n|a trabalhar)|foi (?:pra|para)|esta (?:n"
    r"|trabalhando)"
    r"|agora esta|contratad[ao] (?:por|pela)|leciona)"
)
_STUDIES = re.compile(r"\b(?:studies|studying|goes to|attends|estuda|estudando|cursa|faz)\b")
_FOUNDED = re.compile(
    r"\b(?:founded|co-founded|set up|opened|created|launched|started an?|fundou|abriu|criou|montou|lancou)\b"
)
_OWNS = re.compile(r"\b(?:has|owns|runs|tem|e don[ao] de|toca|possui)\b")


def _link_called(told: Told, state: Reading, linked: set[str]) -> None:
    """ "moved over to a startup called Plumbline": the company has a word for what it is before its name."""
    m = _CALLED.match(plain(told.predicate))
    if m is None or told.shown != told.subject or _DENIED.search(fold(told.predicate)):
        return
    named = re.match(NAME, told.predicate[m.start("n") :])
    if named is None:
        return
    lead, what, name = m["lead"] + " ", m["what"], trim(named.group(), state.known_names())
    if fold(name) in linked or what == "band":
        return
    # "started a company" founds it, "started at a company" does not: the article is part of the test.
    before = fold(told.predicate[: m.start("what")])
    relation = (
        ("founded", _FOUNDED.search(before)),
        ("studies_at", _STUDIES.search(lead) if what in _SCHOOLS else None),
        ("works_at", _WORKS.search(lead)),
        ("owns", _OWNS.search(lead)),
    )
    for rel_type, found in relation:
        if found and (rel_type in ("founded", "owns") or not m["how"].startswith(", ")):
            state.link(told.subject, state.meet(name, "organization"), rel_type)
            return


_SCHOOLS = frozenset({"school", "university", "college", "escola", "universidade", "faculdade", "academia"})
_PAIRS = (
    (
        re.compile(
            r"^(?:got together|are together|have been together|are a couple|moved in together|are seeing each other"
            r"|estão juntos|estão juntas|estamos juntos|são namorados|se conheceram e)"
        ),
        "partner_of",
    ),
    (
        re.compile(
            r"^(?:(?:just |recently |finally )?(?:broke|split) up|(?:got|are) divorced|separated|se separaram"
            r"|terminaram"
            r"|se divorciaram)"
        ),
        "former_partner_of",
    ),
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
    if not names or not _is_the_subject(told) or not _is_an_end(names[0], frame, state):
        return
    rel_type = frame.kind.rel_type or ""
    if frame.negative or frame.ended:
        if frame.kind.name != "employer" or not frame.ended:
            return
        rel_type = "former_employee_of"
    elif frame.kind.name == "employer" and PAST_JOB.match(fold(told.predicate)):
        rel_type = "former_employee_of"  # "worked at Ericsson until 2019"
    held = role_of(frame.value.split()[0]) if frame.kind.name == "has" and frame.value else None
    is_pet = re.match(r"adopt|adot", fold(told.predicate)) or (held is not None and held.kind == "pet")
    default = "pet" if is_pet else _DEFAULT_KIND.get(frame.kind.target, "other")
    kind = kind_of(names[0], default=default)
    if frame.kind.name == "employer" and (kind == "place" or (kind == "product" and re.match(r"is|é", told.predicate))):
        return
    if frame.kind.name == "residence" and kind == "organization":
        if frame.event:
            return  # "moved to Google" is a job
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


def _is_an_end(name: str, frame: Frame, state: Reading) -> bool:
    """Whether the first name in a frame's value is what the frame is about, not what stands near it."""
    kind, value = frame.kind.name, frame.value
    before = value[: max(0, value.find(name.split()[0]))]
    if fold(name) == fold(state.speaker) and frame.kind.target != "person":
        return False  # "left Ruth his watch"
    if frame.kind.target == "person" and re.match(r"(?:an?|some|um|uma) ", fold(value)):
        return False  # "married a Brazilian woman"
    if kind in ("residence", "employer", "birthplace"):
        return close_enough(value, name)  # "lives in a flat near the Opera": the name is not where they live
    if kind == "studies":
        return len(before) <= 4  # "studies for the exam of the TRT"
    if kind in ("runs", "founded") and re.search(r"\b(?:an?|uma?) $", before):
        return False  # "runs a B&B in Whitby"
    if kind in ("has", "runs", "founded", "member") and _NEAR.search(before):
        return False  # "won a grant in Coimbra": the name is where, not what
    if kind != "has":
        return True
    return kind_of(name) != "place" and not _NO_POSSESSION.match(fold(value)) and not _A_CHILD.search(fold(value))


_NEAR = re.compile(r"\b(?:in|pra|pro|para|with|com|near|perto|em|na|no|from|at|de|do|da|of|for)\b")
# "had a baby boy called Sam": the child's edge is the role's.
_A_CHILD = re.compile(r"\b(?:boy|girl|child|son|daughter|filh[ao]|menin[ao]|crianca|bebe)\b")
PAST_JOB = re.compile(r"(?:\w+ly |ja )?(?:worked|trabalhou|atuou|lecionou|taught)\b")
# "has a PhD", "tem TDAH".
_NO_POSSESSION = re.compile(
    r"^(?:phd|mba|msc|bsc|ma|ba|md|degree|master|doutorado|mestrado|diploma|adhd|tdah|covid|hiv|ocd|toc|ptsd|ibs|tept"
    r"|tv)\b"
)


def close_enough(value: str, name: str) -> bool:
    """Whether a name is the value itself ("an estate called Wick") and not what stands near it ("a school in Hull")."""
    position = value.find(name.split()[0])
    before = fold(value[: max(0, position)]).rstrip()
    if re.search(r"\b(?:called|named|chamad[ao])$", before):
        return True
    return position <= 12 and not re.search(r"\b(?:in|near|at|by|em|perto)\b", before)


def _work_place(told: Told, state: Reading, linked: set[str], frame: Frame | None) -> None:
    """ "is compliance manager at Nortec", "studies law at X": an employer or school that another frame's value hid."""
    if frame is None or frame.negative or frame.ended or frame.kind.name not in ("occupation", "studies"):
        return
    if not _is_the_subject(told):
        return  # "my sons study at X": it is they who do
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

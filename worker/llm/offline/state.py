"""What the reader knows while it reads one message: who speaks, who was named, who has which role."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from datetime import date

from worker.llm.offline.names import compatible, fullest
from worker.llm.offline.roles import Role, role_of
from worker.llm.offline.text import fold, mentions


@dataclass(slots=True)
class Thing:
    """An entity as read: the fullest name, its type, other names for it, and its grammatical gender where known."""

    name: str
    kind: str
    aliases: list[str] = field(default_factory=list)
    gender: str = ""

    def answers_to(self, name: str) -> bool:
        """Whether ``name`` is this thing's name or one of its aliases."""
        return fold(name) in {fold(known) for known in (self.name, *self.aliases)}


@dataclass(slots=True)
class Fact:
    """One self-contained sentence about one subject."""

    subject: str
    text: str
    level: str = "explicit_statement"
    category: str = "conversational"
    event_date: str | None = None
    precision: str | None = None
    attribute_key: str | None = None
    value: str | None = None


@dataclass(frozen=True, slots=True)
class Told:
    """A clause with its subject settled: whose it is, how the sentence names it, and the third person predicate."""

    subject: str
    shown: str
    predicate: str

    @property
    def text(self) -> str:
        """The self-contained sentence."""
        return f"{self.shown} {self.predicate}".strip()


@dataclass(frozen=True, slots=True)
class Edge:
    """A relation between two named things."""

    source: str
    target: str
    rel_type: str


@dataclass(slots=True)
class Reading:
    """The state of one message's reading, and what it brought so far."""

    speaker: str
    today: date | None
    lang: str = "en"
    things: list[Thing] = field(default_factory=list)
    known: list[Thing] = field(default_factory=list)
    context: list[Thing] = field(default_factory=list)
    facts: list[Fact] = field(default_factory=list)
    edges: list[Edge] = field(default_factory=list)
    role_holders: dict[str, str] = field(default_factory=dict)
    subject: str = ""
    # How a subject without a name is called in a text: "sister" is "Rafael's sister".
    shown: dict[str, str] = field(default_factory=dict)
    # A role of the speaker's whose holder was not named yet: "I've got a new boss. She's called Ingrid."
    unnamed_role: str = ""
    level: str = "explicit_statement"

    def known_names(self) -> frozenset[str]:
        """The folded names of everything met so far or known from the payload."""
        return frozenset(fold(n) for t in (*self.known, *self.context, *self.things) for n in (t.name, *t.aliases))

    def find(self, name: str) -> Thing | None:
        """The thing that ``name`` names exactly, among this message's, the known and the recent ones."""
        for thing in (*self.things, *self.known, *self.context):
            if thing.answers_to(name):
                return thing
        return None

    def canonical(self, name: str) -> str:
        """The fullest name that goes with ``name``, where it is sure; else the name itself."""
        if fold(name) == fold(self.speaker):
            return self.speaker
        thing = self.find(name)
        if thing:
            return thing.name
        near = [t for t in (*self.things, *self.known) if t.kind == "person" and compatible(name, t.name)]
        return near[0].name if len({fold(t.name) for t in near}) == 1 else name

    def meet(self, name: str, kind: str, *, gender: str = "", aliases: tuple[str, ...] = ()) -> str:
        """Note a named thing; names in brackets and aliases group under the fullest. Returns the canonical name."""
        everything = [name, *aliases]
        for candidate in everything:
            thing = self.find(candidate)
            if thing is not None:
                break
        else:
            thing = None
        if thing is None:
            best = fullest(everything)
            thing = Thing(best, kind, [n for n in everything if fold(n) != fold(best)], gender)
        else:
            thing.gender = gender or thing.gender
            thing.aliases.extend(n for n in everything if not thing.answers_to(n))
        if thing in self.things:  # the last named stands last: pronouns look there
            self.things.remove(thing)
        self.things.append(thing)
        return thing.name

    def last_person(self, gender: str, *, other_than: str = "") -> str | None:
        """The person last named before a pronoun, in this message, then in the recent ones."""
        for thing in (*reversed(self.things), *reversed(self.context)):
            excluded = fold(thing.name) in (fold(self.speaker), fold(other_than))
            if thing.kind in ("person", "pet") and not excluded and thing.gender in ("", gender):
                return thing.name
        return None

    def holder(self, word: str) -> str | None:
        """The person known in this role of the speaker, from this message or from the payload's context."""
        role = role_of(word)
        return self.role_holders.get(role.english) if role else None

    def add(self, fact: Fact) -> None:
        """Keep a fact unless the same sentence is there already."""
        if fact.text and all(fold(fact.text) != fold(other.text) for other in self.facts):
            self.facts.append(fact)

    def link(self, source: str, target: str, rel_type: str) -> None:
        """Keep an edge between two different things, once."""
        edge = Edge(source, target, rel_type)
        if source and target and fold(source) != fold(target) and edge not in self.edges:
            self.edges.append(edge)


def role_sentence(name: str, word: str, owner: str, lang: str) -> str:
    """ "Ana is Rafael's wife" / "Ana é esposa de Rafael"."""
    return f"{name} é {word} de {owner}" if lang == "pt" else f"{name} is {possessive(owner)} {word}"


def possessive(name: str) -> str:
    """The English possessive of a name."""
    return f"{name}'s"


def role_edge(role: Role, holder: str, owner: str) -> tuple[str, str, str]:
    """The edge of a role: symmetrical ones run from the owner, the others from the one who has the role."""
    return (holder, owner, role.rel_type) if role.holder_first else (owner, holder, role.rel_type)


_HOLDS = (
    re.compile(r"^(?P<name>.+?) is (?P<owner>.+?)'s? (?:\w+ )?(?P<role>[\w-]+)$"),
    re.compile(r"^(?P<name>.+?) é (?:a |o )?(?P<role>[\w-]+)(?: \w+)? d[aeo] (?P<owner>.+)$"),
    re.compile(r"^(?P<owner>.+?) has an? (?P<role>[\w-]+) (?:called|named) (?P<name>.+)$"),
    re.compile(r"^(?P<owner>.+?) tem uma? (?P<role>[\w-]+)(?: chamad[ao]|,)? (?:[ao] )?(?P<name>.+)$"),
)


def roles_told(sentence: str, speaker: str) -> tuple[str, str] | None:
    """(role in English, holder) where a known fact says that somebody has a role of the speaker."""
    for pattern in _HOLDS:
        match = pattern.match(sentence.strip(" ."))
        if match and mentions(match["owner"], speaker) and (role := role_of(match["role"])):
            return role.english, match["name"].strip(" ,.")
    return None

"""The cast of a message: every name of its extraction, those that mean one entity taken together, nobody looked up yet.

Pure. What the message itself says about its names is settled here: aliases, hints in brackets, pronouns, roles, and
which names cannot be one because a relation joins them.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import islice

from producer.contract import Rejected
from worker.llm.items import ExtractedEntity
from worker.write.entity_types import compatible, family, is_person, unsure
from worker.write.kinship import role_word
from worker.write.message import Message
from worker.write.names import display_name, fold, type_name, words
from worker.write.persons import may_be_same, prefix_match, untitled
from worker.write.plans import Extraction
from worker.write.pronouns import is_generic, is_speaker_pronoun
from worker.write.resolution.known import Known
from worker.write.roles import RolePhrase, SpokenRole, Token, read_phrase, spoken_roles, strip_hint

UNTYPED = "concept"
# Roles of which one has many holders: "a friend, Pedro" need not be the friend of whom one spoke before.
MANY = {"friend_of", "colleague_of", "classmate_of", "neighbor_of", "roommate_of", "cousin_of", "student_of"}
_PLACES = {"lives_in", "lived_in", "born_in", "moved_to", "moved_from", "located_in", "visited", "based_in"}
_EMPLOYERS = {"works_at", "worked_at", "works_for", "employed_at", "employed_by", "studies_at", "founded"}
_COPULAS = {"is", "was", "é", "es", "est", "ist", "era", "foi"}
_BRACKET = re.compile(r"[(（]([^()（）]{3,60})[)）]")
# Words that may stand between a role and its holder; none of them denies anything ("e", Portuguese "and", is not "é").
_BEFORE = _COPULAS | {"the", "o", "a", "el", "la"}
_BEHIND = _BEFORE | {"name", "nome", "called", "named", "se", "chama", "llama", "heißt", "s'appelle"}


@dataclass(eq=False, slots=True)
class Node:
    """One entity of the message: how it is written, what it is called, and, later, who it is."""

    written: list[str]
    shown: str
    entity_type: str
    typed: bool = True
    aliases: list[str] = field(default_factory=list)
    pointers: list[str] = field(default_factory=list)  # what stands for it in this message only: "she", "the company"
    phrase: RolePhrase | None = None  # it is named by role only
    roles: list[RolePhrase] = field(default_factory=list)  # what the message says it is to somebody
    indefinite: bool = False  # "a friend": not the friend whom one knows
    speaker: bool = False
    # The outcome.
    key: str = ""
    method: str = ""
    score: float | None = None
    why: str = ""
    is_new: bool = True
    known: Known | None = None
    display: str = ""
    learned: list[str] = field(default_factory=list)

    @property
    def settled(self) -> bool:
        """Whether it is decided who this is."""
        return bool(self.key)

    @property
    def person(self) -> bool:
        """Whether it is, as far as the message says, a person."""
        return is_person(self.entity_type)

    def forms(self) -> Iterator[str]:
        """The folded name, then the folded aliases."""
        yield from dict.fromkeys(filter(None, map(fold, (self.shown, *self.aliases))))


@dataclass(slots=True)
class Cast:
    """All nodes of a message, the speaker's first."""

    message: Message
    speaker: Node
    nodes: list[Node]
    rejected: list[Rejected] = field(default_factory=list)
    apart: set[frozenset[int]] = field(default_factory=set)
    _written: dict[str, Node] = field(default_factory=dict)

    def are_apart(self, one: Node, other: Node) -> bool:
        """Whether the message joins the two by a relation or a role, so that they cannot be one."""
        return frozenset((id(one), id(other))) in self.apart

    def part(self, one: Node, other: Node) -> None:
        """Note that two nodes are two entities."""
        if one is not other:
            self.apart.add(frozenset((id(one), id(other))))

    def anchor(self, phrase: RolePhrase) -> Node:
        """Whose role a phrase names."""
        return self.speaker if phrase.anchor is None else self.refer(phrase.anchor, "person")

    def find(self, name: str) -> Node | None:
        """The node that is written as ``name`` or named so."""
        if name in self._written:
            return self._written[name]
        folded = fold(name)
        named = [node for node in self.nodes if folded and folded == fold(node.shown)]
        called = [node for node in self.nodes if folded and folded in (*node.forms(), *map(fold, node.pointers))]
        return next(iter([*named, *called]), None)

    def absorb(self, node: Node, other: Node) -> None:
        """Let ``other`` stand for ``node`` from now on."""
        other.written.extend(written for written in node.written if written not in other.written)
        self._written.update({written: other for written, found in self._written.items() if found is node})
        self.nodes.remove(node)

    # -- building ------------------------------------------------------------------------------------------------------

    def add(self, entity: ExtractedEntity) -> None:
        """Take in one extracted entity with its aliases."""
        node = self._node(entity.name, entity.type, typed=not unsure(entity.type))
        if node is None:
            self.rejected.append(Rejected(stage="resolve", kind="entity", reason="blank_name", item=entity.name))
            return
        for alias in entity.aliases:
            self._add_alias(node, alias)

    def refer(self, name: str, guess: str = UNTYPED) -> Node:
        """The node that a fact or relation means by ``name``; made where no entity was extracted for it."""
        # A blank subject is the speaker's (behaviour: 14).
        node = self.find(name) or self._node(name, guess, typed=guess != UNTYPED) or self.speaker
        if not node.typed and guess != UNTYPED:
            node.entity_type, node.typed = guess, True
        self._written.setdefault(name, node)
        if name not in node.written:
            node.written.append(name)
        return node

    def _node(self, written: str, entity_type: str, *, typed: bool) -> Node | None:
        shown, phrase, roles = _read(written, entity_type, typed=typed)
        if not fold(shown):
            return None
        for role in (*([phrase] if phrase else []), *roles):
            entity_type, typed = role.role.entity_type, True
        kind = type_name(entity_type)
        if (is_person(kind) or not typed) and self._is_speaker(shown, phrase):
            node: Node | None = self.speaker
        else:
            node = self._same(shown, kind, phrase)
        if node is None:
            node = Node([written], shown, kind, typed=typed, phrase=phrase)
            if is_person(kind) and phrase is None and (bare := untitled(shown)) != shown:
                node.aliases.append(bare)
            self.nodes.append(node)
        elif typed and not node.typed:
            node.entity_type, node.typed = kind, True
        node.roles.extend(role for role in roles if role not in node.roles)
        if written not in node.written:
            node.written.append(written)
        self._written.setdefault(written, node)
        return node

    def _is_speaker(self, shown: str, phrase: RolePhrase | None) -> bool:
        if phrase is not None:
            return self.message.config.relationship_terms == "speaker" and phrase.anchor is None
        return is_speaker_pronoun(shown, self.message.config.extra_pronouns) or (
            fold(shown) == fold(self.message.speaker)
        )

    def _same(self, shown: str, kind: str, phrase: RolePhrase | None) -> Node | None:
        folded = fold(shown)
        for node in self.nodes:
            if not node.speaker and compatible(node.entity_type, kind) and folded in node.forms():
                return node
            if phrase and node.phrase and _same_phrase(node.phrase, phrase):
                return node
        return None

    def _add_alias(self, node: Node, alias: str) -> None:
        shown, phrase, roles = _read(alias, node.entity_type, typed=node.typed)
        if phrase is not None and (phrase.possessive or phrase.anchor):
            roles = [phrase]
        node.roles.extend(role for role in roles if role not in node.roles and not node.speaker)
        if phrase is not None or is_generic(shown):
            node.pointers.append(shown)
            return
        if not fold(shown):
            return
        if self._is_speaker(shown, None):
            self._claim_speaker(node, alias)
            return
        twin = self.find(shown)
        if twin is None:
            node.aliases.append(shown)
        elif twin is not node and _can_unite(node, twin):
            self._unite(node, twin)
        self._written.setdefault(alias, node)

    def _claim_speaker(self, node: Node, alias: str) -> None:
        """An entity that is also called "I", or by the speaker's name, is the speaker, if its own name allows it."""
        if node.speaker or not node.person:
            return
        named = fold(alias) == fold(self.message.speaker)
        if prefix_match(node.shown, self.message.speaker) or (not named and len(self.speaker.written) < 2):
            self._unite(self.speaker, node)

    def _unite(self, node: Node, twin: Node) -> None:
        """Make two nodes one, under the fuller name (the speaker keeps his)."""
        names = [twin.shown, *twin.aliases]
        if not node.speaker and len(twin.shown) > len(node.shown):
            names, node.shown = [node.shown, *twin.aliases], twin.shown
        node.aliases.extend(name for name in names if name not in node.aliases and fold(name) != fold(node.shown))
        node.written.extend(written for written in twin.written if written not in node.written)
        node.roles.extend(role for role in twin.roles if role not in node.roles and not node.speaker)
        self._written.update({written: node for written, found in self._written.items() if found is twin})
        self.nodes.remove(twin)


def assemble(message: Message, extraction: Extraction) -> Cast:
    """Return the cast of a message: the speaker, then every name of the extraction in order."""
    speaker = Node([message.speaker], display_name(message.speaker), "person", speaker=True)
    cast = Cast(message, speaker, [speaker])
    for entity in extraction.entities:
        cast.add(entity)
    for fact in extraction.facts:
        cast.refer(fact.subject)
    for relation in extraction.relations:
        source = cast.refer(relation.source, "person" if _of_people(relation.rel_type) else UNTYPED)
        target = cast.refer(relation.target, _kind_of_target(relation.rel_type))
        cast.part(source, target)
    for role in spoken_roles(message.text):
        _note_holder(cast, role)
    _note_hints(cast)
    for node in list(cast.nodes):
        for phrase in node.roles:
            cast.part(node, cast.anchor(phrase))
        if node.phrase:
            cast.part(node, cast.anchor(node.phrase))
    return cast


# -- parts -------------------------------------------------------------------------------------------------------------


def _read(written: str, entity_type: str, *, typed: bool) -> tuple[str, RolePhrase | None, list[RolePhrase]]:
    """A name as it is shown, the role that it consists of, and the roles that are said beside it."""
    shown, hint = strip_hint(display_name(written))
    roles = [hint] if hint else []
    phrase = read_phrase(shown)
    if phrase is not None and typed and not hint and family(entity_type) != phrase.role.entity_type:
        phrase = None
    if phrase is not None and phrase.rest:
        rest, phrase = phrase.rest, RolePhrase(
            phrase.role, phrase.languages, phrase.word, phrase.qualifier, phrase.anchor, possessive=phrase.possessive
        )  # fmt: skip
        return rest, None, [*roles, phrase]
    return shown, phrase, roles


def _can_unite(node: Node, twin: Node) -> bool:
    if twin.speaker or node.speaker or twin.phrase or node.phrase:
        return False
    return may_be_same(node.shown, twin.shown, node.entity_type, twin.entity_type) is None


def _same_phrase(one: RolePhrase, other: RolePhrase) -> bool:
    return (one.role.name, one.qualifier, fold(one.anchor or "")) == (
        other.role.name, other.qualifier, fold(other.anchor or ""),
    )  # fmt: skip


def _of_people(rel_type: str) -> bool:
    kind = rel_type.casefold()
    return kind in _EMPLOYERS or kind in _PLACES or (kind.endswith("_of") and role_word(kind[:-3]) is not None)


def _kind_of_target(rel_type: str) -> str:
    kind = rel_type.casefold()
    if kind in _PLACES:
        return "place"
    if kind in _EMPLOYERS:
        return "organization"
    relative = kind.endswith("_of") and kind not in ("part_of", "member_of") and role_word(kind[:-3]) is not None
    return "person" if relative else UNTYPED


def _note_holder(cast: Cast, role: SpokenRole) -> None:
    """Give a role of the speaker's to the one who stands beside it in the message."""
    for node in cast.nodes:
        if node.phrase and node.phrase.anchor is None and node.phrase.role.name == role.phrase.role.name:
            node.indefinite = role.indefinite
    holder = _beside(cast, role) if role.owned else None
    if holder is not None and role.phrase not in holder.roles:
        holder.entity_type, holder.typed = (
            (holder.entity_type, True) if holder.typed else (role.phrase.role.entity_type, True)
        )
        holder.roles.append(role.phrase)
        holder.indefinite = role.indefinite and role.phrase.role.rel_type in MANY


def _note_hints(cast: Cast) -> None:
    """Read the hints that stand behind names in the message itself: "Carol (namorada do Rafael)"."""
    text = cast.message.text
    for found in islice(_BRACKET.finditer(text), 50):
        hint = read_phrase(found[1])
        if hint is None or hint.rest:
            continue
        before = words(text[max(0, found.start() - 80) : found.start()])
        for node in cast.nodes:
            named = (form.split() for form in node.forms())
            fits = family(node.entity_type) == hint.role.entity_type
            if node.speaker or not fits or not any(before[-len(name) :] == name for name in named):
                continue
            if all(known.role.name != hint.role.name for known in node.roles):
                node.roles.append(hint)
            break


def _beside(cast: Cast, role: SpokenRole) -> Node | None:
    for node in cast.nodes:
        if node.speaker or node.phrase or (node.typed and family(node.entity_type) != role.phrase.role.entity_type):
            continue
        for form in node.forms():
            name = form.split() or words(node.shown)
            if _behind(role, name) or _before(role, name):
                return node
    return None


def _behind(role: SpokenRole, name: list[str]) -> bool:
    between = 0
    while between < 4 and between < len(role.behind) and role.behind[between].written.lower() in _BEHIND:
        between += 1
    if role.last.owner and (not role.behind or role.behind[0].folded != "name"):
        return False
    if role.last.closing in (".", "!", "?", ";"):
        return False
    return any(_is_name(role.behind[skip : skip + len(name)], name) for skip in range(between + 1))


def _before(role: SpokenRole, name: list[str]) -> bool:
    if role.last.owner or role.last.closing == "?":
        return False
    for skip in range(3):
        end = len(role.before) - skip
        between = role.before[end:]
        if any(token.written.lower() not in _BEFORE for token in between) or end < len(name):
            return False
        if _is_name(role.before[end - len(name) : end], name):
            said = any(token.written.lower() in _COPULAS for token in between)
            return said or (role.before[end - 1].closing == "," and role.last.closing != "")
    return False


def _is_name(tokens: tuple[Token, ...], name: list[str]) -> bool:
    return len(tokens) == len(name) and [token.folded for token in tokens] == name and not tokens[-1].owner

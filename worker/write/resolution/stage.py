"""The resolve stage: reads memory, asks at most one model call and one embedding call, returns a plan.

At most three statements (names; roles, if the message has any; likeness, if a name is left), none in a loop, and no
connection is held while a model is asked.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field

from producer.contract import Degradation, Rejected
from worker.db import ReadSession
from worker.embedding.provider import Vectors
from worker.write.calls import Calls, EmbeddingError, VectorCache
from worker.write.entity_types import types_like
from worker.write.message import Message
from worker.write.names import entity_key, fold
from worker.write.plans import Extraction, Resolution, ResolvedEntity
from worker.write.pronouns import is_generic, is_pointing, is_speaker_pronoun
from worker.write.resolution import exact
from worker.write.resolution import holders as roles
from worker.write.resolution.alike import SHOWN_TO_MODEL, Candidate, ask, judge
from worker.write.resolution.cast import Cast, Node, assemble
from worker.write.resolution.known import Holders, Known, Wanted, find_alike, find_holders, find_named
from worker.write.roles import read_phrase

MAX_LIKENESS = 200  # names of one message that are compared by likeness; the rest of a huge list is new
MAX_ASKED = 40  # ambiguous names in the one question to the model


@dataclass(slots=True)
class _Stage:
    """One run of the stage."""

    message: Message
    extraction: Extraction
    cast: Cast
    read: ReadSession
    calls: Calls
    fallback: str | None
    known: list[Known] = field(default_factory=list)
    holders: Holders = field(default_factory=Holders)
    said: list[tuple[Node, Node, str]] = field(default_factory=list)
    several: dict[int, list[Known]] = field(default_factory=dict)  # id of a node -> those that fit by name or role
    degradations: list[Degradation] = field(default_factory=list)
    rejected: list[Rejected] = field(default_factory=list)
    repairs: Counter[str] = field(default_factory=Counter)

    def by_name(self) -> None:
        """The exact phase, the first-name rule and the roles, in one session."""
        cast, agent = self.cast, self.message.agent_id
        nicks = exact.nicknames(self.message.config.nicknames)
        names, prefixes = exact.names_to_find(cast.nodes, nicks)
        names |= roles.role_names(cast)
        keys = exact.keys_to_find(cast.nodes) | set(self.extraction.known_keys)
        with self.read() as session:
            self.known = find_named(session, agent, names, prefixes, keys)
            self.settle_named(nicks)
            if roles.anchors(cast):
                people = [anchor.key or entity_key("person", anchor.shown) for anchor in roles.anchors(cast)]
                wanted = roles.placeholder_keys(cast)
                self.holders = find_holders(session, agent, people, roles.rel_types(cast), wanted)
        for node in list(cast.nodes):
            if node.phrase is not None and not node.settled:
                self.several[id(node)] = roles.settle_role(cast, node, self.known, self.holders)
            elif not node.settled:
                roles.adopt_placeholder(cast, node, self.known, self.holders)

    def settle_named(self, nicks: dict[str, str]) -> None:
        """Settle the speaker, then every name that is stored, then first names, then what the message itself says."""
        cast = self.cast
        self.settle_speaker()
        for node in list(cast.nodes):
            exact.settle_pointing(cast, node)
        named = [node for node in cast.nodes if not node.speaker and node.phrase is None]
        for node in named:
            exact.settle_exact(cast, node, self.known)
        for node in named:
            self.several[id(node)] = exact.settle_prefix(cast, node, self.known, nicks)
        for node in named:
            exact.settle_within(cast, node)
        roles.join_within(cast, self.said)

    def settle_speaker(self) -> None:
        """The speaker is the person of that name, else a new one; likeness decides nothing here."""
        speaker = self.cast.speaker
        exact.settle_exact(self.cast, speaker, self.known)
        if not speaker.settled:
            self.make_new(speaker)
        speaker.method = "speaker"
        speaker.why = speaker.why or "speaks"

    def by_likeness(self) -> None:
        """The fuzzy phase for all names left, and the one question to the model."""
        left = [node for node in self.cast.nodes if not (node.settled or node.phrase or is_pointing(node.shown))]
        left = left[:MAX_LIKENESS]
        vectors = self.embed()
        ambiguous: list[tuple[Node, list[Candidate]]] = []
        if left:
            wanted = [
                Wanted(number, node.shown, types_like(node.entity_type) if node.typed else None, _vector(vectors, node))
                for number, node in enumerate(left)
            ]
            with self.read() as session:
                alike = find_alike(session, self.message.agent_id, wanted)
            for number, node in enumerate(left):
                candidates = judge(self.cast, node, alike[number], self.several.get(id(node), []))
                if candidates:
                    ambiguous.append((node, candidates))
        ambiguous.extend(
            (node, [Candidate(one, 0.0, "role") for one in self.several[id(node)][:SHOWN_TO_MODEL]])
            for node in self.cast.nodes
            if node.phrase is not None and not node.settled and self.several.get(id(node))
        )
        self.by_model(ambiguous[:MAX_ASKED])

    def by_model(self, ambiguous: Sequence[tuple[Node, list[Candidate]]]) -> None:
        """Ask about what is ambiguous, where asking is allowed; else these names stay new."""
        if not ambiguous or not self.message.config.enable_llm_resolution:
            return
        if self.fallback is not None:
            self.degraded("new_entities", self.fallback)
            return
        answer = ask(self.message, dict(enumerate(ambiguous, start=1)), self.calls)
        self.repairs.update(answer.repairs)
        self.rejected += [Rejected(stage="resolve", kind=one.kind, reason=one.reason) for one in answer.rejects]

    def embed(self) -> VectorCache | None:
        """The vectors of all names that upsert may have to store, in one call; None where there are none to be had.

        Raises EmbeddingError where waiting helps.
        """
        nodes = [node for node in self.cast.nodes if node.known is None or _renamed(node)]
        texts = [roles.placeholder_display(self.cast, node) for node in nodes]
        try:
            return self.calls.embed(texts)
        except EmbeddingError as error:
            if error.transient and not self.calls.without_embeddings:
                raise
            self.degraded("string_ratio", error.cause.value)
            return None

    def degraded(self, fell_back_to: str, cause: str) -> None:
        """Say that the stage took a simpler way."""
        self.degradations.append(Degradation(stage="resolve", fell_back_to=fell_back_to, cause=cause))

    def rest(self) -> None:
        """Everybody who is nobody known: new entities, then placeholders (whose keys need those of their anchors)."""
        for node in self.cast.nodes:
            if not node.settled and node.phrase is None:
                self.make_new(node)
        for node in self.cast.nodes:
            if not node.settled:
                roles.make_placeholder(self.cast, node, self.taken(), self.holders)

    def make_new(self, node: Node) -> None:
        """Give ``node`` a key that nobody has."""
        wanted = entity_key(node.entity_type, node.shown)
        taken = self.taken()
        free = (key for key in exact.candidate_keys(wanted) if key not in taken)
        node.key = next(free, f"{wanted[:90]}_{self.message.event_id.hex[:12]}")
        node.entity_type, node.display = node.key.partition(":")[0], node.shown
        node.method, node.is_new = "new", True
        node.why = node.why or "nothing known is like it"

    def taken(self) -> set[str]:
        """The keys that exist, as far as they were asked about, and those of this message."""
        stored = {key for one in self.known for key in (one.key, *one.reached)}
        return stored | set(self.holders.known) | {node.key for node in self.cast.nodes if node.key}

    def plan(self) -> Resolution:
        """The plan."""
        entities = [one for node in self.cast.nodes for one in _resolved(self.cast, node)]
        asked = set(self.extraction.known_keys)
        names = {one.key: one.names() for one in self.known if one.key in asked or asked & one.reached}
        names |= {node.key: node.known.names() for node in self.cast.nodes if node.known is not None}
        return Resolution(
            entities=entities,
            role_edges=roles.role_edges(self.cast, self.said, self.holders),
            speaker_key=self.cast.speaker.key,
            known_names=names,
            degradations=self.degradations,
            rejected=[*self.cast.rejected, *self.rejected],
            repairs=dict(self.repairs),
        )


def resolve(
    message: Message, extraction: Extraction, read: ReadSession, calls: Calls, *, fallback: str | None = None
) -> Resolution:
    """Say whom each name of ``extraction`` means, the speaker included (behaviour: 6).

    Every name of an entity, a fact's subject or a relation's end is the ``name`` of one of the plan's entities.
    ``fallback`` is the cause because of which the model is not asked: ambiguous names become new entities.
    Raises ModelError where the model's answer cannot be had or used, EmbeddingError where waiting helps.
    """
    cast = assemble(message, extraction)
    said = [(cast.refer(one.source), cast.refer(one.target), one.rel_type) for one in extraction.relations]
    stage = _Stage(message, extraction, cast, read, calls, fallback, said=said)
    stage.by_name()
    stage.by_likeness()
    stage.rest()
    return stage.plan()


# -- parts -------------------------------------------------------------------------------------------------------------


def _renamed(node: Node) -> bool:
    return node.known is not None and node.known.placeholder and node.display == node.shown


def _vector(vectors: VectorCache | None, node: Node) -> Vectors | None:
    return None if vectors is None else vectors[node.shown]


def _resolved(cast: Cast, node: Node) -> list[ResolvedEntity]:
    """One entry for each way in which the extraction writes the name; the first one carries what is to be learnt."""
    aliases = _learned(cast, node)
    return [
        ResolvedEntity.model_validate(
            {
                "name": written,
                "key": node.key,
                "display_name": node.display,
                "entity_type": node.entity_type,
                "is_new": node.is_new,
                "method": node.method,
                "score": node.score,
                "why": node.why,
                "aliases": aliases if place == 0 else [],
            }
        )
        for place, written in enumerate(dict.fromkeys(node.written))
    ]


def _learned(cast: Cast, node: Node) -> list[str]:
    """The aliases to register: names that are not stored yet, and the phrase of a role, scoped to whose role it is."""
    stored = node.known.folded() if node.known else frozenset()
    pronouns = cast.message.config.extra_pronouns
    own = fold(node.shown)
    decorated = [written for written in node.written if written != node.shown and fold(written) == own]
    names = [] if node.phrase else [*decorated, node.shown, *node.aliases]
    if node.speaker:  # learnt only: who speaks is said by the name
        names += cast.message.speaker_aliases
    names = [one for one in names if not is_speaker_pronoun(one, pronouns) and read_phrase(one) is None]
    names = [one for one in names if not is_generic(one)]
    for phrase in (*([node.phrase] if node.phrase else []), *node.roles):
        anchor = cast.anchor(phrase)
        if anchor is not node and not node.indefinite:
            names.append(phrase.display(anchor.display or anchor.shown, cast.message.text))
    return [one for one in dict.fromkeys(names) if fold(one) not in stored]

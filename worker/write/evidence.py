"""From what a message says to what is to be judged: facts with their keys, edges with the facts that hold them up.

A relation that no fact supports gets a mirror fact, which goes through reconciliation like any other (behaviour: 8).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import date
from typing import Literal
from uuid import UUID, uuid4

from producer.contract import Rejected
from worker.llm.items import ExtractedEntity, ExtractedFact, ExtractedRelation
from worker.write.links import NameBook
from worker.write.message import Message
from worker.write.names import fold
from worker.write.plans import Extraction, PlannedEdge, Resolution
from worker.write.relationships import ONE_AT_A_TIME, is_identity, normalise_rel_type
from worker.write.wording import Language, ends, guess_language, relation_sentence, says_over

MIRROR_CONFIDENCE = 0.60
MIRROR_IMPORTANCE = 0.50
MIRROR_CONTEXT = "inferred_from_relation"


Edge = tuple[str, str, str]
"""Source key, target key, rel_type."""


@dataclass(frozen=True, slots=True)
class Draft:
    """A fact before it is judged."""

    entity_key: str
    subject: str
    text: str
    confidence: float
    importance: float
    importance_category: str = ""
    event_date: date | None = None
    event_date_precision: Literal["day", "month", "year"] | None = None
    attribute_key: str | None = None
    value: str | None = None
    source_context: str | None = None
    id: UUID = field(default_factory=uuid4)


@dataclass(slots=True)
class Drafts:
    """Everything of a message that is to be judged. ``book`` knows the names, ``display`` how keys are shown."""

    book: NameBook
    display: dict[str, str]
    facts: list[Draft] = field(default_factory=list)
    edges: list[PlannedEdge] = field(default_factory=list)
    rejected: list[Rejected] = field(default_factory=list)
    dropped: Counter[str] = field(default_factory=Counter)
    mirrors: dict[int, Edge] = field(default_factory=dict)  # mirror facts and the edge that each was made for
    _naming: list[set[str]] = field(default_factory=list)

    def matters(self, index: int) -> tuple[tuple[str, ...], tuple[str, ...]]:
        """Of the edges that the fact holds up, those that its subject has one of at a time: kinds and targets."""
        key = self.facts[index].entity_key
        edges = [
            e for e in self.edges if e.evidence_fact == index and e.source_key == key and e.rel_type in ONE_AT_A_TIME
        ]
        return tuple(sorted({e.rel_type for e in edges})), tuple(sorted({e.target_key for e in edges}))

    def naming(self, *keys: str) -> list[int]:
        """The facts that name all of ``keys``. Each text is searched once, however many relations ask."""
        for fact in self.facts[len(self._naming) :]:
            self._naming.append(set(self.book.mentioned(fact.text, fact.entity_key)))
        return [index for index, named in enumerate(self._naming) if named.issuperset(keys)]


def draft(message: Message, extraction: Extraction, resolution: Resolution) -> Drafts:
    """Keys for subjects, types and evidence for relations, mirror facts where there is none."""
    drafts = Drafts(NameBook.of(resolution), {entity.key: entity.display_name for entity in resolution.entities})
    for fact in extraction.facts:
        _take_fact(drafts, fact, resolution.speaker_key)
    language = guess_language(message.text)
    for source, target, rel_type in _relations(drafts, message, extraction, resolution):
        evidence = _evidence(drafts, source, target, rel_type, language)
        if evidence is not None:
            edge = PlannedEdge(source_key=source, target_key=target, rel_type=rel_type, evidence_fact=evidence)
            drafts.edges.append(edge)
    return drafts


def likely_mirrors(
    facts: Iterable[ExtractedFact],
    relations: Iterable[ExtractedRelation],
    entities: Iterable[ExtractedEntity],
    message: Message,
) -> list[str]:
    """The texts of the mirror facts that ``draft`` will make, as far as names are what they seem: by them the texts of
    a message are embedded in one call. A wrong guess costs an embedding, a missing one a call."""
    told = [fold(fact.text) for fact in facts]
    named = {fold(name) for entity in entities for name in (entity.name, *entity.aliases)} | {fold(message.speaker)}
    language = guess_language(message.text)
    sentences = []
    for relation in relations:
        rel_type = normalise_rel_type(relation.rel_type, message.config.rel_type_aliases)
        both = {fold(relation.source), fold(relation.target)}
        known = bool(rel_type) and not is_identity(rel_type) and both <= named
        if known and not any(_naming_all(both, text) for text in told):
            sentences.append(relation_sentence(relation.source, rel_type, relation.target, language))
    return sentences


def _naming_all(names: Iterable[str], text: str) -> bool:
    return all(name in text for name in names)


def _take_fact(drafts: Drafts, fact: ExtractedFact, speaker_key: str) -> None:
    key = drafts.book.key_of(fact.subject) if fact.subject.strip() else speaker_key
    if not key:
        drafts.rejected.append(Rejected(stage="reconcile", kind="fact", reason="unresolved_subject", item=fact.text))
        return
    drafts.facts.append(
        Draft(
            entity_key=key,
            subject=fact.subject,
            text=fact.text,
            confidence=fact.confidence,
            importance=fact.importance,
            importance_category=fact.importance_category,
            event_date=fact.event_date,
            event_date_precision=fact.event_date_precision,
            attribute_key=fact.attribute_key,
            value=fact.value,
        )
    )


def _relations(
    drafts: Drafts, message: Message, extraction: Extraction, resolution: Resolution
) -> Iterable[tuple[str, str, str]]:
    """Every edge once: source key, target key, type. Identity relations and edges to oneself go silently."""
    named: dict[tuple[str, str, str], None] = {}
    given: list[tuple[str | None, str | None, str]] = [
        (drafts.book.key_of(r.source), drafts.book.key_of(r.target), r.rel_type) for r in extraction.relations
    ]
    given += [(edge.source_key, edge.target_key, edge.rel_type) for edge in resolution.role_edges]
    for source, target, raw in given:
        rel_type = normalise_rel_type(raw, message.config.rel_type_aliases)
        if source is None or target is None:
            drafts.rejected.append(Rejected(stage="reconcile", kind="relation", reason="unresolved_end", item=raw))
        elif not rel_type:
            drafts.rejected.append(Rejected(stage="reconcile", kind="relation", reason="blank_type", item=raw))
        elif is_identity(rel_type):
            drafts.dropped["identity_relation"] += 1
        elif source == target:
            drafts.dropped["self_relation"] += 1
        else:
            named[source, target, rel_type] = None
    return named


def _evidence(drafts: Drafts, source: str, target: str, rel_type: str, language: Language) -> int | None:
    """The fact that supports an edge: of those that name both ends the surest, else a new mirror fact.

    None where all that names both ends says that the relation is over: then it is not asserted.
    """
    said = relation_sentence(drafts.display.get(source, source), rel_type, drafts.display.get(target, target), language)
    naming = drafts.naming(source, target)
    names = drafts.book.names_of(source)
    standing = [
        i for i in naming if not says_over(drafts.facts[i].text) and not ends(drafts.facts[i].text, said, names)
    ]
    if standing:
        return max(standing, key=lambda index: (drafts.facts[index].confidence, -index))
    if naming:
        drafts.dropped["relation_over"] += 1
        return None
    drafts.facts.append(
        Draft(
            entity_key=source,
            subject=drafts.display.get(source, source),
            text=said,
            confidence=MIRROR_CONFIDENCE,
            importance=MIRROR_IMPORTANCE,
            source_context=MIRROR_CONTEXT,
        )
    )
    drafts.mirrors[len(drafts.facts) - 1] = (source, target, rel_type)
    return len(drafts.facts) - 1

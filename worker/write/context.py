"""What the memory already knows about whom a message names: alias lookup and pre-retrieval (behaviour: 3.1 and 3.2).

Two statements at most, each in a session of its own, so that no connection is held while the message is embedded. Both
cost by what the message names, never by how much is stored.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from sqlalchemy import text
from sqlalchemy.orm import Session

from worker.db import ReadSession
from worker.embedding.provider import Vectors
from worker.write.calls import Calls, EmbeddingError
from worker.write.message import Message
from worker.write.names import entity_key, fold, mentions, word_grams
from worker.write.tokens import estimated_tokens

MAX_ALIASES_SHOWN = 6
# Words of a name looked up in one go; a long text is looked up with shorter ones, or its grams would be a book.
GRAM_WORDS = 6
GRAM_WORDS_OF_LONG_TEXT = 4
LONG_TEXT_CHARS = 8000
_SLICE_CHARS = 1500  # what names are looked for in at a time: in Chinese it has nearly 18,000 sequences

# Invariant: reads the alias rows whose folded alias is one of the grams, by primary key, and no others; then the
# entities that these lead to, through merges (a merged entity's aliases may still point to it). The speaker's own
# entity comes in by key, named or not.
NAMED_ENTITIES = text("""
WITH RECURSIVE hit AS (
  SELECT a.entity_key, a.alias_folded, a.entity_type
    FROM memory_entity_aliases a
   WHERE a.agent_id = :agent_id AND a.alias_folded = ANY (:grams)
), follow (start_key, key, depth) AS (
  SELECT k.key, k.key, 0 FROM (SELECT entity_key AS key FROM hit UNION SELECT :speaker_key) k
  UNION ALL
  SELECT f.start_key, e.merged_into, f.depth + 1
    FROM follow f JOIN memory_entities e ON e.agent_id = :agent_id AND e.canonical_key = f.key
   WHERE e.merged_into IS NOT NULL AND f.depth < 8
)
SELECT e.canonical_key, e.display_name, e.entity_type, e.profile_text,
       array_agg(DISTINCT h.alias_folded) FILTER (WHERE h.alias_folded IS NOT NULL) AS hits,
       bool_or(f.start_key = :speaker_key OR (h.alias_folded = :speaker AND h.entity_type = 'person')) AS speaks,
       ARRAY(SELECT a.alias FROM memory_entity_aliases a
              WHERE a.agent_id = :agent_id AND a.entity_key = e.canonical_key
              ORDER BY a.created_at, a.alias_folded LIMIT :aliases) AS aliases
  FROM follow f
  JOIN memory_entities e ON e.agent_id = :agent_id AND e.canonical_key = f.key AND e.merged_into IS NULL
  LEFT JOIN hit h ON h.entity_key = f.start_key
 GROUP BY e.agent_id, e.canonical_key, e.display_name, e.entity_type, e.profile_text
""")

# Invariant: for each named entity its own active facts only, nearest first; ``+ 0`` keeps the order exact where an
# index of approximate neighbours exists. Without a vector, what matters most and came last.
NEAREST_FACTS = text("""
SELECT k.key, f.fact_text
  FROM unnest(CAST(:keys AS text[])) WITH ORDINALITY AS k (key, place)
 CROSS JOIN LATERAL (
   SELECT m.fact_text, (m.embedding <=> :vector) + 0 AS distance, m.importance, m.ingested_at, m.id
     FROM memory_facts m
    WHERE m.agent_id = :agent_id AND m.entity_key = k.key AND m.valid_to IS NULL AND m.kind = 'fact'
    ORDER BY (m.embedding <=> :vector) + 0 NULLS LAST, m.importance DESC, m.ingested_at DESC, m.id
    LIMIT :topk
 ) f
 ORDER BY k.place, f.distance NULLS LAST, f.importance DESC, f.ingested_at DESC, f.id
""")
IMPORTANT_FACTS = text(str(NEAREST_FACTS).replace("(m.embedding <=> :vector) + 0", "CAST(NULL AS double precision)"))


@dataclass(frozen=True, slots=True)
class KnownEntity:
    """An entity that the message names, with what is known of it: a profile, or facts (nearest first)."""

    key: str
    name: str
    type: str
    aliases: tuple[str, ...] = ()
    profile: str | None = None
    facts: tuple[str, ...] = ()
    speaks: bool = False
    hits: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Context:
    """What a message may be read against. ``embedding_failed`` holds the cause where facts came without vectors."""

    entities: tuple[KnownEntity, ...] = ()
    embedding_failed: str | None = None
    payload: list[dict[str, Any]] = field(default_factory=list)
    tokens: int = 0

    @property
    def keys(self) -> list[str]:
        """The keys of all named entities, the speaker's first."""
        return [entity.key for entity in self.entities]


def known_context(message: Message, read: ReadSession, calls: Calls, *, embed_as: str) -> Context:
    """The known entities that ``message`` names, with profiles or nearest facts, within the token budget.

    ``embed_as`` is the text that stands for the message as a vector; it is embedded only where a named entity has no
    profile. A transient EmbeddingError passes through; with any other, facts come by importance instead.
    """
    config = message.config
    with read() as session:
        entities = named_entities(session, message)
    bare = [entity.key for entity in entities if not entity.profile]
    if not bare or config.informed_extraction_topk == 0:
        return within_budget(Context(entities), config.informed_extraction_context_budget_tokens)
    vector: Vectors | None = None
    failed: str | None = None
    try:
        vector = calls.embed([embed_as])[embed_as]
    except EmbeddingError as error:
        if error.transient and not calls.without_embeddings:
            raise
        failed = error.cause.value
    with read() as session:
        facts = nearest_facts(session, message.agent_id, bare, vector, config.informed_extraction_topk)
    filled = tuple(entity if entity.profile else _with_facts(entity, facts.get(entity.key, ())) for entity in entities)
    return within_budget(Context(filled, failed), config.informed_extraction_context_budget_tokens)


def named_entities(session: Session, message: Message) -> tuple[KnownEntity, ...]:
    """The entities that ``message`` names as whole words, and the speaker's own; the speaker first. One statement."""
    long = len(message.text) > LONG_TEXT_CHARS
    grams = _grams(message.text, GRAM_WORDS_OF_LONG_TEXT if long else GRAM_WORDS)
    speaker = fold(message.speaker)
    rows = session.execute(
        NAMED_ENTITIES,
        {
            "agent_id": message.agent_id,
            "grams": [*grams, speaker],
            "speaker_key": entity_key("person", message.speaker),
            "speaker": speaker,
            "aliases": MAX_ALIASES_SHOWN + 2,
        },
    ).all()
    found = [
        KnownEntity(
            key=row.canonical_key,
            name=row.display_name,
            type=row.entity_type,
            aliases=_shown(row.aliases, row.display_name),
            profile=row.profile_text,
            speaks=bool(row.speaks),
            hits=tuple(row.hits or ()),
        )
        for row in rows
    ]
    standing = _standing_alone(message.text, {hit for entity in found for hit in entity.hits})
    named = [entity for entity in found if entity.speaks or any(hit in standing for hit in entity.hits)]
    return tuple(sorted(named, key=lambda entity: (not entity.speaks, entity.key)))


def nearest_facts(
    session: Session, agent_id: str, keys: Sequence[str], vector: Vectors | None, topk: int
) -> dict[str, tuple[str, ...]]:
    """Up to ``topk`` active facts of each key, nearest to ``vector`` first. One statement for all keys."""
    bound: dict[str, Any] = {"agent_id": agent_id, "keys": list(keys), "topk": topk}
    if vector is not None:
        bound["vector"] = vector
    rows = session.execute(IMPORTANT_FACTS if vector is None else NEAREST_FACTS, bound).all()
    found: dict[str, list[str]] = {}
    for row in rows:
        found.setdefault(row.key, []).append(row.fact_text)
    return {key: tuple(texts) for key, texts in found.items()}


def within_budget(context: Context, budget: int) -> Context:
    """``context`` with its payload: as much as fits into ``budget`` tokens, never more.

    The speaker first, then profiles, then facts in rounds (everybody's nearest, everybody's second nearest, …), so that
    no entity crowds out the others.
    """
    shown: dict[str, dict[str, Any]] = {}
    used = 0
    ordered = sorted(context.entities, key=lambda entity: (not entity.speaks, entity.profile is None))
    for entity in ordered:
        entry = _entry(entity)
        if entity.profile:
            entry["profile"] = entity.profile
        cost = estimated_tokens(entry) + 1
        if used + cost > budget and entity.speaks and entity.profile:
            entry["profile"] = _cut(entity.profile, 3 * (budget - used - estimated_tokens(_entry(entity)) - 8))
            cost = estimated_tokens(entry) + 1
        if used + cost <= budget and entry.get("profile") != "":
            shown[entity.key] = entry
            used += cost
    for place in range(max((len(entity.facts) for entity in ordered), default=0)):
        for entity in ordered:
            if entity.key in shown and place < len(entity.facts):
                cost = estimated_tokens(entity.facts[place]) + 2
                if used + cost <= budget:
                    shown[entity.key].setdefault("facts", []).append(entity.facts[place])
                    used += cost
    return Context(context.entities, context.embedding_failed, list(shown.values()), used)


def narrowed(context: Context, part: str, budget: int) -> Context:
    """``context`` for one part of a long message: the speaker and whom this part names."""
    standing = _standing_alone(part, {hit for entity in context.entities for hit in entity.hits})
    kept = tuple(entity for entity in context.entities if entity.speaks or any(hit in standing for hit in entity.hits))
    return within_budget(Context(kept, context.embedding_failed), budget)


def _grams(said: str, longest: int) -> list[str]:
    grams: dict[str, None] = {}
    # Cut, because the number of grams of one text is bounded; overlapping, so that no name is cut in two.
    for start in range(0, max(len(said), 1), _SLICE_CHARS):
        grams.update(dict.fromkeys(word_grams(said[max(0, start - 100) : start + _SLICE_CHARS], longest)))
    return list(grams)


def _standing_alone(said: str, hits: Iterable[str]) -> set[str]:
    """Those of ``hits`` that are not only part of a longer name ("Ana" in "Ana Paula"); too short ones pass."""
    hits = set(hits)
    if len(hits) < 2:
        return hits
    return {*mentions(said, hits), *(hit for hit in hits if len(hit) < 3)}


def _with_facts(entity: KnownEntity, facts: tuple[str, ...]) -> KnownEntity:
    return KnownEntity(entity.key, entity.name, entity.type, entity.aliases, None, facts, entity.speaks, entity.hits)


def _shown(aliases: Iterable[str], name: str) -> tuple[str, ...]:
    kept: dict[str, str] = {}
    for alias in aliases:
        # Slugs stand among the aliases; they tell a model nothing.
        if fold(alias) != fold(name) and ("_" not in alias or " " in alias):
            kept.setdefault(fold(alias), alias)
    return tuple(kept.values())[:MAX_ALIASES_SHOWN]


def _entry(entity: KnownEntity) -> dict[str, Any]:
    return {"name": entity.name, "type": entity.type, "aliases": list(entity.aliases)}


def _cut(profile: str, size: int) -> str:
    """The beginning of ``profile`` in at most ``size`` bytes, up to the end of a sentence where there is one."""
    if size < 20:
        return ""
    cut = profile.encode("utf-8", "replace")[:size].decode("utf-8", "ignore")
    end = max(cut.rfind(". "), cut.rfind("。"))
    return cut[: end + 1] if end > 0 else cut.rsplit(" ", 1)[0]

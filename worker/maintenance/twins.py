"""``dedup_entities``: entities that are one are merged, such as a failed resolution leaves them (behaviour: 11).

Candidates come from SQL: near names, names that begin alike, the same relations; of one sort of type, with no edge
between them and no fact that names both. Guards of spelling (generation, number, surname) forbid what no model may
allow; the rest is asked about, a pair a step. What a model said are two is never asked about again.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from itertools import product
from typing import Any

from sqlalchemy import Row, text
from sqlalchemy.orm import Session

from producer.contract import MemoryConfig
from worker.db import ReadSession
from worker.llm.items import EntityMerge
from worker.llm.verdicts import parse_entity_merge
from worker.maintenance.job import Step
from worker.maintenance.merging import MergeRefused, merge_entities, separate
from worker.maintenance.profiles import shown
from worker.write.calls import Calls
from worker.write.entity_types import is_person, types_like
from worker.write.fact_rows import as_rows
from worker.write.persons import evidence, may_be_same
from worker.write.relationships import INVERSES
from worker.write.roles import read_phrase

ENTITIES_A_STEP = 20
FACTS_SHOWN = 12
QUESTIONS_AN_ENTITY = 3  # in one run; the likest go first

_DUE = "e.merged_into IS NULL AND e.facts_changed_at > coalesce(e.twins_sought_at, '-infinity')"

NEXT = text(f"""
SELECT e.canonical_key AS key, e.entity_type AS type, e.facts_changed_at AS seen
  FROM memory_entities e WHERE e.agent_id = :agent_id AND {_DUE}
 ORDER BY e.facts_changed_at, e.canonical_key LIMIT :many
""")  # noqa: S608

# Invariant: for each of the given entities at most 8 by name, 60 for each of 12 names that begin alike, and 8 for each
# of 100 live edges; pairs that stand in memory_entities_distinct, that an edge joins or that one fact names, never
# (but one that names a role, "Pedro is Rafael's brother", does not tell its holders apart).
# same_edges: live edges that say the same of both, from whichever end ("brother of" is the same both ways), and of few
# others: that two of a hundred work at one place says nothing.
CANDIDATES = text("""
WITH given AS (
  SELECT e.canonical_key AS one, e.embedding, e.is_placeholder, r.types
    FROM jsonb_to_recordset(CAST(:rows AS jsonb)) AS r (key text, types text[])
    JOIN memory_entities e ON e.agent_id = :agent_id AND e.canonical_key = r.key
), near AS (
  SELECT g.one, n.other FROM given g CROSS JOIN LATERAL (
    SELECT m.canonical_key AS other FROM memory_entities m
     WHERE m.agent_id = :agent_id AND m.entity_type = ANY (g.types) AND m.merged_into IS NULL
       AND m.canonical_key <> g.one AND NOT m.is_placeholder
       AND (m.embedding <=> g.embedding) <= 1 - CAST(:floor AS double precision)
     ORDER BY (m.embedding <=> g.embedding) + 0, m.canonical_key LIMIT 8) n
   WHERE NOT g.is_placeholder
), named AS (
  SELECT g.one, b.other FROM given g
   CROSS JOIN LATERAL (SELECT a.alias_folded FROM memory_entity_aliases a
                        WHERE a.agent_id = :agent_id AND a.entity_key = g.one ORDER BY 1 LIMIT 12) a
   CROSS JOIN LATERAL (
     SELECT b.entity_key AS other FROM memory_entity_aliases b
      WHERE b.agent_id = :agent_id AND b.alias_folded ~>=~ left(a.alias_folded, 3)
        AND b.alias_folded ~<~ (left(a.alias_folded, 3) || :last) AND b.entity_type = ANY (g.types)
      ORDER BY b.alias_folded USING ~<~ LIMIT 60) b
), seen AS (
  SELECT g.one, r.* FROM given g CROSS JOIN LATERAL (
    (SELECT true AS outward, r.rel_type, r.target_entity_key AS at FROM memory_entity_relationships r
      WHERE r.agent_id = :agent_id AND r.source_entity_key = g.one AND r.valid_to IS NULL LIMIT 50)
    UNION ALL
    (SELECT false, r.rel_type, r.source_entity_key FROM memory_entity_relationships r
      WHERE r.agent_id = :agent_id AND r.target_entity_key = g.one AND r.valid_to IS NULL LIMIT 50)) r
), turned AS (
  SELECT s.*, CAST(:inverses AS jsonb) ->> s.rel_type AS inverse FROM seen s
), shared AS (
  SELECT t.one, o.other, t.at, least(t.rel_type, t.inverse) AS kind,
         count(*) OVER (PARTITION BY t.one, t.outward, t.rel_type, t.at) AS holders
    FROM turned t CROSS JOIN LATERAL (
    (SELECT r.source_entity_key AS other FROM memory_entity_relationships r
      WHERE r.agent_id = :agent_id AND r.target_entity_key = t.at AND r.source_entity_key <> t.one
        AND r.rel_type = CASE WHEN t.outward THEN t.rel_type ELSE t.inverse END AND r.valid_to IS NULL LIMIT 4)
    UNION ALL
    (SELECT r.target_entity_key FROM memory_entity_relationships r
      WHERE r.agent_id = :agent_id AND r.source_entity_key = t.at AND r.target_entity_key <> t.one
        AND r.rel_type = CASE WHEN t.outward THEN t.inverse ELSE t.rel_type END AND r.valid_to IS NULL LIMIT 4)) o
), related AS (
  SELECT one, other, count(DISTINCT (at, kind)) AS same_edges FROM shared WHERE holders < 4 GROUP BY one, other
), pair AS (
  SELECT one, other FROM near UNION SELECT one, other FROM named WHERE one <> other
  UNION SELECT one, other FROM related
)
SELECT p.one, p.other, o.display_name AS one_name, e.display_name AS other_name, o.entity_type AS one_type,
       e.entity_type AS other_type, o.is_placeholder AS one_nameless, e.is_placeholder AS other_nameless,
       1 - (o.embedding <=> e.embedding) AS likeness, coalesce(r.same_edges, 0) AS same_edges,
       ARRAY (SELECT a.alias FROM memory_entity_aliases a WHERE a.agent_id = :agent_id AND a.entity_key = p.one
               ORDER BY a.created_at, a.alias LIMIT 12) AS one_aliases,
       ARRAY (SELECT a.alias FROM memory_entity_aliases a WHERE a.agent_id = :agent_id AND a.entity_key = p.other
               ORDER BY a.created_at, a.alias LIMIT 12) AS other_aliases
  FROM pair p JOIN given g ON g.one = p.one
  JOIN memory_entities o ON o.agent_id = :agent_id AND o.canonical_key = p.one
  JOIN memory_entities e ON e.agent_id = :agent_id AND e.canonical_key = p.other AND e.merged_into IS NULL
                        AND e.entity_type = ANY (g.types)
  LEFT JOIN related r ON r.one = p.one AND r.other = p.other
 WHERE NOT EXISTS (SELECT FROM memory_entities_distinct d WHERE d.agent_id = :agent_id
                      AND d.one_key = least(p.one COLLATE "C", p.other)
                      AND d.other_key = greatest(p.one COLLATE "C", p.other))
   AND NOT EXISTS (SELECT FROM memory_entity_relationships j WHERE j.agent_id = :agent_id AND j.valid_to IS NULL
                      AND (j.source_entity_key, j.target_entity_key) IN ((p.one, p.other), (p.other, p.one)))
   AND (o.is_placeholder OR e.is_placeholder OR
        NOT EXISTS (SELECT FROM memory_fact_entity_links l JOIN memory_fact_entity_links m ON m.fact_id = l.fact_id
                     WHERE l.agent_id = :agent_id AND l.entity_key = p.one AND m.entity_key = p.other))
 ORDER BY p.one, likeness DESC NULLS LAST, p.other
""")

# What the model sees of each, and by what the survivor is chosen.
ENTITIES = text("""
SELECT e.canonical_key AS key, e.display_name AS name, e.entity_type AS type, e.is_placeholder AS nameless,
       left(e.profile_text, 1600) AS profile, e.first_seen_at,
       (SELECT count(*) FROM memory_facts f
         WHERE f.agent_id = :agent_id AND f.entity_key = e.canonical_key AND f.valid_to IS NULL) AS facts,
       ARRAY (SELECT a.alias FROM memory_entity_aliases a
               WHERE a.agent_id = :agent_id AND a.entity_key = e.canonical_key AND a.alias <> e.display_name
               ORDER BY a.created_at, a.alias LIMIT 10) AS aliases
  FROM memory_entities e WHERE e.agent_id = :agent_id AND e.canonical_key = ANY (CAST(:keys AS text[]))
""")
FACTS = text("""
SELECT k.key, f.* FROM unnest(CAST(:keys AS text[])) AS k (key) CROSS JOIN LATERAL (
  SELECT f.fact_text AS text, f.valid_from, f.event_date, f.event_date_precision FROM memory_facts f
   WHERE f.agent_id = :agent_id AND f.entity_key = k.key AND f.valid_to IS NULL AND f.confidence >= :min_confidence
   ORDER BY f.importance DESC, f.valid_from DESC NULLS LAST, f.id LIMIT :many) f
""")

# Invariant: an entity is done with if its facts are those that were there when it was looked at.
DONE = text("""
UPDATE memory_entities e SET twins_sought_at = greatest(mandua_now(), r.seen)
  FROM jsonb_to_recordset(CAST(:rows AS jsonb)) AS r (key text, seen timestamptz)
 WHERE e.agent_id = :agent_id AND e.canonical_key = r.key AND e.facts_changed_at = r.seen
""")
_LAST = "\U0010ffff"
_INVERSES = json.dumps(dict(INVERSES))


@dataclass(frozen=True, slots=True)
class Pair:
    """Two entities that may be one, why, and how alike their names are (0 to 1)."""

    one: str
    other: str
    why: str
    likeness: float


class DedupEntities:
    """See the module's docstring."""

    name = "dedup_entities"
    due = f"EXISTS (SELECT FROM memory_entities e WHERE e.agent_id = a.agent_id AND {_DUE})"

    def plan(
        self,
        agent_id: str,
        carried: Mapping[str, Any],
        read: ReadSession,
        calls: Calls,
        config: MemoryConfig,
        *,
        fallback: str | None,
    ) -> Step | None:
        """One pair; the entities before it that have none are done with."""
        with read() as session:
            due = list(session.execute(NEXT, {"agent_id": agent_id, "many": ENTITIES_A_STEP}))
            if not due:
                return None
            asked = Counter[str](carried.get("asked") or {})
            pairs = candidates(session, agent_id, due, config)
            pairs = [pair for pair in pairs if asked[pair.one] < QUESTIONS_AN_ENTITY]
            clean, pair = _first(due, pairs)
            sides = [] if pair is None else _sides(session, agent_id, pair, config)
        if pair is None:
            return Step(lambda session: _done(session, agent_id, clean), carried)
        said = None if fallback is not None else _ask(calls, sides)

        def apply(session: Session) -> int:
            _done(session, agent_id, clean)
            if said is not None and said.same:
                return _merge(session, agent_id, sides, pair, said)
            separate(session, agent_id, pair.one, pair.other)
            return 0

        return Step(apply, {"asked": asked + Counter([pair.one])})

    def preview(self, session: Session, agent_id: str, config: MemoryConfig) -> list[str]:
        """The pairs that it would ask about."""
        due = list(session.execute(NEXT, {"agent_id": agent_id, "many": 100}))
        pairs = candidates(session, agent_id, due, config) if due else []
        return [f"{pair.one} | {pair.other} ({pair.why})" for pair in pairs]


def candidates(session: Session, agent_id: str, due: Sequence[Row[Any]], config: MemoryConfig) -> list[Pair]:
    """The pairs that each of ``due`` (key, type) may be in, in their order, the likest first; each pair once."""
    types = {row.key: types_like(row.type) for row in due}
    found = _alike(session, agent_id, types, config)
    # Whether a first name fits several is seen from its own side.
    others = {row.other: types_like(row.other_type) for row in found if row.other not in types and _by_first_name(row)}
    rivals = Counter(row.one for row in (*found, *_alike(session, agent_id, others, config)) if _by_first_name(row))
    pairs: dict[frozenset[str], Pair] = {}
    for row in found:
        why = _why(row, max(rivals[row.one], rivals[row.other]), config)
        if why is not None:
            likeness = min(max(float(row.likeness or 0.0), 0.0), 1.0)
            pairs.setdefault(frozenset((row.one, row.other)), Pair(row.one, row.other, why, likeness))
    place = {row.key: number for number, row in enumerate(due)}
    return sorted(pairs.values(), key=lambda pair: place[pair.one])


def _alike(session: Session, agent_id: str, types: Mapping[str, list[str]], config: MemoryConfig) -> list[Row[Any]]:
    """Whom the entities of ``types`` (key -> types that fit) may be, as far as spelling allows; one statement."""
    if not types:
        return []
    rows = as_rows({"key": key, "types": kinds} for key, kinds in types.items())
    given = {"agent_id": agent_id, "rows": rows, "floor": config.fuzzy_floor, "last": _LAST, "inverses": _INVERSES}
    return [row for row in session.execute(CANDIDATES, given) if not _forbidden(row)]


# -- parts -------------------------------------------------------------------------------------------------------------


def _names(row: Row[Any]) -> Iterator[tuple[str, str]]:
    """Every name of the one with every name of the other, phrases like "Rafael's brother" aside."""
    sides = ((row.one_name, *row.one_aliases), (row.other_name, *row.other_aliases))
    return product(*([name for name in dict.fromkeys(names) if read_phrase(name) is None] for names in sides))


def _forbidden(row: Row[Any]) -> bool:
    """Whether spelling says that they are two: store 1 and store 2, Prado and Prado Filho, two surnames."""
    if row.one_nameless or row.other_nameless:
        return False
    kinds = (row.one_type, row.other_type)
    if may_be_same(row.one_name, row.other_name, *kinds) is not None:
        return True
    return any(may_be_same(one, other, *kinds) == "surname" for one, other in _names(row))


def _spelling(row: Row[Any]) -> str | None:
    """What in the spelling of their names speaks for one entity, coded; None where nothing does."""
    if row.one_nameless or row.other_nameless:
        return None
    return next((why for one, other in _names(row) if (why := evidence(one, other, row.one_type))), None)


def _by_first_name(row: Row[Any]) -> bool:
    """Whether all that speaks for one person is a first name: "Ana" and "Ana Souza"."""
    return is_person(row.one_type) and _spelling(row) in ("prefix", "same_first_name")


def _why(row: Row[Any], rivals: int, config: MemoryConfig) -> str | None:
    """Why a pair is worth a question, None if it is not.

    A first name says little where it fits several (``rivals``), unless the two share a relation.
    """
    if row.one_nameless or row.other_nameless:
        return "same relation" if row.same_edges else None
    if _by_first_name(row) and rivals > 1 and not row.same_edges:
        return None
    if (spelling := _spelling(row)) is not None:
        return spelling.replace("_", " ")
    if row.likeness is not None and row.likeness >= config.fuzzy_threshold:
        return "near names"
    return "same relations" if row.same_edges > 1 else None


def _first(due: Sequence[Row[Any]], pairs: Sequence[Pair]) -> tuple[list[Row[Any]], Pair | None]:
    """The first pair, and those of ``due`` before it."""
    if not pairs:
        return list(due), None
    keys = [row.key for row in due]
    return list(due[: keys.index(pairs[0].one)]), pairs[0]


def _sides(session: Session, agent_id: str, pair: Pair, config: MemoryConfig) -> list[dict[str, Any]]:
    """What the two are, the survivor first: a name before a role, then the more facts, the fuller name, the older."""
    given = {"agent_id": agent_id, "keys": [pair.one, pair.other]}
    sides = [dict(row) | {"told": []} for row in session.execute(ENTITIES, given).mappings()]
    by_key = {side["key"]: side for side in sides}
    parameters = {**given, "min_confidence": config.min_confidence, "many": FACTS_SHOWN}
    for row in session.execute(FACTS, parameters).mappings():
        by_key[row["key"]]["told"].append(shown(dict(row)))
    return sorted(sides, key=_standing)


def _standing(side: Mapping[str, Any]) -> tuple[bool, int, int, datetime, str]:
    """By what the first of two stays."""
    return side["nameless"], -side["facts"], -len(side["name"].split()), side["first_seen_at"], side["key"]


def _ask(calls: Calls, sides: Sequence[Mapping[str, Any]]) -> EntityMerge:
    entities = [
        {"name": side["name"], "type": side["type"], "aliases": side["aliases"], "profile": side["profile"],
         "facts": side["told"]}
        for side in sides
    ]  # fmt: skip
    return calls.ask("entity_merge", {"entities": entities}, lambda completion: parse_entity_merge(completion.text))


def _merge(
    session: Session, agent_id: str, sides: Sequence[Mapping[str, Any]], pair: Pair, said: EntityMerge
) -> int:  # fmt: skip
    """Merge the second of ``sides`` into the first; 0 where one of them is gone meanwhile."""
    kept, gone = (side["key"] for side in sides)
    reason = f"{pair.why}: {said.reason}" if said.reason else pair.why
    try:
        merge_entities(session, agent_id, kept, gone, by="job", reason=reason, score=pair.likeness)
    except MergeRefused:
        return 0
    return 1


def _done(session: Session, agent_id: str, entities: Sequence[Row[Any]]) -> int:
    if entities:
        rows = sorted(({"key": row.key, "seen": row.seen} for row in entities), key=lambda row: str(row["key"]))
        session.execute(DONE, {"agent_id": agent_id, "rows": as_rows(rows)})
    return 0

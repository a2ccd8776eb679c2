"""What the memory knows about the names of a message: three statements at most, none in a loop.

Each is one round trip for all names together, and reads a bounded number of rows however much is stored.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from sqlalchemy import text
from sqlalchemy.orm import Session

from worker.embedding.provider import Vectors
from worker.write.entity_types import types_like
from worker.write.names import fold

PER_PREFIX = 60  # aliases read for one prefix; as many as that, and no candidate can be called the only one
POOL = 2000  # entities whose vectors are compared, beside those that begin like the name
NEAR = 200
NEAREST = 10
MAX_EDGES = 300
MAX_ALIASES = 24
_LAST = "\U0010ffff"

# Invariant: alias rows by primary key or, for prefixes, at most PER_PREFIX each by the pattern index; entities by key.
# Merges are followed, so that what comes back is never a merged entity. (Arrays behind a SELECT, so that their lengths
# do not count: with them the statement was planned anew each time.)
NAMED = text("""
WITH RECURSIVE prefixed AS MATERIALIZED (
  SELECT p.alias_folded, p.entity_key
    FROM unnest((SELECT CAST(:prefixes AS text[]))) AS w (prefix)
   CROSS JOIN LATERAL (
     SELECT a.alias_folded, a.entity_key
       FROM memory_entity_aliases a
      WHERE a.agent_id = :agent_id AND a.alias_folded ~>=~ w.prefix AND a.alias_folded ~<~ (w.prefix || :last)
        AND a.entity_type = ANY (:person_types)
      LIMIT :per_prefix
   ) p
), hit AS (
  SELECT a.alias_folded, a.entity_key
    FROM memory_entity_aliases a
   WHERE a.agent_id = :agent_id AND a.alias_folded = ANY (CAST((SELECT CAST(:names AS text[])) AS text[]))
  UNION
  SELECT alias_folded, entity_key FROM prefixed
  UNION
  SELECT NULL, e.canonical_key
    FROM memory_entities e
   WHERE e.agent_id = :agent_id AND e.canonical_key = ANY (CAST((SELECT CAST(:keys AS text[])) AS text[]))
), follow (start_key, key, depth) AS (
  SELECT DISTINCT entity_key, entity_key, 0 FROM hit
  UNION ALL
  SELECT f.start_key, e.merged_into, f.depth + 1
    FROM follow f JOIN memory_entities e ON e.agent_id = :agent_id AND e.canonical_key = f.key
   WHERE e.merged_into IS NOT NULL AND f.depth < 8
)
SELECT e.canonical_key AS key, e.display_name AS display, e.entity_type, e.is_placeholder AS placeholder,
       left(e.profile_text, 600) AS profile,
       array_agg(DISTINCT h.alias_folded) FILTER (WHERE h.alias_folded IS NOT NULL) AS matched,
       array_agg(DISTINCT f.start_key) AS reached,
       ARRAY(SELECT a.alias FROM memory_entity_aliases a
              WHERE a.agent_id = :agent_id AND a.entity_key = e.canonical_key
              ORDER BY a.created_at, a.alias_folded LIMIT :aliases) AS aliases
  FROM follow f
  JOIN memory_entities e ON e.agent_id = :agent_id AND e.canonical_key = f.key AND e.merged_into IS NULL
  LEFT JOIN hit h ON h.entity_key = f.start_key
 GROUP BY e.agent_id, e.canonical_key
 ORDER BY e.canonical_key
""")

# Invariant: live edges of the given people only, by the two ends' indexes, MAX_EDGES at most; and by key the
# placeholders that might exist already. One that was merged is whom it was merged into (one step: see the job).
ROLES = text("""
WITH edge AS (
  SELECT r.source_entity_key AS source, r.target_entity_key AS target, r.rel_type
    FROM memory_entity_relationships r
   WHERE r.agent_id = :agent_id AND r.source_entity_key = ANY (:people) AND r.rel_type = ANY (:rel_types)
     AND r.valid_to IS NULL
  UNION
  SELECT r.source_entity_key, r.target_entity_key, r.rel_type
    FROM memory_entity_relationships r
   WHERE r.agent_id = :agent_id AND r.target_entity_key = ANY (:people) AND r.rel_type = ANY (:rel_types)
     AND r.valid_to IS NULL
  LIMIT :max_edges
), wanted AS (
  SELECT source AS key, source, target, rel_type FROM edge
  UNION ALL
  SELECT target, source, target, rel_type FROM edge
  UNION ALL
  SELECT k, NULL, NULL, NULL FROM unnest(CAST(:keys AS text[])) AS k
)
SELECT e.canonical_key AS key, w.key AS asked, e.display_name AS display, e.entity_type,
       e.is_placeholder AS placeholder, left(e.profile_text, 600) AS profile, w.source, w.target, w.rel_type,
       ARRAY(SELECT a.alias FROM memory_entity_aliases a
              WHERE a.agent_id = :agent_id AND a.entity_key = e.canonical_key
              ORDER BY a.created_at, a.alias_folded LIMIT :aliases) AS aliases
  FROM wanted w
  JOIN memory_entities k ON k.agent_id = :agent_id AND k.canonical_key = w.key
  JOIN memory_entities e ON e.agent_id = :agent_id AND e.canonical_key = coalesce(k.merged_into, k.canonical_key)
 ORDER BY e.last_seen_at DESC, e.canonical_key
""")

# Invariant: for each name, exact distances over at most POOL + NEAR entities of its type, among them its neighbours in
# the order of names (those with which it shares most of its beginning, however many begin like it); ``+ 0`` keeps the
# order exact whatever indexes there are. Placeholders have no name to compare. Of more than POOL entities of a type,
# those beyond its neighbours are whichever the index gives first: exact and whole names never depend on them.
# Entities are looked up one by one (OFFSET 0 keeps a join from being made of it): a plan of a small table's time went
# through all of them and looked for the candidates anew for each.
_CANDIDATES = """
SELECT w.number, e.canonical_key AS key, e.display_name AS display, e.entity_type, false AS placeholder,
       left(e.profile_text, 600) AS profile, c.distance,
       ARRAY(SELECT a.alias FROM memory_entity_aliases a
              WHERE a.agent_id = :agent_id AND a.entity_key = e.canonical_key
              ORDER BY a.created_at, a.alias_folded LIMIT :aliases) AS aliases
  FROM jsonb_to_recordset(CAST(:wanted AS jsonb)) AS w (
         number integer, types text[], name text, stem text, vector vector)
 CROSS JOIN LATERAL (
   SELECT p.key, {distance} AS distance
     FROM (
       (SELECT m.canonical_key AS key FROM memory_entities m
         WHERE m.agent_id = :agent_id AND m.entity_type = ANY (w.types) LIMIT :pool)
       UNION
       (SELECT m.canonical_key FROM memory_entities m
         WHERE w.types IS NULL AND m.agent_id = :agent_id LIMIT :pool)
       UNION
       (SELECT s.entity_key
          FROM (SELECT a.entity_key, a.entity_type FROM memory_entity_aliases a
                 WHERE a.agent_id = :agent_id AND a.alias_folded ~>=~ w.name AND a.alias_folded ~<~ (w.stem || :last)
                 ORDER BY a.alias_folded USING ~<~ LIMIT :pool) s
         WHERE w.types IS NULL OR s.entity_type = ANY (w.types) LIMIT :near / 2)
       UNION
       (SELECT s.entity_key
          FROM (SELECT a.entity_key, a.entity_type FROM memory_entity_aliases a
                 WHERE a.agent_id = :agent_id AND a.alias_folded ~>=~ w.stem AND a.alias_folded ~<~ w.name
                 ORDER BY a.alias_folded USING ~>~ LIMIT :pool) s
         WHERE w.types IS NULL OR s.entity_type = ANY (w.types) LIMIT :near / 2)
     ) p
    CROSS JOIN LATERAL (
      SELECT m.embedding, m.merged_into, m.is_placeholder FROM memory_entities m
       WHERE m.agent_id = :agent_id AND m.canonical_key = p.key OFFSET 0) v
    WHERE v.merged_into IS NULL AND NOT v.is_placeholder
    ORDER BY distance NULLS LAST, p.key
    LIMIT :nearest
 ) c
 CROSS JOIN LATERAL (
   SELECT * FROM memory_entities m WHERE m.agent_id = :agent_id AND m.canonical_key = c.key OFFSET 0) e
 ORDER BY w.number, c.distance NULLS LAST, e.canonical_key
"""
NEAREST_BY_VECTOR = text(_CANDIDATES.format(distance="(v.embedding <=> w.vector) + 0"))
# Without vectors the spelling decides, outside of SQL, over fewer entities.
BY_SPELLING = text(_CANDIDATES.format(distance="CAST(NULL AS double precision)"))


@dataclass(frozen=True, slots=True)
class Known:
    """A stored entity with its names. ``matched``: the folded aliases by which it was found; ``reached``: the keys."""

    key: str
    display: str
    entity_type: str
    placeholder: bool = False
    profile: str | None = None
    aliases: tuple[str, ...] = ()
    matched: frozenset[str] = frozenset()
    reached: frozenset[str] = frozenset()

    def names(self) -> list[str]:
        """The display name, then the aliases."""
        return list(dict.fromkeys((self.display, *self.aliases)))

    def folded(self) -> frozenset[str]:
        """Every stored name, folded."""
        return frozenset(filter(None, map(fold, self.names())))


@dataclass(frozen=True, slots=True)
class Edge:
    """A live edge of somebody's."""

    source: str
    target: str
    rel_type: str


@dataclass(slots=True)
class Holders:
    """Who stands in which relation to some people, and the placeholders that exist already."""

    known: dict[str, Known] = field(default_factory=dict)
    edges: list[Edge] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Wanted:
    """A name to look for by likeness."""

    number: int
    name: str
    types: list[str] | None
    vector: Vectors | None


def find_named(
    session: Session, agent_id: str, names: Iterable[str], prefixes: Iterable[str], keys: Iterable[str]
) -> list[Known]:
    """The entities that bear one of the folded ``names``, begin with a prefix, or have one of the ``keys``."""
    rows = session.execute(
        NAMED,
        {
            "agent_id": agent_id,
            "names": sorted(set(names)),
            "prefixes": sorted(set(prefixes)),
            "keys": sorted(set(keys)),
            "person_types": types_like("person"),
            "per_prefix": PER_PREFIX,
            "aliases": MAX_ALIASES,
            "last": _LAST,
        },
    )
    return [
        _known(row, matched=frozenset(row["matched"] or ()), reached=frozenset(row["reached"]))
        for row in rows.mappings()
    ]


def find_holders(
    session: Session, agent_id: str, people: Iterable[str], rel_types: Iterable[str], keys: Iterable[str]
) -> Holders:
    """The live edges of ``people`` of the given types with both ends, and the entities of ``keys`` that exist."""
    holders = Holders()
    rows = session.execute(
        ROLES,
        {
            "agent_id": agent_id,
            "people": sorted(set(people)),
            "rel_types": sorted(set(rel_types)),
            "keys": sorted(set(keys)),
            "max_edges": MAX_EDGES,
            "aliases": MAX_ALIASES,
        },
    )
    edges: dict[Edge, None] = {}
    for row in rows.mappings():
        known = holders.known.setdefault(row["key"], _known(row))
        holders.known.setdefault(row["asked"], known)
        if row["rel_type"] is not None:
            edges[Edge(row["source"], row["target"], row["rel_type"])] = None
    holders.edges = list(edges)
    return holders


def find_alike(
    session: Session, agent_id: str, wanted: Sequence[Wanted]
) -> dict[int, list[tuple[Known, float | None]]]:
    """Candidates by number of the name: with vectors the NEAREST by cosine, without them all that are looked at.

    The cosine is None where there is no vector to compare.
    """
    by_vector = all(one.vector is not None for one in wanted)
    rows = session.execute(
        NEAREST_BY_VECTOR if by_vector else BY_SPELLING,
        {
            "agent_id": agent_id,
            "wanted": json.dumps([_wanted_row(one) for one in wanted], ensure_ascii=False),
            "pool": POOL if by_vector else POOL // 4,
            "near": NEAR,
            "nearest": NEAREST if by_vector else POOL,
            "aliases": MAX_ALIASES,
            "last": _LAST,
        },
    )
    found: dict[int, list[tuple[Known, float | None]]] = {one.number: [] for one in wanted}
    for row in rows.mappings():
        cosine = None if row["distance"] is None else 1.0 - float(row["distance"])
        found[row["number"]].append((_known(row), cosine))
    return found


def _wanted_row(one: Wanted) -> dict[str, Any]:
    vector = None if one.vector is None else "[" + ",".join(f"{value:.7g}" for value in one.vector.tolist()) + "]"
    folded = fold(one.name)
    return {"number": one.number, "types": one.types, "name": folded, "stem": folded[:3], "vector": vector}


def _known(row: Any, **found: Any) -> Known:
    return Known(
        key=row["key"],
        display=row["display"],
        entity_type=row["entity_type"],
        placeholder=row["placeholder"],
        profile=row["profile"],
        aliases=tuple(row["aliases"]),
        **found,
    )

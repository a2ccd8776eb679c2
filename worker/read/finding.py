"""Search: facts by meaning and by words, the two rankings fused (behaviour: 12; design: 5)."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime
from typing import Any

from sqlalchemy import text

from worker.embedding.provider import Vectors
from worker.models_in_use import embedding_model
from worker.read.facts import COLUMNS, MIN_CONFIDENCE, NOW, SHOWN, THEN, moments
from worker.read.rows import Reader, Row, fetch
from worker.write.fact_rows import vector_text
from worker.write.names import word_grams

# Up to here an agent's facts are compared one by one, which misses none (about 40 ms); beyond, by the index.
EXACT_FACTS = 20_000
# A hit of a ranking counts 1 / (RANK_CONSTANT + rank): the usual figure, at which the two agree on the best early.
RANK_CONSTANT = 60
# The same for the facts of an entity that the question names: smaller, so that its best ones come first.
NAMED_CONSTANT = 20
DEPTH = 50  # hits of each ranking that take part in the fusion, at least

HOW_MANY = f"""
SELECT count(*) FROM (SELECT 1 FROM memory_facts WHERE agent_id = :agent LIMIT {EXACT_FACTS + 1}) f
"""  # noqa: S608

_KEPT = f"""
f.agent_id = :agent AND {SHOWN}
AND (CAST(:since AS timestamptz) IS NULL OR f.valid_from >= :since)
AND (CAST(:until AS timestamptz) IS NULL OR f.valid_from < :until)
AND (CAST(:entities AS text[]) IS NULL OR f.entity_key = ANY (:entities) OR EXISTS (
       SELECT 1 FROM memory_fact_entity_links l WHERE l.fact_id = f.id AND l.entity_key = ANY (:entities)))
"""  # noqa: S608

# Invariant: every hit is the agent's own and passes the filters before it is ranked, so that what is filtered out takes
# no place. by_words: a word weighs the more the fewer facts have it; words of the question that no fact has weigh
# nothing. nearest: {distance} is exact (+ 0) or served by the index, in strict order. about: the facts of an
# entity that the question names, by what question and fact say beside the name (the part along the name's own vector is
# taken out of both): a name weighs so much in a vector that what is asked about it hardly shows. Whatever one of them
# finds is ranked by all; equal ranks let the others choose.
_SEARCH = """
WITH word AS (
  SELECT w, ('''' || replace(replace(w, '\\', '\\\\'), '''', '''''') || '''')::tsquery AS asked
    FROM unnest(tsvector_to_array(to_tsvector('simple', mandua_folded(:query)))) w LIMIT 64
), said AS (
  SELECT w.w, f.id, f.embedding <=> :vector AS distance FROM word w
    JOIN {source} ON mandua_words(f.agent_id, f.fact_text) @@ (mandua_agent_word(:agent)::tsquery && w.asked)
   WHERE {kept}
), rarity AS (
  SELECT w, ln(1 + CAST(:total AS double precision) / count(*)) AS rare FROM said GROUP BY w
), by_words AS (
  SELECT s.id, min(s.distance) AS distance, round(CAST(sum(r.rare) AS numeric), 6) AS weight
    FROM said s JOIN rarity r USING (w) GROUP BY s.id ORDER BY 3 DESC, 2 NULLS LAST, s.id LIMIT :depth
), nearest AS MATERIALIZED (
  SELECT f.id, f.embedding <=> :vector AS distance FROM {source}
   WHERE CAST(:vector AS text) IS NOT NULL AND f.embedding IS NOT NULL AND {kept} ORDER BY {distance} LIMIT :depth
), named AS (
  SELECT DISTINCT ON (e.canonical_key) e.canonical_key AS key, e.embedding
    FROM memory_entity_aliases n JOIN memory_entities e ON e.agent_id = n.agent_id AND e.canonical_key = n.entity_key
   WHERE n.agent_id = :agent AND n.alias_folded = ANY (CAST(:grams AS text[])) AND e.merged_into IS NULL
     AND e.embedding IS NOT NULL AND CAST(:vector AS text) IS NOT NULL
   ORDER BY e.canonical_key LIMIT 8
), about AS (
  SELECT f.id, min(f.embedding <=> :vector) AS distance,
         round(CAST(max(1 - (f.embedding <=> :vector)
                        - (1 - (n.embedding <=> :vector)) * (1 - (f.embedding <=> n.embedding))) AS numeric), 6) AS rest
    FROM named n
   CROSS JOIN LATERAL (
     SELECT l.fact_id FROM memory_fact_entity_links l WHERE l.agent_id = :agent AND l.entity_key = n.key
     UNION SELECT s.id FROM memory_facts s WHERE s.agent_id = :agent AND s.entity_key = n.key) m
    JOIN {source} ON f.id = m.fact_id
   WHERE f.embedding IS NOT NULL AND {kept} GROUP BY f.id ORDER BY 3 DESC, f.id LIMIT :depth
), candidate AS (
  SELECT id, min(distance) AS distance
    FROM (SELECT id, distance FROM nearest UNION ALL SELECT id, distance FROM by_words
          UNION ALL SELECT id, distance FROM about) c GROUP BY id
), ranked AS (
  SELECT id, c.distance, w.weight, a.rest, rank() OVER (ORDER BY c.distance NULLS LAST) AS by_meaning,
         rank() OVER (ORDER BY w.weight DESC NULLS LAST) AS by_word,
         rank() OVER (ORDER BY a.rest DESC NULLS LAST) AS by_rest
    FROM candidate c LEFT JOIN by_words w USING (id) LEFT JOIN about a USING (id)
), fused AS (
  SELECT id, 1 - distance AS similarity, weight,
         CASE WHEN distance IS NULL THEN 0 ELSE 1.0 / ({constant} + by_meaning) END
         + CASE WHEN weight IS NULL THEN 0 ELSE 1.0 / ({constant} + by_word) END
         + CASE WHEN rest IS NULL THEN 0 ELSE 1.0 / ({named_constant} + by_rest) END AS score
    FROM ranked ORDER BY 4 DESC, distance NULLS LAST, id LIMIT :many
)
SELECT {columns}, round(CAST(u.score AS numeric), 6)::double precision AS score,
       round(CAST(u.similarity AS numeric), 4)::double precision AS similarity,
       round(CAST(u.weight AS numeric), 4)::double precision AS word_weight,
       e.message AS source_message, e.speaker_name AS source_speaker, e.occurred_at AS source_occurred_at
  FROM fused u JOIN {source} ON f.id = u.id JOIN memory_events e ON e.id = f.source_event_id
 ORDER BY u.score DESC, u.similarity DESC NULLS LAST, f.id
"""
_EXACT = "(f.embedding <=> :vector) + 0"


def _search(source: str, distance: str) -> str:
    statement = _SEARCH.replace("{source}", source).replace("{kept}", _KEPT).replace("{columns}", COLUMNS)
    return statement.replace("{distance}", distance).replace("{constant}", str(RANK_CONSTANT)).replace(
        "{named_constant}", str(NAMED_CONSTANT)
    )


SEARCH_EXACT = _search(NOW, _EXACT)
SEARCH_BY_INDEX = _search(NOW, "f.embedding <=> :vector")
SEARCH_KNOWN = _search(THEN, _EXACT)
# The index goes on until enough rows have passed the filters, in the order of their distance. Of 24,000 facts it finds
# 0.98 of the five nearest and 0.91 of the fifty nearest so.
ITERATIVE = """
SELECT set_config('hnsw.iterative_scan', 'strict_order', true), set_config('hnsw.max_scan_tuples', '200000', true),
       set_config('hnsw.ef_search', '800', true)
"""

# A fact that was used is worth more; a job weighs it. Rows are locked in the order of their ids.
NOTE_USED = """
WITH used AS (
  SELECT id FROM memory_facts WHERE agent_id = :agent AND id = ANY (CAST(:ids AS uuid[])) ORDER BY id FOR NO KEY UPDATE
)
UPDATE memory_facts f SET retrievals = f.retrievals + 1, last_retrieved_at = mandua_now() FROM used u WHERE f.id = u.id
"""


def search(
    reader: Reader,
    agent_id: str,
    query: str,
    *,
    limit: int = 10,
    entity_keys: Sequence[str] | None = None,
    min_confidence: float = MIN_CONFIDENCE,
    as_of: datetime | None = None,
    known_at: datetime | None = None,
    since: datetime | None = None,
    until: datetime | None = None,
    include_closed: bool = False,
    vector: Vectors | None = None,
) -> list[Row]:
    """The facts of an agent that answer ``query`` best, best first (behaviour: 12).

    Only live facts, unless ``as_of``, ``known_at`` or ``include_closed`` (all as for ``get_facts``) ask for others;
    ``entity_keys`` keeps facts about or mentioning one of these, ``since`` and ``until`` those that became true between
    the two. ``vector`` is the query's embedding; without one it is made here, before anything is asked of the database.

    Rows are those of ``get_facts`` and ``score`` (the fused rank, comparable within one search only), ``similarity``
    (cosine, None where only words matched), ``word_weight`` (None where only the meaning matched), ``source_message``,
    ``source_speaker``, ``source_occurred_at``. Raises ModelError if the embeddings do not answer; ``search_words`` does
    without them.

    >>> from worker.db import engine
    >>> with engine().connect() as connection:
    ...     search(connection, "nobody-yet", "Where does Ana live?")
    []
    """
    if vector is None:
        vector = embedding_model().embed([query])[0]
    return _found(
        reader, agent_id, query, vector_text(vector), limit,
        {"entities": None if entity_keys is None else list(entity_keys), "min_confidence": min_confidence,
         "since": since, "until": until, "closed": include_closed, **moments(as_of, known_at)},
    )  # fmt: skip


def search_words(reader: Reader, agent_id: str, query: str, *, limit: int = 10) -> list[Row]:
    """``search`` by words alone, among live facts: for when the embeddings do not answer."""
    asked = {"entities": None, "min_confidence": MIN_CONFIDENCE, "since": None, "until": None, "closed": False,
             "as_of": None}  # fmt: skip
    return _found(reader, agent_id, query, None, limit, asked)


def note_used(reader: Reader, agent_id: str, fact_ids: Sequence[Any]) -> None:
    """Count that facts were put to use (shown to a model, say), in the caller's transaction: scores weigh it."""
    reader.execute(text(NOTE_USED), {"agent": agent_id, "ids": list(fact_ids)})


def _found(
    reader: Reader, agent_id: str, query: str, vector: str | None, limit: int, asked: dict[str, Any]
) -> list[Row]:
    ((total,),) = reader.execute(text(HOW_MANY), {"agent": agent_id}).all()
    if total == 0:
        return []
    statement = SEARCH_EXACT
    if "known_at" in asked:
        statement = SEARCH_KNOWN
    elif total > EXACT_FACTS and vector is not None:
        statement = SEARCH_BY_INDEX
        reader.execute(text(ITERATIVE))
    depth = max(DEPTH, 4 * limit)
    return fetch(
        reader, statement,
        {"agent": agent_id, "query": query, "grams": word_grams(query), "vector": vector, "total": total,
         "depth": depth, "many": limit, **asked},
    )  # fmt: skip

"""Facts between the database and a Timeline: one statement loads and locks, a few write, however many there are."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
from datetime import datetime
from typing import Any, Protocol
from uuid import UUID

from sqlalchemy import text
from sqlalchemy.orm import Session

from worker.embedding.provider import Vectors
from worker.write.timeline import Noted, Said, Timeline, Version, Wording

# Invariant: what is decided about a version is decided under its lock, and locks are taken in the order of ids.
# Loaded are the targets, active copies of the new texts, and of their chains as much as lies between them and the
# message's time: for a live message nothing more, so that long histories cost nothing.
LOCK_VERSIONS = text("""
WITH RECURSIVE wanted AS (
  SELECT f.id FROM memory_facts f WHERE f.agent_id = :agent_id AND f.id = ANY (CAST(:targets AS uuid[]))
  UNION
  SELECT f.id FROM jsonb_to_recordset(CAST(:texts AS jsonb)) AS t (entity_key text, text_hash text)
    JOIN memory_facts f ON f.agent_id = :agent_id AND f.entity_key = t.entity_key
                       AND f.text_hash = decode(t.text_hash, 'hex') AND f.valid_to IS NULL
), back AS (
  SELECT f.id, f.supersedes_fact_id, f.valid_from FROM memory_facts f JOIN wanted w ON w.id = f.id
  UNION
  SELECT p.id, p.supersedes_fact_id, p.valid_from FROM back b JOIN memory_facts p ON p.id = b.supersedes_fact_id
   WHERE b.valid_from > coalesce(CAST(:at AS timestamptz), '-infinity')
), forth AS (
  SELECT f.id, f.valid_from FROM memory_facts f JOIN wanted w ON w.id = f.id
  UNION
  SELECT n.id, n.valid_from FROM forth b JOIN memory_facts n ON n.supersedes_fact_id = b.id
   WHERE coalesce(b.valid_from, '-infinity') <= coalesce(CAST(:at AS timestamptz), '-infinity')
)
SELECT f.id, f.entity_key, f.fact_text AS text, f.text_hash, f.confidence, f.importance, f.kind, f.attribute_key,
       f.value, f.event_date, f.event_date_precision, f.source_context, f.source_event_id, f.valid_from, f.valid_to,
       f.invalidated_at, f.last_confirmed_at, f.confirmations, f.user_correction_count AS corrections,
       f.supersedes_fact_id AS supersedes,
       (SELECT e.occurred_at FROM memory_events e WHERE e.id = f.source_event_id) AS source_at,
       ARRAY (SELECT c.event_id FROM memory_fact_confirmations c WHERE c.fact_id = f.id
               ORDER BY c.occurred_at NULLS FIRST, c.event_id) AS said_in,
       ARRAY (SELECT c.occurred_at FROM memory_fact_confirmations c WHERE c.fact_id = f.id
               ORDER BY c.occurred_at NULLS FIRST, c.event_id) AS said_at,
       ARRAY (SELECT c.wording FROM memory_fact_confirmations c WHERE c.fact_id = f.id
               ORDER BY c.occurred_at NULLS FIRST, c.event_id) AS said_as
  FROM memory_facts f WHERE f.id IN (SELECT id FROM back UNION SELECT id FROM forth)
 ORDER BY f.id FOR UPDATE OF f
""")

# Links to versions that are not stored yet are set to null here and made by RELINK: a chain is linear at every moment.
CHANGE_VERSIONS = text("""
UPDATE memory_facts f
   SET valid_from = r.valid_from, valid_to = r.valid_to, invalidated_at = r.invalidated_at,
       supersedes_fact_id = r.supersedes, last_confirmed_at = r.last_confirmed_at, confirmations = r.confirmations,
       user_correction_count = r.corrections, event_date = r.event_date, event_date_precision = r.precision,
       source_event_id = r.source_event_id,
       stale_at = CASE WHEN r.confirmations <= f.confirmations THEN f.stale_at END  -- said again: alive again
  FROM jsonb_to_recordset(CAST(:rows AS jsonb)) AS r (
         id uuid, valid_from timestamptz, valid_to timestamptz, invalidated_at timestamptz, supersedes uuid,
         last_confirmed_at timestamptz, confirmations integer, corrections integer, event_date date, precision text,
         source_event_id uuid)
 WHERE f.id = r.id
""")

INSERT_FACTS = text("""
INSERT INTO memory_facts (id, agent_id, entity_key, fact_text, text_hash, embedding, confidence, importance, kind,
                          attribute_key, value, event_date, event_date_precision, speaker, source_context,
                          source_event_id, valid_from, valid_to, ingested_at, invalidated_at, supersedes_fact_id,
                          user_correction_count)
SELECT r.id, :agent_id, r.entity_key, r.text, decode(r.text_hash, 'hex'), r.embedding, r.confidence, r.importance,
       r.kind, r.attribute_key, r.value, r.event_date, r.precision, :speaker, r.source_context, r.source_event_id,
       r.valid_from, r.valid_to, :now, r.invalidated_at, r.supersedes, r.corrections
  FROM jsonb_to_recordset(CAST(:rows AS jsonb)) AS r (
         id uuid, entity_key text, text text, text_hash text, embedding vector, confidence real, importance real,
         kind text, attribute_key text, value text, event_date date, precision text, source_context text,
         source_event_id uuid, valid_from timestamptz, valid_to timestamptz, invalidated_at timestamptz,
         supersedes uuid, corrections integer)
""")

# A version split off keeps everything of the one it comes from, links to entities and edges held up included; its words
# are those of the message that it begins with.
COPY_VERSIONS = text("""
WITH r AS (
  SELECT * FROM jsonb_to_recordset(CAST(:rows AS jsonb)) AS r (
    id uuid, copy_of uuid, text text, text_hash text, confidence real, importance real, attribute_key text, value text,
    source_context text, source_event_id uuid, valid_from timestamptz, valid_to timestamptz,
    invalidated_at timestamptz, supersedes uuid, last_confirmed_at timestamptz, confirmations integer,
    corrections integer)
), copied AS (
  INSERT INTO memory_facts (id, agent_id, entity_key, fact_text, text_hash, embedding, confidence, importance, kind,
                            attribute_key, value, event_date, event_date_precision, speaker, source_context,
                            source_event_id, valid_from, valid_to, ingested_at, invalidated_at, supersedes_fact_id,
                            last_confirmed_at, confirmations, user_correction_count)
  SELECT r.id, f.agent_id, f.entity_key, r.text, decode(r.text_hash, 'hex'),
         coalesce((SELECT c.embedding FROM memory_fact_confirmations c
                    WHERE c.fact_id = f.id AND c.event_id = r.source_event_id), f.embedding),
         r.confidence, r.importance, f.kind, r.attribute_key, r.value, f.event_date, f.event_date_precision,
         e.speaker_name, r.source_context, r.source_event_id, r.valid_from, r.valid_to, :now, r.invalidated_at,
         r.supersedes, r.last_confirmed_at, r.confirmations, r.corrections
    FROM r JOIN memory_facts f ON f.id = r.copy_of JOIN memory_events e ON e.id = r.source_event_id
), linked AS (
  INSERT INTO memory_fact_entity_links (fact_id, agent_id, entity_key, is_primary)
  SELECT r.id, l.agent_id, l.entity_key, l.is_primary FROM r JOIN memory_fact_entity_links l ON l.fact_id = r.copy_of
)
INSERT INTO memory_relationship_evidence (relationship_id, fact_id)
SELECT v.relationship_id, r.id FROM r JOIN memory_relationship_evidence v ON v.fact_id = r.copy_of
""")

RELINK = text("""
UPDATE memory_facts f SET supersedes_fact_id = r.supersedes
  FROM jsonb_to_recordset(CAST(:rows AS jsonb)) AS r (id uuid, supersedes uuid) WHERE f.id = r.id
""")

# Said once is noted once: the source of a version stands in its own row, never among its confirmations as well.
DROP_CONFIRMATIONS = text("""
DELETE FROM memory_fact_confirmations c
 USING jsonb_to_recordset(CAST(:rows AS jsonb)) AS r (fact_id uuid, event_id uuid)
 WHERE c.fact_id = r.fact_id AND c.event_id = r.event_id
""")

# What moves to a version split off takes the vector of its words along, so it is noted before it is dropped.
NOTE_CONFIRMATIONS = text("""
INSERT INTO memory_fact_confirmations (fact_id, event_id, occurred_at, wording, embedding)
SELECT r.fact_id, r.event_id, r.occurred_at, nullif(r.wording, 'null'),
       coalesce(r.embedding, (SELECT c.embedding FROM memory_fact_confirmations c
                               WHERE c.fact_id = r.was AND c.event_id = r.event_id))
  FROM jsonb_to_recordset(CAST(:rows AS jsonb)) AS r (
         fact_id uuid, event_id uuid, occurred_at timestamptz, wording jsonb, embedding vector, was uuid)
ON CONFLICT DO NOTHING
""")

# A late message put a fact first. The words that it had until now are kept with the messages that said them, then it
# takes those of the late one: the same row, as if that message had made it.
KEEP_WORDINGS = text("""
INSERT INTO memory_fact_confirmations AS c (fact_id, event_id, occurred_at, wording, embedding)
SELECT r.fact_id, r.event_id, r.occurred_at, r.wording, f.embedding
  FROM jsonb_to_recordset(CAST(:rows AS jsonb)) AS r (
         fact_id uuid, event_id uuid, occurred_at timestamptz, wording jsonb)
  JOIN memory_facts f ON f.id = r.fact_id
ON CONFLICT (fact_id, event_id) DO UPDATE
   SET wording = excluded.wording, embedding = coalesce(c.embedding, excluded.embedding)
""")

REPHRASE = text("""
WITH r AS (
  SELECT * FROM jsonb_to_recordset(CAST(:rows AS jsonb)) AS r (
    id uuid, text text, text_hash text, embedding vector, confidence real, importance real, attribute_key text,
    value text, source_context text)
), unlinked AS (
  DELETE FROM memory_fact_entity_links l USING r WHERE l.fact_id = r.id AND NOT l.is_primary
)
UPDATE memory_facts f
   SET fact_text = r.text, text_hash = decode(r.text_hash, 'hex'), embedding = r.embedding,
       confidence = r.confidence, importance = r.importance, attribute_key = r.attribute_key, value = r.value,
       source_context = r.source_context, speaker = :speaker
  FROM r WHERE f.id = r.id
""")


class VectorsByText(Protocol):
    """Where the vector of a text is to be had; None where it has none."""

    def get(self, text: str, /) -> Vectors | None: ...


_STORED_AS = (
    "id entity_key text text_hash confidence importance kind attribute_key value event_date source_context "
    "source_event_id valid_from valid_to invalidated_at supersedes last_confirmed_at confirmations corrections copy_of"
)
_COLUMNS = _STORED_AS.split()


def as_rows(rows: Iterable[Mapping[str, Any]]) -> str:
    """``rows`` as the JSON text that the statements unpack; times with their offset, bytes in hex."""
    return json.dumps(list(rows), default=_plain)


def vector_text(vector: Vectors | None) -> str | None:
    """A vector as pgvector reads it, None where there is none."""
    return None if vector is None else "[" + ",".join(f"{x:.8g}" for x in vector.tolist()) + "]"


def lock_versions(
    session: Session,
    agent_id: str,
    at: datetime | None,
    targets: Sequence[UUID],
    texts: Iterable[tuple[str, bytes]],
) -> list[Version]:
    """The stored versions that a message can touch, locked: targets, active copies of ``texts``, their neighbours."""
    rows = session.execute(
        LOCK_VERSIONS,
        {
            "agent_id": agent_id,
            "at": at,
            "targets": list(targets),
            "texts": as_rows({"entity_key": key, "text_hash": digest} for key, digest in texts),
        },
    ).mappings()
    versions = []
    for row in rows:
        fields = dict(row)
        said = [Said(fields["source_event_id"], fields.pop("source_at"))]
        said += map(Said, fields.pop("said_in"), fields.pop("said_at"), map(_wording, fields.pop("said_as")))
        versions.append(Version(said=said, **{**fields, "text_hash": bytes(fields["text_hash"])}))
    return versions


def write_timeline(session: Session, agent_id: str, speaker: str, timeline: Timeline, vectors: VectorsByText) -> None:
    """Store what the timeline has changed and made; ``vectors`` holds those of the message's texts.

    Closing comes before inserting and linking after it, so that one active copy of a text and one successor of a
    version hold at every statement.
    """
    fresh = [version for version in timeline.versions.values() if version.planned is not None]
    copies = [version for version in timeline.versions.values() if version.copy_of is not None]
    unborn = {version.id for version in (*fresh, *copies)}
    changed = [timeline.versions[key] for key in sorted(timeline.changed) if timeline.versions[key].stored]
    rephrased = [version for version in changed if version.rephrased]
    if rephrased:
        session.execute(KEEP_WORDINGS, {"rows": as_rows(map(_noted, timeline.displaced))})
        rows = [{**_row(v), "embedding": vector_text(vectors.get(v.text))} for v in rephrased]
        session.execute(REPHRASE, {"speaker": speaker, "rows": as_rows(rows)})
    if changed:
        rows = [{**_row(v), "supersedes": None if v.supersedes in unborn else v.supersedes} for v in changed]
        session.execute(CHANGE_VERSIONS, {"rows": as_rows(rows)})
    if fresh:
        rows = [{**_row(v), "embedding": vector_text(vectors.get(v.text))} for v in fresh]
        session.execute(
            INSERT_FACTS, {"agent_id": agent_id, "speaker": speaker, "now": timeline.now, "rows": as_rows(rows)}
        )
    if copies:
        session.execute(COPY_VERSIONS, {"now": timeline.now, "rows": as_rows(map(_row, copies))})
    if timeline.new_said:
        rows = [{**_noted(noted), "embedding": _vector_of(noted, vectors)} for noted in timeline.new_said]
        session.execute(NOTE_CONFIRMATIONS, {"rows": as_rows(rows)})
    if timeline.dropped_said:
        dropped = [{"fact_id": fact, "event_id": event} for fact, event in timeline.dropped_said]
        session.execute(DROP_CONFIRMATIONS, {"rows": as_rows(dropped)})
    relinked = [{"id": v.id, "supersedes": v.supersedes} for v in changed if v.supersedes in unborn]
    if relinked:
        session.execute(RELINK, {"rows": as_rows(relinked)})


def _noted(noted: Noted) -> dict[str, Any]:
    said = noted.said
    wording = None if said.wording is None else asdict(said.wording)
    return {
        "fact_id": noted.version,
        "event_id": said.event_id,
        "occurred_at": said.at,
        "wording": wording,
        "was": noted.was,
    }


def _vector_of(noted: Noted, vectors: VectorsByText) -> str | None:
    """The vector of other words than the version's; those that only moved have theirs in the database."""
    if noted.said.wording is None or noted.was is not None:
        return None
    return vector_text(vectors.get(noted.said.wording.text))


def _wording(stored: Mapping[str, Any] | None) -> Wording | None:
    if stored is None:
        return None
    return Wording(**{**stored, "text_hash": bytes.fromhex(stored["text_hash"])})


def _row(version: Version) -> dict[str, Any]:
    return {name: getattr(version, name) for name in _COLUMNS} | {"precision": version.event_date_precision}


def _plain(value: object) -> str:
    if isinstance(value, (bytes, memoryview)):
        return bytes(value).hex()
    if isinstance(value, UUID):
        return str(value)
    if hasattr(value, "isoformat"):
        return str(value.isoformat())
    raise TypeError(f"{type(value).__name__} has no place in a row")

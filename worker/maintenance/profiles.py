"""``consolidate_entity_profiles``: a full profile, in English, of each entity whose facts changed (behaviour: 8, 11).

Closing a fact moves ``facts_changed_at`` and so makes its entity due at once: no profile outlives a fact that it
states. A profile is stored only if the facts are those that it was made of.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from sqlalchemy import Row, text
from sqlalchemy.orm import Session

from producer.contract import MemoryConfig
from worker.db import ReadSession
from worker.llm.prompts import holds_canary
from worker.llm.provider import Cause, Completion, ModelError
from worker.llm.verdicts import parse_text
from worker.maintenance.job import Step
from worker.write.calls import Calls
from worker.write.fact_rows import as_rows
from worker.write.tokens import estimated_tokens

# Facts of one call; more are folded in parts, each with the profile of those before.
PART_TOKENS = 6_000
# 300 tokens of English, generously: what is longer is cut at the end of a sentence.
MAX_CHARS = 1_600
ENTITIES_A_STEP = 50

_DUE = "e.merged_into IS NULL AND e.facts_changed_at > coalesce(e.profile_refreshed_at, '-infinity')"

# The oldest change first. What a profile is made of are active facts that are sure enough to be shown at all.
NEXT = text(f"""
SELECT e.canonical_key AS key, e.display_name AS name, e.entity_type AS type, e.facts_changed_at AS seen,
       EXISTS (SELECT FROM memory_facts f WHERE f.agent_id = e.agent_id AND f.entity_key = e.canonical_key
                  AND f.valid_to IS NULL AND f.confidence >= :min_confidence) AS has_facts,
       EXISTS (SELECT FROM memory_facts f WHERE f.agent_id = e.agent_id AND f.entity_key = e.canonical_key) AS had_facts
  FROM memory_entities e WHERE e.agent_id = :agent_id AND {_DUE}
 ORDER BY e.facts_changed_at, e.canonical_key LIMIT :many
""")  # noqa: S608

# All of them, in the order in which they became true: where two contradict each other, the later one counts.
FACTS = text("""
SELECT f.fact_text AS text, f.valid_from, f.event_date, f.event_date_precision, f.importance, f.confidence
  FROM memory_facts f
 WHERE f.agent_id = :agent_id AND f.entity_key = :key AND f.valid_to IS NULL AND f.confidence >= :min_confidence
 ORDER BY f.valid_from NULLS FIRST, f.ingested_at, f.id
""")
ALIASES = text("""
SELECT a.alias FROM memory_entity_aliases a
 WHERE a.agent_id = :agent_id AND a.entity_key = :key AND a.alias <> :name ORDER BY a.created_at, a.alias LIMIT 10
""")

# Invariant: a profile is stored for the very facts that it was made of; if they changed meanwhile, it stays due.
WRITE = text("""
UPDATE memory_entities e
   SET profile_text = r.profile, profile_source = r.source, profile_refreshed_at = greatest(mandua_now(), r.seen)
  FROM jsonb_to_recordset(CAST(:rows AS jsonb)) AS r (key text, seen timestamptz, profile text, source text)
 WHERE e.agent_id = :agent_id AND e.canonical_key = r.key AND e.facts_changed_at = r.seen
""")
# Nothing was ever said of it itself, so a profile that a message gave it is all that there is.
KEEP = text("""
UPDATE memory_entities e SET profile_refreshed_at = greatest(mandua_now(), r.seen)
  FROM jsonb_to_recordset(CAST(:rows AS jsonb)) AS r (key text, seen timestamptz)
 WHERE e.agent_id = :agent_id AND e.canonical_key = r.key AND e.facts_changed_at = r.seen
""")


class ConsolidateEntityProfiles:
    """See the module's docstring."""

    name = "consolidate_entity_profiles"
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
        """One entity's profile, or one part of it; entities that are left without facts go along."""
        with read() as session:
            due = _due(session, agent_id, config)
            if not due:
                return None
            chosen = next((row for row in due if row.has_facts), None)
            facts = [] if chosen is None else facts_of(session, agent_id, chosen.key, config)
            aliases = [] if chosen is None else aliases_of(session, agent_id, chosen)
        without = [row for row in due if not row.has_facts]
        if chosen is None:
            return Step(lambda session: _store(session, agent_id, without, None, None, ""))
        if fallback is not None:
            plain = joined(facts)
            return Step(lambda session: _store(session, agent_id, without, chosen, plain, "facts"))
        folded = _Folded.of(carried, chosen)
        parts = parts_of(facts)
        so_far = folded.text if folded.done < len(parts) else ""
        done = folded.done if folded.done < len(parts) else 0
        entity = {"name": chosen.name, "type": chosen.type, "aliases": aliases}
        profile = ask(calls, "entity_profile", entity, parts[done], so_far)
        if done + 1 < len(parts):
            carried = {"key": chosen.key, "seen": chosen.seen.isoformat(), "text": profile, "done": done + 1}
            return Step(lambda session: _store(session, agent_id, without, None, None, ""), carried)
        return Step(lambda session: _store(session, agent_id, without, chosen, profile, "job"))

    def preview(self, session: Session, agent_id: str, config: MemoryConfig) -> list[str]:
        """The entities that are due."""
        return [row.key for row in _due(session, agent_id, config, many=100)]


class _Folded:
    """How far a profile that takes several steps has come: ``done`` parts, and the profile of those."""

    def __init__(self, text: str = "", done: int = 0) -> None:
        self.text, self.done = text, done

    @classmethod
    def of(cls, carried: Mapping[str, Any], entity: Row[Any]) -> _Folded:
        """What was carried over, if it is of this entity and of these very facts; else the beginning."""
        if carried.get("key") != entity.key or carried.get("seen") != entity.seen.isoformat():
            return cls()
        return cls(str(carried["text"]), int(carried["done"]))


def parts_of(facts: Sequence[Mapping[str, Any]]) -> list[list[Mapping[str, Any]]]:
    """``facts`` in parts of at most PART_TOKENS, in order; a single fact may be longer."""
    parts: list[list[Mapping[str, Any]]] = [[]]
    size = 0
    for fact in facts:
        tokens = estimated_tokens(shown(fact))
        if parts[-1] and size + tokens > PART_TOKENS:
            parts.append([])
            size = 0
        parts[-1].append(fact)
        size += tokens
    return parts


def ask(
    calls: Calls, task: str, entity: Mapping[str, Any], facts: Sequence[Mapping[str, Any]], so_far: str = ""
) -> str:
    """The model's text about an entity, at most MAX_CHARS. Raises ModelError.

    ``so_far`` is what an earlier call made of the facts before these; it goes before them as one of them.
    """
    given = [{"text": so_far, "since": None}] if so_far else []
    given += [shown(fact) for fact in facts]
    told = " ".join([str(entity), *(str(fact["text"]) for fact in given)])

    def read(completion: Completion) -> str:
        written = cut(parse_text(completion.text))
        if holds_canary(written, told):
            raise ModelError(Cause.BAD_REPLY, "copied_example")
        return written

    return calls.ask(task, {"entity": dict(entity), "facts": given}, read)


def shown(fact: Mapping[str, Any]) -> dict[str, Any]:
    """A fact as a model sees it: its words, since when it is true, and the date that it tells of."""
    since: datetime | None = fact["valid_from"]
    told: dict[str, Any] = {"text": fact["text"], "since": None if since is None else since.date().isoformat()}
    if fact["event_date"] is not None:
        length = {"year": 4, "month": 7}.get(fact["event_date_precision"], 10)
        told["date"] = fact["event_date"].isoformat()[:length]
    return told


def cut(written: str) -> str:
    """``written``, cut at the end of a sentence where it is longer than MAX_CHARS."""
    if len(written) <= MAX_CHARS:
        return written
    head = written[:MAX_CHARS]
    end = max(head.rfind(mark) for mark in (". ", "! ", "? "))
    return head[: end + 1] if end > 0 else head.rsplit(" ", 1)[0]


def joined(facts: Sequence[Mapping[str, Any]]) -> str:
    """The weightiest facts as they are: what there is without a model."""
    best = sorted(facts, key=lambda fact: -float(fact["importance"]) * float(fact["confidence"]))
    sentences = [fact["text"].strip() + ("" if fact["text"].strip()[-1:] in ".!?。！？" else ".") for fact in best]
    return cut(" ".join(sentences[:12]))


def _due(session: Session, agent_id: str, config: MemoryConfig, many: int = ENTITIES_A_STEP) -> list[Row[Any]]:
    parameters = {"agent_id": agent_id, "min_confidence": config.min_confidence, "many": many}
    return list(session.execute(NEXT, parameters))


def facts_of(session: Session, agent_id: str, key: str, config: MemoryConfig) -> list[Mapping[str, Any]]:
    """All active facts of an entity that are sure enough to be shown, in the order in which they became true."""
    parameters = {"agent_id": agent_id, "key": key, "min_confidence": config.min_confidence}
    return [dict(row) for row in session.execute(FACTS, parameters).mappings()]


def aliases_of(session: Session, agent_id: str, entity: Row[Any]) -> list[str]:
    """Other names of an entity, ten at most."""
    parameters = {"agent_id": agent_id, "key": entity.key, "name": entity.name}
    return list(session.execute(ALIASES, parameters).scalars())


def _store(
    session: Session,
    agent_id: str,
    without: Sequence[Row[Any]],
    entity: Row[Any] | None,
    profile: str | None,
    source: str,
) -> int:
    """Store a profile; entities ``without`` active facts lose what was said of them, if anything ever was."""
    rows = [{"key": row.key, "seen": row.seen, "profile": None, "source": None} for row in without if row.had_facts]
    if entity is not None:
        rows.append({"key": entity.key, "seen": entity.seen, "profile": profile, "source": source})
    rows.sort(key=lambda row: str(row["key"]))
    kept = [{"key": row.key, "seen": row.seen} for row in without if not row.had_facts]
    if kept:
        session.execute(KEEP, {"agent_id": agent_id, "rows": as_rows(kept)})
    if not rows:
        return 0
    stored = session.execute(WRITE, {"agent_id": agent_id, "rows": as_rows(rows)})
    return int(stored.rowcount)  # type: ignore[attr-defined]

"""Cold start of profiles: the pipeline seeds what is empty, the job owns the rest (behaviour: 8, "Profiles")."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from datetime import datetime

from sqlalchemy import text
from sqlalchemy.orm import Session

from worker.write.fact_rows import as_rows
from worker.write.timeline import Version

MAX_SEED_FACTS = 6
MAX_SEED_CHARS = 900

# Invariant: a profile that is there is never touched here. facts_changed_at makes the job due.
TOUCH_ENTITIES = text("""
UPDATE memory_entities e
   SET facts_changed_at = CASE WHEN r.changed THEN CAST(:now AS timestamptz) ELSE e.facts_changed_at END,
       profile_source = CASE WHEN e.profile_text IS NULL THEN r.source ELSE e.profile_source END,
       profile_text = coalesce(e.profile_text, r.profile)
  FROM jsonb_to_recordset(CAST(:rows AS jsonb)) AS r (key text, changed boolean, profile text, source text)
 WHERE e.agent_id = :agent_id AND e.canonical_key = r.key
""")


def profile_of_facts(facts: Iterable[Version], min_confidence: float) -> str | None:
    """The best active facts joined as they are, None where there is none: what a new entity has without a model's."""
    usable = [fact for fact in facts if fact.kind == "fact" and fact.valid_to is None]
    best = sorted(
        (fact for fact in usable if fact.confidence >= min_confidence),
        key=lambda fact: (-fact.importance * fact.confidence, fact.planned or 0),
    )
    joined = ""
    for fact in best[:MAX_SEED_FACTS]:
        sentence = fact.text.strip()
        sentence += "" if sentence[-1:] in ".!?。！？" else "."
        if len(joined) + len(sentence) >= MAX_SEED_CHARS:
            break
        joined = f"{joined} {sentence}".strip()
    return joined or None


def touch_entities(
    session: Session,
    agent_id: str,
    changed: Collection[str],
    profiles: Mapping[str, tuple[str, str]],
    now: datetime,
) -> None:
    """Note whose facts changed, and seed profiles (key -> text and its source, ``model`` or ``facts``)."""
    rows = []
    for key in sorted({*changed, *profiles}):
        profile, source = profiles.get(key, (None, None))
        rows.append({"key": key, "changed": key in changed, "profile": profile, "source": source})
    if rows:
        session.execute(TOUCH_ENTITIES, {"agent_id": agent_id, "now": now, "rows": as_rows(rows)})

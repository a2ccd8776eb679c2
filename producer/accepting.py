"""Accepting: the one way a message enters Postgres, shared by the worker and by producers with database access."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass
from hashlib import sha256
from typing import Any
from uuid import UUID

import psycopg

from producer.contract import RecordEnvelope, WriteRequest, event_id_for
from producer.queues import Lane
from producer.secrets import mask, redacts_events

ACCEPT = "SELECT event_id, outcome FROM accept_events(%s::jsonb) ORDER BY ordinal"

OUTCOME = "SELECT state, stage, status, cause, result FROM event_outcome(%s)"

FINISHED = """
SELECT e.id, o.status FROM unnest(%s::uuid[]) AS e (id) CROSS JOIN LATERAL event_outcome(e.id) o
 WHERE o.state IN ('done', 'parked')
"""

# Invariant: reads the events that are named, by primary key, and no text: a producer need not be able to read any. One
# that was forgotten has no digest.
DIGESTS = "SELECT event_id, agent_id, digest FROM event_digests(%s)"

LAG = """
SELECT coalesce(extract(epoch FROM mandua_now() - min(created_at)), 0)
  FROM runs WHERE lane = %s AND finished_at IS NULL
"""

# One that was forgotten counts as there: nothing would become of sending it again.
ARE_THERE = """
SELECT id FROM memory_events WHERE id = ANY (%(events)s)
UNION SELECT event_id FROM forgotten_events WHERE event_id = ANY (%(events)s)
"""


@dataclass(frozen=True, slots=True)
class Acceptance:
    """What became of one message at the door: ``accepted``, ``duplicate`` or ``conflict``."""

    event_id: UUID
    outcome: str


def envelope(request: Any, lane: Lane = Lane.LIVE) -> RecordEnvelope:
    """``request`` with its event id and the time at which it was handed in."""
    return RecordEnvelope(
        event_id=event_id_for(request.agent_id, request.message_id), lane=int(lane), request=request.timed()
    )


def accept(connection: psycopg.Connection[Any], envelopes: Sequence[RecordEnvelope]) -> list[Acceptance]:
    """Record ``envelopes`` in the caller's transaction, in order. They are accepted once it commits.

    With MANDUA_REDACT_EVENTS=1 their secrets are masked first, so that none of them is ever stored.
    """
    masked = redacts_events()
    batch = [_row(_masked(item.request) if masked else item.request, item) for item in envelopes]
    rows = connection.execute(ACCEPT, [json.dumps(batch, ensure_ascii=False)]).fetchall()
    done = [Acceptance(event_id, outcome) for event_id, outcome in rows]
    if any(item.outcome == "conflict" for item in done):
        return _same_but_for_masks(connection, envelopes, done)
    return done


def staged(request: WriteRequest, lane: Lane) -> tuple[str, bytes | None]:
    """A message as ``accept_events`` takes it (JSON), to be accepted later; and the digest of its text masked, or
    unmasked, where that differs from the text that would be stored."""
    item = envelope(request, lane)
    kept = _masked(item.request) if redacts_events() else item.request
    other = request.message if kept is not item.request else mask(request.message).text
    digest = sha256(other.encode()).digest() if other != kept.message else None
    return json.dumps(_row(kept, item), ensure_ascii=False), digest


def _masked(request: WriteRequest) -> WriteRequest:
    recent = tuple(mask(text).text for text in request.recent_messages)
    return request.model_copy(update={"message": mask(request.message).text, "recent_messages": recent})


def _same_but_for_masks(
    connection: psycopg.Connection[Any], envelopes: Sequence[RecordEnvelope], done: list[Acceptance]
) -> list[Acceptance]:
    """``done`` with a conflict made a duplicate where only the masks differ: the setting was changed in between."""
    clashing = [item for item, acceptance in zip(envelopes, done, strict=True) if acceptance.outcome == "conflict"]
    same = {id(item) for item, outcome in compared(connection, clashing) if outcome == "duplicate"}
    return [
        Acceptance(acceptance.event_id, "duplicate") if id(item) in same else acceptance
        for item, acceptance in zip(envelopes, done, strict=True)
    ]


def compared(
    connection: psycopg.Connection[Any], envelopes: Sequence[RecordEnvelope]
) -> list[tuple[RecordEnvelope, str]]:
    """Those of ``envelopes`` whose event is stored already: ``duplicate`` if with this text, masked or not, or if it
    was forgotten, else ``conflict``."""
    rows = connection.execute(DIGESTS, [[item.event_id for item in envelopes]]).fetchall()
    stored = {event_id: digest and (agent_id, bytes(digest)) for event_id, agent_id, digest in rows}

    def outcome(item: RecordEnvelope) -> str:
        said = item.request.message
        known = {(item.request.agent_id, sha256(text.encode()).digest()) for text in (said, mask(said).text)}
        found = stored[item.event_id]
        return "duplicate" if found is None or found in known else "conflict"

    return [(item, outcome(item)) for item in envelopes if item.event_id in stored]


def _row(request: WriteRequest, item: RecordEnvelope) -> dict[str, Any]:
    known = request.occurred_at if request.occurred_at != "unknown" else None
    offset = known.utcoffset() if known is not None else None
    return {
        "event_id": str(item.event_id),
        "lane": item.lane,
        "agent_id": request.agent_id,
        "message": request.message,
        "speaker_name": request.speaker_name,
        "role": request.role,
        "source": request.source,
        "session_id": request.session_id,
        "message_id": request.message_id,
        "occurred_at": known.isoformat() if known is not None else None,
        "offset_minutes": round(offset.total_seconds() / 60) if offset is not None else None,
        "request": {
            "recent_messages": list(request.recent_messages),
            "config_overrides": request.config_overrides,
            "verbose": request.verbose,
            **({"speaker_aliases": list(request.speaker_aliases)} if request.speaker_aliases else {}),
        },
    }

"""Attribute keys in one spelling (behaviour: 10).

``canonicalise`` is the rule, pure; ``canonicalize_attribute_key`` is the exported function around it, which reads and
writes the registry. The pipeline reads the registry once a message and writes it in upsert, with everything else.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Literal

from sqlalchemy import text
from sqlalchemy.orm import Session

from producer.contract import MemoryConfig
from worker.write.attributes import ALIASES, CATALOGUE, NAMESPACES

MAX_KEY_CHARS = 64
_PART = re.compile(r"[a-z][a-z0-9_]*")
_GAPS = re.compile(r"\.*[\s\-]+[\s\-.]*")

Action = Literal["allow", "map", "propose", "drop"]

# Keys of the agent that can matter for some raw keys: the same, a dotted variant, or one that ends in it. An agent's
# registry is read by the first part of its primary key.
ACTIVE_KEYS = text("""
SELECT r.attribute_key FROM memory_attribute_registry r
 WHERE r.agent_id = :agent_id AND r.is_active
   AND (r.attribute_key = ANY (CAST(:keys AS text[])) OR EXISTS (
     SELECT FROM unnest(CAST(:keys AS text[])) k WHERE right(r.attribute_key, length(k) + 1) = '.' || k))
 ORDER BY 1
""")

# One row a key and agent, in the order of keys; the sighting that makes a key active is counted in the same statement.
RECORD_SIGHTINGS = text("""
INSERT INTO memory_attribute_registry AS r (agent_id, attribute_key, sightings, is_active, first_seen_at)
SELECT :agent_id, k, 1, 1 >= :needed, coalesce(CAST(:now AS timestamptz), mandua_now())
  FROM unnest(CAST(:keys AS text[])) AS k ORDER BY k
ON CONFLICT (agent_id, attribute_key) DO UPDATE
   SET sightings = r.sightings + 1, is_active = r.is_active OR r.sightings + 1 >= :needed
RETURNING attribute_key, sightings, is_active
""")


@dataclass(frozen=True, slots=True)
class Canonical:
    """What a raw key becomes: ``key`` (None where it is dropped), and why."""

    key: str | None
    action: Action
    metadata: dict[str, Any] = field(default_factory=dict)


def normalize_key(raw: str) -> str:
    """``raw`` in lower case, trimmed, spaces and hyphens turned into dots; underscores stay.

    "Personal Info" is "personal.info"; "food_preference" stays. Whether the result is well-formed is for
    ``validate_proposed_key``.

    >>> normalize_key(" Personal Info ")
    'personal.info'
    """
    return _GAPS.sub(".", raw.strip().lower())


def validate_proposed_key(key: str, extra_namespaces: AbstractSet[str] | Collection[str] | None = None) -> bool:
    """Whether a normalised key is well-formed and stands in an allowed namespace.

    Two to four parts joined by dots, each ``[a-z][a-z0-9_]*``, at most 64 characters, the first one a namespace.

    >>> validate_proposed_key("person.shoe_size"), validate_proposed_key("shoe_size")
    (True, False)
    """
    return _fault(key, extra_namespaces or ()) is None


def canonicalize_attribute_key(
    session: Session, agent_id: str, raw_key: str, config: MemoryConfig
) -> tuple[str | None, Action, dict[str, Any]]:
    """The canonical key of ``raw_key`` for an agent, the action (allow, map, propose, drop), and metadata.

    The metadata say how it was found (``matched_by``), or why it was dropped (``reason``). A proposal is recorded in
    the caller's transaction: after ``config.attribute_activation_sightings`` of them the key is allowed. asyncio
    callers use ``await async_session.run_sync(canonicalize_attribute_key, …)``.

    >>> from sqlalchemy.orm import Session
    >>> from worker.db import engine
    >>> with Session(engine()) as session:
    ...     canonicalize_attribute_key(session, "ana", "City", MemoryConfig())[:2]
    ('person.city', 'map')
    """
    found = canonicalise(raw_key, config, active_keys(session, agent_id, [raw_key], config))
    metadata = dict(found.metadata)
    if found.action == "propose" and found.key is not None:
        metadata |= record_sightings(session, agent_id, [found.key], config)[found.key]
    return found.key, found.action, metadata


def canonicalise(raw: str, config: MemoryConfig, active: Collection[str] = ()) -> Canonical:
    """The rule, first hit wins: exact, alias, dotted variant, suffix, open catalogue, drop.

    ``active`` are the agent's registered keys, as ``active_keys`` finds them.
    """
    key = normalize_key(raw)
    told: dict[str, Any] = {"raw_key": raw, "normalized": key}
    extra = {normalize_key(one) for one in config.extra_attribute_keys}
    known = CATALOGUE | extra | set(active)
    if key in known:
        source = "catalogue" if key in CATALOGUE else "extra" if key in extra else "registry"
        return Canonical(key, "allow", {**told, "matched_by": source})
    own = {normalize_key(alias): normalize_key(target) for alias, target in config.attribute_aliases.items()}
    if (target := own.get(key) or ALIASES.get(key)) is not None:
        return Canonical(target, "map", {**told, "matched_by": "alias"})
    for variant in _dotted(key):
        if variant in known:
            return Canonical(variant, "map", {**told, "matched_by": "dotted_variant"})
    endings = sorted(one for one in known if key and one.endswith(f".{key}"))
    if len(endings) == 1:
        return Canonical(endings[0], "map", {**told, "matched_by": "suffix"})
    fault = _fault(key, config.extra_namespaces)
    if fault is None:
        return Canonical(key, "propose", {**told, "matched_by": "open_catalogue"})
    ambiguous = {"reason": "ambiguous_suffix", "candidates": endings} if endings else {"reason": fault}
    return Canonical(None, "drop", {**told, **ambiguous})


def active_keys(session: Session, agent_id: str, raw_keys: Iterable[str], config: MemoryConfig) -> list[str]:
    """The agent's active registered keys that can matter for ``raw_keys``; no question where none is left open."""
    open_keys = {
        normalize_key(raw) for raw in raw_keys if canonicalise(raw, config).action in ("propose", "drop", "map")
    }
    wanted = sorted({variant for key in open_keys if key for variant in (key, *_dotted(key))})
    if not wanted:
        return []
    return list(session.execute(ACTIVE_KEYS, {"agent_id": agent_id, "keys": wanted}).scalars())


def record_sightings(
    session: Session, agent_id: str, keys: Sequence[str], config: MemoryConfig, now: datetime | None = None
) -> dict[str, dict[str, Any]]:
    """Count one sighting of each proposed key; returns by key how many there are now, and whether it is active."""
    rows = session.execute(
        RECORD_SIGHTINGS,
        {
            "agent_id": agent_id,
            "keys": sorted(set(keys)),
            "needed": config.attribute_activation_sightings,
            "now": now,
        },
    )
    return {row.attribute_key: {"sightings": row.sightings, "is_active": row.is_active} for row in rows}


def _dotted(key: str) -> list[str]:
    """``key`` with underscores as dots: all of them, then one at a time."""
    parts = key.split("_")
    variants = [key.replace("_", ".")]
    variants += ["_".join(parts[:place]) + "." + "_".join(parts[place:]) for place in range(1, len(parts))]
    return [variant for variant in dict.fromkeys(variants) if variant != key]


def _fault(key: str, extra_namespaces: Collection[str]) -> str | None:
    """Why ``key`` is no good; None where it is."""
    if not key:
        return "blank"
    if len(key) > MAX_KEY_CHARS:
        return "too_long"
    parts = key.split(".")
    if not 2 <= len(parts) <= 4:
        return "parts"
    if not all(_PART.fullmatch(part) for part in parts):
        return "malformed"
    if parts[0] not in NAMESPACES and parts[0] not in {normalize_key(one) for one in extra_namespaces}:
        return "namespace"
    return None

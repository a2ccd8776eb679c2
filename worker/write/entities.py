"""Entities by hand: make, find, list (behaviour: 10).

Plain functions on the caller's session, which commits. asyncio callers use ``await async_session.run_sync(function,
…)``.
"""

from __future__ import annotations

from sqlalchemy import select, text
from sqlalchemy.orm import Session

from worker.models import MemoryEntity
from worker.write.calls import VectorCache
from worker.write.entity_rows import upsert_entities
from worker.write.names import slug, type_name
from worker.write.plans import ResolvedEntity

NOW = text("SELECT mandua_now()")

ANY_TYPE = "other"


def create_or_update_entity(
    session: Session,
    agent_id: str,
    canonical_key: str,
    display_name: str | None = None,
    entity_type: str = ANY_TYPE,
) -> MemoryEntity:
    """Make the entity ``canonical_key`` (``type:slug``), or mark it seen, and register its name.

    ``entity_type`` may be left out: the key says it. A name that is given replaces one that only stood for a role.
    Returns the row. Raises ValueError where the key is none, or names another type.

    >>> from worker.db import engine
    >>> with Session(engine()) as session:
    ...     create_or_update_entity(session, "ana", "person:clara", "Clara").display_name  # nothing is committed here
    'Clara'
    """
    kind, _, name = canonical_key.partition(":")
    if not kind or not name:
        raise ValueError(f"canonical_key {canonical_key!r} is not of the form type:slug, e.g. person:{slug('Ana')}")
    if entity_type != ANY_TYPE and type_name(entity_type) != kind:
        raise ValueError(f"canonical_key {canonical_key!r} and entity_type {entity_type!r} name two types")
    shown = display_name or name.replace("_", " ")
    made = ResolvedEntity(
        name=shown, key=canonical_key, display_name=shown, entity_type=kind, is_new=True, method="new"
    )
    upsert_entities(session, agent_id, [made], VectorCache(), session.execute(NOW).scalar_one())
    session.expire_all()
    return session.get_one(MemoryEntity, (agent_id, canonical_key))


def get_entity_by_key(session: Session, agent_id: str, canonical_key: str) -> MemoryEntity | None:
    """The entity of that key, or None.

    >>> from worker.db import engine
    >>> with Session(engine()) as session:
    ...     get_entity_by_key(session, "nobody-yet", "person:clara") is None
    True
    """
    return session.get(MemoryEntity, (agent_id, canonical_key))


def get_entities_for_user(session: Session, agent_id: str, active_only: bool = True) -> list[MemoryEntity]:
    """All entities of an agent, the last seen first; ``active_only`` leaves out those merged into another.

    >>> from worker.db import engine
    >>> with Session(engine()) as session:
    ...     get_entities_for_user(session, "nobody-yet")
    []
    """
    query = select(MemoryEntity).where(MemoryEntity.agent_id == agent_id)
    if active_only:
        query = query.where(MemoryEntity.merged_into.is_(None))
    return list(session.scalars(query.order_by(MemoryEntity.last_seen_at.desc(), MemoryEntity.canonical_key)))

"""The tables of the memory as SQLAlchemy models, for programs that read rows as objects.

The migrations make the tables and hold the rules; these only name the columns, and a test compares the two. The hot
paths use named SQL instead.
"""

from __future__ import annotations

from datetime import date, datetime
from typing import Any
from uuid import UUID

from pgvector.sqlalchemy import Vector
from sqlalchemy import Computed, DateTime, LargeBinary, Text
from sqlalchemy.dialects.postgresql import JSONB
from sqlalchemy.orm import DeclarativeBase, Mapped, mapped_column

_Time = DateTime(timezone=True)


class Base(DeclarativeBase):
    """What all models share: text is text, times carry a zone."""

    type_annotation_map = {str: Text, datetime: _Time, dict[str, Any]: JSONB, bytes: LargeBinary}  # noqa: RUF012


class MemoryEvent(Base):
    """A recorded message: immutable, the database itself refuses a change."""

    __tablename__ = "memory_events"

    id: Mapped[UUID] = mapped_column(primary_key=True)
    agent_id: Mapped[str]
    speaker_name: Mapped[str]
    message: Mapped[str]
    role: Mapped[str]
    source: Mapped[str]
    session_id: Mapped[str | None]
    message_id: Mapped[str | None]
    occurred_at: Mapped[datetime | None]
    offset_minutes: Mapped[int | None]
    recorded_at: Mapped[datetime]


class EventAnnotation(Base):
    """What a message sounded like, and its embedding."""

    __tablename__ = "event_annotations"

    event_id: Mapped[UUID] = mapped_column(primary_key=True)
    emotion: Mapped[str]
    intensity: Mapped[float]
    energy_level: Mapped[str]
    embedding: Mapped[Any | None] = mapped_column(Vector)


class MemoryEntity(Base):
    """A named thing of an agent, key ``type:slug``."""

    __tablename__ = "memory_entities"

    agent_id: Mapped[str] = mapped_column(primary_key=True)
    canonical_key: Mapped[str] = mapped_column(primary_key=True)
    entity_type: Mapped[str]
    display_name: Mapped[str]
    is_placeholder: Mapped[bool]
    profile_text: Mapped[str | None]
    profile_source: Mapped[str | None]
    profile_refreshed_at: Mapped[datetime | None]
    facts_changed_at: Mapped[datetime]
    facts_deduped_at: Mapped[datetime | None]
    twins_sought_at: Mapped[datetime | None]
    summary_text: Mapped[str | None]
    summary_refreshed_at: Mapped[datetime | None]
    scored_at: Mapped[datetime | None]
    importance: Mapped[float]
    embedding: Mapped[Any | None] = mapped_column(Vector)
    merged_into: Mapped[str | None]
    first_seen_at: Mapped[datetime]
    last_seen_at: Mapped[datetime]


class MemoryEntityAlias(Base):
    """A name of an entity, unique per agent, folded spelling and type."""

    __tablename__ = "memory_entity_aliases"

    agent_id: Mapped[str] = mapped_column(primary_key=True)
    alias_folded: Mapped[str] = mapped_column(primary_key=True)
    entity_type: Mapped[str] = mapped_column(primary_key=True)
    alias: Mapped[str]
    entity_key: Mapped[str]
    created_at: Mapped[datetime]


class MemoryFact(Base):
    """One sentence about one entity, versioned: valid_* is the clock of the world, the other two the system's."""

    __tablename__ = "memory_facts"

    id: Mapped[UUID] = mapped_column(primary_key=True)
    agent_id: Mapped[str]
    entity_key: Mapped[str]
    fact_text: Mapped[str]
    text_hash: Mapped[bytes]
    embedding: Mapped[Any | None] = mapped_column(Vector)
    confidence: Mapped[float]
    importance: Mapped[float]
    kind: Mapped[str]
    attribute_key: Mapped[str | None]
    value: Mapped[str | None]
    event_date: Mapped[date | None]
    event_date_precision: Mapped[str | None]
    speaker: Mapped[str | None]
    source_context: Mapped[str | None]
    source_event_id: Mapped[UUID]
    valid_from: Mapped[datetime | None]
    valid_from_known: Mapped[bool | None] = mapped_column(Computed("valid_from IS NOT NULL"))
    valid_to: Mapped[datetime | None]
    ingested_at: Mapped[datetime]
    invalidated_at: Mapped[datetime | None]
    last_confirmed_at: Mapped[datetime | None]
    confirmations: Mapped[int]
    user_correction_count: Mapped[int]
    supersedes_fact_id: Mapped[UUID | None]
    merged_into: Mapped[UUID | None]
    salience: Mapped[float | None]
    stale_at: Mapped[datetime | None]
    retrievals: Mapped[int]
    last_retrieved_at: Mapped[datetime | None]


class MemoryFactEntityLink(Base):
    """That a fact mentions an entity; the subject's link is primary."""

    __tablename__ = "memory_fact_entity_links"

    fact_id: Mapped[UUID] = mapped_column(primary_key=True)
    agent_id: Mapped[str]
    entity_key: Mapped[str] = mapped_column(primary_key=True)
    is_primary: Mapped[bool]


class MemoryEntityRelationship(Base):
    """A directed edge, live while a fact that holds it up is."""

    __tablename__ = "memory_entity_relationships"

    id: Mapped[UUID] = mapped_column(primary_key=True)
    agent_id: Mapped[str]
    source_entity_key: Mapped[str]
    target_entity_key: Mapped[str]
    rel_type: Mapped[str]
    strength: Mapped[float]
    evidence_fact_id: Mapped[UUID | None]
    valid_from: Mapped[datetime | None]
    valid_to: Mapped[datetime | None]
    invalidated_at: Mapped[datetime | None]
    created_at: Mapped[datetime]
    updated_at: Mapped[datetime]


class MemoryAttributeRegistry(Base):
    """An attribute key that an agent's messages proposed; active after some sightings."""

    __tablename__ = "memory_attribute_registry"

    agent_id: Mapped[str] = mapped_column(primary_key=True)
    attribute_key: Mapped[str] = mapped_column(primary_key=True)
    sightings: Mapped[int]
    is_active: Mapped[bool]
    first_seen_at: Mapped[datetime]


class PendingOperation(Base):
    """The one destructive operation of an agent that waits for a yes, and until when."""

    __tablename__ = "pending_operations"

    agent_id: Mapped[str] = mapped_column(primary_key=True)
    kind: Mapped[str]
    payload: Mapped[dict[str, Any]]
    expires_at: Mapped[datetime]

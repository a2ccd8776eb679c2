"""What the planning stages return: plain data, stored between the stages, applied by upsert alone.

Each plan survives JSON unchanged. Names in an Extraction are the model's; a Resolution maps them to entity keys; a
Reconciliation is what upsert does, fact by fact and edge by edge.
"""

from __future__ import annotations

from datetime import date, datetime
from typing import Literal
from uuid import UUID

from pydantic import BaseModel, ConfigDict, Field

from producer.contract import Degradation, Rejected
from worker.llm.items import Emotion, ExtractedEntity, ExtractedFact, ExtractedProfile, ExtractedRelation

PLAN_VERSION = 1  # a worker that meets another version plans anew


class Plan(BaseModel):
    """What all plans carry."""

    model_config = ConfigDict(frozen=True)

    plan_version: int = PLAN_VERSION
    degradations: list[Degradation] = Field(default_factory=list)
    rejected: list[Rejected] = Field(default_factory=list)
    repairs: dict[str, int] = Field(default_factory=dict)
    duration_ms: float = 0.0


class Dropped(BaseModel):
    """A fact that semantic dedup took out, and the one that stays in its place."""

    text: str
    kept: str
    similarity: float


class Extraction(Plan):
    """What the message says (behaviour: 3 to 5), after subject normalisation, exact dedup and semantic dedup."""

    mode: Literal["informed", "blind", "none"]
    entities: list[ExtractedEntity] = Field(default_factory=list)
    facts: list[ExtractedFact] = Field(default_factory=list)
    relations: list[ExtractedRelation] = Field(default_factory=list)
    profiles: list[ExtractedProfile] = Field(default_factory=list)
    emotion: Emotion = Field(default_factory=Emotion)
    known_keys: list[str] = Field(default_factory=list)  # entities that the message named, from alias lookup
    dropped: list[Dropped] = Field(default_factory=list)
    relation_retry_triggered: bool = False
    chunks: int = 1
    prompt_version: str = ""
    context_tokens: int = 0
    dedup_duration_ms: float = 0.0

    @property
    def empty(self) -> bool:
        """Whether nothing is left to resolve: no entity, no fact, no relation."""
        return not (self.entities or self.facts or self.relations)


class ResolvedEntity(BaseModel):
    """One extracted name and who it is.

    ``method``: ``speaker`` (a pronoun or the speaker's own name), ``exact`` (the stored name), ``alias`` (a stored
    alias, or a placeholder that takes its name), ``prefix`` (a first name that fits one person only), ``fuzzy``
    (likeness and spelling agree), ``llm`` (the model chose among candidates), ``role`` ("my brother": who is known to
    be that), ``placeholder`` (nobody is), ``new``. ``why`` says it in words.

    ``aliases`` are the ones to register; ``register_as`` the type under which they are unique. ``score`` is the cosine
    or ratio of a fuzzy or LLM match.
    """

    name: str
    key: str
    display_name: str
    entity_type: str
    is_new: bool
    method: Literal["speaker", "exact", "alias", "prefix", "fuzzy", "llm", "role", "placeholder", "new"]
    score: float | None = None
    why: str = ""
    aliases: list[str] = Field(default_factory=list)


class RoleEdge(BaseModel):
    """An edge that a relationship word stands for ("my brother": sibling_of), to be asserted with the message."""

    source_key: str
    target_key: str
    rel_type: str


class Resolution(Plan):
    """Who is meant (behaviour: 6). Every name of the extraction, subjects and ends of relations too, has its entity."""

    entities: list[ResolvedEntity] = Field(default_factory=list)
    role_edges: list[RoleEdge] = Field(default_factory=list)
    speaker_key: str = ""
    known_names: dict[str, list[str]] = Field(default_factory=dict)  # key -> stored names and aliases, for linking


class PlannedFact(BaseModel):
    """One fact and what is to be done with it (behaviour: 7 and 8).

    ``id`` is the new fact's own (made here, so that applying a plan twice cannot make two). ``target_fact_id`` is the
    stored fact that UPDATE replaces, NOOP confirms, DELETE closes; ``target_fact`` the index of an earlier fact of the
    same plan in its place (a later one where a NOOP repeats what an UPDATE of the plan puts right). ``as_retraction``
    keeps a bare ending as a dated retraction. ``closed_by`` is a stored retraction, later than the message, that ends
    the fact.
    """

    id: UUID
    entity_key: str
    subject: str
    text: str
    confidence: float
    importance: float
    importance_category: str = ""
    event_date: date | None = None
    event_date_precision: Literal["day", "month", "year"] | None = None
    attribute_key: str | None = None
    value: str | None = None
    source_context: str | None = None
    action: Literal["ADD", "UPDATE", "NOOP", "DELETE"]
    target_fact_id: UUID | None = None
    target_fact: int | None = None
    closed_by: UUID | None = None
    as_retraction: bool = False
    reason: str = ""
    similarity: float | None = None


class PlannedEdge(BaseModel):
    """One relation and the fact that supports it: an index into the plan's facts (mirror facts are facts too)."""

    source_key: str
    target_key: str
    rel_type: str
    evidence_fact: int


class AttributeNote(BaseModel):
    """What became of an attribute key that the model returned: ``key`` is the canonical one, None where it went."""

    raw: str
    key: str | None
    action: Literal["allow", "map", "propose", "drop"]
    reason: str | None = None


class Reconciliation(Plan):
    """What upsert does: facts in order, edges, and the profiles to seed (entity key -> English text).

    Of ``attributes``, the proposed ones are counted in the agent's registry.
    """

    facts: list[PlannedFact] = Field(default_factory=list)
    edges: list[PlannedEdge] = Field(default_factory=list)
    profiles: dict[str, str] = Field(default_factory=dict)
    attributes: list[AttributeNote] = Field(default_factory=list)
    warnings: list[str] = Field(default_factory=list)
    llm_asked: bool = False


class ApplyClock(BaseModel):
    """The two clocks of an apply: when it was true (the event's), when the system learnt it (now)."""

    occurred_at: datetime | None
    now: datetime

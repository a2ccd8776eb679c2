"""What a model's reply becomes once it is read: small frozen values that survive a round trip through JSON.

They are stored in plans, so each one is a pydantic model (``model_dump(mode="json")`` and ``model_validate``).
"""

from __future__ import annotations

from datetime import date
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

Precision = Literal["day", "month", "year"]
FactAction = Literal["NEW", "UPDATE"]
DecisionAction = Literal["ADD", "UPDATE", "NOOP", "DELETE"]
EmotionName = Literal["joy", "sadness", "anger", "fear", "surprise", "disgust", "trust", "anticipation", "neutral"]
EnergyLevel = Literal["high", "medium", "low"]

CONFIDENCE_LEVELS: dict[str, float] = {
    "explicit_statement": 0.95,
    "strong_inference": 0.80,
    "weak_inference": 0.60,
    "speculation": 0.40,
}
UNKNOWN_CONFIDENCE = 0.60

IMPORTANCE_CATEGORIES: dict[str, float] = {
    "biographical_milestone": 0.95,
    "relationship_change": 0.90,
    "stable_preference": 0.75,
    "specific_event": 0.65,
    "routine_activity": 0.50,
    "conversational": 0.30,
}
UNKNOWN_IMPORTANCE = 0.50
UNKNOWN_CATEGORY = "unknown"


class Item(BaseModel):
    """The base of everything read from a reply: immutable, and strict about what it is made of."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class ExtractedEntity(Item):
    """A named thing; ``type`` is lower-cased, ``aliases`` never hold the name itself or a blank."""

    name: str
    type: str
    aliases: list[str] = []


class ExtractedFact(Item):
    """One sentence about one subject, as the model put it. ``action`` is a hint to reconciliation, no more.

    ``confidence`` and ``importance`` are between 0 and 1. ``message_number`` is set in batches only.
    """

    subject: str
    text: str
    action: FactAction = "NEW"
    confidence: float = UNKNOWN_CONFIDENCE
    importance: float = UNKNOWN_IMPORTANCE
    importance_category: str = UNKNOWN_CATEGORY
    event_date: date | None = None
    event_date_precision: Precision | None = None
    attribute_key: str | None = None
    value: str | None = None
    message_number: int | None = None


class ExtractedRelation(Item):
    """A directed edge between two names. ``rel_type`` is as the model wrote it, trimmed; the graph normalises it."""

    source: str
    target: str
    rel_type: str
    message_number: int | None = None


class ExtractedProfile(Item):
    """A profile text (English) that the model proposes for a name."""

    name: str
    profile_text: str


class Emotion(Item):
    """How a message sounds; ``intensity`` is between 0 and 1."""

    primary: EmotionName = "neutral"
    intensity: float = 0.0
    energy_level: EnergyLevel = "medium"


class ResolutionChoice(Item):
    """Which candidate a name is; ``candidate_number`` None: none of them."""

    name_number: int
    candidate_number: int | None = None
    reason: str = ""


class Decision(Item):
    """What to do with a new fact. NOOP and UPDATE always have an ``existing_number``; DELETE without one is a bare
    retraction."""

    fact_number: int
    action: DecisionAction = "ADD"
    existing_number: int | None = None
    reason: str = ""


class FactMerge(Item):
    """Whether some facts say the same, and the text that says it best."""

    same: bool
    reason: str = ""
    text: str = ""


class EntityMerge(Item):
    """Whether two entities are one."""

    same: bool
    reason: str = ""


class ClusterSummary(Item):
    """A short label and a summary (English) of a cluster of facts."""

    label: str
    text: str


class Observation(Item):
    """Something that several facts show together. ``confidence`` is between 0 and 1."""

    title: str
    text: str
    kind: str = "observation"
    fact_numbers: list[int] = []
    confidence: float = UNKNOWN_CONFIDENCE


class Reject(Item):
    """An item of a reply that was dropped. ``reason`` is coded and nothing here quotes the reply; ``index`` is its
    place in its list."""

    kind: str
    reason: str
    index: int = 0


class Parsed(Item):
    """What every parsed reply carries: repairs counted by kind, and the items dropped."""

    repairs: dict[str, int] = Field(default_factory=dict)
    rejects: list[Reject] = []

    @property
    def cut(self) -> bool:
        """Whether the reply stopped in the middle; its last item, if unfinished, is not in here."""
        return self.repairs.get("cut_reply", 0) > 0


class ParsedExtraction(Parsed):
    """The reply to an extraction task. ``emotions`` (by message number) is for batches, ``emotion`` for one message."""

    entities: list[ExtractedEntity] = []
    facts: list[ExtractedFact] = []
    relations: list[ExtractedRelation] = []
    profiles: list[ExtractedProfile] = []
    emotion: Emotion | None = None
    emotions: dict[int, Emotion] = {}


class ParsedResolutions(Parsed):
    """One choice for each name that was asked about, by number."""

    choices: list[ResolutionChoice] = []


class ParsedDecisions(Parsed):
    """One decision for each fact that was asked about, by number."""

    decisions: list[Decision] = []


class ParsedObservations(Parsed):
    """The reply to ``meta_observations``."""

    observations: list[Observation] = []

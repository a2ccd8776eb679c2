"""What was read so far, of a message or of a part of it, before it is checked: mutable while a stage runs."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field

from producer.contract import Degradation, Rejected
from worker.llm.items import (
    Emotion,
    ExtractedEntity,
    ExtractedFact,
    ExtractedProfile,
    ExtractedRelation,
    ParsedExtraction,
)

STAGE = "extract"


@dataclass(slots=True)
class Reading:
    """Items as the model gave them, and what happened on the way."""

    entities: list[ExtractedEntity] = field(default_factory=list)
    facts: list[ExtractedFact] = field(default_factory=list)
    relations: list[ExtractedRelation] = field(default_factory=list)
    profiles: list[ExtractedProfile] = field(default_factory=list)
    emotion: Emotion | None = None
    repairs: Counter[str] = field(default_factory=Counter)
    rejected: list[Rejected] = field(default_factory=list)
    degradations: list[Degradation] = field(default_factory=list)
    relation_retry_triggered: bool = False
    # Facts marked down for want of any word of the message: their confidence, and the cosine that gives it back.
    unsaid: dict[str, tuple[float, float]] = field(default_factory=dict)

    @classmethod
    def of(cls, parsed: ParsedExtraction) -> Reading:
        """The reading of one parsed reply."""
        reading = cls(emotion=parsed.emotion)
        reading.take(parsed)
        return reading

    def take(self, parsed: ParsedExtraction) -> None:
        """Add the items of a parsed reply, and what it cost to read them."""
        self.entities += parsed.entities
        self.facts += parsed.facts
        self.relations += parsed.relations
        self.profiles += parsed.profiles
        self.repairs.update(parsed.repairs)
        self.rejected += [Rejected(stage=STAGE, kind=item.kind, reason=item.reason) for item in parsed.rejects]

    def add(self, other: Reading) -> None:
        """Add another part's reading. The stronger emotion is the whole's."""
        self.entities += other.entities
        self.facts += other.facts
        self.relations += other.relations
        self.profiles += other.profiles
        self.repairs.update(other.repairs)
        self.rejected += other.rejected
        self.degradations += other.degradations
        self.relation_retry_triggered = self.relation_retry_triggered or other.relation_retry_triggered
        if other.emotion is not None and (self.emotion is None or other.emotion.intensity > self.emotion.intensity):
            self.emotion = other.emotion

    def reject(self, kind: str, reason: str, item: str | None = None) -> None:
        """Note an item that goes no further."""
        self.rejected.append(Rejected(stage=STAGE, kind=kind, reason=reason, item=item))

    def degrade(self, fell_back_to: str, cause: str) -> None:
        """Note that something fell back; the same thing once."""
        found = Degradation(stage=STAGE, fell_back_to=fell_back_to, cause=cause)
        if found not in self.degradations:
            self.degradations.append(found)

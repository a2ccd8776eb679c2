"""What an apply has stored: the lists of a WriteResult that only the database can fill."""

from __future__ import annotations

from dataclasses import dataclass, field

from producer.contract import FactResult, Rejected, RelationResult


@dataclass(slots=True)
class Applied:
    """What ``upsert`` stored, and what it could not (behaviour: 8 and 9).

    ``facts_updated`` holds new facts that replaced an older one, with its id and text; a late fact that lands already
    closed has its ``valid_to``. ``facts_deleted`` holds the facts that a retraction closed, or the retraction itself
    where it closed nothing. An item is in ``rejected`` or in another list, never in both.
    """

    facts_added: list[FactResult] = field(default_factory=list)
    facts_updated: list[FactResult] = field(default_factory=list)
    facts_unchanged: list[FactResult] = field(default_factory=list)
    facts_deleted: list[FactResult] = field(default_factory=list)
    relations: list[RelationResult] = field(default_factory=list)
    rejected: list[Rejected] = field(default_factory=list)

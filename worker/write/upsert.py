"""The one stage that writes: applies a message's plans inside the caller's transaction (behaviour: 8).

Everything goes in a few statements. Only when that fails is it done again item by item, each under a savepoint of its
own, so that what fails costs itself: it is in ``rejected``, the rest is stored. Locks are taken in the order entities
by key, facts by id, edges.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import TypeVar
from uuid import UUID

from sqlalchemy import text
from sqlalchemy.exc import DBAPIError, InterfaceError, OperationalError
from sqlalchemy.orm import Session

from producer.contract import FactResult, Rejected, RelationResult
from worker.write.applied import Applied
from worker.write.calls import VectorCache
from worker.write.canonicalization import record_sightings
from worker.write.entity_rows import annotate_event, upsert_entities
from worker.write.fact_rows import lock_versions, write_timeline
from worker.write.links import NameBook, insert_links
from worker.write.message import Message
from worker.write.names import text_hash
from worker.write.plans import Extraction, PlannedEdge, PlannedFact, Reconciliation, Resolution, ResolvedEntity
from worker.write.profiles import profile_of_facts, touch_entities
from worker.write.relationships import refresh_edges, upsert_edges
from worker.write.timeline import Outcome, Said, Timeline, Version
from worker.write.wording import stays_over

T = TypeVar("T")

NOW = text("SELECT mandua_now()")

# SQLSTATE classes of what an item can bring upon itself: data, integrity, raised by a trigger, program limits. All
# else (serialization failure, deadlock, lost connection, cancelled) is not about the items and goes to the caller.
_ITS_OWN_FAULT = ("22", "23", "P0", "54")


@dataclass(slots=True)
class _Apply:
    """One apply. ``done`` holds the outcomes of planned facts by index, once they are stored."""

    session: Session
    message: Message
    extraction: Extraction
    resolution: Resolution
    plan: Reconciliation
    vectors: VectorCache
    now: datetime
    names: NameBook
    done: dict[int, Outcome] = field(default_factory=dict)
    touched: set[UUID] = field(default_factory=set)  # ids of all facts made or changed
    edges: list[RelationResult] = field(default_factory=list)
    rejected: list[Rejected] = field(default_factory=list)

    # -- in one go, or item by item ----------------------------------------------------------------------------------

    def in_one_go(self) -> None:
        """Everything in a constant number of statements."""
        self.entities(self.resolution.entities)
        self.facts(range(len(self.plan.facts)))
        self.relate(self.plan.edges)
        self.rest()

    def item_by_item(self) -> None:
        """The same, each item under its own savepoint; what fails is rejected."""
        for entity in self.resolution.entities:
            self.attempt("entity", entity.name, lambda entity=entity: self.entities([entity]))  # type: ignore[misc]
        for index in self.order(range(len(self.plan.facts))):
            self.attempt("fact", self.plan.facts[index].text, lambda index=index: self.facts([index]))  # type: ignore[misc]
        for edge in self.plan.edges:
            label = f"{edge.source_key} {edge.rel_type} {edge.target_key}"
            self.attempt("relation", label, lambda edge=edge: self.relate([edge]))  # type: ignore[misc]
        self.attempt("cascade", None, lambda: self.relate([]))
        self.attempt("annotation", None, self.rest)

    def attempt(self, kind: str, item: str | None, act: Callable[[], None]) -> None:
        """Do one item under a savepoint; reject it where it fails by its own fault."""
        kept = (dict(self.done), set(self.touched), list(self.edges))
        try:
            with self.session.begin_nested():
                act()
        except DBAPIError as error:
            if not its_own_fault(error):
                raise
            self.done, self.touched, self.edges = kept
            self.rejected.append(Rejected(stage="upsert", kind=kind, reason=f"database_{sqlstate(error)}", item=item))

    # -- parts -------------------------------------------------------------------------------------------------------

    def entities(self, entities: Sequence[ResolvedEntity]) -> None:
        """Store entities and their aliases."""
        upsert_entities(self.session, self.message.agent_id, entities, self.vectors, self.now)

    def facts(self, indices: Sequence[int]) -> None:
        """Store planned facts with their links."""
        if not indices:
            return
        planned = self.plan.facts
        new = {index: self._version(index) for index in indices}
        timeline = Timeline(self.message.event_id, self.message.occurred_at, self.now, self._parted)
        targets = {key for index in indices for key in self._targets(planned[index])}
        texts = [(v.entity_key, v.text_hash) for i, v in new.items() if planned[i].action != "DELETE"]
        timeline.load(lock_versions(self.session, self.message.agent_id, timeline.at, sorted(targets), texts))
        outcomes = dict(self.done)
        for index in self.order(indices):
            outcomes[index] = _decide(planned[index], new[index], timeline, outcomes)
        write_timeline(self.session, self.message.agent_id, self.message.speaker, timeline, self.vectors)
        made = [v for v in timeline.versions.values() if v.planned is not None or v.rephrased]
        links = {version.id: self.names.mentioned(version.text, version.entity_key) for version in made}
        insert_links(self.session, self.message.agent_id, links)
        self.done = outcomes
        self.touched |= timeline.changed | {version.id for version in timeline.versions.values() if not version.stored}

    def order(self, indices: Sequence[int]) -> list[int]:
        """``indices`` as they are applied: a NOOP that leans on a later fact waits for it."""
        leaning = [i for i in indices if (target := self.plan.facts[i].target_fact) is not None and target > i]
        return [i for i in indices if i not in leaning] + leaning

    def relate(self, edges: Sequence[PlannedEdge]) -> None:
        """Assert edges whose evidence was stored, and let all edges follow what was closed (cascade)."""
        rows = []
        for edge in edges:
            outcome = self.done.get(edge.evidence_fact)
            if outcome is None or outcome.version.kind == "retraction":
                continue  # a retraction holds nothing up
            rows.append(
                {
                    "source": edge.source_key,
                    "target": edge.target_key,
                    "rel_type": edge.rel_type,
                    "fact_id": outcome.version.id,
                }
            )
        if not rows and not self.touched:
            return
        made = upsert_edges(self.session, self.message.agent_id, rows, self.now)
        standing = refresh_edges(self.session, [row["id"] for row in made], self.touched, self.now)
        self.edges += [
            RelationResult(
                source=row["source"],
                target=row["target"],
                rel_type=row["rel_type"],
                strength=round(row["strength"], 2),
                evidence_fact_id=standing.get(row["id"]),
            )
            for row in made
        ]

    def rest(self) -> None:
        """Annotate the event, note whose facts changed, seed profiles."""
        annotate_event(self.session, self.message, self.extraction, self.vectors)
        profiles = {key: (profile, "model") for key, profile in self.plan.profiles.items()}
        by_entity: dict[str, list[Version]] = {}
        for outcome in self.done.values():
            if outcome.effect in ("added", "updated"):
                by_entity.setdefault(outcome.version.entity_key, []).append(outcome.version)
        for key, facts in by_entity.items():
            joined = profile_of_facts(facts, self.message.config.min_confidence)
            if key not in profiles and joined:
                profiles[key] = (joined, "facts")
        # A confirmation changes no profile: the job is not due for it.
        changed = {outcome.version.entity_key for outcome in self.done.values() if outcome.effect != "unchanged"}
        touch_entities(self.session, self.message.agent_id, changed, profiles, self.now)
        proposed = [note.key for note in self.plan.attributes if note.action == "propose" and note.key]
        if proposed:
            record_sightings(self.session, self.message.agent_id, proposed, self.message.config, self.now)

    def applied(self) -> Applied:
        """What was stored, in the plan's order."""
        result = Applied(rejected=self.rejected, relations=self.edges)
        lists = {
            "added": result.facts_added,
            "updated": result.facts_updated,
            "unchanged": result.facts_unchanged,
            "deleted": result.facts_deleted,
        }
        for index, outcome in sorted(self.done.items()):
            lists[outcome.effect].append(_fact_result(self.plan.facts[index], outcome))
        return result

    # -- pieces ------------------------------------------------------------------------------------------------------

    def _parted(self, over: Version, other: Version) -> bool:
        return stays_over(over.text, other.text, self.names.names_of(over.entity_key))

    def _version(self, index: int) -> Version:
        fact = self.plan.facts[index]
        return Version(
            id=fact.id,
            entity_key=fact.entity_key,
            text=fact.text,
            text_hash=text_hash(fact.text),
            confidence=fact.confidence,
            importance=fact.importance,
            said=[Said(self.message.event_id, self.message.occurred_at)],
            source_event_id=self.message.event_id,
            valid_from=self.message.occurred_at,
            attribute_key=fact.attribute_key,
            value=fact.value,
            event_date=fact.event_date,
            event_date_precision=fact.event_date_precision,
            source_context=fact.source_context,
            planned=index,
        )

    def _targets(self, fact: PlannedFact) -> list[UUID]:
        within = self.done.get(fact.target_fact) if fact.target_fact is not None else None
        found = (fact.target_fact_id, fact.closed_by, within.version.id if within else None)
        return [key for key in found if key is not None]


def upsert(
    session: Session,
    message: Message,
    extraction: Extraction,
    resolution: Resolution,
    reconciliation: Reconciliation,
    vectors: VectorCache,
    *,
    item_by_item: bool = False,
) -> Applied:
    """Apply the plans of a message inside the caller's open transaction, which it neither commits nor rolls back.

    Returns what was stored and, with ``item_by_item``, what was rejected. Raises sqlalchemy's DBAPIError, after which
    the caller takes back what was done: where ``its_own_fault``, it calls again with ``item_by_item``, as
    ``without_faults`` does; else no item is to blame (serialization failure, deadlock, a lost connection), and it tries
    the whole transaction again.
    """
    now: datetime = session.execute(NOW).scalar_one()
    names = NameBook.of(resolution)
    work = _Apply(session, message, extraction, resolution, reconciliation, vectors, now, names)
    if item_by_item:
        work.item_by_item()
    else:
        work.in_one_go()
    return work.applied()


def without_faults(attempt: Callable[..., T]) -> T:
    """``attempt(item_by_item=False)``, which takes back what it did where it fails; where it did so by an item's own
    fault, ``attempt(item_by_item=True)``. Raises DBAPIError."""
    try:
        return attempt(item_by_item=False)
    except DBAPIError as error:
        if not its_own_fault(error):
            raise
        return attempt(item_by_item=True)


def sqlstate(error: DBAPIError) -> str:
    """The SQLSTATE of a database error; "22000" (data exception) where the driver refused a value itself."""
    unsaid = "08000" if isinstance(error, (OperationalError, InterfaceError)) else "22000"
    return str(getattr(error.orig, "sqlstate", None) or unsaid)


def its_own_fault(error: DBAPIError) -> bool:
    """Whether an item brought the error upon itself, so that leaving it out helps."""
    return sqlstate(error).startswith(_ITS_OWN_FAULT)


def _decide(fact: PlannedFact, new: Version, timeline: Timeline, outcomes: dict[int, Outcome]) -> Outcome:
    """What a planned fact does, given the locked versions. Without its target it is ADD (DELETE: a retraction)."""
    target = timeline.versions.get(fact.target_fact_id) if fact.target_fact_id else None
    if fact.target_fact is not None and (within := outcomes.get(fact.target_fact)) is not None:
        target = timeline.versions.get(within.version.id, within.version)
    if fact.action == "DELETE":
        return timeline.retract(new, target)
    if target is None or fact.action == "ADD":
        return timeline.add(new, fact.closed_by)
    if fact.action == "UPDATE":
        return timeline.update(new, target, fact.closed_by)
    if target.kind == "retraction":
        return timeline.add(new, fact.closed_by)
    return timeline.confirm(new, target)


def _fact_result(fact: PlannedFact, outcome: Outcome) -> FactResult:
    shown = outcome.version
    replaced = outcome.replaced if outcome.effect == "updated" else None
    if outcome.effect == "deleted" and outcome.replaced is not None:
        shown = outcome.replaced
    return FactResult(
        id=shown.id,
        entity_key=shown.entity_key,
        subject=fact.subject,
        fact_text=shown.text,
        confidence=shown.confidence,
        importance=shown.importance,
        kind=shown.kind,
        valid_from=shown.valid_from,
        valid_to=shown.valid_to,
        event_date=shown.event_date.isoformat() if shown.event_date else None,
        source_context=shown.source_context,
        reason=fact.reason or None,
        replaced_id=replaced.id if replaced else None,
        replaced_text=replaced.text if replaced else None,
    )

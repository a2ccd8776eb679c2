"""What each new fact does to the memory: one embedding call, one query, at most one model call (behaviour: 7)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any
from uuid import UUID

from producer.contract import Degradation, Rejected
from worker.db import ReadSession
from worker.llm.provider import Completion
from worker.llm.verdicts import parse_decisions
from worker.write.calls import Calls, EmbeddingError, VectorCache
from worker.write.candidates import Candidate, Query, find_candidates, standing_evidence
from worker.write.canonicalization import active_keys, canonicalise
from worker.write.evidence import Draft, Drafts, draft
from worker.write.message import Message
from worker.write.names import text_hash
from worker.write.plans import AttributeNote, Extraction, PlannedFact, Reconciliation, Resolution
from worker.write.polarity import polarity
from worker.write.verdict import Option, Verdict, choices, judged, reconciled, settled

STAGE = "reconcile"


@dataclass(slots=True)
class _Notes:
    """What a plan says about how it came about."""

    degradations: list[Degradation] = field(default_factory=list)
    rejected: list[Rejected] = field(default_factory=list)
    repairs: Counter[str] = field(default_factory=Counter)
    warnings: list[str] = field(default_factory=list)
    llm_asked: bool = False
    attributes: list[AttributeNote] = field(default_factory=list)


def reconcile(
    message: Message,
    extraction: Extraction,
    resolution: Resolution,
    read: ReadSession,
    calls: Calls,
    *,
    fallback: str | None = None,
) -> Reconciliation:
    """Decide ADD, UPDATE, NOOP or DELETE for every fact of a message, mirror facts included.

    Returns the plan for ``upsert``; nothing is written. ``fallback``, the cause of a model's failure, makes every fact
    that needs the model an ADD. Raises ModelError where the model fails, EmbeddingError where a transient failure of
    the embeddings should wait; without vectors only identical texts are recognised.
    """
    drafts = draft(message, extraction, resolution)
    notes = _Notes(rejected=list(drafts.rejected), repairs=Counter(drafts.dropped))
    _canonicalise(message, drafts, read, notes)
    vectors = _embed(drafts, resolution, calls, notes)
    found, standing = _find(message, drafts, resolution, vectors, read)
    verdicts = _verdicts(message, drafts, found, standing, vectors, calls, fallback, notes)
    for index, verdict in enumerate(verdicts):
        if verdict.warning:
            notes.warnings.append(f"fact {index + 1}: {verdict.warning}")
    return Reconciliation(
        facts=[_planned(fact, verdict) for fact, verdict in zip(drafts.facts, verdicts, strict=True)],
        edges=drafts.edges,
        profiles=_profiles(drafts, extraction),
        warnings=notes.warnings,
        llm_asked=notes.llm_asked,
        attributes=notes.attributes,
        degradations=notes.degradations,
        rejected=notes.rejected,
        repairs=dict(notes.repairs),
    )


def _canonicalise(message: Message, drafts: Drafts, read: ReadSession, notes: _Notes) -> None:
    """Put the facts' attribute keys in their one spelling; a key that is no good is dropped with its value."""
    raw = sorted({fact.attribute_key for fact in drafts.facts if fact.attribute_key})
    if not raw:
        return
    found = {key: canonicalise(key, message.config) for key in raw}
    left = [key for key, one in found.items() if one.action in ("propose", "drop")]
    if left:  # only then can the agent's own registry say more
        with read() as session:
            active = active_keys(session, message.agent_id, left, message.config)
        found |= {key: canonicalise(key, message.config, active) for key in left}
    for key, one in found.items():
        reason = one.metadata.get("reason")
        notes.attributes.append(AttributeNote(raw=key, key=one.key, action=one.action, reason=reason))
        if one.action == "drop":
            notes.rejected.append(Rejected(stage=STAGE, kind="attribute", reason=str(reason), item=key))
    for index, fact in enumerate(drafts.facts):
        if fact.attribute_key:
            canonical = found[fact.attribute_key].key
            value = fact.value if canonical else None
            drafts.facts[index] = replace(fact, attribute_key=canonical, value=value)


def _embed(drafts: Drafts, resolution: Resolution, calls: Calls, notes: _Notes) -> VectorCache:
    """The vectors of all facts and of new display names, in one call; what there is, where the embeddings fail."""
    texts = [fact.text for fact in drafts.facts]
    texts += [entity.display_name for entity in resolution.entities if entity.is_new]
    try:
        return calls.embed(texts)
    except EmbeddingError as error:
        if error.transient:
            raise
        notes.degradations.append(
            Degradation(stage=STAGE, fell_back_to="identical_texts_only", cause=f"embedding_{error.cause.value}")
        )
        return calls.vectors


def _find(
    message: Message, drafts: Drafts, resolution: Resolution, vectors: VectorCache, read: ReadSession
) -> tuple[Mapping[int, list[Candidate]], Mapping[int, UUID]]:
    """The candidates of each fact, and for mirror facts of edges that are live already the fact that holds them up.

    An entity that is new has neither, and a message about new ones asks nothing.
    """
    known = {entity.key for entity in resolution.entities if not entity.is_new} | resolution.known_names.keys()
    new = {entity.key for entity in resolution.entities if entity.is_new} - known
    queries = [
        Query(index, fact.entity_key, text_hash(fact.text), vectors.get(fact.text), fact.attribute_key, *matters)
        for index, fact in enumerate(drafts.facts)
        if fact.entity_key not in new
        for matters in [drafts.matters(index)]
    ]
    mirrors = {index: edge for index, edge in drafts.mirrors.items() if not new.intersection(edge[:2])}
    if not queries:
        return {}, {}
    with read() as session:
        limit = message.config.reconcile_candidates
        found = find_candidates(session, message.agent_id, queries, message.occurred_at, limit)
        evidence = standing_evidence(session, message.agent_id, mirrors.values()) if mirrors else {}
    return found, {index: evidence[edge] for index, edge in mirrors.items() if edge in evidence}


def _verdicts(
    message: Message,
    drafts: Drafts,
    found: Mapping[int, list[Candidate]],
    standing: Mapping[int, UUID],
    vectors: VectorCache,
    calls: Calls,
    fallback: str | None,
    notes: _Notes,
) -> list[Verdict]:
    """One verdict a fact, in order; the model is asked once, about all that are not settled without it."""
    floor = message.config.reconcile_similarity_floor
    verdicts: dict[int, Verdict] = {}
    questions: dict[int, list[Option]] = {}
    seen: dict[tuple[str, bytes], int] = {}
    for index, fact in enumerate(drafts.facts):
        twin = seen.setdefault((fact.entity_key, text_hash(fact.text)), index)
        if twin != index:
            verdicts[index] = Verdict("NOOP", target_fact=twin, reason="identical")
            continue
        if index in standing:
            verdicts[index] = Verdict("NOOP", target=standing[index], reason="the edge stands on this fact already")
            continue
        at, names = message.occurred_at, drafts.book.names_of(fact.entity_key)
        candidates = sorted(found.get(index, []), key=lambda c: c.later_than(at))  # what held then before what came
        verdict = settled(fact, candidates, at, floor, names, compared=fact.text in vectors)
        options = _options(index, drafts.facts, choices(fact, candidates, at, floor, names), vectors, floor)
        if verdict is not None and (verdict.action == "NOOP" or not options):
            verdicts[index] = verdict
        else:
            questions[index] = options
    if questions and fallback is not None:
        notes.degradations.append(Degradation(stage=STAGE, fell_back_to="add", cause=fallback))
        verdicts |= {index: Verdict("ADD", reason="the model was not available") for index in questions}
    elif questions:
        verdicts |= _ask(message, drafts, questions, found, calls, notes)
    return reconciled([verdicts[index] for index in range(len(drafts.facts))])


def _options(
    index: int,
    facts: Sequence[Draft],
    candidates: Sequence[Candidate],
    vectors: VectorCache,
    floor: float,
) -> list[Option]:
    """What the model may choose from: the candidates, and earlier facts of the message that this one contradicts."""
    options = [Option(c.text, c.attribute_key, c.value, c.similarity, stored=c) for c in candidates]
    fact, own = facts[index], vectors.get(facts[index].text)
    for earlier, other in enumerate(facts[:index]):
        theirs = vectors.get(other.text)
        if other.entity_key != fact.entity_key or own is None or theirs is None:
            continue
        similarity = float(own @ theirs)
        other_value = fact.attribute_key == other.attribute_key and fact.value != other.value
        contradicts = (fact.attribute_key and other_value) or polarity(fact.text) != polarity(other.text)
        if contradicts and similarity >= floor:
            options.append(Option(other.text, other.attribute_key, other.value, similarity, index=earlier))
    return options


def _ask(
    message: Message,
    drafts: Drafts,
    questions: Mapping[int, Sequence[Option]],
    found: Mapping[int, Sequence[Candidate]],
    calls: Calls,
    notes: _Notes,
) -> dict[int, Verdict]:
    """Ask about all open facts in one call. Every existing fact has one number in the whole call, so that a number
    from another fact's list is seen to be foreign."""
    numbers: dict[object, int] = {}
    cited: dict[int, dict[int, Option]] = {}
    payload: list[dict[str, Any]] = []
    for fact_number, (index, options) in enumerate(questions.items(), start=1):
        mine: dict[int, Option] = {}
        for option in options:
            identity = option.stored.id if option.stored else option.index
            mine[numbers.setdefault(identity, len(numbers) + 1)] = option
        cited[fact_number] = mine
        payload.append(_question(fact_number, drafts.facts[index], mine, drafts, message))

    def parse(completion: Completion) -> Any:
        return parse_decisions(completion.text, cited)

    parsed = calls.ask("reconciliation", {"message_date": message.message_date, "facts": payload}, parse)
    notes.llm_asked = True
    notes.repairs.update(parsed.repairs)
    notes.rejected += [Rejected(stage=STAGE, kind=item.kind, reason=item.reason) for item in parsed.rejects]
    notes.warnings += [f"reply: {kind} ({count})" for kind, count in sorted(parsed.repairs.items())]
    verdicts: dict[int, Verdict] = {}
    for decision, index in zip(parsed.decisions, questions, strict=True):
        chosen = cited[decision.fact_number].get(decision.existing_number or 0)
        fact = drafts.facts[index]
        names = drafts.book.names_of(fact.entity_key)
        verdicts[index] = judged(
            fact, decision, chosen, questions[index], found.get(index, []), message.occurred_at, names
        )
    return verdicts


def _question(
    number: int, fact: Draft, options: Mapping[int, Option], drafts: Drafts, message: Message
) -> dict[str, Any]:
    existing = []
    for existing_number, option in options.items():
        stored = option.stored
        held: dict[str, Any] = {"number": existing_number, "text": option.text}
        held["since"] = _when(stored.valid_from if stored else message.occurred_at, message)
        if stored and stored.valid_to:
            held["until"] = _when(stored.valid_to, message)
        held["confidence"] = round(stored.confidence if stored else drafts.facts[option.index or 0].confidence, 2)
        existing.append(held)
    return {
        "number": number,
        "subject": drafts.display.get(fact.entity_key, fact.subject),
        "text": fact.text,
        "confidence": round(fact.confidence, 2),
        "existing": existing,
    }


def _when(moment: datetime | None, message: Message) -> str | None:
    """``moment`` by the message's own clock: its day, and its minute where that is the message's own day."""
    if moment is None or message.occurred_at is None:
        return moment.date().isoformat() if moment else None
    local = moment.astimezone(message.occurred_at.tzinfo)
    same_day = local.date() == message.occurred_at.date()
    return local.strftime("%Y-%m-%dT%H:%M") if same_day else local.date().isoformat()


def _planned(fact: Draft, verdict: Verdict) -> PlannedFact:
    return PlannedFact(
        id=fact.id,
        entity_key=fact.entity_key,
        subject=fact.subject,
        text=fact.text,
        confidence=fact.confidence,
        importance=fact.importance,
        importance_category=fact.importance_category,
        event_date=fact.event_date,
        event_date_precision=fact.event_date_precision,
        attribute_key=fact.attribute_key,
        value=fact.value,
        source_context=fact.source_context,
        action=verdict.action,
        target_fact_id=verdict.target,
        target_fact=verdict.target_fact,
        closed_by=verdict.closed_by,
        as_retraction=verdict.action == "DELETE",
        reason=verdict.reason,
        similarity=round(verdict.similarity, 4) if verdict.similarity is not None else None,
    )


def _profiles(drafts: Drafts, extraction: Extraction) -> dict[str, str]:
    """The model's profiles by key. Which of them seed an empty one is decided where it is written."""
    profiles: dict[str, str] = {}
    for item in extraction.profiles:
        key = drafts.book.key_of(item.name)
        if key is not None and item.profile_text.strip():
            profiles[key] = item.profile_text.strip()
    return profiles

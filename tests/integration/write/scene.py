"""A small stage for reconciliation and upsert: a real database, chosen vectors, scripted decisions, no extraction."""

from __future__ import annotations

import hashlib
import json
import uuid
from collections.abc import Callable, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np
from sqlalchemy import Engine, event, text
from sqlalchemy.orm import Session

from producer.contract import MemoryConfig
from worker.db import read_session
from worker.embedding.provider import Vectors
from worker.llm.items import ExtractedEntity, ExtractedFact, ExtractedProfile, ExtractedRelation
from worker.llm.provider import Completion, ModelError
from worker.write.applied import Applied
from worker.write.calls import Calls, VectorCache
from worker.write.message import Message
from worker.write.names import entity_key
from worker.write.plans import Extraction, Reconciliation, Resolution, ResolvedEntity, RoleEdge
from worker.write.reconciliation import reconcile
from worker.write.upsert import upsert, without_faults

WIDTH = 384
START = datetime(2020, 1, 1, 12, tzinfo=UTC)
Decide = Callable[[dict[str, Any]], Any]


def day(number: int) -> datetime:
    """A day of the scene."""
    return START + timedelta(days=number)


class TopicEmbeddings:
    """Texts of one topic are alike (cosine 0.8), all others unrelated. ``topics`` maps a word to its topic."""

    def __init__(self, topics: Mapping[str, str]) -> None:
        self.topics = dict(topics)
        self.texts: list[str] = []
        self.calls = 0
        self.fails: ModelError | None = None

    @property
    def dimensions(self) -> int:
        return WIDTH

    def embed(self, texts: Sequence[str], *, timeout: float = 30.0) -> Vectors:  # noqa: ARG002
        if self.fails is not None:
            raise self.fails
        self.calls += 1
        self.texts += texts
        return np.stack([self._vector(one) for one in texts]).astype(np.float32)

    def _vector(self, one: str) -> Vectors:
        own = _axis(one)
        topic = next((topic for word, topic in self.topics.items() if word in one), None)
        mixed = own if topic is None else 0.8944 * _axis(f"topic {topic}") + 0.4472 * own
        return (mixed / np.linalg.norm(mixed)).astype(np.float32)


def _axis(seed: str) -> Vectors:
    rng = np.random.default_rng(int.from_bytes(hashlib.blake2b(seed.encode(), digest_size=8).digest(), "big"))
    vector = rng.standard_normal(WIDTH)
    return (vector / np.linalg.norm(vector)).astype(np.float32)


class ScriptedProvider:
    """Answers ``reconciliation`` by a function of the payload; anything else is a mistake of the test."""

    def __init__(self) -> None:
        self.decide: Decide | None = None
        self.payloads: list[dict[str, Any]] = []

    def complete(
        self,
        task: str,
        system: str,  # noqa: ARG002
        payload: Mapping[str, Any],
        *,
        schema: Mapping[str, Any] | None = None,  # noqa: ARG002
        timeout: float = 30.0,  # noqa: ARG002
    ) -> Completion:
        assert task == "reconciliation"
        assert self.decide is not None, "no decision was expected to be asked for"
        self.payloads.append(json.loads(json.dumps(payload)))
        answer = self.decide(self.payloads[-1])
        return Completion(text=answer if isinstance(answer, str) else json.dumps(answer))


def always(action: str, existing: int | None = 1) -> Decide:
    """The same decision for every fact, about the first existing one."""

    def decide(payload: dict[str, Any]) -> Any:
        return {
            "decisions": [
                {
                    "fact_number": fact["number"],
                    "reason": "scripted",
                    "action": action,
                    "existing_number": fact["existing"][0]["number"] if existing == 1 else existing,
                }
                for fact in payload["facts"]
            ]
        }

    return decide


@dataclass
class Written:
    """A message's plans and what became of them."""

    message: Message
    extraction: Extraction
    resolution: Resolution
    plan: Reconciliation
    applied: Applied
    statements: list[str] = field(default_factory=list)


class Scene:
    """One agent. ``people`` maps the names that messages use to entity types."""

    def __init__(self, engine: Engine, topics: Mapping[str, str] | None = None, **types: str) -> None:
        self.engine = engine
        self.agent = f"agent-{uuid.uuid4().hex[:8]}"
        self.embeddings = TopicEmbeddings(topics or {})
        self.model = ScriptedProvider()
        self.types = types
        self.known: set[str] = set()
        self.counted: list[str] = []

    def message(self, words: str, at: datetime | None, **config: Any) -> Message:
        """An event in the database, and the message of it."""
        message = Message(
            event_id=uuid.uuid4(),
            agent_id=self.agent,
            text=words,
            speaker="Bruna",
            occurred_at=at,
            config=MemoryConfig().overridden(config),
        )
        with Session(self.engine) as session:
            session.execute(
                text(
                    "INSERT INTO memory_events (id, agent_id, speaker_name, message, occurred_at, offset_minutes)"
                    " VALUES (:id, :agent, 'Bruna', :message, :at, :offset)"
                ),
                {
                    "id": message.event_id,
                    "agent": self.agent,
                    "message": words,
                    "at": at,
                    "offset": None if at is None else 0,
                },
            )
            session.commit()
        return message

    def resolution(self, names: Sequence[str], role_edges: Sequence[RoleEdge] = ()) -> Resolution:
        """Every name its own entity, known once it was stored."""
        entities = []
        for name in names:
            kind = self.types.get(name.replace(" ", "_"), "person" if name[:1].isupper() else "concept")
            key = entity_key(kind, name)
            entities.append(
                ResolvedEntity(
                    name=name,
                    key=key,
                    display_name=name,
                    entity_type=kind,
                    is_new=key not in self.known,
                    method="exact" if key in self.known else "new",
                )
            )
        return Resolution(entities=entities, speaker_key="person:bruna", role_edges=list(role_edges))

    def plan(
        self,
        words: str,
        facts: Sequence[tuple[str, str] | ExtractedFact] = (),
        relations: Sequence[tuple[str, str, str]] = (),
        *,
        at: datetime | None = START,
        decide: Decide | None = None,
        names: Sequence[str] = (),
        profiles: Mapping[str, str] | None = None,
        role_edges: Sequence[RoleEdge] = (),
        fallback: str | None = None,
        resolution: Resolution | None = None,
        **config: Any,
    ) -> tuple[Written, VectorCache]:
        """Reconcile a message; nothing is stored but its event."""
        message = self.message(words, at, **config)
        said = [
            f if isinstance(f, ExtractedFact) else ExtractedFact(subject=f[0], text=f[1], confidence=0.95)
            for f in facts
        ]
        mentioned = dict.fromkeys([*names, *(f.subject for f in said), *(n for r in relations for n in (r[0], r[2]))])
        extraction = Extraction(
            mode="informed",
            entities=[ExtractedEntity(name=name, type="person") for name in mentioned],
            facts=said,
            relations=[ExtractedRelation(source=s, rel_type=r, target=t) for s, r, t in relations],
            profiles=[ExtractedProfile(name=name, profile_text=p) for name, p in (profiles or {}).items()],
        )
        resolved = resolution or self.resolution(list(mentioned), role_edges)
        self.model.decide = decide
        calls = Calls(self.model, self.embeddings)
        plan = reconcile(message, extraction, resolved, lambda: read_session(self.engine), calls, fallback=fallback)
        plan = Reconciliation.model_validate_json(plan.model_dump_json())  # as it comes out of the ledger
        return Written(message, extraction, resolved, plan, Applied()), calls.vectors

    def write(self, words: str, facts: Sequence[Any] = (), relations: Sequence[Any] = (), **how: Any) -> Written:
        """Reconcile and store a message."""
        written, vectors = self.plan(words, facts, relations, **how)

        def attempt(*, item_by_item: bool) -> Applied:
            with Session(self.engine) as session, session.begin():
                return upsert(
                    session, written.message, written.extraction, written.resolution, written.plan, vectors,
                    item_by_item=item_by_item,
                )  # fmt: skip

        with self.counting() as statements:
            written.applied = without_faults(attempt)
        written.statements = [statement for statement in statements if statement != "COMMIT"]
        self.known |= {entity.key for entity in written.resolution.entities}
        return written

    @contextmanager
    def counting(self) -> Any:
        """The statements that go to the database meanwhile."""
        seen: list[str] = []

        def note(_connection: Any, _cursor: Any, statement: str, *_rest: Any) -> None:
            seen.append(statement)

        event.listen(self.engine, "before_cursor_execute", note)
        try:
            yield seen
        finally:
            event.remove(self.engine, "before_cursor_execute", note)

    # -- what is stored ----------------------------------------------------------------------------------------------

    def rows(self, sql: str, **values: Any) -> list[Any]:
        """Rows of any query about the agent (:agent)."""
        with Session(self.engine) as session:
            return list(session.execute(text(sql), {"agent": self.agent, **values}).all())

    def facts(self, *, active: bool | None = None, kind: str | None = "fact") -> list[Any]:
        """Stored facts in world time."""
        found = self.rows(
            "SELECT * FROM memory_facts WHERE agent_id = :agent ORDER BY valid_from NULLS FIRST, fact_text"
        )
        if kind is not None:
            found = [fact for fact in found if fact.kind == kind]
        return found if active is None else [fact for fact in found if (fact.valid_to is None) is active]

    def active(self) -> set[str]:
        """The texts of all active facts."""
        return {fact.fact_text for fact in self.facts(active=True)}

    def history(self) -> list[tuple[str, int | None, int | None]]:
        """Facts and retractions with the days between which they were true."""
        return [(fact.fact_text, _day_of(fact.valid_from), _day_of(fact.valid_to)) for fact in self.facts(kind=None)]

    def edges(self, *, live: bool = True) -> set[tuple[str, str, str]]:
        """Edges as triples."""
        found = self.rows("SELECT * FROM memory_entity_relationships WHERE agent_id = :agent")
        return {
            (edge.source_entity_key, edge.rel_type, edge.target_entity_key)
            for edge in found
            if (edge.valid_to is None) is live
        }

    def assert_sound(self) -> None:
        """What holds after every step, whatever came."""
        broken = self.rows(
            """
            SELECT 'an edge without an active fact' FROM memory_entity_relationships e
             WHERE e.agent_id = :agent AND e.valid_to IS NULL AND NOT EXISTS (
               SELECT FROM memory_facts f WHERE f.id = e.evidence_fact_id AND f.valid_to IS NULL)
            UNION ALL
            SELECT 'overlap in a chain' FROM memory_facts n JOIN memory_facts o ON o.id = n.supersedes_fact_id
             WHERE n.agent_id = :agent
               AND (o.valid_to IS NULL OR o.valid_to > n.valid_from OR o.entity_key <> n.entity_key)
            UNION ALL
            SELECT 'a fact without its subject''s link' FROM memory_facts f
             WHERE f.agent_id = :agent AND NOT EXISTS (SELECT FROM memory_fact_entity_links l
               WHERE l.fact_id = f.id AND l.is_primary AND l.entity_key = f.entity_key)
            """
        )
        assert broken == []


def _day_of(moment: datetime | None) -> int | None:
    return None if moment is None else (moment - START).days

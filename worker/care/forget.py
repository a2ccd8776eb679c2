"""Forgetting an agent, an entity or an event, for good, in one transaction (behaviour: 12).

What is left is a receipt with a salted hash and the ids of the events that are gone, which are hashes themselves: so
that a replay, a message that comes again and a second import find that they are too late.
"""

from __future__ import annotations

import hashlib
import json
import secrets
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Literal
from uuid import UUID

from sqlalchemy import Engine, text
from sqlalchemy.orm import Session

from worker.care import forget_sql as sql
from worker.care.forgotten_names import NEVER, pattern
from worker.care.tables import ANALYZE
from worker.db import autocommit
from worker.write.relationships import refresh_edges

Kind = Literal["agent", "entity", "event"]
# Finds and takes what lies in queues: (agent, pattern of names or None for all, event ids) -> ids of their events.
Queues = Callable[[str, str | None, Sequence[UUID]], Sequence[UUID]]


class NothingToForget(Exception):
    """There is no such agent, entity or event; ``str()`` is one line."""


@dataclass(frozen=True, slots=True)
class Receipt:
    """What was forgotten: counts of rows by what they were, and the id under which the database proves it.

    ``kept_names``: how many entities remain whose own name holds a forgotten one ("São Paulo", where Paulo went).
    """

    id: UUID
    kind: Kind
    forgotten_at: datetime
    counts: dict[str, int] = field(default_factory=dict)
    kept_names: int = 0


def forget(
    bind: Engine,
    agent_id: str,
    *,
    entity_key: str | None = None,
    event_id: UUID | None = None,
    queues: Queues | None = None,
) -> Receipt:
    """Erase an agent, or of it one entity or one event; in one transaction, under the agent's turn.

    An entity takes along its facts and all that mention it, its edges, names and whoever is known by it only; every
    event that names it is redacted whole. An event takes along the facts that only it said, and what it alone brought.
    Other messages that were under way are read anew; traces of the agent's messages go. ``queues`` takes messages out
    of the broker that were not recorded yet. The agent is to be dispatched afterwards; else the sweeper finds it.

    Needs the owner of the tables. Raises NothingToForget, and SQLAlchemyError: then nothing was forgotten.
    """
    kind: Kind = "entity" if entity_key is not None else "event" if event_id is not None else "agent"
    with Session(bind) as session, session.begin():
        session.execute(text("SELECT set_config('mandua.forgetting', 'on', true)"))
        session.execute(text("SET LOCAL statement_timeout = '30min'"))
        work = _Forgetting(session, agent_id)
        session.execute(text(sql.LOCK_IMPORTS))
        known = session.execute(text(sql.LOCK_AGENT), {"agent": agent_id}).first() is not None
        if entity_key is not None:
            work.entity(entity_key)
        elif event_id is not None:
            work.event(event_id)
        elif known or queues is not None:
            work.agent()
        named = None if kind == "agent" else work.names
        queued = list(queues(agent_id, named, [event_id] if event_id else [])) if queues is not None else []
        if kind == "agent" and not known and not queued:
            raise NothingToForget(f"there is no agent {agent_id}")
        work.counts["queued"] = len(queued)
        receipt = work.receipt(kind, entity_key or (str(event_id) if event_id else ""), queued)
    with autocommit(bind) as connection:
        connection.execute(text(ANALYZE))
    return receipt


class _Forgetting:
    """One forgetting; ``names`` and ``longer`` are the patterns of the names that go, and of those that hold one."""

    def __init__(self, session: Session, agent_id: str) -> None:
        self.session = session
        self.agent_id = agent_id
        self.names = self.longer = NEVER
        self.kept_names = 0
        self.counts: dict[str, int] = {}
        for statement in sql.TABLES.split(";"):
            session.execute(text(statement))

    def run(self, statement: str, **more: Any) -> Any:
        """Execute one of the statements with what they all know."""
        given = {"agent": self.agent_id, "names": self.names, "longer": self.longer, **more}
        return self.session.execute(text(statement), given)

    def count(self, name: str, statement: str, **more: Any) -> None:
        """Execute one, and count its rows under ``name``."""
        self.counts[name] = self.counts.get(name, 0) + max(0, int(self.run(statement, **more).rowcount))

    def agent(self) -> None:
        """All of it."""
        self.run(sql.TAKE_TURN)
        self.run("INSERT INTO going_events SELECT id FROM memory_events WHERE agent_id = :agent")
        for name, statement in sql.WHOLE_AGENT:
            self.count(name, statement)
        del self.counts["unlinked"], self.counts["unmerged"], self.counts["turns"]

    def entity(self, key: str) -> None:
        """One entity, its facts, and the events that name it."""
        self.run(sql.SAME_ENTITY, entity=key)
        self._read_names()
        if self.run("SELECT count(*) FROM going_entities").scalar_one() == 0:
            raise NothingToForget(f"{self.agent_id} has no entity {key}")
        self.run(sql.PLACEHOLDERS)
        self._read_names()
        longer = self.run(sql.LONGER_NAMES).all()
        self.kept_names = len({row[1] for row in longer})
        own = set(self._own_names())
        self.longer = pattern(row[0] for row in longer if row[0] not in own)
        self.run(sql.TAKE_TURN)
        self.run(sql.FACTS_OF_ENTITIES)
        self.run(sql.EVENTS_OF_ENTITIES)
        self.count("staged", sql.DROP_STAGED)
        self.run(sql.UNNAME_IMPORTS)
        self._erase(whole=False)

    def event(self, event_id: UUID) -> None:
        """One event, the facts that only it said, and what it alone brought."""
        self.run(sql.THIS_EVENT, event=event_id)
        if self.run("SELECT count(*) FROM going_events").scalar_one() == 0:
            raise NothingToForget(f"{self.agent_id} has no event {event_id}")
        self.run(sql.TAKE_TURN)
        self.run(sql.HAND_ON)
        self.run(sql.FACTS_OF_EVENTS)
        self._erase(whole=True)

    def receipt(self, kind: Kind, what: str, queued: Sequence[UUID]) -> Receipt:
        """Write down that it is forgotten: hashes only."""
        salt = secrets.token_bytes(16)
        digest = hashlib.sha256(salt + json.dumps([self.agent_id, what]).encode()).digest()
        made = self.run(sql.RECEIPT, kind=kind, salt=salt, digest=digest, counts=json.dumps(self.counts)).one()
        self.run(sql.TOMBSTONES, receipt=made.id, queued=list(queued))
        return Receipt(made.id, kind, made.forgotten_at, self.counts, self.kept_names)

    # -- parts -------------------------------------------------------------------------------------------------------

    def _own_names(self) -> list[str]:
        return list(self.run(sql.NAMES).scalars())

    def _read_names(self) -> None:
        self.names = pattern(self._own_names())

    def _erase(self, *, whole: bool) -> None:
        """Erase what stands in the temporary tables. ``whole``: what the events confirmed is forgotten as well."""
        self.run(sql.STAMPS)
        texts = list(self.run("SELECT message FROM memory_events e JOIN going_events g ON g.id = e.id").scalars())
        self.count("profiles", sql.PROFILES)
        edges = list(self.run(sql.EDGES_TOUCHED).scalars())
        self.run(sql.DROP_EVIDENCE)
        self.count("relations", sql.DROP_EDGES, edges=edges)
        now = self.run("SELECT mandua_now()").scalar_one()
        refresh_edges(self.session, edges, [], now)
        self.run(sql.UNLINK_FACTS)
        self.count("facts", sql.DROP_FACTS)
        self.run(sql.UNNAME_SPEAKERS)
        self.run(sql.DROP_SAID, whole=whole)
        self.run(sql.DROP_REVISIONS)
        self.run(sql.ORPHANS)
        if whole:
            self.count("aliases", sql.DROP_ALIASES_BROUGHT)
        self.count("aliases", sql.DROP_ALIASES_NAMING)
        self.count("results", sql.CLEAN_RESULTS)
        self.run(sql.DROP_MERGES)
        self.counts["entities"] = self.run(sql.DROP_ENTITIES).scalar_one()
        self.count("events_redacted", sql.REDACT_EVENTS)
        self.run(sql.DROP_ANNOTATIONS)
        self.count("runs", sql.END_RUNS)
        self.run(sql.CLEAN_REQUESTS, texts=texts)
        self.run(sql.CLEAN_STAGED, texts=texts)
        self.run(sql.CLEAN_ALIASES)
        self.run(sql.CLEAN_STAGED_ALIASES)
        self.count("traces", sql.DROP_TRACES)
        self.count("pending", sql.DROP_PENDING)
        self.run(sql.DROP_DRY_RUNS)

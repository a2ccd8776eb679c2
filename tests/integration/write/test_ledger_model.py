"""A model of the ledger: whatever is said, in whatever order of time, some things hold after every step.

A hypothesis state machine says random facts about one person, live and late, dated and not, with random decisions, and
lets the facts of one version chain, duplicates and edges be closed and merged as jobs do it.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule, run_state_machine_as_test
from sqlalchemy import Engine, text

from tests.integration.write.scene import Scene, day
from worker.write.relationships import refresh_edges

TOPICS = {"lives": "home", "tea": "tea", "works": "job"}
TEXTS = (
    ("Ana lives in Natal", ("Ana", "lives_in", "Natal")),
    ("Ana lives in Lima", ("Ana", "lives_in", "Lima")),
    ("Ana lives in Quito, not far from Lima", ("Ana", "lives_in", "Quito")),
    ("Ana works at Acme", ("Ana", "works_at", "Acme")),
    ("Ana no longer works at Acme", None),
    ("Ana likes tea", None),
    ("Ana does not like tea", None),
    ("Ana no longer likes tea", None),
    ("Ana loves tea", None),
)
TYPES = {"Natal": "place", "Lima": "place", "Quito": "place", "Acme": "organization"}

# Each query finds what must not be; the name says what is broken.
BROKEN = {
    "two active versions in a chain": """
        SELECT 1 FROM memory_facts n JOIN memory_facts o ON o.id = n.supersedes_fact_id
         WHERE n.agent_id = :agent AND o.valid_to IS NULL""",
    "overlap in a chain": """
        WITH RECURSIVE chain AS (
          SELECT id AS root, id, valid_from, valid_to FROM memory_facts
           WHERE agent_id = :agent AND supersedes_fact_id IS NULL
          UNION ALL
          SELECT c.root, n.id, n.valid_from, n.valid_to FROM chain c JOIN memory_facts n ON n.supersedes_fact_id = c.id)
        SELECT 1 FROM chain a JOIN chain b ON b.root = a.root AND b.id <> a.id
         WHERE a.valid_from IS NOT NULL AND b.valid_from IS NOT NULL  -- of unknown times nobody can say so
           AND NOT isempty(tstzrange(a.valid_from, a.valid_to) * tstzrange(b.valid_from, b.valid_to))""",
    "a chain that is a ring": """
        SELECT 1 FROM memory_facts f WHERE f.agent_id = :agent AND f.supersedes_fact_id IS NOT NULL AND NOT EXISTS (
          WITH RECURSIVE up AS (
            SELECT p.id, p.supersedes_fact_id, 1 AS depth FROM memory_facts p WHERE p.id = f.supersedes_fact_id
            UNION ALL
            SELECT p.id, p.supersedes_fact_id, up.depth + 1 FROM up JOIN memory_facts p ON p.id = up.supersedes_fact_id
             WHERE up.depth < 200)
          SELECT 1 FROM up WHERE supersedes_fact_id IS NULL)""",
    "a live edge without an active fact of its own": """
        SELECT 1 FROM memory_entity_relationships e
         WHERE e.agent_id = :agent AND e.valid_to IS NULL AND NOT EXISTS (
           SELECT FROM memory_facts f JOIN memory_relationship_evidence v ON v.fact_id = f.id
            WHERE v.relationship_id = e.id AND f.id = e.evidence_fact_id AND f.valid_to IS NULL AND f.kind = 'fact')""",
    "a dead edge with an active fact": """
        SELECT 1 FROM memory_entity_relationships e JOIN memory_relationship_evidence v ON v.relationship_id = e.id
          JOIN memory_facts f ON f.id = v.fact_id
         WHERE e.agent_id = :agent AND e.valid_to IS NOT NULL AND f.valid_to IS NULL AND f.kind = 'fact'""",
    "a link without its entity": """
        SELECT 1 FROM memory_fact_entity_links l LEFT JOIN memory_entities e
            ON e.agent_id = l.agent_id AND e.canonical_key = l.entity_key
         WHERE l.agent_id = :agent AND e.canonical_key IS NULL""",
    "a fact without its subject's link": """
        SELECT 1 FROM memory_facts f WHERE f.agent_id = :agent AND NOT EXISTS (
          SELECT FROM memory_fact_entity_links l
           WHERE l.fact_id = f.id AND l.is_primary AND l.entity_key = f.entity_key)""",
    "an active retraction": """
        SELECT 1 FROM memory_facts f WHERE f.agent_id = :agent AND f.kind = 'retraction' AND f.valid_to IS NULL""",
    "a source among its confirmations": """
        SELECT 1 FROM memory_facts f JOIN memory_fact_confirmations c ON c.fact_id = f.id
         WHERE f.agent_id = :agent AND c.event_id = f.source_event_id""",
    "confirmations that do not add up": """
        SELECT 1 FROM memory_facts f
         WHERE f.agent_id = :agent AND f.merged_into IS NULL AND f.kind = 'fact'
           AND f.confirmations <> (SELECT count(*) FROM memory_fact_confirmations c WHERE c.fact_id = f.id)""",
    "an event that nothing remembers": """
        SELECT 1 FROM memory_events e
         WHERE e.agent_id = :agent
           AND NOT EXISTS (SELECT FROM memory_facts f WHERE f.source_event_id = e.id)
           AND NOT EXISTS (SELECT FROM memory_fact_confirmations c WHERE c.event_id = e.id)""",
    "what is true and what is believed disagree": """
        SELECT 1 FROM memory_facts f
         WHERE f.agent_id = :agent AND (f.valid_to < f.valid_from OR f.invalidated_at < f.ingested_at)""",
}
SHOWN = """
SELECT left(CAST(id AS text), 4) AS id, left(CAST(supersedes_fact_id AS text), 4) AS old, fact_text, kind,
       CAST(valid_from AS date), CAST(valid_to AS date), confirmations
  FROM memory_facts WHERE agent_id = :agent ORDER BY valid_from NULLS FIRST, valid_to
"""
COUNTS = """
SELECT (SELECT count(*) FROM memory_facts WHERE agent_id = :agent AND valid_to IS NULL) AS active,
       (SELECT count(*) FROM memory_facts WHERE agent_id = :agent) AS stored
"""


class LedgerMachine(RuleBasedStateMachine):
    """Says things about Ana, and looks after each whether the memory still holds together."""

    database: Engine  # set on a subclass by the test

    def __init__(self) -> None:
        super().__init__()
        self.events = 0
        self.decisions: Iterator[tuple[str, int]] = iter(())

    @initialize()
    def begin(self) -> None:
        self.scene = Scene(self.database, TOPICS, **TYPES)
        self.stored = 0

    def _decide(self, payload: dict[str, Any]) -> dict[str, Any]:
        decisions = []
        for fact in payload["facts"]:
            action, place = next(self.decisions)
            numbers = [existing["number"] for existing in fact["existing"]]
            cited = numbers[place % len(numbers)] if numbers and place < 8 else 99 if place == 9 else None
            decisions.append({"fact_number": fact["number"], "reason": "", "action": action, "existing_number": cited})
        return {"decisions": decisions}

    @rule(
        said=st.lists(st.sampled_from(TEXTS), min_size=1, max_size=3),
        at=st.one_of(st.integers(0, 12), st.none()),
        actions=st.lists(
            st.tuples(st.sampled_from(["ADD", "UPDATE", "NOOP", "DELETE"]), st.integers(0, 9)),
            min_size=4,
            max_size=4,
        ),
    )
    def say(self, said: list[Any], at: int | None, actions: list[tuple[str, int]]) -> None:
        """A message with up to three facts, at any time or none, judged in any way."""
        self.decisions = itertools.cycle(actions)
        written = self.scene.write(
            "x",
            [("Ana", words) for words, _ in said],
            [relation for _, relation in said if relation],
            at=None if at is None else day(at),
            decide=self._decide,
            names=list(TYPES),
        )
        assert written.applied.rejected == []
        listed = written.applied
        results = [*listed.facts_added, *listed.facts_updated, *listed.facts_unchanged, *listed.facts_deleted]
        assert len(results) == len(written.plan.facts)
        assert len({fact.id for fact in listed.facts_added}) == len(listed.facts_added)

    @rule(which=st.integers(0, 20))
    def say_again(self, which: int) -> None:
        """The very words of something that is stored, much later: it is true again, or still."""
        facts = self.scene.facts()
        if not facts:
            return
        words, was_active = facts[which % len(facts)].fact_text, self.scene.active()
        self.decisions = itertools.cycle([("NOOP", 0)])
        self.scene.write("x", [("Ana", words)], at=day(20), decide=self._decide)
        assert words not in was_active or words in self.scene.active()

    @rule(one=st.integers(0, 20), other=st.integers(0, 20))
    def merge(self, one: int, other: int) -> None:
        """What the dedup job does with two active facts: one is closed and points to the other."""
        active = self.scene.facts(active=True)
        if len(active) < 2 or one % len(active) == other % len(active):
            return
        gone, kept = active[one % len(active)], active[other % len(active)]
        with self.database.begin() as connection:
            connection.execute(
                text(
                    "UPDATE memory_facts SET valid_to = greatest(mandua_now(), valid_from),"
                    " invalidated_at = mandua_now(), merged_into = :kept WHERE id = :gone"
                ),
                {"kept": kept.id, "gone": gone.id},
            )
            connection.execute(
                text(
                    "INSERT INTO memory_relationship_evidence SELECT relationship_id, :kept"
                    " FROM memory_relationship_evidence WHERE fact_id = :gone ON CONFLICT DO NOTHING"
                ),
                {"kept": kept.id, "gone": gone.id},
            )
            from sqlalchemy.orm import Session

            with Session(connection) as session:
                now = connection.execute(text("SELECT mandua_now()")).scalar_one()
                refresh_edges(session, [], [gone.id, kept.id], now)
                session.flush()

    @invariant()
    def nothing_is_broken(self) -> None:
        """Everything that must not be is not."""
        if not hasattr(self, "scene"):
            return
        for name, query in BROKEN.items():
            assert self.scene.rows(query) == [], f"{name}: {self.scene.rows(SHOWN)}"

    @invariant()
    def nothing_is_lost(self) -> None:
        """Facts are closed, never deleted; what the entity's count says is what there is."""
        if not hasattr(self, "scene"):
            return
        (counts,) = self.scene.rows(COUNTS)
        assert counts.stored >= self.stored
        self.stored = counts.stored
        assert counts.active == len(self.scene.facts(active=True, kind=None))
        texts = [fact.text_hash for fact in self.scene.facts(active=True)]
        assert len(texts) == len(set(map(bytes, texts)))


@contextmanager
def _bound(database: Engine) -> Iterator[type[LedgerMachine]]:
    yield type("BoundLedgerMachine", (LedgerMachine,), {"database": database})


@pytest.mark.timeout(300)
def test_the_ledger_holds_together_whatever_is_said(database: Engine) -> None:
    with _bound(database) as machine:
        run_state_machine_as_test(  # type: ignore[no-untyped-call]
            machine,
            settings=settings(
                max_examples=40,
                stateful_step_count=12,
                deadline=None,
                suppress_health_check=list(HealthCheck),
                phases=(Phase.explicit, Phase.reuse, Phase.generate),
            ),
        )

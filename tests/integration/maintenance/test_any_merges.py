"""Any merges of any memory, undone in reverse, give it back row by row; between them every rule of the ledger holds."""

from __future__ import annotations

import random
from typing import Any
from uuid import UUID

import pytest
from sqlalchemy import Engine, text
from sqlalchemy.orm import Session

from tests.integration.maintenance.test_merging import memory  # noqa: F401
from worker.maintenance.folding import fold_facts
from worker.maintenance.merging import merge_entities
from worker.maintenance.splitting import split_entities
from worker.write.fact_rows import as_rows
from worker.write.relationships import refresh_edges

PEOPLE, FACTS, EDGES, MERGES, LATER, WORLDS = 6, 40, 24, 4, 12, 4

# A world: people a to f with aliases; facts of few texts, so that many have the same, a third of them closed; some
# confirmed; links and edges between any two, held up by any facts that are there.
ENTITIES = text("""
INSERT INTO memory_entities (agent_id, canonical_key, entity_type, display_name, is_placeholder, profile_text,
                             profile_source)
SELECT 'a', r.key, 'person', r.name, r.nameless, r.profile, CASE WHEN r.profile IS NOT NULL THEN 'facts' END
  FROM jsonb_to_recordset(CAST(:rows AS jsonb)) AS r (key text, name text, nameless boolean, profile text)
""")
ALIASES = text("""
INSERT INTO memory_entity_aliases (agent_id, alias_folded, entity_type, alias, entity_key)
SELECT agent_id, lower(display_name), entity_type, display_name, canonical_key FROM memory_entities
 WHERE canonical_key LIKE 'person:_'
""")
FACT_ROWS = text("""
INSERT INTO memory_facts (id, agent_id, entity_key, fact_text, text_hash, confidence, source_event_id, valid_from,
                          valid_to, invalidated_at, event_date, event_date_precision)
SELECT r.id, 'a', r.key, r.said, r.said::bytea, r.sure, (SELECT id FROM memory_events ORDER BY id LIMIT 1),
       mandua_now() - interval '9 d', CASE WHEN r.over THEN mandua_now() END, CASE WHEN r.over THEN mandua_now() END,
       CASE WHEN r.dated THEN date '2020-03-05' END, CASE WHEN r.dated THEN 'day' END
  FROM jsonb_to_recordset(CAST(:rows AS jsonb)) AS r (
         id uuid, key text, said text, sure real, over boolean, dated boolean)
ON CONFLICT DO NOTHING
""")
SAID = text("""
INSERT INTO memory_fact_confirmations (fact_id, event_id)
SELECT f.id, e.id FROM memory_facts f, (SELECT id FROM memory_events ORDER BY id DESC LIMIT 1) e
 WHERE f.confidence > 0.6 ON CONFLICT DO NOTHING
""")
COUNT = text("""
UPDATE memory_facts f SET confirmations = (SELECT count(*) FROM memory_fact_confirmations c WHERE c.fact_id = f.id)
""")
LINKS = text("""
INSERT INTO memory_fact_entity_links (fact_id, agent_id, entity_key, is_primary)
SELECT r.id, 'a', r.key, r.key = f.entity_key
  FROM jsonb_to_recordset(CAST(:rows AS jsonb)) AS r (id uuid, key text) JOIN memory_facts f ON f.id = r.id
ON CONFLICT DO NOTHING
""")
EDGE_ROWS = text("""
WITH edge AS (
  INSERT INTO memory_entity_relationships (agent_id, source_entity_key, target_entity_key, rel_type, strength,
                                           evidence_fact_id)
  SELECT 'a', r.source, r.target, r.type, r.sure, r.id
    FROM jsonb_to_recordset(CAST(:rows AS jsonb)) AS r (source text, target text, type text, sure real, id uuid)
    JOIN memory_facts f ON f.id = r.id WHERE r.source <> r.target
  ON CONFLICT DO NOTHING RETURNING id, evidence_fact_id
)
INSERT INTO memory_relationship_evidence (relationship_id, fact_id)
SELECT id, evidence_fact_id FROM edge
UNION
SELECT e.id, f.id FROM edge e JOIN memory_facts f ON substr(e.id::text, 1, 1) = substr(f.id::text, 1, 1)
""")

# Each finds what must not be there after any merge.
NOTHING = {
    "fact of one who is merged": "SELECT 1 FROM memory_facts f JOIN memory_entities e"
    " ON e.canonical_key = f.entity_key WHERE e.merged_into IS NOT NULL",
    "link to one who is merged": "SELECT 1 FROM memory_fact_entity_links l JOIN memory_entities e"
    " ON e.canonical_key = l.entity_key WHERE e.merged_into IS NOT NULL",
    "alias of one who is merged": "SELECT 1 FROM memory_entity_aliases a JOIN memory_entities e"
    " ON e.canonical_key = a.entity_key WHERE e.merged_into IS NOT NULL",
    "edge of one who is merged": "SELECT 1 FROM memory_entity_relationships r JOIN memory_entities e"
    " ON e.canonical_key IN (r.source_entity_key, r.target_entity_key) WHERE e.merged_into IS NOT NULL",
    "merge that leads to one who is merged": "SELECT 1 FROM memory_entities e JOIN memory_entities k"
    " ON k.canonical_key = e.merged_into WHERE k.merged_into IS NOT NULL",
    "live edge on a closed fact": "SELECT 1 FROM memory_entity_relationships r JOIN memory_facts f"
    " ON f.id = r.evidence_fact_id WHERE r.valid_to IS NULL AND f.valid_to IS NOT NULL",
    "closed edge with a living fact": "SELECT 1 FROM memory_entity_relationships r"
    " JOIN memory_relationship_evidence v ON v.relationship_id = r.id JOIN memory_facts f ON f.id = v.fact_id"
    " WHERE r.valid_to IS NOT NULL AND f.valid_to IS NULL",
    "false count": "SELECT 1 FROM memory_facts f WHERE f.valid_to IS NULL AND f.confirmations <>"
    " (SELECT count(*) FROM memory_fact_confirmations c WHERE c.fact_id = f.id)",
    "link that is not the subject's": "SELECT 1 FROM memory_fact_entity_links l JOIN memory_facts f ON f.id = l.fact_id"
    " WHERE l.is_primary AND l.entity_key <> f.entity_key",
}


ACTIVE = text("SELECT id, entity_key AS key FROM memory_facts WHERE valid_to IS NULL ORDER BY fact_text, 2, id")
SUCCEED = text("""
WITH over AS (
  UPDATE memory_facts SET valid_to = mandua_now(), invalidated_at = mandua_now() WHERE id = :id RETURNING *
), next AS (
  INSERT INTO memory_facts (id, agent_id, entity_key, fact_text, text_hash, confidence, source_event_id, valid_from,
                            supersedes_fact_id)
  SELECT :new, agent_id, entity_key, :said, CAST(:said AS text)::bytea, 0.9, source_event_id, mandua_now(), id FROM over
  RETURNING id, agent_id, entity_key
), linked AS (
  INSERT INTO memory_fact_entity_links SELECT id, agent_id, entity_key, true FROM next
), edge AS (
  INSERT INTO memory_entity_relationships AS r (agent_id, source_entity_key, target_entity_key, rel_type,
                                                evidence_fact_id)
  SELECT agent_id, entity_key, :other, 'knows', id FROM next WHERE entity_key <> :other
  ON CONFLICT (agent_id, source_entity_key, target_entity_key, rel_type) DO UPDATE SET strength = 1 RETURNING r.id
)
INSERT INTO memory_relationship_evidence SELECT edge.id, next.id FROM edge, next
""")
TOUCH = text("UPDATE memory_entities SET facts_changed_at = mandua_now() WHERE canonical_key = :key")


def go_on(session: Session, dice: random.Random, living: list[str]) -> None:
    """Something that happens to the memory: two facts of one become one, or one is replaced, with an edge."""
    facts = list(session.execute(ACTIVE))
    fact = dice.choice(facts)
    others = [one.id for one in facts if one.key == fact.key and one.id != fact.id]
    if others and dice.random() < 0.5:
        kept = dice.choice(others)
        fold_facts(session, [(fact.id, kept)])
    else:
        kept = UUID(int=dice.getrandbits(128))
        given = {"id": fact.id, "new": kept, "said": f"later {kept}", "other": dice.choice(living)}
        session.execute(SUCCEED, given)
    session.execute(TOUCH, {"key": fact.key})
    now = session.execute(text("SELECT mandua_now()")).scalar_one()
    refresh_edges(session, [], [fact.id, kept], now)


def world(session: Session, dice: random.Random) -> list[str]:
    """Make one; returns the keys of its people."""
    keys = [f"person:{letter}" for letter in "abcdef"[:PEOPLE]]
    people = [
        {"key": key, "name": key[-1].upper(), "nameless": dice.random() < 0.2,
         "profile": dice.choice((None, f"profile of {key}"))}
        for key in keys
    ]  # fmt: skip
    facts = [
        {"id": str(UUID(int=dice.getrandbits(128))), "key": dice.choice(keys), "said": f"text {dice.randrange(8)}",
         "sure": round(dice.uniform(0.3, 0.9), 2), "over": dice.random() < 0.3, "dated": dice.random() < 0.3}
        for _ in range(FACTS)
    ]  # fmt: skip
    links = [{"id": fact["id"], "key": fact["key"]} for fact in facts]
    links += [{"id": dice.choice(facts)["id"], "key": dice.choice(keys)} for _ in range(FACTS)]
    edges = [
        {"source": dice.choice(keys), "target": dice.choice(keys), "type": dice.choice(("knows", "likes")),
         "sure": 0.8, "id": dice.choice(facts)["id"]}
        for _ in range(EDGES)
    ]  # fmt: skip
    session.execute(ENTITIES, {"rows": as_rows(people)})
    session.execute(ALIASES)
    session.execute(FACT_ROWS, {"rows": as_rows(facts)})
    session.execute(SAID)
    session.execute(COUNT)
    session.execute(LINKS, {"rows": as_rows(links)})
    session.execute(EDGE_ROWS, {"rows": as_rows(edges)})
    now = session.execute(text("SELECT mandua_now()")).scalar_one()
    refresh_edges(session, session.execute(text("SELECT id FROM memory_entity_relationships")).scalars(), [], now)
    return keys


@pytest.mark.parametrize("seed", range(WORLDS))
def test_any_merges_undone_in_reverse_give_the_memory_back(
    seed: int, accepted: Any, database: Engine, rows: Any, memory: Any  # noqa: F811
):
    dice = random.Random(seed)
    accepted("one", "two")
    with Session(database) as session, session.begin():
        living = world(session, dice)
    states, done = [memory()], []
    for _ in range(MERGES):
        kept, gone = dice.sample(living, 2)
        living.remove(gone)
        with Session(database) as session, session.begin():
            done.append(merge_entities(session, "a", kept, gone, by="hand"))
        assert {name: rows(query) for name, query in NOTHING.items()} == {name: [] for name in NOTHING}
        states.append(memory())
    for merge_id in reversed(done):
        assert memory() == states.pop()
        with Session(database) as session, session.begin():
            split_entities(session, "a", merge_id)
    assert memory() == states.pop()


@pytest.mark.parametrize("seed", range(WORLDS))
def test_whatever_came_since_a_split_breaks_no_rule_and_loses_no_fact(
    seed: int, accepted: Any, database: Engine, rows: Any
):
    dice = random.Random(1000 + seed)
    accepted("one", "two")
    with Session(database) as session, session.begin():
        living = world(session, dice)
    gone_into: list[tuple[str, str, UUID]] = []
    for _ in range(MERGES):
        kept, gone = dice.sample(living, 2)
        living.remove(gone)
        with Session(database) as session, session.begin():
            merge_id = merge_entities(session, "a", kept, gone, by="hand")
        gone_into.append((kept, gone, merge_id))
        for _ in range(LATER // MERGES):
            with Session(database) as session, session.begin():
                go_on(session, dice, living)
    facts = rows("SELECT count(*) AS n FROM memory_facts")
    for kept, gone, merge_id in reversed(gone_into):
        with Session(database) as session, session.begin():
            assert split_entities(session, "a", merge_id) == (kept, gone)
        assert {name: rows(query) for name, query in NOTHING.items()} == {name: [] for name in NOTHING}
        across = "SELECT 1 FROM memory_facts f JOIN memory_facts k ON k.id = "
        assert rows(across + "f.supersedes_fact_id WHERE k.entity_key <> f.entity_key") == []
        assert rows(across + "f.merged_into WHERE k.entity_key <> f.entity_key") == []
    assert rows("SELECT count(*) AS n FROM memory_facts") == facts
    assert rows("SELECT 1 FROM memory_entities WHERE merged_into IS NOT NULL") == []

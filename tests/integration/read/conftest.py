"""A small memory, written as rows: what the reading functions are asked about."""

from __future__ import annotations

from collections.abc import Iterator
from uuid import UUID

import pytest
from sqlalchemy import Engine, text
from sqlalchemy.engine import Connection

EVENT = UUID(int=1)


def uuid(number: int) -> UUID:
    return UUID(int=number)


MEMORY = [
    """INSERT INTO memory_events (id, agent_id, speaker_name, message, occurred_at, offset_minutes)
       VALUES (:event, 'a', 'Rui', 'x', now(), 0)""",
    """INSERT INTO memory_entities (agent_id, canonical_key, entity_type, display_name, merged_into) VALUES
       ('a', 'person:rui', 'person', 'Rui Sá', NULL), ('a', 'place:braga', 'place', 'Braga', NULL),
       ('a', 'place:porto', 'place', 'Porto', NULL), ('a', 'person:rui_sa', 'person', 'R. Sá', 'person:rui'),
       ('b', 'person:rui', 'person', 'Rui', NULL)""",
    """INSERT INTO memory_entity_aliases (agent_id, alias_folded, entity_type, alias, entity_key) VALUES
       ('a', 'rui sa', 'person', 'Rui Sá', 'person:rui'), ('a', 'rui', 'person', 'rui', 'person:rui'),
       ('a', 'ruizinho', 'person', 'Ruizinho', 'person:rui'), ('b', 'r', 'person', 'R', 'person:rui')""",
    """INSERT INTO memory_facts (id, agent_id, entity_key, fact_text, text_hash, confidence, kind, source_event_id,
         valid_from, valid_to, invalidated_at, supersedes_fact_id) VALUES
       (:f1, 'a', 'person:rui', 'Rui lives in Braga', 'h1', 0.95, 'fact', :event, '2020-01-01Z', '2021-01-01Z',
        now(), NULL),
       (:f2, 'a', 'person:rui', 'Rui lives in Porto', 'h2', 0.95, 'fact', :event, '2021-01-01Z', NULL, NULL, :f1),
       (:f3, 'a', 'person:rui', 'Rui may like tea', 'h3', 0.40, 'fact', :event, '2021-01-02Z', NULL, NULL, NULL),
       (:f4, 'a', 'person:rui', 'Rui no longer smokes', 'h4', 0.95, 'retraction', :event, '2021-02-01Z',
        '2021-02-01Z', now(), NULL),
       (:f5, 'a', 'person:rui', 'Rui has a bike', 'h5', 0.55, 'fact', :event, NULL, NULL, NULL, NULL)""",
    """INSERT INTO memory_fact_entity_links (fact_id, agent_id, entity_key, is_primary) VALUES
       (:f1, 'a', 'person:rui', true), (:f1, 'a', 'place:braga', false), (:f2, 'a', 'place:porto', false)""",
    """INSERT INTO memory_entity_relationships (agent_id, source_entity_key, target_entity_key, rel_type,
         evidence_fact_id, valid_from, valid_to, invalidated_at) VALUES
       ('a', 'person:rui', 'place:braga', 'lives_in', :f1, '2020-01-01Z', '2021-01-01Z', now()),
       ('a', 'person:rui', 'place:porto', 'lives_in', :f2, '2021-01-01Z', NULL, NULL)""",
]


@pytest.fixture
def reader(database: Engine) -> Iterator[Connection]:
    """A connection to a database that holds the memory."""
    ids = {"event": EVENT, **{f"f{number}": uuid(10 + number) for number in range(1, 6)}}
    with database.begin() as connection:
        for statement in MEMORY:
            connection.execute(text(statement), {name: ids[name] for name in ids if f":{name}" in statement})
    with database.connect() as connection:
        yield connection

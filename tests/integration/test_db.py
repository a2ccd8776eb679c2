"""Reading in worker.db: nothing can be stored, and no statement of the connection has to be planned anew after it."""

from __future__ import annotations

import pytest
from sqlalchemy import Engine, text
from sqlalchemy.exc import InternalError
from sqlalchemy.orm import Session

from worker.db import autocommit, read_session, take_back

PREPARED = "SELECT count(*) FROM pg_prepared_statements WHERE statement LIKE '%FROM memory_events%'"
READING = text("SELECT count(*) FROM memory_events WHERE agent_id = :agent")


def test_what_reads_cannot_store(database: Engine):
    with (
        pytest.raises(InternalError, match="read-only transaction"),
        read_session(database) as session,
    ):
        session.execute(text("INSERT INTO memory_events (id, agent_id, speaker_name, message)"
                             " VALUES (gen_random_uuid(), 'a', 'Ana', 'oi')"))  # fmt: skip
    with database.begin() as connection:  # nor does the connection stay like that
        assert connection.execute(READING, {"agent": "a"}).scalar() == 0
        connection.execute(text("CREATE TEMP TABLE written (one integer)"))


def test_statements_stay_prepared_over_readings(database: Engine):
    for _ in range(3):
        with read_session(database) as session:
            session.execute(READING, {"agent": "a"})
    with autocommit(database) as connection:
        assert connection.execute(text(PREPARED)).scalar() == 1


def test_what_is_taken_back_is_not_stored_and_costs_no_prepared_statement(database: Engine):
    for _ in range(3):
        with Session(database) as session:
            session.execute(READING, {"agent": "a"})
            session.execute(text("INSERT INTO agent_seq (agent_id) VALUES ('a')"))
            take_back(session)
            assert session.execute(text("SELECT count(*) FROM agent_seq")).scalar() == 0
            session.commit()
    with autocommit(database) as connection:
        assert connection.execute(text(PREPARED)).scalar() == 1

"""Promises 1 and 2 at the door: accepted means committed, one message makes one event, seq follows commit order."""

from __future__ import annotations

import threading
import uuid

import psycopg
import pytest
from sqlalchemy import Engine, text
from sqlalchemy.exc import DBAPIError

from producer.accepting import accept, envelope
from producer.contract import WriteRequest
from producer.queues import Lane
from worker.turns.recording import RecordRefused, record


def test_a_message_becomes_an_event_a_run_and_a_wake_up(accepted, rows):
    (done,) = accepted("I live in Curitiba")
    assert done.outcome == "accepted"
    assert rows("SELECT message, speaker_name FROM memory_events") == [
        {"message": "I live in Curitiba", "speaker_name": "Rafael"}
    ]
    (run,) = rows("SELECT state, stage, lane, seq FROM runs")
    assert run == {"state": "accepted", "stage": "extract", "lane": 0, "seq": 1}
    assert rows("SELECT 1 AS due FROM agent_seq WHERE wake_at <= mandua_now()") == [{"due": 1}]


def test_dup_02_the_same_message_id_and_text_is_a_duplicate_with_the_first_event_id(accepted, rows):
    first = accepted("Adoro café coado.", message_ids=True)
    second = accepted("Adoro café coado.", message_ids=True)
    assert [second[0].event_id, second[0].outcome] == [first[0].event_id, "duplicate"]
    assert len(rows("SELECT * FROM memory_events")) == len(rows("SELECT * FROM runs")) == 1


def test_the_same_message_id_with_another_text_is_a_conflict_and_changes_nothing(database: Engine, rows):
    def one(said: str) -> str:
        request = WriteRequest(agent_id="a", message=said, speaker_name="Rafael", message_id="m1")
        with database.connect() as connection:
            (done,) = accept(connection.connection.driver_connection, [envelope(request)])
            connection.connection.commit()
        return done.outcome

    assert [one("tea"), one("coffee")] == ["accepted", "conflict"]
    assert rows("SELECT message FROM memory_events") == [{"message": "tea"}]


def test_one_batch_may_hold_an_item_twice_and_many_agents(database: Engine, rows):
    def request(agent: str, said: str, message_id: str) -> WriteRequest:
        return WriteRequest(agent_id=agent, message=said, speaker_name="R", message_id=message_id)

    batch = [
        envelope(item, Lane.BULK)
        for item in (request("b", "x", "1"), request("a", "y", "1"), request("b", "x", "1"), request("b", "z", "2"))
    ]
    with database.connect() as connection:
        done = accept(connection.connection.driver_connection, batch)
        connection.connection.commit()
    assert [item.outcome for item in done] == ["accepted", "accepted", "duplicate", "accepted"]
    assert rows("SELECT agent_id, seq, lane FROM runs ORDER BY agent_id, seq") == [
        {"agent_id": "a", "seq": 1, "lane": 1},
        {"agent_id": "b", "seq": 1, "lane": 1},
        {"agent_id": "b", "seq": 2, "lane": 1},
    ]


def test_dup_02_twenty_concurrent_deliveries_of_one_message_make_one_event(database: Engine, rows):
    item = envelope(WriteRequest(agent_id="a", message="oi, moro em Natal", speaker_name="R", message_id="m"))
    data = item.model_dump(mode="json")
    agents: list[str | None] = []
    threads = [threading.Thread(target=lambda: agents.append(record(data))) for _ in range(20)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert (agents.count("a"), agents.count(None)) == (1, 19)
    assert len(rows("SELECT * FROM memory_events")) == len(rows("SELECT * FROM runs")) == 1


def test_seq_has_no_gaps_and_follows_commit_order_under_concurrency(database: Engine, rows):
    def say(name: int) -> None:
        for number in range(10):
            request = WriteRequest(agent_id="a", message=f"{name}.{number}", speaker_name="R")
            record(envelope(request).model_dump(mode="json"))

    threads = [threading.Thread(target=say, args=(name,)) for name in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    found = rows("SELECT r.seq, e.message FROM runs r JOIN memory_events e ON e.id = r.event_id ORDER BY r.seq")
    assert [row["seq"] for row in found] == list(range(1, 61))
    for name in range(6):
        own = [row["message"] for row in found if row["message"].startswith(f"{name}.")]
        assert own == [f"{name}.{number}" for number in range(10)]


def test_a_conflict_from_the_queue_is_kept_as_a_failed_record(database: Engine, rows):
    def data(said: str) -> dict[str, object]:
        request = WriteRequest(agent_id="a", message=said, speaker_name="R", message_id="m1")
        return envelope(request).model_dump(mode="json")

    record(data("tea"))
    with pytest.raises(RecordRefused, match="^conflict$"):
        record(data("coffee"))
    assert [row["cause"] for row in rows("SELECT cause FROM failed_records")] == ["conflict"]


def test_a_malformed_envelope_is_refused_without_quoting_it(database: Engine):
    with pytest.raises(RecordRefused) as caught:
        record({"event_id": str(uuid.uuid4()), "lane": 0, "request": {"message": "a secret"}})
    assert str(caught.value) == "malformed"


@pytest.mark.parametrize(
    "statement",
    [
        "UPDATE memory_events SET message = 'changed'",
        "DELETE FROM memory_events",
        "TRUNCATE memory_events CASCADE",
    ],
)
def test_the_database_itself_refuses_to_change_an_event(database: Engine, accepted, statement: str):
    accepted("kept as it was said")
    with pytest.raises(DBAPIError, match="immutable"), database.begin() as connection:
        connection.execute(text(statement))


def test_the_local_offset_of_a_message_survives(database: Engine, rows):
    request = WriteRequest.parse(
        agent_id="a", message="ontem", speaker_name="R", occurred_at="2025-06-15T23:30:00-03:00"
    )
    record(envelope(request).model_dump(mode="json"))
    (event,) = rows("SELECT occurred_at, offset_minutes FROM memory_events")
    assert event["occurred_at"].isoformat() == "2025-06-16T02:30:00+00:00"
    assert event["offset_minutes"] == -180


def test_an_unknown_time_stays_unknown(database: Engine, rows):
    request = WriteRequest.parse(agent_id="a", message="x", speaker_name="R", occurred_at="unknown")
    record(envelope(request).model_dump(mode="json"))
    assert rows("SELECT occurred_at, offset_minutes FROM memory_events") == [
        {"occurred_at": None, "offset_minutes": None}
    ]


def test_an_import_of_one_agent_does_not_hold_up_another_ones_accept(database: Engine):
    with psycopg.connect(database.url.render_as_string(hide_password=False).replace("+psycopg", "")) as held:
        accept(held, [envelope(WriteRequest(agent_id="busy", message="x", speaker_name="R"))])
        other = envelope(WriteRequest(agent_id="chat", message="oi", speaker_name="R"))
        assert record(other.model_dump(mode="json")) == "chat"

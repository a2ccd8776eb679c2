"""MemoryClient against a real broker and a real database; no worker needed here."""

from __future__ import annotations

import asyncio
import base64
import json
import subprocess
import sys
import threading
import time

import pytest
import redis
from sqlalchemy import Engine, text

from producer import (
    BrokerDown,
    ClientError,
    ConflictError,
    MemoryClient,
    RequestError,
    StillRunning,
    TooBusy,
    WriteRequest,
)
from producer.queues import HIDDEN_ARGUMENTS
from worker.local.valkey import EmbeddedValkey
from worker.turns.recording import record


def queue(broker_url: str, name: str) -> list[dict]:
    """The messages of a queue, oldest first."""
    with redis.Redis.from_url(broker_url) as client:
        return [json.loads(item) for item in reversed(client.lrange(name, 0, -1))]


def record_all(broker_url: str, name: str = "record") -> None:
    """What a worker would do with a queue's messages."""
    for item in queue(broker_url, name):
        (envelope,) = json.loads(base64.b64decode(item["body"]))[0]
        record(envelope)


def test_importing_the_producer_is_quick_and_light():
    code = (
        "import sys, time; t = time.perf_counter(); import producer; s = time.perf_counter() - t;"
        "print(s, sorted(m for m in ('litellm', 'sqlalchemy', 'numpy', 'worker') if m in sys.modules))"
    )
    best = None
    for _ in range(3):
        seconds, _, modules = subprocess.check_output([sys.executable, "-c", code], text=True).partition(" ")
        assert modules.strip() == "[]"
        best = min(best or 9.0, float(seconds))
    print(f"import producer: {best:.2f} s")


def test_a_message_goes_to_its_lanes_queue_with_its_arguments_masked(broker_url: str):
    with MemoryClient(broker_url) as client:
        assert client.enqueue("a", "a secret", "Rafael").status == "queued"
        client.enqueue("a", "old history", "Rafael", bulk=True)
    (live,), (bulk,) = queue(broker_url, "record"), queue(broker_url, "bulk")
    for item in (live, bulk):
        assert item["headers"]["argsrepr"] == HIDDEN_ARGUMENTS
        assert "secret" not in json.dumps(item["headers"])


def test_a_blank_message_sends_nothing(broker_url: str):
    with MemoryClient(broker_url) as client:
        handle = client.enqueue("a", " \u200b ", "Rafael")
    assert (handle.status, handle.event_id) == ("empty", None)
    assert queue(broker_url, "record") == []


def test_bad_input_sends_nothing(broker_url: str):
    with MemoryClient(broker_url) as client, pytest.raises(RequestError, match="agent_id is blank"):
        client.enqueue(" ", "oi", "Rafael")
    assert queue(broker_url, "record") == []


@pytest.mark.parametrize("address", ["redis://127.0.0.1:1/0", "amqp://guest@127.0.0.1:1//"])
def test_a_broker_that_is_down_is_a_clear_error_that_hides_the_address(address: str):
    begun = time.monotonic()
    with MemoryClient(address) as client, pytest.raises(BrokerDown, match="the broker does not answer") as caught:
        client.enqueue("a", "oi", "Rafael")
    assert "127.0.0.1" not in str(caught.value)
    print(f"{address.partition(':')[0]}: {time.monotonic() - begun:.2f} s")


def test_a_channel_that_an_outage_closed_is_a_broker_that_is_down_and_the_next_message_goes(broker_url: str):
    """As kombu leaves it behind when another thread or the poller notices first."""
    with MemoryClient(broker_url) as client:
        client.enqueue("a", "oi", "Rafael")
        assert client._app is not None
        with client._app.producer_pool.acquire(block=True) as producer:
            channel = producer.channel
            channel.connection = channel._pool = None
        with pytest.raises(BrokerDown, match="nothing was sent"):
            client.enqueue("a", "moro em Natal", "Rafael")
        assert client.enqueue("a", "moro em Natal", "Rafael").status == "queued"
    assert len(queue(broker_url, "record")) == 2


def test_waiting_without_a_database_says_what_is_missing(broker_url: str):
    with MemoryClient(broker_url) as client, pytest.raises(ClientError, match="need a database_url"):
        client.write("a", "oi", "Rafael")


def test_a_database_that_is_down_is_a_clear_error(broker_url: str):
    with MemoryClient(broker_url, "postgresql://u:pw@127.0.0.1:1/x") as client:
        with pytest.raises(ClientError, match="the database does not answer") as caught:
            client.write("a", "oi", "Rafael")
        assert "pw@" not in str(caught.value)


def test_accept_in_the_database_needs_no_broker(database: Engine, database_url: str):
    with MemoryClient(database_url=database_url, accept="database") as client:
        handle = client.enqueue("a", "moro em Natal", "Rafael", message_id="m1")
        assert handle.status == "accepted"
        again = client.enqueue("a", "moro em Natal", "Rafael", message_id="m1")
        assert (again.status, again.event_id) == ("duplicate", handle.event_id)
        with pytest.raises(ConflictError, match="'m1' was used for another text"):
            client.enqueue("a", "moro em Recife", "Rafael", message_id="m1")


def test_accepted_waits_for_the_commit(database: Engine, database_url: str, broker_url: str):
    with MemoryClient(broker_url, database_url) as client:
        handle = client.enqueue("a", "moro em Natal", "Rafael")
        assert handle.accepted(0.05) is False
        record_all(broker_url)
        assert handle.accepted(5) is True
        with pytest.raises(StillRunning, match="it is kept"):
            handle.result(0.05)


def test_a_known_message_id_is_a_duplicate_or_a_conflict_before_anything_is_sent(
    database: Engine, database_url: str, broker_url: str
):
    with MemoryClient(broker_url, database_url) as client:
        first = client.enqueue("a", "moro em Natal", "Rafael", message_id="m1")
        record_all(broker_url)
        again = client.enqueue("a", "moro em Natal", "Rafael", message_id="m1")
        assert (again.status, again.event_id) == ("duplicate", first.event_id)
        with pytest.raises(ConflictError):
            client.enqueue("a", "moro em Recife", "Rafael", message_id="m1")
    assert len(queue(broker_url, "record")) == 1


def test_a_conflict_that_only_the_worker_sees_reaches_who_waits(database: Engine, database_url: str, broker_url: str):
    with MemoryClient(broker_url, database_url) as client:
        client.enqueue("a", "moro em Natal", "Rafael", message_id="m1")
        second = client.enqueue("a", "moro em Recife", "Rafael", message_id="m2")
        with database.begin() as connection:
            connection.execute(
                text("INSERT INTO failed_records (event_id, agent_id, cause) VALUES (:e, 'a', 'conflict')"),
                {"e": second.event_id},
            )
        with pytest.raises(ConflictError):
            second.accepted(1)


def test_resend_heals_what_a_broker_lost(database: Engine, database_url: str, own_valkey: EmbeddedValkey):
    """The negative control comes first: without resend, a broker that loses its memory loses the message."""
    requests = [
        WriteRequest(agent_id="a", message=f"m{number}", speaker_name="R", message_id=f"{number}")
        for number in range(5)
    ]
    with MemoryClient(own_valkey.url, database_url) as client:
        handles = client.enqueue_many(requests)
        with redis.Redis.from_url(own_valkey.url) as broker:
            broker.flushall()
        record_all(own_valkey.url, "bulk")
        assert [handle.accepted(0.02) for handle in handles] == [False] * 5

        def late_worker() -> None:
            while len(queue(own_valkey.url, "bulk")) < 10:  # the first sending, flushed below, and the second
                time.sleep(0.02)
            record_all(own_valkey.url, "bulk")

        worker = threading.Thread(target=late_worker)
        worker.start()
        healed = client.enqueue_many(requests, resend=True, timeout=30)
        worker.join()
    assert {handle.status for handle in healed} == {"accepted"}
    with database.connect() as connection:
        assert connection.execute(text("SELECT count(*) FROM memory_events")).scalar() == 5


def test_resend_needs_ids(broker_url: str, database_url: str):
    with MemoryClient(broker_url, database_url) as client, pytest.raises(RequestError, match="message_id on every"):
        client.enqueue_many([WriteRequest(agent_id="a", message="x", speaker_name="R")], resend=True)


def test_a_result_does_not_hold_the_event_loop(broker_url: str):
    async def both() -> str:
        async with asyncio.timeout(10):
            with MemoryClient(broker_url) as client:
                return (await client.aenqueue("a", "oi, moro em Natal", "Rafael")).status

    assert asyncio.run(both()) == "queued"


def test_a_client_can_refuse_or_wait_while_the_workers_lag_behind(database: Engine, database_url: str, broker_url: str):
    with MemoryClient(broker_url, database_url, "database") as backlog:
        backlog.enqueue("a", "moro em Natal", "Rafael", bulk=True)
    with database.begin() as connection:
        connection.execute(text("UPDATE runs SET created_at = created_at - interval '1 minute'"))
    with MemoryClient(broker_url, database_url, max_lag=30) as client:
        assert 59 < client.lag(bulk=True) < 90
        assert client.lag() == 0
        with pytest.raises(TooBusy, match="more than 30 s behind; nothing was sent"):
            client.enqueue("a", "moro em Recife", "Rafael", bulk=True)
        assert client.enqueue("a", "moro em Recife", "Rafael").status == "queued", "a chat does not wait for an import"
    with MemoryClient(broker_url, database_url, max_lag=30, when_lagging="wait") as patient:
        handles: list[object] = []
        thread = threading.Thread(
            target=lambda: handles.append(patient.enqueue("a", "moro em Olinda", "Rafael", bulk=True))
        )
        thread.start()
        thread.join(0.2)
        assert handles == []
        with database.begin() as connection:
            connection.execute(text("UPDATE runs SET created_at = mandua_now()"))
        thread.join(10)
        assert len(handles) == 1
    assert len(queue(broker_url, "bulk")) == 1


def test_a_lag_needs_a_database(broker_url: str):
    with pytest.raises(ValueError, match="max_lag needs a database_url"):
        MemoryClient(broker_url, max_lag=5)

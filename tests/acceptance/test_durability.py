"""Promises 1 to 3 against real kills: nothing lost, nothing doubled, in order."""

from __future__ import annotations

import io
import os
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from uuid import UUID

import psycopg
import pytest

from tests.acceptance.stack import Stack, lives_in, running
from tests.rabbitmq import RabbitMQ
from tests.scripted_model import EMBEDDING, Fault
from worker.local.processes import Backoff, ProcessRunner
from worker.local.procfile import ProcessLine
from worker.local.valkey import EmbeddedValkey

STAGES = ("extract", "resolve", "reconcile", "upsert")


@contextmanager
def stuck_at_upsert(stack: Stack) -> Iterator[None]:
    """Hold every upsert at its first fact."""
    with psycopg.connect(stack.database_url) as connection:
        connection.execute("LOCK TABLE memory_facts IN SHARE ROW EXCLUSIVE MODE")
        yield
        connection.rollback()


def stage_at_work(stack: Stack, agent: str) -> str | None:
    """The stage in which the agent's turn is at work just now."""
    found = stack.rows(
        "SELECT r.stage FROM runs r JOIN agent_turns t ON t.run_id = r.id"
        " WHERE r.agent_id = %s AND t.stage_token IS NOT NULL",
        agent,
    )
    return found[0]["stage"] if found else None


def always_update(payload: dict) -> dict:
    """A reconciliation that replaces the first candidate."""
    return {
        "decisions": [
            {"fact_number": fact["number"], "reason": "moved", "action": "UPDATE",
             "existing_number": fact["existing"][0]["number"]}
            for fact in payload["facts"]
        ]
    }  # fmt: skip


@contextmanager
def one_agent_stuck_in_each_stage(stack: Stack) -> Iterator[dict[str, UUID]]:
    """Four agents, named after the stage in which the second message of each is held; its event by agent."""
    with stack.client() as client:
        for stage in STAGES:
            client.write(stage, "I live in Natal", f"{stage} person")
        holds = [
            stack.model.hold("informed_extraction", lambda payload: payload["speaker"] == "extract person"),
            # Names are embedded in resolve alone, each by itself; the extraction embeds sentences.
            stack.model.hold(EMBEDDING, lambda payload: "Resolveville" in payload["texts"]),
            stack.model.hold("reconciliation", lambda payload: "Reconcileville" in str(payload)),
        ]
        with stuck_at_upsert(stack):
            events = {
                stage: client.enqueue(stage, f"I live in {stage.capitalize()}ville", f"{stage} person").event_id
                for stage in STAGES
            }
            stack.until(lambda: [stage_at_work(stack, stage) for stage in STAGES] == list(STAGES))
            for hold in holds:
                hold.wait_arrived()
            yield events
            for hold in holds:
                hold.release()


def test_kill_9_of_the_worker_in_every_stage_loses_nothing_and_doubles_nothing(stack: Stack):
    stack.model.on("informed_extraction", lives_in)
    stack.model.on("reconciliation", always_update)
    stack.beat()
    victim = stack.worker()
    with one_agent_stuck_in_each_stage(stack) as events:
        victim.kill()
    with stack.client() as client:
        later = {stage: client.enqueue(stage, "I live in Belém", f"{stage} person").event_id for stage in STAGES}
        stack.worker()
        for stage in STAGES:
            results = stack.results([events[stage], later[stage]])
            assert [result.status for result in results] == ["ok", "ok"], stage
            assert stack.facts(stage) == [f"{stage} person lives in Belém"]
            chain = stack.rows("SELECT count(*) AS n FROM memory_facts WHERE agent_id = %s", stage)
            assert (stage, chain[0]["n"]) == (stage, 3)
            turns = stack.rows("SELECT version FROM agent_turns WHERE agent_id = %s", stage)
            assert (stage, turns[0]["version"]) == (stage, 3), "applied once each"
    # The held extraction was sent and its reply lost with the worker: paid twice, and told apart.
    (extract,) = stack.results([events["extract"]])
    assert extract.wasted.total_tokens > 0
    assert extract.tokens_used.total_tokens > 0


def test_ops_06_a_message_that_kills_its_worker_is_parked_and_the_agent_goes_on(stack: Stack):
    """Each time the worker has sent the poison to the model, it is killed; others of the same agent go through."""
    stack.model.on("informed_extraction", lives_in)
    stack.beat()
    with stack.client() as client:
        poison = client.enqueue("a", "I live in Poison", "Rafael")
        fine = client.enqueue("a", "I live in Recife", "Rafael")
        for death in range(3):
            hold = stack.model.hold("informed_extraction", lambda payload: "Poison" in payload["message"])
            worker = stack.worker()
            hold.wait_arrived()
            if death == 2:  # the third time it runs alone, in a process of its own, which is killed by itself
                alone = stack.rows("SELECT worker FROM agent_turns WHERE agent_id = 'a'")[0]["worker"]
                assert int(alone.split(":")[1]) != worker.process.pid
                os.kill(int(alone.split(":")[1]), signal.SIGKILL)
            else:
                worker.kill()
            hold.release()
        bad, good = stack.results([poison.event_id, fine.event_id])
    assert (bad.status, bad.error) == ("failed", "extract: worker_died")
    assert good.status == "ok"
    assert stack.facts("a") == ["Rafael lives in Recife"]


@pytest.fixture
def pool() -> str:
    """The pool of the worker that is kept running."""
    return "threads"


@pytest.fixture
def kept_running(database_url: str, own_broker: EmbeddedValkey | RabbitMQ, pool: str) -> Iterator[Stack]:
    """A worker and beat under the runner that starts them again, on a broker that the test may kill."""
    with running(database_url, own_broker.url) as stack:
        lines = [
            ProcessLine("worker", f"celery -A worker.app worker --pool {pool} --concurrency 4 --without-gossip"
                        " --without-mingle -Q turns,record,live,ahead,maintenance,bulk,bulk_ahead"),
            ProcessLine("beat", "celery -A worker.app beat"),
        ]  # fmt: skip
        environment = {**os.environ, **stack.environment}
        output = io.BytesIO()
        with ProcessRunner(
            lines, environment, cwd=Path(__file__).parents[2], output=output, backoff=Backoff(first=0.1, longest=1.0)
        ):
            yield stack


@pytest.mark.parametrize("pool", ["threads", "prefork"])
def test_kill_9_and_restart_of_the_broker_without_touching_the_workers_loses_nothing(
    kept_running: Stack, own_broker: EmbeddedValkey | RabbitMQ, pool: str
):
    stack = kept_running
    stack.model.on("informed_extraction", lives_in)
    with stack.client() as client:
        client.write("a", "I live in Natal", "Rafael", timeout=60)
        with stack.model.hold("informed_extraction") as hold:
            handles = [client.enqueue(agent, "I live in Recife", "Rafael") for agent in ("a", "b", "c")]
            assert all(handle.accepted(20) for handle in handles)
            hold.wait_arrived()
            own_broker.kill()
        own_broker.start()
        results = stack.results([handle.event_id for handle in handles], 60)
        assert {result.status for result in results} == {"ok"}
        # And what comes afterwards finds a broker and workers that know each other again.
        assert client.write("d", "I live in Olinda", "Rafael", timeout=60).status == "ok"
    assert stack.rows("SELECT count(*) AS n FROM memory_events")[0]["n"] == 5
    assert stack.rows("SELECT sum(version) AS n FROM agent_turns")[0]["n"] == 5


def test_los_01_a_flushed_broker_forgets_nothing_that_was_accepted(stack: Stack):
    """The sweeper over Postgres finds what no message will ever wake."""
    stack.model.on("informed_extraction", lives_in)
    with stack.client("database") as client:
        handles = [client.enqueue(f"agent{number}", "I live in Natal", "Rafael") for number in range(5)]
    stack.forget_broker()
    stack.worker()
    stack.beat()
    assert {result.status for result in stack.results([handle.event_id for handle in handles])} == {"ok"}


def test_ops_02_a_429_in_the_middle_waits_as_told_and_asks_only_for_what_is_missing(stack: Stack):
    stack.model.on("informed_extraction", lives_in)
    stack.beat()
    stack.worker()
    with stack.client() as client:
        client.write("a", "I live in Natal", "Rafael")
        stack.model.queue("informed_extraction", Fault.status(429, retry_after=1))
        result = client.write("a", "I live in Recife", "Rafael")
    assert (result.status, result.tokens_used.total_tokens > 0) == ("ok", True)
    calls = [call for call in stack.model.calls if call.task == "informed_extraction"]
    assert len(calls) == 3
    assert calls[2].at - calls[1].at >= 1.0, "Retry-After is honoured"
    assert stack.rows("SELECT failures FROM runs") == [{"failures": 0}] * 2


def test_sigterm_drains_and_leaves_nothing_behind(stack: Stack):
    stack.model.on("informed_extraction", lives_in)
    worker = stack.worker()
    with stack.client() as client, stack.model.hold("informed_extraction") as hold:
        handle = client.enqueue("a", "I live in Natal", "Rafael")
        hold.wait_arrived()
        stopping = threading.Thread(target=worker.stop)
        stopping.start()
        worker.wait_for("[Ww]arm shutdown")
        hold.release()
        stopping.join()
        assert stack.rows("SELECT name FROM workers") == []
        assert stack.rows("SELECT stage FROM runs")[0]["stage"] != "extract", "the paid call was kept"
        stack.beat()
        stack.worker()
        assert handle.result(30).status == "ok"
    assert stack.model.count("informed_extraction") == 1

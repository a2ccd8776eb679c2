"""Threads are recommended, prefork works too: the same messages, the same memory, and a killed child loses nothing."""

from __future__ import annotations

import os
import signal

import psutil
import pytest

from tests.acceptance.stack import Stack, lives_in


@pytest.mark.parametrize("pool", ["threads", "prefork"])
def test_ops_01_many_messages_on_either_pool_and_no_event_loop_is_ever_closed(stack: Stack, pool: str):
    stack.model.on("informed_extraction", lives_in)
    worker = stack.worker(pool=pool, threads=2)
    with stack.client() as client:
        handles = [client.enqueue(f"agent{n % 4}", f"I live in City{n}", "Rafael") for n in range(16)]
        results = stack.results([handle.event_id for handle in handles])
    assert {result.status for result in results} == {"ok"}
    assert "Event loop is closed" not in worker.output
    assert "different event loop" not in worker.output


def test_kill_9_of_a_prefork_child_loses_nothing(stack: Stack):
    stack.model.on("informed_extraction", lives_in)
    stack.beat()
    worker = stack.worker(pool="prefork", threads=1)
    with stack.client() as client:
        with stack.model.hold("informed_extraction") as hold:
            handle = client.enqueue("a", "I live in Natal", "Rafael")
            hold.wait_arrived()
            (child,) = psutil.Process(worker.process.pid).children()
            os.kill(child.pid, signal.SIGKILL)
        assert handle.result(60).status == "ok"
    assert stack.facts("a") == ["Rafael lives in Natal"]

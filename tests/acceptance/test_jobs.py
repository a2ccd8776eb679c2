"""Background jobs in real processes: planned by beat, killed with -9 in the middle, beside fifty live messages."""

from __future__ import annotations

import pytest

from tests.acceptance.stack import Stack, lives_in

DONE = "SELECT job, outcome FROM maintenance_runs WHERE finished_at IS NOT NULL AND agent_id = 'a'"
JOBS = {"entity_profile": "consolidate_entity_profiles", "entity_summary": "refresh_summaries"}


def job_done(stack: Stack, job: str) -> bool:
    """Whether a run of the job has ended, well, for agent a."""
    found = [row["outcome"] for row in stack.rows(DONE) if row["job"] == job]
    assert "failed" not in found
    return bool(found)


def always_update(payload: dict) -> dict:
    """A reconciliation that replaces the first candidate."""
    return {
        "decisions": [
            {"fact_number": fact["number"], "reason": "moved", "action": "UPDATE",
             "existing_number": fact["existing"][0]["number"]}
            for fact in payload["facts"]
        ]
    }  # fmt: skip


@pytest.fixture
def planned(stack: Stack) -> Stack:
    """A stack whose beat plans jobs every second."""
    stack.settings["MANDUA_JOB_PLAN_SEC"] = "1"
    stack.model.on("informed_extraction", lives_in)
    stack.model.on("reconciliation", always_update)
    stack.model.on("entity_profile", {"text": "Rafael lives somewhere in Brazil."})
    stack.model.on("entity_summary", {"text": "Rafael has moved lately."})
    return stack


@pytest.mark.parametrize("task", JOBS)
def test_kill_9_in_the_middle_of_a_job_ends_as_without(planned: Stack, task: str):
    hold = planned.model.hold(task)
    victim = planned.worker()
    with planned.client() as client:
        client.write("a", "I live in Natal", "Rafael", timeout=60)
    planned.beat()
    hold.wait_arrived()
    victim.kill()
    hold.release()
    planned.worker()
    planned.until(lambda: all(job_done(planned, job) for job in JOBS.values()), 60)
    (rafael,) = planned.rows("SELECT * FROM memory_entities WHERE canonical_key = 'person:rafael'")
    assert (rafael["profile_text"], rafael["profile_source"]) == ("Rafael lives somewhere in Brazil.", "job")
    assert rafael["summary_text"] == "Rafael has moved lately."
    (run,) = planned.rows("SELECT * FROM maintenance_runs WHERE job = %s AND agent_id = 'a'", JOBS[task])
    assert (run["outcome"], run["items"]) == ("done", 1)
    assert planned.rows("SELECT 1 FROM runs WHERE status = 'failed'") == []


def test_a_job_and_fifty_live_messages_at_once_lose_nothing_keep_order_and_wait_a_step(planned: Stack):
    planned.worker()
    with planned.client() as client, planned.model.hold("entity_profile") as hold:
        client.write("a", "I live in Natal", "Rafael", timeout=60)
        planned.beat()
        hold.wait_arrived()
        handles = [client.enqueue("a", f"I live in Place{number}", "Rafael") for number in range(50)]
        assert all(handle.accepted(30) for handle in handles)
        hold.release()
        results = planned.results([handle.event_id for handle in handles], 120)
    assert {result.status for result in results} == {"ok"}
    assert planned.facts("a") == ["Rafael lives in Place49"]
    steps = planned.rows(
        "SELECT count(*) AS n FROM runs r WHERE r.kind = 'job' AND r.finished_at BETWEEN"
        " (SELECT min(m.finished_at) FROM runs m WHERE m.kind = 'message' AND m.seq > 1)"
        " AND (SELECT max(m.finished_at) FROM runs m WHERE m.kind = 'message')"
    )
    assert steps == [{"n": 0}], "no step of a job between messages that wait"
    chain = planned.rows(
        "SELECT count(*) AS n FROM memory_facts n JOIN memory_facts o ON o.id = n.supersedes_fact_id"
        " WHERE n.valid_from >= o.valid_from"
    )
    assert chain == [{"n": 50}]
    planned.until(lambda: job_done(planned, "consolidate_entity_profiles"), 60)

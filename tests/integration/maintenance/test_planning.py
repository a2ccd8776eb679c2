"""Planning and turns: a run per agent and job however many plan, behind all messages, a step at a time."""

from __future__ import annotations

import json
from concurrent.futures import ThreadPoolExecutor

import pytest
from sqlalchemy import Engine, text

from producer.queues import Lane, Stage
from tests.integration.maintenance.conftest import RunJob, one_step, take_turn
from tests.scripted_model import ScriptedModel
from worker.cli.app import run as command
from worker.maintenance import profiles
from worker.maintenance.planning import PlacedRun, place, plan_jobs
from worker.read.ledger import ledger
from worker.settings import settings
from worker.turns import job_steps
from worker.turns.dispatch import dispatch
from worker.turns.running import Applied, Moved, Parked, Waiting, run_stage
from worker.turns.sweep import due_agents

PROFILES = "consolidate_entity_profiles"
UNFINISHED = "SELECT agent_id, job, lane FROM runs WHERE kind = 'job' AND finished_at IS NULL ORDER BY agent_id, seq"


@pytest.fixture
def two_agents(process, model: ScriptedModel) -> ScriptedModel:
    """Agents a and b, with something to do for most jobs."""
    for agent in ("a", "b"):
        process("I live in Curitiba", agent)
        process("I work at Orion Tech", agent)
    return model


def to_the_end(agent: str) -> None:
    """All that waits for the agent."""
    while (given := dispatch(agent)).run_id is not None:
        for stage in given.stages:
            outcome = run_stage(stage, given.run_id, given.fence)
            assert isinstance(outcome, (Applied, Moved)), outcome


def test_what_is_due_gets_one_run_in_the_order_of_the_schedule_however_often_it_is_planned(two_agents, rows):
    assert plan_jobs() == ["a", "b"]
    placed = rows(UNFINISHED)
    jobs = ["dedup_entities", "dedup_facts", "score_importance", PROFILES, "refresh_summaries"]
    assert [row["job"] for row in placed if row["agent_id"] == "a"] == jobs
    assert {row["lane"] for row in placed} == {Lane.JOB}
    assert plan_jobs() == []
    assert rows(UNFINISHED) == placed


def test_two_beats_at_once_place_each_run_once(two_agents, rows):
    wanted = [PlacedRun(agent, PROFILES) for agent in ("b", "a")]
    with ThreadPoolExecutor(8) as pool:
        placed = [run for done in pool.map(lambda _: place(wanted), range(8)) for run in done]
        list(pool.map(lambda _: plan_jobs(), range(8)))
    assert sorted(run.agent_id for run in placed) == ["a", "b"]
    assert rows("SELECT 1 FROM runs WHERE finished_at IS NULL GROUP BY agent_id, job HAVING count(*) > 1") == []


def test_all_jobs_once_and_then_nothing_is_due_until_the_clock_or_the_facts_move(two_agents, rows, later, process):
    plan_jobs()
    to_the_end("a")
    to_the_end("b")
    assert plan_jobs() == []
    calls = len(two_agents.calls)
    later("2 hours")
    assert plan_jobs() == [], "the interval is over, but nothing is due"
    assert len(two_agents.calls) == calls
    process("I have a dog called Bidu", "a")
    plan_jobs()
    assert {(row["agent_id"], row["job"]) for row in rows(UNFINISHED)} == {("a", "dedup_facts"), ("a", PROFILES)}
    stale = "SELECT 1 FROM memory_entities WHERE facts_changed_at > coalesce(profile_refreshed_at, '-infinity')"
    to_the_end("a")
    assert rows(stale) == []


def test_within_its_interval_a_job_is_not_planned_again_and_0_switches_it_off(
    two_agents, rows, later, process, monkeypatch: pytest.MonkeyPatch
):
    plan_jobs()
    to_the_end("a")
    to_the_end("b")
    process("I have a dog", "a")
    assert plan_jobs() == []
    monkeypatch.setenv("MANDUA_JOB_DEDUP_FACTS_SEC", "0")
    settings.cache_clear()
    later("2 hours")
    plan_jobs()
    assert {row["job"] for row in rows(UNFINISHED)} == {PROFILES}


def test_a_message_goes_before_the_next_step_of_a_job(two_agents, rows, accepted, monkeypatch):
    monkeypatch.setattr(profiles, "PART_TOKENS", 1)  # several steps
    place([PlacedRun("a", PROFILES)])
    assert isinstance(one_step(), Applied)
    accepted("I have a cat", agent="a")
    given = take_turn()
    assert given.stages[0] is Stage.EXTRACT
    for stage in given.stages:
        run_stage(stage, given.run_id, given.fence)
    assert take_turn().stages == (Stage.JOB,), "the job goes on where it was"


def test_while_a_step_is_out_at_the_model_a_message_waits_for_that_step_only(two_agents, accepted):
    place([PlacedRun("a", PROFILES)])
    held = two_agents.hold("entity_profile")
    given = take_turn()
    with ThreadPoolExecutor(1) as pool:
        step = pool.submit(run_stage, Stage.JOB, given.run_id, given.fence)
        held.wait_arrived()
        accepted("I have a cat", agent="a")
        assert dispatch("a").run_id is None, "the turn is the step's"
        held.release()
        assert isinstance(step.result(30), Applied)
    assert take_turn().stages[0] is Stage.EXTRACT


def test_a_run_has_its_share_and_the_rest_is_planned_at_once(two_agents, rows, monkeypatch, run_job: RunJob):
    monkeypatch.setattr(profiles, "PART_TOKENS", 1)
    monkeypatch.setattr(job_steps, "STEPS_A_RUN", 1)
    assert run_job(PROFILES)["outcome"] == "more"
    plan_jobs()
    assert {"a"} <= {row["agent_id"] for row in rows(UNFINISHED) if row["job"] == PROFILES}


def test_an_error_of_ours_parks_the_run_after_two_tries_says_so_and_holds_nobody_up(
    two_agents, rows, monkeypatch, database: Engine, run_job: RunJob
):
    def broken(*_: object) -> None:
        raise RuntimeError("Rafael lives in Curitiba")

    with monkeypatch.context() as patch:
        patch.setattr(profiles, "ask", broken)
        place([PlacedRun("a", PROFILES)])
        assert isinstance(one_step(), Waiting)
        with database.begin() as connection:
            connection.execute(text("UPDATE runs SET ready_at = NULL WHERE kind = 'job'"))
        parked = one_step()
    assert isinstance(parked, Parked)
    assert "Curitiba" not in parked.error_code
    assert rows("SELECT outcome, cause FROM maintenance_runs") == [{"outcome": "failed", "cause": "own_error"}]
    with database.connect() as connection:
        assert ledger(connection)["by_status"]["failed"] == 1
    assert run_job(PROFILES)["outcome"] == "done"
    with database.connect() as connection:
        assert ledger(connection)["by_status"]["failed"] == 0, "it has run since"


def test_a_lost_task_of_a_job_is_found_by_the_sweeper(two_agents, later):
    place([PlacedRun("a", PROFILES)])
    later("5 minutes")
    assert "a" in due_agents()


def test_the_command_lists_previews_and_places(
    two_agents, rows, broker_url: str, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
):
    monkeypatch.setenv("MANDUA_BROKER_URL", broker_url)
    assert command(["jobs", "list", "--json"]) == 0
    listed = {row["job"]: row for row in json.loads(capsys.readouterr().out)["jobs"]}
    assert listed[PROFILES]["agents_due"] == 2
    assert command(["jobs", "run", PROFILES, "--agent", "a", "--dry-run", "--json"]) == 0
    shown = json.loads(capsys.readouterr().out)
    assert "person:rafael" in shown["agents"]["a"]
    assert rows(UNFINISHED) == []
    assert command(["jobs", "run", PROFILES, "--agent", "a", "--json"]) == 0
    assert [(row["agent_id"], row["job"]) for row in rows(UNFINISHED)] == [("a", PROFILES)]
    assert command(["jobs", "run", "no_such_job"]) == 2

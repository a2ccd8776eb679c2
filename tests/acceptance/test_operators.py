"""What the people who run it have in hand at night: a failure is seen, mended, replayed, no text is shown."""

from __future__ import annotations

import json
import signal
import urllib.request
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

from producer.queues import is_rabbitmq
from tests.acceptance.command import Mandua
from tests.acceptance.stack import Stack, lives_in
from tests.scripted_model import Fault

SECRET = "Xyloquartz"


@pytest.fixture
def mandua(stack: Stack, tmp_path: Path) -> Mandua:
    """The command on the stack's servers."""
    return Mandua(tmp_path, stack.environment)


def refused(stack: Stack, agent: str = "ana@example.org") -> UUID:
    """The event of a message that a model refuses."""
    stack.model.queue("informed_extraction", Fault.refusal(f"I will not talk about {SECRET}"))
    with stack.client() as client:
        handle = client.enqueue(agent, f"I live in {SECRET} City", "Rafael")
        assert handle.result(40).status == "failed"
    assert handle.event_id is not None
    return handle.event_id


def samples(text: str) -> dict[str, float]:
    """The lines of an exposition by name and labels."""
    lines = [line for line in text.splitlines() if line and not line.startswith("#")]
    return {name: float(value) for name, _, value in (line.rpartition(" ") for line in lines)}


def logged(output: str) -> list[dict[str, Any]]:
    """The JSON lines of a process."""
    return [json.loads(line) for line in output.splitlines() if line.startswith("{")]


@pytest.mark.timeout(300)  # it calls the command sixteen times
def test_a_failure_is_seen_mended_and_replayed_once(stack: Stack, mandua: Mandua) -> None:
    worker = stack.worker()
    beat = stack.beat()
    event = refused(stack)
    stack.model.on("informed_extraction", lives_in)
    shown = [mandua.run("failures"), mandua.run("status"), mandua.run("watch", "--once")]

    chosen = mandua.run("failures", "--stage", "extract", "--cause", "refused", "--since", "1h", "--json")
    (failure,) = chosen.json["failures"]
    assert (failure["event_id"], failure["agent_id"], failure["attempts"]) == (str(event), "ana@example.org", 1)
    assert mandua.run("failures", "--stage", "resolve", "--json").json == {"failures": []}
    told = mandua.run("status", "--json")
    assert told.json["runs"]["failed"] == [{"stage": "extract", "cause": "refused", "count": 1}]
    assert told.json["today"]["runs"] == {"failed": 1}
    assert told.json["lag_sec"]["live"] == 0.0
    metrics = mandua.run("metrics", "--once")
    assert samples(metrics.out)['mandua_parked_runs{cause="refused",stage="extract"}'] == 1

    counted = mandua.run("replay", "--cause", "refused", "--dry-run", "--json").json
    assert counted == {"replayed": 1, "from_stage": {"extract": 1}, "agents": 1, "dry_run": True}
    done = mandua.run("replay", "--event", str(event), "--json")
    assert (done.code, done.json["replayed"]) == (0, 1)
    with stack.client() as client:
        result = stack.until(lambda: (found := client.result(event)) and found.status == "ok" and found)
    assert [fact.fact_text for fact in result.facts_added] == [f"Rafael lives in {SECRET} City"]
    assert len(stack.facts("ana@example.org")) == 1

    again = mandua.run("replay", "--event", str(event), "--json")
    assert (again.code, again.json["replayed"]) == (1, 0)
    assert mandua.run("failures", "--json").json == {"failures": []}
    after = samples(mandua.run("metrics", "--once").out)
    assert after['mandua_runs_total{stage="extract",status="failed"}'] == 1
    assert after['mandua_runs_total{stage="",status="ok"}'] == 1
    assert after['mandua_stage_seconds_count{stage="upsert"}'] == 1
    assert after["mandua_tokens_today"] > 0
    assert after['mandua_workers{state="alive"}'] == 1
    assert stack.until(lambda: mandua.run("doctor", "--json").json["ok"])

    everything = [told, metrics, done, again, *shown]
    assert [item for item in everything if SECRET in item.out + item.err] == []
    assert SECRET not in worker.output + beat.output


def test_a_stage_logs_its_life_with_ids_and_no_agents_name(stack: Stack) -> None:
    worker = stack.worker()
    event = refused(stack)
    stack.model.on("informed_extraction", lives_in)
    with stack.client() as client:
        fine = client.enqueue("ana@example.org", f"I live in {SECRET} Town", "Rafael")
        assert fine.result(40).status == "ok"
    lines = stack.until(
        lambda: [line for line in logged(worker.output) if line.get("event") == "stage_done"][3:] and
        [line for line in logged(worker.output) if str(line.get("event", "")).startswith("stage_")]
    )  # fmt: skip
    parked = next(line for line in lines if line["event"] == "stage_parked")
    assert (parked["cause"], parked["stage"]) == ("refused", "extract")
    ends = [(line["stage"], line["ms"] > 0) for line in lines if line["event"] == "stage_done"]
    assert ends == [(stage, True) for stage in ("extract", "resolve", "reconcile", "upsert")]
    assert {len(line["agent"]) for line in lines} == {12}, "hashed"
    assert {"run", "stage", "agent", "timestamp", "level"} <= set(lines[0])
    assert str(event) in {line["event_id"] for line in lines}
    assert "ana@example.org" not in "".join(json.dumps(line) for line in lines)


def test_one_process_serves_the_metrics_of_all_workers(stack: Stack, mandua: Mandua) -> None:
    process = mandua.start("metrics", "--port", "0")
    try:
        assert process.stderr is not None
        address = process.stderr.readline().rpartition(" ")[2].strip()
        with urllib.request.urlopen(address, timeout=20) as answer:
            found = samples(answer.read().decode())
        assert found["mandua_database_up"] == 1
        assert found['mandua_workers{state="alive"}'] == 0
        assert found['mandua_queue_messages{queue="live"}'] == 0
        process.send_signal(signal.SIGTERM)
        assert process.wait(20) == 143
    finally:
        process.kill()
        process.communicate()


def test_doctor_warns_of_what_will_hurt_tonight(stack: Stack, mandua: Mandua) -> None:
    long_ago = "mandua_now() - interval '10 minutes'"
    stack.rows(f"INSERT INTO workers (name, heartbeat_at) VALUES ('gone', {long_ago}) RETURNING 1")
    stack.rows(f"INSERT INTO ledger_marks (name, at) VALUES ('sweep', {long_ago}) RETURNING 1")
    stack.rows(
        "INSERT INTO model_health (model, cool_until, cause)"
        " VALUES ('m', mandua_now() + interval '1 minute', 'model_unavailable') RETURNING 1"
    )
    with stack.client("database") as client:
        client.enqueue("a", f"I live in {SECRET}", "Rafael")
    stack.rows("UPDATE runs SET cause = 'model_unavailable' RETURNING 1")
    late = Mandua(mandua.home, {**mandua.environment, "MANDUA_LEASE_SEC": "900"})
    found = late.run("doctor", "--json")
    states = {check["name"]: check for check in found.json["checks"]}
    warned = {name for name, check in states.items() if check["state"] == "warning"}
    assert warned >= {"silent workers", "beat", "breakers", "waiting runs", "workers"}
    assert all(states[name]["remedy"] for name in warned)
    assert states["clock of the database"]["state"] == "ok"
    if is_rabbitmq(stack.broker_url):
        assert (states["queues"]["state"], states["dead letters"]["state"]) == ("ok", "ok")
    else:
        assert (states["visibility timeout"]["state"], states["clock of the broker"]["state"]) == ("warning", "ok")
    assert SECRET not in found.out
    status = mandua.run("status")
    assert "waiting by cause: model_unavailable 1" in status.out
    assert "left alone: m (model_unavailable)" in status.out


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["replay"], "say what to replay"),
        (["replay", "--since", "yesterday"], "--since is no time"),
        (["failures", "--stage", "dinner"], "--stage dinner is no stage"),
        (["replay", "--event", "17"], "--event"),
    ],
)
def test_wrong_use_is_one_line(tmp_path: Path, arguments: list[str], said: str) -> None:
    ended = Mandua(tmp_path).run(*arguments)
    assert ended.code == 2
    assert said in ended.complaint

"""What all workers share: pauses, breakers, a bucket of calls, and what may be spent."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from sqlalchemy import Engine, text

from producer.queues import Lane, Stage
from tests.acceptance.stack import lives_in
from tests.scripted_model import Fault, ScriptedModel
from worker import settings
from worker.llm.provider import Cause, ModelError
from worker.turns import limits
from worker.turns.dispatch import dispatch
from worker.turns.running import Applied, Moved, Waiting, run_stage


@pytest.fixture
def configured(monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., None]]:
    """Change settings of this process."""

    def do(**values: str) -> None:
        for name, value in values.items():
            monkeypatch.setenv(f"MANDUA_{name}", value)
        settings.settings.cache_clear()

    yield do
    settings.settings.cache_clear()


@pytest.fixture
def extract(accepted: Any, model: ScriptedModel) -> Callable[[str], Any]:
    """Accept a message of an agent and run its extraction."""
    model.on("informed_extraction", lives_in)

    def do(agent: str) -> Any:
        accepted("I live in Natal", agent=agent)
        given = dispatch(agent)
        return run_stage(Stage.EXTRACT, given.run_id, given.fence)

    return do


def test_a_429_pauses_the_model_for_everybody_as_long_as_it_said(extract, model: ScriptedModel, later):
    model.queue("informed_extraction", Fault.status(429, retry_after=30))
    first = extract("a")
    assert isinstance(first, Waiting)
    assert first.delay >= 30
    second = extract("b")
    assert (second.cause, model.count()) == ("rate_limited", 1), "the other agent's call was not made"
    assert 25 < second.delay <= 60
    later("31 seconds")
    assert extract("c") == Moved("c")


def test_an_answer_that_was_under_way_does_not_end_a_429s_pause(database: Engine, rows):
    limits.trip(ModelError(Cause.RATE_LIMITED, retry_after=30, model="m"))
    limits.note_answer("m")
    assert rows("SELECT cause FROM model_health WHERE cool_until > mandua_now()") == [{"cause": "rate_limited"}]


@pytest.mark.parametrize("fault", [Fault.status(401), Fault.status(404), Fault.status(429, code="insufficient_quota")])
def test_a_model_that_cannot_be_used_opens_a_breaker_and_nothing_is_parked(
    extract, model: ScriptedModel, rows, later, fault: Fault
):
    model.on("informed_extraction", fault)
    assert extract("a").cause == "model_unavailable"
    assert extract("b").cause == "model_unavailable"
    assert model.count() == 1, "nobody else is sent into it"
    assert rows("SELECT DISTINCT state, cause FROM runs") == [{"state": "accepted", "cause": "model_unavailable"}]
    later("10 minutes")
    assert extract("c").cause == "model_unavailable"
    assert extract("d").cause == "model_unavailable"
    assert model.count() == 2, "one tries, the others wait for what it finds"
    model.on("informed_extraction", lives_in)
    later("20 minutes")
    assert extract("e") == Moved("e")
    assert extract("f") == Moved("f")
    assert rows("SELECT cause FROM model_health") == [{"cause": None}]


def test_a_breakers_pause_grows_while_the_model_stays_unusable(database: Engine, rows):
    pauses = []
    for _ in range(4):
        limits.trip(ModelError(Cause.MODEL_UNAVAILABLE, model="m"))
        pauses += [round(row["s"]) for row in rows(
            "SELECT extract(epoch FROM cool_until - mandua_now()) AS s FROM model_health")]  # fmt: skip
    assert pauses == sorted(pauses)
    assert pauses[-1] > pauses[0]


def test_a_refusal_of_one_message_pauses_nobody(extract, model: ScriptedModel, rows):
    model.queue("informed_extraction", Fault.refusal())
    assert extract("a").cause == "refused"
    assert extract("b") == Moved("b")


def test_the_bucket_lets_a_burst_through_and_then_gives_places(database: Engine, configured, rows):
    configured(LLM_CALLS_PER_SEC="1", LLM_BURST="3")
    chosen = settings.settings()
    waits: list[float] = []
    original = limits.time.sleep
    limits.time.sleep = waits.append  # type: ignore[assignment]
    try:
        for _ in range(6):
            limits.take_token("m", chosen)
        with pytest.raises(ModelError) as full:
            limits.take_token("m", chosen)
    finally:
        limits.time.sleep = original
    assert full.value.cause is Cause.RATE_LIMITED
    assert [round(wait) for wait in waits] == [1, 2, 3], "three at once, then a place a second"


def test_without_a_limit_no_statement_is_spent_on_it(database: Engine, rows):
    limits.take_token("m", settings.settings())
    assert rows("SELECT * FROM model_health") == []


def test_what_was_spent_is_counted_once_a_day_and_agent(extract, model: ScriptedModel, rows):
    extract("a")
    (spent,) = rows("SELECT agent_id, input_tokens, output_tokens FROM spending")
    (run,) = rows("SELECT usage FROM runs")
    assert spent["input_tokens"] == run["usage"]["input_tokens"] > 0
    model.queue("informed_extraction", "no json at all")
    assert extract("b").cause == "bad_reply"
    assert rows("SELECT input_tokens > 0 AS paid FROM spending WHERE agent_id = 'b'") == [{"paid": True}]


@pytest.mark.parametrize("name", ["AGENT_DAILY_TOKENS", "DAILY_TOKENS"])
def test_over_its_limit_a_run_waits_until_tomorrow_and_is_not_parked(
    extract, configured, accepted, model: ScriptedModel, rows, later, monkeypatch: pytest.MonkeyPatch, name: str
):
    monkeypatch.setattr(limits, "_everybody", limits._Remembered())
    configured(**{name: "1"})
    assert extract("a") == Moved("a"), "the limit is not reached yet"
    monkeypatch.setattr(limits, "_everybody", limits._Remembered())
    accepted("I live in Recife", agent="a")
    given = dispatch("a")
    assert given.run_id is None, "the first one is still under way"
    with_it = rows("SELECT r.id, t.fence FROM runs r JOIN agent_turns t ON t.run_id = r.id WHERE r.agent_id = 'a'")[0]
    outcome = run_stage(Stage.RESOLVE, with_it["id"], with_it["fence"])
    assert isinstance(outcome, Waiting)
    assert (outcome.cause, outcome.delay <= 300) == ("spend_limit", True)
    assert rows("SELECT DISTINCT state FROM runs") == [{"state": "accepted"}]
    later("25 hours")
    monkeypatch.setattr(limits, "_everybody", limits._Remembered())
    again = dispatch("a")
    assert run_stage(Stage.RESOLVE, again.run_id, again.fence) == Moved("a")


def test_an_apply_is_never_held_up_by_money(extract, configured, rows, database: Engine, monkeypatch):
    monkeypatch.setattr(limits, "_everybody", limits._Remembered())
    extract("a")
    (turn,) = rows("SELECT t.run_id, t.fence FROM agent_turns t")
    for stage in (Stage.RESOLVE, Stage.RECONCILE):
        run_stage(stage, turn["run_id"], turn["fence"])
    configured(AGENT_DAILY_TOKENS="0")
    assert run_stage(Stage.UPSERT, turn["run_id"], turn["fence"]) == Applied("a", "ok")
    assert json.dumps(rows("SELECT status FROM runs")) == '[{"status": "ok"}]'
    with database.connect() as connection:
        assert connection.execute(text("SELECT count(*) FROM memory_facts")).scalar() == 1


def test_an_import_that_has_spent_its_limit_waits_until_that_is_raised(
    accepted, model: ScriptedModel, rows, database: Engine, later
):
    model.on("informed_extraction", lives_in)
    accepted("I live in Natal", agent="a", lane=Lane.BULK)
    accepted("I live in Recife", agent="b", lane=Lane.BULK)
    with database.begin() as connection:
        connection.execute(text("INSERT INTO imports (id, path, options, limit_usd) VALUES"
                                " (gen_random_uuid(), 'x', '{}', 0.5)"))  # fmt: skip
        connection.execute(text("UPDATE runs SET import_id = (SELECT id FROM imports)"
                                ", usage = '{\"cost_usd\": 0.25}'"))  # fmt: skip
    given = dispatch("a")
    outcome = run_stage(Stage.EXTRACT, given.run_id, given.fence)
    assert isinstance(outcome, Waiting)
    assert (outcome.cause, outcome.delay) == ("cost_limit", 60.0)
    assert model.count() == 0
    assert rows("SELECT state, failures FROM runs WHERE agent_id = 'a'") == [{"state": "accepted", "failures": 0}]
    with database.begin() as connection:  # as `--resume --limit-cost 1` does
        connection.execute(text("UPDATE imports SET limit_usd = 1"))
    later("2 minutes")
    given = dispatch("a")
    assert run_stage(Stage.EXTRACT, given.run_id, given.fence) == Moved("a")

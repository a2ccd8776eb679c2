"""Consecutive messages of a backlog in one turn: the same memory as one by one, with fewer calls and fewer tasks."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import pytest
from sqlalchemy import Engine, text

from producer.accepting import accept, envelope
from producer.contract import WriteRequest
from producer.queues import Lane, Stage
from tests.integration.turns.test_batches import FACTS, work
from tests.scripted_model import Call, Fault, ScriptedModel, tokens_of
from worker.llm.offline import OfflineProvider
from worker.turns.dispatch import Dispatched, dispatch
from worker.turns.running import Applied, Stale, Waiting, run_stage
from worker.turns.sweep import due_agents

Rows = Callable[..., list[dict[str, Any]]]
TASK, NAMES_TASK = "reconciliation", "entity_resolution"
NAMES = ("Rafael", "Ana", "Clara", "Bruno")

ENDS = """
SELECT e.message, r.state, r.status, r.stage, r.cause, r.starts FROM runs r JOIN memory_events e ON e.id = r.event_id
 WHERE r.agent_id = :agent AND r.seq > :after ORDER BY r.seq
"""


pytestmark = pytest.mark.usefixtures("no_long_waits")


@pytest.fixture
def handed_in(database: Engine) -> Callable[..., None]:
    """Hand (speaker, text) pairs in, an hour apart, in a lane of an agent."""

    def do(agent: str, turn: int, day: int, *said: tuple[str, str], lane: Lane = Lane.BULK) -> None:
        requests = [
            WriteRequest.parse(
                agent_id=agent, message=text, speaker_name=speaker, occurred_at=f"2024-05-{day:02}T{hour:02}:00:00Z",
                config_overrides={"bulk_turn": turn, "bulk_batch": 1},
            )
            for hour, (speaker, text) in enumerate(said)
        ]  # fmt: skip
        with database.connect() as connection:
            accept(connection.connection.driver_connection, [envelope(request, lane) for request in requests])
            connection.connection.commit()

    return do


@pytest.fixture
def told(handed_in: Callable[..., None]) -> Callable[..., None]:
    """The same, and work until all is done."""

    def do(agent: str, turn: int, day: int, *said: tuple[str, str]) -> None:
        handed_in(agent, turn, day, *said)
        work(agent)

    return do


def extracted(agent: str) -> Dispatched:
    """Extract all that is waiting, and give the turn to the first one, up to its own extraction."""
    given = dispatch(agent)
    for run_id, _ in given.ahead:
        run_stage(Stage.EXTRACT, run_id, None)
    assert given.run_id is not None
    run_stage(Stage.EXTRACT, given.run_id, given.fence)
    return given


def homes(*cities: str) -> tuple[tuple[str, str], ...]:
    """Rafael lives in one city after another."""
    return tuple(("Rafael", f"I live in {city}.") for city in cities)


def latest(payload: dict[str, Any]) -> Any:
    """A model that replaces what was said last."""
    decisions = []
    for fact in payload["facts"]:
        last = max(fact["existing"], key=lambda one: one["since"])
        decisions.append({"fact_number": fact["number"], "reason": "moved", "action": "UPDATE",
                          "existing_number": last["number"]})  # fmt: skip
    return {"decisions": decisions}


def moves(told: Callable[..., None], agent: str, turn: int) -> None:
    """Everybody lives somewhere, then moves, the last one twice."""
    told(agent, 1, 1, *((name, "I live in Natal.") for name in NAMES))
    told(agent, turn, 2, *((name, "I live in Recife.") for name in NAMES), (NAMES[-1], "I live in Olinda."))


def offline_reply(call: Call) -> str:
    """What the model answers unless a test says otherwise."""
    payload = {key: value for key, value in call.payload.items() if key != "task"}
    return OfflineProvider().complete(call.task, call.system, payload).text


def spent(rows: Rows, agent: str) -> int:
    """Tokens that the agent's runs have counted, which are those of its days' sums."""
    runs = rows("SELECT usage FROM runs WHERE agent_id = :agent", agent=agent)
    counted = sum(run["usage"]["input_tokens"] + run["usage"]["output_tokens"] for run in runs)
    wasted = sum(run["usage"]["wasted_input_tokens"] + run["usage"]["wasted_output_tokens"] for run in runs)
    days = rows("SELECT input_tokens + output_tokens AS spent FROM spending WHERE agent_id = :agent", agent=agent)
    assert sum(day["spent"] for day in days) == counted + wasted  # two days where the clock was moved over midnight
    return counted


def test_the_memory_is_the_same_with_fewer_calls_and_every_token_is_counted(
    told: Callable[..., None], rows: Rows, model: ScriptedModel
) -> None:
    model.on(TASK, latest)
    moves(told, "one", 1)
    alone, before = model.count(TASK), len(model.calls)
    moves(told, "many", 8)
    calls = model.calls[before:]
    asked = [call.payload for call in calls if call.task == TASK]
    assert alone == 5
    assert [len(payload["facts"]) for payload in asked] == [5]
    assert {fact["message_date"][:13] for fact in asked[0]["facts"]} == {f"2024-05-02T{hour:02}" for hour in range(5)}
    before_olinda = [one["text"] for one in asked[0]["facts"][-1]["existing"]]
    assert before_olinda == ["Bruno lives in Natal", "Bruno lives in Recife"]

    assert rows(FACTS, agent="many") == rows(FACTS, agent="one")
    assert len(rows(FACTS, agent="one")) == 9
    runs = rows("SELECT status, stage, starts, usage FROM runs WHERE agent_id = 'many' ORDER BY seq")
    assert {(run["status"], run["stage"], run["starts"]) for run in runs} == {("ok", "upsert", 0)}
    assert sum(run["usage"]["by_task"].get(TASK, 0) for run in runs) == 1
    shared = tokens_of(next(call for call in calls if call.task == TASK), latest(asked[0]))
    own = [call for call in calls if call.task == "informed_extraction"]
    assert spent(rows, "many") == shared + sum(tokens_of(call, offline_reply(call)) for call in own)
    parts = [run["usage"]["input_tokens"] for run in runs[4:]]
    assert max(parts) - min(parts) < 10, "each bears an equal part"
    assert rows("SELECT 1 FROM run_plans") == []


def test_one_turn_for_all_and_each_its_own_result(
    handed_in: Callable[..., None], rows: Rows, model: ScriptedModel
) -> None:
    handed_in("a", 8, 1, ("Rafael", "I live in Natal."), ("Ana", "Bom dia!"), ("Ana", "I like jazz."))
    given = extracted("a")
    assert run_stage(Stage.RESOLVE, given.run_id, given.fence) == Applied("a", "ok")
    assert dispatch("a").run_id is None, "nothing is left"
    assert [(row["message"], row["status"]) for row in rows(ENDS, agent="a", after=0)] == [
        ("I live in Natal.", "ok"), ("Bom dia!", "empty"), ("I like jazz.", "ok"),
    ]  # fmt: skip
    results = rows("SELECT o.result, o.trace FROM run_results o JOIN runs r ON r.id = o.run_id ORDER BY r.seq")
    facts = [[fact["fact_text"] for fact in row["result"]["facts_added"]] for row in results]
    assert facts == [["Rafael lives in Natal"], [], ["Ana likes jazz"]]
    assert [row["trace"][-1]["outcome"] for row in results] == ["applied"] * 3
    assert rows("SELECT version FROM agent_turns") == [{"version": 3}], "as after three turns"
    assert {entry["turn_of"] for row in results for entry in row["trace"] if entry["outcome"] == "applied"} == {3}


def test_all_ambiguous_names_are_asked_in_one_call(
    told: Callable[..., None], rows: Rows, model: ScriptedModel
) -> None:
    def first(payload: dict[str, Any]) -> Any:
        return {"resolutions": [{"name_number": one["number"], "reason": "the first", "candidate_number": 1}
                                for one in payload["names"]]}  # fmt: skip

    model.on(NAMES_TASK, first)
    people = ("Ana Souza", "Ana Prado", "Bruno Lima", "Bruno Castro")
    for agent, turn in (("one", 1), ("many", 8)):
        told(agent, 1, 1, *(("Rafael", f"{name} likes tea.") for name in people))
        told(agent, turn, 2, ("Rafael", "Ana likes jazz."), ("Clara", "Bruno likes jazz."),
             ("Clara", "Ana likes opera."))  # fmt: skip
    payloads = [call.payload for call in model.calls if call.task == NAMES_TASK]
    alone, together = payloads[:-1], payloads[-1]
    assert len(alone) == 2, "the third one has been told who Ana is"
    assert [(name["name"], name["message_number"]) for name in together["names"]] == [("Ana", 1), ("Bruno", 2)]
    assert [(one["message"], one["speaker"]) for one in together["messages"]] == [
        ("Ana likes jazz.", "Rafael"), ("Bruno likes jazz.", "Clara"),
    ]  # fmt: skip
    assert rows(FACTS, agent="many") == rows(FACTS, agent="one")
    assert len(rows(FACTS, agent="one")) == 7
    spent(rows, "many")


def test_an_answer_to_another_question_than_comes_up_is_not_used(
    told: Callable[..., None], rows: Rows, model: ScriptedModel
) -> None:
    """The model replaces the oldest home, which the move before has closed by then: so that one is asked anew."""

    def oldest(payload: dict[str, Any]) -> Any:
        decisions = latest(payload)["decisions"]
        for fact, decision in zip(payload["facts"], decisions, strict=True):
            decision["existing_number"] = min(fact["existing"], key=lambda one: one["since"])["number"]
        return {"decisions": decisions}

    model.on(TASK, oldest)
    for agent, turn in (("one", 1), ("many", 8)):
        told(agent, 1, 1, *homes("Natal"))
        told(agent, turn, 2, *homes("Recife", "Olinda", "Lima"))
    asked = [len(call.payload["facts"]) for call in model.calls if call.task == TASK]
    assert asked == [1, 1, 1, 3, 2, 1]
    assert rows(FACTS, agent="many") == rows(FACTS, agent="one")
    assert len(rows(FACTS, agent="one")) == 4
    spent(rows, "many")


def test_a_shared_call_that_fails_or_answers_badly_leaves_each_to_ask_for_itself(
    told: Callable[..., None], rows: Rows, model: ScriptedModel
) -> None:
    moves(told, "one", 1)
    for agent, answer in (("refused", Fault.refusal()), ("half", {"decisions": [{"fact_number": 1, "action": "ADD"}]})):
        before = model.count(TASK)
        model.on(TASK, lambda payload, answer=answer: answer if len(payload["facts"]) > 1 else None)
        moves(told, agent, 8)
        assert model.count(TASK) - before == 6, agent
        assert rows(FACTS, agent=agent) == rows(FACTS, agent="one")
        spent(rows, agent)
    assert rows("SELECT DISTINCT status FROM runs") == [{"status": "ok"}]


def test_a_provider_that_is_down_lets_all_wait_and_who_has_waited_asks_alone(
    told: Callable[..., None], rows: Rows, model: ScriptedModel
) -> None:
    model.on(TASK, latest)
    model.queue(TASK, Fault.status(503), Fault.status(429, retry_after=0))
    moves(told, "a", 8)
    assert [len(call.payload["facts"]) for call in model.calls if call.task == TASK] == [5, 1, 1, 4]
    assert {row["status"] for row in rows(ENDS, agent="a", after=0)} == {"ok"}
    waits = rows("SELECT usage -> 'waits' AS waits FROM runs WHERE usage -> 'waits' <> '{}'")
    assert waits == [{"waits": {"provider_error": 1, "rate_limited": 1}}]


FIVE = (
    ("Rafael", "I live in Natal."), ("Ana", "I work at Orion."), ("Iris", "I like jazz."), ("Clara", "I like tea."),
    ("Bruno", "I like coffee."),
)  # fmt: skip


def refuse_jazz(database: Engine, sqlstate: str) -> None:
    """Facts about jazz cannot be stored."""
    with database.begin() as connection:
        connection.execute(text(
            "CREATE FUNCTION refuse() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN"
            f" IF NEW.fact_text LIKE '%jazz%' THEN RAISE 'no' USING ERRCODE = '{sqlstate}'; END IF; RETURN NEW; END $$"
        ))  # fmt: skip
        connection.execute(text(
            "CREATE TRIGGER refuse BEFORE INSERT ON memory_facts FOR EACH ROW EXECUTE FUNCTION refuse()"
        ))  # fmt: skip


def test_a_fact_at_fault_itself_is_left_out_of_its_message_and_costs_the_others_nothing(
    handed_in: Callable[..., None], rows: Rows, model: ScriptedModel, database: Engine
) -> None:
    refuse_jazz(database, "22000")
    handed_in("a", 8, 1, *FIVE)
    work("a")
    assert [row["state"] for row in rows(ENDS, agent="a", after=0)] == ["done"] * 5
    assert len(rows(FACTS, agent="a")) == 4
    rejected = rows("SELECT jsonb_array_elements(result -> 'rejected') ->> 'reason' AS reason FROM run_results")
    assert rejected == [{"reason": "database_22000"}]


def test_a_message_that_fails_is_parked_alone(
    handed_in: Callable[..., None], rows: Rows, model: ScriptedModel, database: Engine
) -> None:
    """What the failing one had written is taken back, what the others had is not."""
    refuse_jazz(database, "42501")
    handed_in("a", 8, 1, *FIVE)
    given = extracted("a")
    run_stage(Stage.RESOLVE, given.run_id, given.fence)
    assert [row["state"] for row in rows(ENDS, agent="a", after=0)] == ["done", "done", *["accepted"] * 3]
    assert rows("SELECT 1 FROM memory_entities WHERE canonical_key = 'person:iris'") == []
    work("a")
    ends = rows(ENDS, agent="a", after=0)
    assert [row["status"] for row in ends] == ["ok", "ok", "failed", "ok", "ok"]
    assert (ends[2]["message"], ends[2]["stage"], ends[2]["cause"]) == ("I like jazz.", "upsert", "own_error")
    assert len(rows(FACTS, agent="a")) == 4


def test_a_lost_worker_leaves_each_to_be_run_alone_and_writes_nothing_when_it_comes_back(
    told: Callable[..., None], handed_in: Callable[..., None], rows: Rows, model: ScriptedModel, database: Engine,
    later: Callable[[str], None],
) -> None:  # fmt: skip
    model.on(TASK, latest)
    told("one", 1, 1, *homes("Natal"))
    told("one", 1, 2, *homes("Recife", "Olinda", "Lima"))
    told("a", 1, 1, *homes("Natal"))
    handed_in("a", 8, 2, *homes("Recife", "Olinda", "Lima"))
    given = extracted("a")
    outcome: list[Any] = []
    with model.hold(TASK, lambda payload: len(payload["facts"]) > 1) as hold:
        thread = threading.Thread(target=lambda: outcome.append(run_stage(Stage.RESOLVE, given.run_id, given.fence)))
        thread.start()
        hold.wait_arrived()
        assert database.pool.checkedout() == 0, "nothing is held while the model thinks"  # type: ignore[attr-defined]
        assert [row["starts"] for row in rows(ENDS, agent="a", after=1)] == [1, 1, 1]
        later("1 hour")
        assert due_agents() == ["a"]
        work("a")
    thread.join(30)
    assert outcome == [Stale()]
    assert [len(call.payload["facts"]) for call in model.calls if call.task == TASK][3:] == [3, 1, 1, 1]
    assert rows(FACTS, agent="a") == rows(FACTS, agent="one")
    assert {(row["status"], row["starts"]) for row in rows(ENDS, agent="a", after=0)} == {("ok", 0)}
    wasted = rows("SELECT sum(CAST(usage ->> 'wasted_input_tokens' AS integer)) AS n FROM runs WHERE agent_id = 'a'")
    assert wasted[0]["n"] > 0
    spent(rows, "a")


def test_only_as_many_as_a_turn_takes_only_what_is_extracted_and_no_live_message_waits(
    told: Callable[..., None], handed_in: Callable[..., None], model: ScriptedModel, rows: Rows
) -> None:
    model.on(TASK, latest)
    told("a", 1, 1, *((name, "I live in Natal.") for name in NAMES))
    before = len(model.calls)
    told("a", 3, 2, *((name, "I live in Recife.") for name in NAMES))
    assert [len(call.payload["facts"]) for call in model.calls[before:] if call.task == TASK] == [3, 1]

    handed_in("b", 8, 1, *((name, "I like tea.") for name in NAMES))
    given = dispatch("b")
    for run_id, _ in given.ahead[:1]:
        run_stage(Stage.EXTRACT, run_id, None)
    run_stage(Stage.EXTRACT, given.run_id, given.fence)
    run_stage(Stage.RESOLVE, given.run_id, given.fence)
    assert [row["state"] for row in rows(ENDS, agent="b", after=0)] == ["done", "done", "accepted", "accepted"]

    handed_in("c", 8, 1, *((name, "I like tea.") for name in NAMES))
    given = extracted("c")
    handed_in("c", 8, 2, ("Ana", "I like jazz."), lane=Lane.LIVE)
    run_stage(Stage.RESOLVE, given.run_id, given.fence)
    assert rows("SELECT count(*) AS done FROM runs WHERE agent_id = 'c' AND state = 'done'") == [{"done": 0}]


def test_a_deadlock_in_a_turn_is_waited_out_and_what_was_paid_is_counted(
    told: Callable[..., None], handed_in: Callable[..., None], rows: Rows, model: ScriptedModel, database: Engine
) -> None:
    model.on(TASK, latest)
    told("a", 1, 1, *homes("Natal"))
    handed_in("a", 8, 2, *homes("Recife", "Olinda"))
    given = extracted("a")
    with database.begin() as connection:  # once: the sequence does not roll back
        connection.execute(text("CREATE SEQUENCE tries"))
        connection.execute(text(
            "CREATE FUNCTION deadlock() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN"
            " IF nextval('tries') = 3 THEN RAISE 'no' USING ERRCODE = '40P01'; END IF; RETURN NEW; END $$"
        ))  # fmt: skip
        connection.execute(text(
            "CREATE TRIGGER deadlock BEFORE INSERT ON memory_facts FOR EACH ROW EXECUTE FUNCTION deadlock()"
        ))  # fmt: skip
    outcome = run_stage(Stage.RESOLVE, given.run_id, given.fence)
    assert isinstance(outcome, Waiting)
    assert outcome.cause == "database"
    assert rows("SELECT count(*) AS n FROM memory_facts") == [{"n": 1}]
    (leader,) = rows("SELECT usage FROM runs WHERE id = :run", run=given.run_id)
    assert leader["usage"]["by_task"][TASK] == 1
    work("a")
    assert {row["status"] for row in rows(ENDS, agent="a", after=0)} == {"ok"}
    assert len(rows(FACTS, agent="a")) == 3
    spent(rows, "a")

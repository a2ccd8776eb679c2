"""Neighbouring messages of one conversation in one extraction call: cheaper, and in all else as one by one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any
from uuid import uuid4

import pytest
from sqlalchemy import Engine, text

from producer.accepting import accept, envelope
from producer.contract import WriteRequest
from producer.queues import Lane, Stage
from tests.scripted_model import EMBEDDING, Fault, ScriptedModel, tokens_of
from worker.turns import batches
from worker.turns.dispatch import dispatch
from worker.turns.life import periods
from worker.turns.running import Moved, run_stage
from worker.turns.sweep import due_agents

Rows = Callable[..., list[dict[str, Any]]]
TASK = "informed_extraction"

SAID = (
    ("Rafael", "I live in Natal."), ("Rafael", "I have a dog called Rex."), ("Ana", "I work at Orion Tech."),
    ("Rafael", "My wife is Clara Rezende."), ("Rafael", "I moved to Recife yesterday."), ("Ana", "I like jazz."),
    ("Rafael", "I no longer live in Recife."), ("Rafael", "I like coffee."), ("Ana", "I live in Olinda."),
)  # fmt: skip

FACTS = """
SELECT f.fact_text, f.entity_key, f.speaker, f.event_date, f.valid_from, f.valid_to, f.kind, e.message
  FROM memory_facts f JOIN memory_events e ON e.id = f.source_event_id WHERE f.agent_id = :agent
 ORDER BY f.valid_from, f.fact_text
"""


pytestmark = pytest.mark.usefixtures("no_long_waits")


@pytest.fixture
def handed_in(database: Engine) -> Callable[..., None]:
    """Hand messages in, an hour apart, in the bulk lane of an agent."""

    def do(agent: str, batch: int, said: Any = SAID, *, lane: Lane = Lane.BULK, session: str = "s") -> None:
        requests = [
            WriteRequest.parse(
                agent_id=agent, message=message, speaker_name=speaker, session_id=session,
                occurred_at=f"2024-05-03T{hour:02}:00:00-03:00", config_overrides={"bulk_batch": batch},
            )
            for hour, (speaker, message) in enumerate(said)
        ]  # fmt: skip
        with database.connect() as connection:
            accept(connection.connection.driver_connection, [envelope(request, lane) for request in requests])
            connection.connection.commit()

    return do


def work(agent: str) -> None:
    """Do all that is published for ``agent``, extraction ahead first, until nothing is."""
    while True:
        given = dispatch(agent)
        for run_id, _ in given.ahead:
            run_stage(Stage.EXTRACT, run_id, None)
        for stage in given.stages:
            if not isinstance(run_stage(stage, given.run_id, given.fence), Moved):
                break
        if not given.stages and not given.ahead and given.wait is None:
            return


def read_first(agent: str) -> None:
    """Extract the first message, and whatever it takes along."""
    given = dispatch(agent)
    assert given.run_id is not None
    run_stage(Stage.EXTRACT, given.run_id, given.fence)


def test_the_memory_is_the_same_with_fewer_calls_and_every_token_is_counted(
    handed_in, rows: Rows, model: ScriptedModel
) -> None:
    handed_in("one", 1)
    work("one")
    alone, before = model.count(TASK), len(model.calls)
    handed_in("many", 8)
    work("many")
    assert (alone, model.count(TASK) - alone) == (9, 2)
    together = [call.payload["messages"] for call in model.calls if "messages" in call.payload]
    assert [[item["number"] for item in sent] for sent in together] == [list(range(1, 9))]

    def plain(agent: str) -> list[dict[str, Any]]:
        return rows(FACTS, agent=agent)

    assert plain("many") == plain("one")
    assert len(plain("one")) >= 8
    runs = rows("SELECT status, usage FROM runs WHERE agent_id = 'many' ORDER BY seq")
    assert {run["status"] for run in runs} == {"ok"}
    assert sum(run["usage"]["by_task"].get(TASK, 0) for run in runs) == 2
    counted = sum(run["usage"]["input_tokens"] + run["usage"]["output_tokens"] for run in runs)
    assert rows("SELECT input_tokens + output_tokens AS spent FROM spending WHERE agent_id = 'many'") == [
        {"spent": counted}
    ]
    assert counted > sum(tokens_of(call, "") for call in model.calls[before:] if call.task == TASK)


def test_what_the_messages_of_a_batch_embed_is_embedded_in_one_call_without_secrets(
    handed_in, rows: Rows, model: ScriptedModel
) -> None:
    secret = "sk-proj-" + "Zx8" * 12
    told = ("I live in Natal.", f"My api key is {secret}", "I have a dog called Rex.")
    handed_in("a", 3, [("Rafael", text) for text in told])
    model.on(TASK, lambda payload: _saying(secret) if "messages" in payload else None)
    read_first("a")
    assert {run["stage"] for run in rows("SELECT stage FROM runs")} == {"resolve"}
    embedded = [call for call in model.calls if call.task == EMBEDDING]
    assert len(embedded) == 1
    assert secret not in str(embedded[0].payload)
    kept = rows("SELECT vector_texts, vectors FROM run_plans")
    assert len(kept) == 3
    assert all(len(row["vectors"]) == 4 * model.dimensions * len(row["vector_texts"]) > 0 for row in kept)


def _saying(secret: str) -> dict[str, Any]:
    said = ["Rafael lives in Natal", f"The api key of Rafael is {secret}", "Rafael has a dog called Rex"]
    facts = [{"subject": "Rafael", "text": text, "message_number": number} for number, text in enumerate(said, 1)]
    return {"entities": [{"name": "Rafael", "type": "person"}], "facts": facts, "relations": []}


def test_a_batch_whose_texts_cannot_be_embedded_leaves_that_to_each_message(
    handed_in, rows: Rows, model: ScriptedModel
) -> None:
    model.queue(EMBEDDING, Fault.status(503))
    handed_in("a", 4, SAID[:4])
    read_first("a")
    assert {run["stage"] for run in rows("SELECT stage FROM runs")} == {"resolve"}
    assert model.count(TASK) == 1
    assert model.count(EMBEDDING) == 5


def test_a_reply_that_cannot_be_attributed_is_asked_for_one_by_one(
    handed_in, rows: Rows, model: ScriptedModel
) -> None:
    def nameless(payload: dict[str, Any]) -> Any:
        if "messages" not in payload:
            return None
        return {"entities": [], "facts": [{"subject": "Rafael", "text": "Rafael lives in Natal"}], "relations": []}

    model.on(TASK, nameless)
    handed_in("a", 4, SAID[:4])
    work("a")
    assert model.count(TASK) == 5
    assert [run["status"] for run in rows("SELECT status FROM runs")] == ["ok"] * 4
    calls = rows("SELECT sum(CAST(usage -> 'by_task' ->> 'informed_extraction' AS integer)) AS calls FROM runs")
    assert calls == [{"calls": 5}]


def test_a_refused_batch_parks_the_guilty_message_alone(handed_in, rows: Rows, model: ScriptedModel) -> None:
    model.on(TASK, lambda payload: Fault.refusal() if "jazz" in str(payload) else None)
    handed_in("a", 8, [(who, what) for who, what in SAID[3:7]])
    work("a")
    assert rows("SELECT e.message, r.cause FROM runs r JOIN memory_events e ON e.id = r.event_id"
                " WHERE r.status = 'failed'") == [{"message": "I like jazz.", "cause": "refused"}]  # fmt: skip
    assert len(rows("SELECT 1 FROM runs WHERE status = 'ok'")) == 3
    assert model.count(TASK) == 5


def test_a_provider_that_is_down_lets_the_neighbours_go_and_all_are_read_later(
    handed_in, rows: Rows, model: ScriptedModel
) -> None:
    model.queue(TASK, Fault.status(503))
    handed_in("a", 8, SAID[:4])
    read_first("a")
    assert rows("SELECT count(*) AS claimed FROM runs WHERE ahead_token IS NOT NULL OR starts > 0") == [{"claimed": 0}]
    work("a")
    assert [run["status"] for run in rows("SELECT status FROM runs")] == ["ok"] * 4


def test_only_neighbours_of_the_conversation_in_the_bulk_lane_are_read_together(
    handed_in, model: ScriptedModel
) -> None:
    handed_in("a", 8, SAID[:2], lane=Lane.LIVE)
    handed_in("a", 8, SAID[2:4], session="x")
    handed_in("a", 2, SAID[4:7], session="y")
    work("a")
    sizes = [len(call.payload.get("messages", [1])) for call in model.calls if call.task == TASK]
    assert sorted(sizes) == [1, 1, 1, 2, 2]


def test_a_leader_that_dies_leaves_claims_that_end_and_each_is_read_alone(
    handed_in, rows: Rows, model: ScriptedModel, database: Engine, later: Callable[[str], None]
) -> None:
    handed_in("a", 4, SAID[:4])
    given = dispatch("a")
    with database.begin() as connection:  # what a leader does first, and then nothing more
        connection.execute(text("INSERT INTO workers (name) VALUES ('dead')"))
        claimed = connection.execute(
            text(batches.CLAIM),
            {"run": given.run_id, "agent": "a", "session": "s", "overrides": '{"bulk_batch": 4}', "many": 3,
             "token": uuid4(), "worker": "dead", **periods()},
        ).all()  # fmt: skip
        connection.execute(text("UPDATE workers SET heartbeat_at = mandua_now() - interval '1 hour'"))
    assert [row.message for row in claimed] == [message for _, message in SAID[1:4]]
    for run_id, _ in given.ahead:
        run_stage(Stage.EXTRACT, run_id, None)
    assert model.count(TASK) == 0, "whoever finds one claimed leaves it"
    later("1 hour")
    assert due_agents() == ["a"]
    work("a")
    assert [run["status"] for run in rows("SELECT status FROM runs")] == ["ok"] * 4
    assert model.count(TASK) == 4

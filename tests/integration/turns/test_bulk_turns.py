"""Consecutive messages in one reconciliation call: the same memory as one by one, with fewer calls."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from sqlalchemy import Engine

from producer.accepting import accept, envelope
from producer.contract import WriteRequest
from producer.queues import Lane
from tests.integration.turns.test_batches import FACTS, work
from tests.scripted_model import Fault, ScriptedModel

Rows = Callable[..., list[dict[str, Any]]]
TASK = "reconciliation"
NAMES = ("Rafael", "Ana", "Clara", "Bruno")


@pytest.fixture
def told(database: Engine) -> Callable[..., None]:
    """Hand (speaker, text) pairs in, an hour apart, in the bulk lane, and work until all is done."""

    def do(agent: str, turn: int, day: int, *said: tuple[str, str]) -> None:
        requests = [
            WriteRequest.parse(
                agent_id=agent, message=text, speaker_name=speaker, occurred_at=f"2024-05-{day:02}T{hour:02}:00:00Z",
                config_overrides={"bulk_turn": turn},
            )
            for hour, (speaker, text) in enumerate(said)
        ]  # fmt: skip
        with database.connect() as connection:
            accept(connection.connection.driver_connection, [envelope(request, Lane.BULK) for request in requests])
            connection.connection.commit()
        work(agent)

    return do


def moves(told: Callable[..., None], agent: str, turn: int) -> None:
    """Everybody lives somewhere, then moves; the last one twice, which no foresight can know."""
    told(agent, 1, 1, *((name, "I live in Natal.") for name in NAMES))
    told(agent, turn, 2, *((name, "I live in Recife.") for name in NAMES), (NAMES[-1], "I live in Olinda."))


def test_the_memory_is_the_same_with_fewer_calls_and_every_token_is_counted(
    told: Callable[..., None], rows: Rows, model: ScriptedModel
) -> None:
    moves(told, "one", 1)
    alone, before = model.count(TASK), len(model.calls)
    moves(told, "many", 8)
    asked = [call.payload for call in model.calls[before:] if call.task == TASK]
    assert alone == 5
    assert [len(payload["facts"]) for payload in asked] == [5, 1], "what one of them changes is asked in its turn"
    assert {fact["message_date"][:13] for fact in asked[0]["facts"]} == {f"2024-05-02T{hour:02}" for hour in range(5)}

    assert rows(FACTS, agent="many") == rows(FACTS, agent="one")
    assert len(rows(FACTS, agent="one")) == 9
    runs = rows("SELECT status, usage FROM runs WHERE agent_id = 'many' ORDER BY seq")
    assert {run["status"] for run in runs} == {"ok"}
    assert sum(run["usage"]["by_task"].get(TASK, 0) for run in runs) == 2
    counted = sum(run["usage"]["input_tokens"] + run["usage"]["output_tokens"] for run in runs)
    assert rows("SELECT input_tokens + output_tokens AS spent FROM spending WHERE agent_id = 'many'") == [
        {"spent": counted}
    ]
    assert rows("SELECT 1 FROM run_plans") == []


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
    assert rows("SELECT DISTINCT status FROM runs") == [{"status": "ok"}]


def test_only_as_many_as_a_turn_takes_and_only_what_is_extracted(
    told: Callable[..., None], model: ScriptedModel
) -> None:
    told("a", 1, 1, *((name, "I live in Natal.") for name in NAMES))
    before = len(model.calls)
    told("a", 3, 2, *((name, "I live in Recife.") for name in NAMES))
    asked = [len(call.payload["facts"]) for call in model.calls[before:] if call.task == TASK]
    assert asked == [3, 1]

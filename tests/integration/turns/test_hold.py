"""Promises 2 and 4: every write of a stage checks its hold and changes state in one statement."""

from __future__ import annotations

from uuid import uuid4

import pytest
from sqlalchemy import Engine, text

from producer.queues import Stage
from tests.integration.turns.conftest import run_of
from worker.turns import hold as holding
from worker.turns.dispatch import dispatch
from worker.turns.hold import LostHold, begin

NO_VECTORS: tuple[list[str], bytes] = ([], b"")


def advance(hold: holding.Hold, following: Stage = Stage.RESOLVE, plan: str = '{"n": 1}') -> None:
    holding.advance(hold, following, plan, NO_VECTORS, bill=holding.Bill(), timings={"extract": 1.5}, memory_version=0)


def test_begin_reads_the_message_and_all_plans_at_once(accepted):
    accepted("I live in Curitiba")
    given = dispatch("a")
    start = begin(given.run_id, given.fence, Stage.EXTRACT)
    assert (start.row.message, start.row.speaker_name, start.deaths) == ("I live in Curitiba", "Rafael", 0)


@pytest.mark.parametrize("wrong", ["fence", "stage", "run"])
def test_a_start_without_the_right_does_not_begin(accepted, wrong: str):
    accepted("one")
    given = dispatch("a")
    run = uuid4() if wrong == "run" else given.run_id
    fence = given.fence - 1 if wrong == "fence" else given.fence
    stage = Stage.RESOLVE if wrong == "stage" else Stage.EXTRACT
    assert begin(run, fence, stage) is None


def test_a_plan_is_stored_and_the_stage_moves_on_together(accepted, rows):
    (event,) = accepted("one")
    given = dispatch("a")
    start = begin(given.run_id, given.fence, Stage.EXTRACT)
    advance(start.hold)
    run = run_of(rows, event.event_id)
    assert (run["stage"], run["starts"], run["timings"]) == ("resolve", 0, {"extract": 1.5})
    following = begin(given.run_id, given.fence, Stage.RESOLVE)
    assert following.row.extraction == {"n": 1}


def test_a_plan_is_stored_once(accepted):
    accepted("one")
    given = dispatch("a")
    start = begin(given.run_id, given.fence, Stage.EXTRACT)
    advance(start.hold)
    with pytest.raises(LostHold):
        advance(start.hold, plan='{"n": 2}')


def test_a_reply_is_kept_for_the_next_try_and_dropped_with_the_stage(accepted, rows):
    accepted("one")
    given = dispatch("a")
    start = begin(given.run_id, given.fence, Stage.EXTRACT)
    holding.announce(start.hold, "call-1", "m")
    holding.keep_reply(start.hold, "call-1", '{"text": "{}", "usage": {"input_tokens": 7}, "lost": 0}')
    holding.announce(start.hold, "call-2", "m")
    holding.announce(start.hold, "call-2", "m")
    assert rows("SELECT sent FROM run_plans") == [{"sent": {"call-2": 2}}], "a kept reply is no call under way"
    holding.give_back(
        start.hold, delay=0, counted=True, cause="timeout", error_code="timeout", fallback=None, bill=holding.Bill(),
        lost={"call-2": 1},
    )  # fmt: skip
    again = dispatch("a")
    second = begin(again.run_id, again.fence, Stage.EXTRACT)
    assert second.row.replies == {"call-1": {"text": "{}", "lost": 0}}, "its cost stands in the run by now"
    assert second.row.sent == {"call-2": 1}
    assert (second.row.failures, second.row.waits, second.deaths) == (1, 1, 0)
    advance(second.hold)
    assert rows("SELECT replies, sent FROM run_plans") == [{"replies": {}, "sent": {}}]


def test_a_call_is_not_made_on_a_lost_hold(accepted, later):
    accepted("one")
    given = dispatch("a")
    start = begin(given.run_id, given.fence, Stage.EXTRACT)
    later("10 minutes")
    dispatch("a")
    with pytest.raises(LostHold):
        holding.announce(start.hold, "call-1", "m")


def test_extraction_ahead_moves_the_run_on_without_a_turn(accepted, rows):
    _, second = accepted("one", "two")
    given = dispatch("a")
    ((ahead, _),) = given.ahead
    start = begin(ahead, None, Stage.EXTRACT)
    advance(start.hold)
    run = run_of(rows, second.event_id)
    assert (run["stage"], run["state"], run["ahead_token"]) == ("resolve", "accepted", None)


def test_extraction_ahead_does_not_begin_on_the_head(accepted):
    accepted("one")
    given = dispatch("a")
    assert begin(given.run_id, None, Stage.EXTRACT) is None


def test_a_head_that_is_being_extracted_ahead_waits_for_the_end_of_it(accepted, database: Engine):
    first, _ = accepted("one", "two")
    given = dispatch("a")
    ((ahead, _),) = given.ahead
    start = begin(ahead, None, Stage.EXTRACT)
    with database.begin() as connection:  # the first one is done
        connection.execute(
            text("UPDATE runs SET state = 'done', status = 'ok', finished_at = mandua_now() WHERE event_id = :e"),
            {"e": first.event_id},
        )
        connection.execute(text("UPDATE agent_turns SET run_id = NULL"))
    assert dispatch("a").run_id is None
    advance(start.hold)
    following = dispatch("a")
    assert (following.run_id, following.stages[0]) == (ahead, Stage.RESOLVE)


def test_a_death_ahead_is_counted_and_the_head_goes_on(accepted, database: Engine):
    first, _ = accepted("one", "two")
    ((ahead, _),) = dispatch("a").ahead
    begin(ahead, None, Stage.EXTRACT)
    with database.begin() as connection:
        connection.execute(
            text("UPDATE runs SET state = 'done', status = 'ok', finished_at = mandua_now() WHERE event_id = :e"),
            {"e": first.event_id},
        )
        connection.execute(text("UPDATE agent_turns SET run_id = NULL"))
        connection.execute(text("UPDATE workers SET heartbeat_at = heartbeat_at - interval '1 minute'"))
    following = dispatch("a")
    assert following.run_id == ahead
    assert begin(ahead, following.fence, Stage.EXTRACT).deaths == 1


def test_parking_frees_the_turn_and_keeps_the_cause(accepted, rows):
    first, second = accepted("one", "two")
    given = dispatch("a")
    start = begin(given.run_id, given.fence, Stage.EXTRACT)
    holding.park(start.hold, cause="refused", error_code="refused", bill=holding.Bill())
    run = run_of(rows, first.event_id)
    assert (run["state"], run["status"], run["stage"], run["cause"]) == ("parked", "failed", "extract", "refused")
    assert dispatch("a").run_id == run_of(rows, second.event_id)["id"]

"""Promise 3: one agent, one order. The turn goes to the first unfinished run by (lane, seq), and to no other."""

from __future__ import annotations

import threading

import pytest
from sqlalchemy import Engine, text

from producer.queues import Lane, Stage
from tests.integration.turns.conftest import run_of
from worker.turns import hold as holding
from worker.turns.dispatch import LOOKAHEAD, SET_WAKE, dispatch, is_busy
from worker.turns.hold import begin

ALL = (Stage.EXTRACT, Stage.RESOLVE, Stage.RECONCILE, Stage.UPSERT)


def test_the_head_gets_the_turn_with_a_fence_of_its_own(accepted, rows):
    first, second = accepted("one", "two")
    given = dispatch("a")
    assert (given.run_id, given.fence, given.stages) == (run_of(rows, first.event_id)["id"], 1, ALL)
    assert [run for run, _ in given.ahead] == [run_of(rows, second.event_id)["id"]]


def test_a_held_turn_is_not_given_twice(accepted):
    accepted("one", "two")
    dispatch("a")
    assert dispatch("a").run_id is None


def test_live_goes_before_bulk_whatever_came_first(accepted, rows):
    accepted("old history", lane=Lane.BULK)
    (live,) = accepted("hello", lane=Lane.LIVE)
    assert dispatch("a").run_id == run_of(rows, live.event_id)["id"]


def test_twenty_dispatchers_at_once_give_the_turn_once(accepted, database: Engine):
    accepted(*[f"m{n}" for n in range(5)])
    given = []
    threads = [threading.Thread(target=lambda: given.append(dispatch("a"))) for _ in range(20)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sum(1 for item in given if item.run_id is not None) == 1
    assert len({run for item in given for run, _ in item.ahead}) == sum(len(item.ahead) for item in given) == 4


def test_extraction_goes_ahead_only_so_far_and_once(accepted):
    accepted(*[f"m{n}" for n in range(10)])
    assert len(dispatch("a").ahead) == LOOKAHEAD[Lane.LIVE]
    assert dispatch("a").ahead == []
    accepted(*[f"b{n}" for n in range(30)], agent="bulky", lane=Lane.BULK)
    assert len(dispatch("bulky").ahead) == LOOKAHEAD[Lane.BULK]


def test_nothing_overtakes_a_head_that_is_not_ready(accepted, rows):
    first, _ = accepted("one", "two")
    given = dispatch("a")
    start = begin(given.run_id, given.fence, Stage.EXTRACT)
    holding.give_back(
        start.hold, delay=30, counted=False, cause="rate_limited", error_code="429", fallback=None, bill=holding.Bill(),
        lost={},
    )  # fmt: skip
    later = dispatch("a")
    assert later.run_id is None
    assert 25 < later.wait <= 30
    (seq,) = rows("SELECT extract(epoch FROM wake_at - mandua_now()) AS wait FROM agent_seq")
    assert 25 < seq["wait"] <= 30
    assert run_of(rows, first.event_id)["cause"] == "rate_limited"


def test_a_dispatch_that_finds_nothing_clears_the_wake_up(accepted, rows, database: Engine):
    accepted("one")
    with database.begin() as connection:
        connection.execute(
            text("UPDATE runs SET state = 'parked', status = 'failed', cause = 'refused', finished_at = mandua_now()")
        )
    dispatch("a")
    assert rows("SELECT wake_at FROM agent_seq") == [{"wake_at": None}]


def test_a_wake_up_is_not_cleared_over_a_message_that_came_meanwhile(accepted, rows, database: Engine):
    """Dispatch reads next_seq before the runs; an accept that commits after its read moves next_seq."""
    accepted("one")
    with database.connect() as connection:
        seen = connection.execute(text("SELECT next_seq FROM agent_seq")).scalar_one()
    accepted("two")
    with database.begin() as connection:
        connection.execute(text(SET_WAKE), {"agent": "a", "next_seq": seen, "wait": None})
    assert rows("SELECT wake_at IS NOT NULL AS due FROM agent_seq") == [{"due": True}]


def test_a_task_that_nobody_began_is_sent_again_under_the_same_fence(accepted, later):
    accepted("one")
    given = dispatch("a")
    later("31 seconds")
    again = dispatch("a")
    assert (again.run_id, again.fence) == (given.run_id, given.fence)
    assert begin(given.run_id, given.fence, Stage.EXTRACT) is not None
    assert begin(given.run_id, given.fence, Stage.EXTRACT) is None, "the second copy finds the start taken"


def test_resending_backs_off_so_that_a_slow_queue_is_not_flooded(accepted, later):
    accepted("one")
    dispatch("a")
    later("31 seconds")
    assert dispatch("a").run_id is not None
    later("62 seconds")
    assert dispatch("a").run_id is None
    later("100 seconds")
    assert dispatch("a").run_id is not None


def test_a_dead_workers_turn_is_given_on_under_a_new_fence(accepted, database: Engine, rows):
    accepted("one")
    given = dispatch("a")
    start = begin(given.run_id, given.fence, Stage.EXTRACT)
    with database.begin() as connection:
        connection.execute(text("UPDATE workers SET heartbeat_at = heartbeat_at - interval '1 minute'"))
    again = dispatch("a")
    assert (again.run_id, again.fence) == (given.run_id, given.fence + 1)
    # The one that was thought dead comes back: its fence is old, and it writes nothing.
    with pytest.raises(holding.LostHold):
        holding.park(start.hold, cause="x", error_code="x", bill=holding.Bill())
    second = begin(again.run_id, again.fence, Stage.EXTRACT)
    assert second.deaths == 1


def test_an_expired_lease_frees_the_turn_even_of_a_worker_that_beats(accepted, later):
    accepted("one")
    given = dispatch("a")
    begin(given.run_id, given.fence, Stage.EXTRACT)
    later("10 minutes")
    assert dispatch("a").fence == given.fence + 1


def test_an_unknown_agent_is_no_error(database: Engine):
    assert dispatch("nobody").run_id is None


def test_an_agent_at_work_with_nothing_to_extract_ahead_needs_no_dispatch(accepted, database: Engine, later):
    """What producers add then is found by the end of the turn; everything else is dispatched as ever."""
    accepted("one")
    assert not is_busy("a"), "the turn is free"
    given = dispatch("a")
    accepted(*[f"later {number}" for number in range(LOOKAHEAD[Lane.LIVE])])
    assert not is_busy("a"), "their extraction is due ahead"
    assert len(dispatch("a").ahead) == LOOKAHEAD[Lane.LIVE]
    assert is_busy("a")
    accepted("one more")
    assert is_busy("a"), "so far ahead nothing is read"
    later("31 seconds")
    assert not is_busy("a"), "its task is lost"
    again = dispatch("a")
    assert again.fence == given.fence
    begin(again.run_id, again.fence, Stage.EXTRACT)
    assert is_busy("a")
    with database.begin() as connection:
        connection.execute(text("UPDATE workers SET heartbeat_at = heartbeat_at - interval '1 minute'"))
    assert not is_busy("a"), "its worker is dead"
    assert not is_busy("nobody")


def test_a_live_message_that_a_turn_of_an_import_keeps_waiting_is_extracted_meanwhile(accepted):
    accepted(*[f"old {number}" for number in range(LOOKAHEAD[Lane.BULK] + 2)], lane=Lane.BULK)
    dispatch("a")
    assert is_busy("a")
    accepted("now", lane=Lane.LIVE)
    assert not is_busy("a")
    ((_, lane),) = dispatch("a").ahead
    assert lane == Lane.LIVE
    assert is_busy("a")

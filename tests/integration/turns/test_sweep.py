"""The sweeper: whatever the broker or a dead worker dropped is found again in Postgres."""

from __future__ import annotations

from sqlalchemy import Engine, text

from producer.queues import Lane, Stage
from tests.integration.turns.conftest import run_of
from worker.turns import hold as holding
from worker.turns.dispatch import dispatch
from worker.turns.hold import begin
from worker.turns.replay import replay
from worker.turns.sweep import clean_up, due_agents


def test_an_agent_whose_nudge_was_lost_is_found(accepted, later):
    accepted("one")
    assert due_agents() == [], "a nudge gets a moment to arrive"
    later("2 seconds")
    assert due_agents() == ["a"]


def test_an_agent_at_work_is_left_alone(accepted, later):
    accepted("one")
    given = dispatch("a")
    begin(given.run_id, given.fence, Stage.EXTRACT)
    later("15 seconds")
    assert due_agents() == []


def test_a_lost_task_is_found(accepted, later):
    accepted("one")
    dispatch("a")
    later("31 seconds")
    assert due_agents() == ["a"]


def test_a_silent_workers_agent_is_found(accepted, database: Engine, later):
    accepted("one")
    given = dispatch("a")
    begin(given.run_id, given.fence, Stage.EXTRACT)
    with database.begin() as connection:
        connection.execute(text("UPDATE workers SET heartbeat_at = heartbeat_at - interval '1 minute'"))
    later("2 seconds")
    assert due_agents() == ["a"]


def test_the_oldest_waits_shortest(accepted, database: Engine, later):
    accepted("x", agent="young")
    accepted("x", agent="old")
    with database.begin() as connection:
        connection.execute(text("UPDATE agent_seq SET wake_at = wake_at - interval '1 hour' WHERE agent_id = 'old'"))
    later("2 seconds")
    assert due_agents() == ["old", "young"]


def test_clean_up_takes_only_what_is_old(database: Engine, rows, later):
    with database.begin() as connection:
        connection.execute(text("INSERT INTO dry_runs (id, request) VALUES (gen_random_uuid(), '{}')"))
    clean_up()
    assert len(rows("SELECT * FROM dry_runs")) == 1
    later("11 minutes")
    clean_up()
    assert rows("SELECT * FROM dry_runs") == []


def test_clean_up_forgets_what_was_spent_a_season_ago(database: Engine, rows):
    with database.begin() as connection:
        connection.execute(
            text("INSERT INTO spending (day, agent_id) SELECT current_date - n, 'a' FROM unnest(ARRAY[0, 89, 92]) n")
        )
    clean_up()
    assert [row["ago"] for row in rows("SELECT current_date - day AS ago FROM spending ORDER BY 1")] == [0, 89]


def test_a_replay_is_a_new_run_in_the_bulk_lane_with_the_same_request(accepted, rows):
    first, second = accepted("one", "two")
    given = dispatch("a")
    start = begin(given.run_id, given.fence, Stage.EXTRACT)
    holding.park(start.hold, cause="refused", error_code="refused", bill=holding.Bill())
    assert replay([first.event_id, second.event_id]) == ["a"], "only what is parked"
    run = run_of(rows, first.event_id)
    assert (run["seq"], run["lane"], run["state"], run["request"]) == (
        3, Lane.BULK, "accepted", rows("SELECT request FROM runs WHERE seq = 1")[0]["request"],
    )  # fmt: skip
    assert replay([first.event_id]) == [], "an event has at most one unfinished run"

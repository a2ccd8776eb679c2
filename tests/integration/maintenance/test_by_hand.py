"""Merging by hand takes the turn: between two runs, never beside one; what waits half-planned is planned anew."""

from __future__ import annotations

import json
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

import pytest
from sqlalchemy import Engine, text
from sqlalchemy.orm import Session

from tests.integration.maintenance.conftest import Tell, take_turn
from tests.scripted_model import Fault, ScriptedModel
from worker.cli.app import run as command
from worker.maintenance.merging import merge_entities
from worker.turns.by_hand import TurnTaken, UnknownAgent, by_hand
from worker.turns.dispatch import Dispatched, dispatch
from worker.turns.running import Applied, Moved, Waiting, run_stage

KEPT, GONE = "person:ana_souza", "person:aninha"
KEYS = "SELECT DISTINCT entity_key AS key FROM memory_facts WHERE valid_to IS NULL ORDER BY 1"


@pytest.fixture
def two(tell: Tell, model: ScriptedModel) -> Tell:
    """Ana Souza and Aninha."""
    model.vector("Ana Souza", [1.0, *[0.0] * 383])
    model.vector("Aninha", [0.0, 1.0, *[0.0] * 382])
    tell(("Ana Souza", "Ana Souza works at Orion Tech"))
    tell(("Aninha", "Aninha lives in Recife"))
    return tell


def merge(session: Session) -> Any:
    """Aninha into Ana Souza."""
    return merge_entities(session, "a", KEPT, GONE, by="hand")


def test_while_a_run_is_at_work_nothing_is_changed(two: Tell, accepted, rows):
    accepted("Aninha plays the violin")
    take_turn()
    with pytest.raises(TurnTaken):
        by_hand("a", merge, wait=0)
    assert {"key": GONE} in rows(KEYS)
    with pytest.raises(UnknownAgent):
        by_hand("nobody", merge, wait=0)


def test_whoever_wants_the_turn_meanwhile_waits_for_the_commit(two: Tell, accepted, rows):
    accepted("Aninha plays the violin")

    def slowly(session: Session) -> None:
        merge(session)
        wanted.append(pool.submit(dispatch, "a"))
        waits = text("SELECT count(*) FROM pg_locks WHERE NOT granted")
        while session.execute(waits).scalar_one() == 0:
            assert not wanted[0].done()

    wanted: list[Future[Dispatched]] = []
    with ThreadPoolExecutor(1) as pool:
        by_hand("a", slowly, wait=0)
        given = wanted[0].result(10)
    assert given.run_id is not None
    assert {"key": GONE} not in rows(KEYS)


def test_a_message_that_waits_half_planned_finds_the_survivor(two: Tell, accepted, rows, model, database: Engine):
    model.queue("informed_extraction", {
        "entities": [{"name": "Aninha", "type": "person", "aliases": []}],
        "facts": [{"subject": "Aninha", "text": "Aninha lives in Recife by the sea"}], "relations": [],
    })  # fmt: skip
    model.queue("reconciliation", Fault.status(503))
    accepted("Aninha lives in Recife by the sea")
    given = take_turn()
    outcomes = [run_stage(stage, given.run_id, given.fence) for stage in given.stages[:3]]
    assert [type(outcome) for outcome in outcomes] == [Moved, Moved, Waiting]
    (before,) = rows("SELECT version FROM agent_turns")
    by_hand("a", merge, wait=0)
    assert rows("SELECT version FROM agent_turns") == [{"version": before["version"] + 1}]
    with database.begin() as connection:
        connection.execute(text("UPDATE runs SET ready_at = NULL"))
    given = take_turn()
    assert isinstance([run_stage(stage, given.run_id, given.fence) for stage in given.stages][-1], Applied)
    assert rows(KEYS) == [{"key": KEPT}]
    assert {"fact_text": "Aninha lives in Recife by the sea"} in rows("SELECT fact_text FROM memory_facts")
    assert model.count("informed_extraction") == 3, "what was extracted was not paid for again"


def test_the_command_merges_lists_and_splits(two: Tell, rows, capsys: pytest.CaptureFixture[str]):
    assert command(["entities", "merge", KEPT, GONE, "--agent", "a", "--reason", "nickname", "--json"]) == 0
    made = json.loads(capsys.readouterr().out)
    assert (made["kept"], made["gone"]) == (KEPT, GONE)
    assert command(["entities", "--agent", "a", "--json"]) == 0
    assert GONE not in {row["canonical_key"] for row in json.loads(capsys.readouterr().out)["entities"]}
    assert command(["entities", "merges", "--agent", "a", "--json"]) == 0
    (listed,) = json.loads(capsys.readouterr().out)["merges"]
    assert (listed["id"], listed["reason"], listed["merged_by"]) == (made["merge_id"], "nickname", "hand")
    assert command(["entities", "merge", KEPT, GONE, "--agent", "a"]) == 1
    assert capsys.readouterr().err == f"mandua: {GONE} is merged into {KEPT} already\n"
    assert command(["entities", "split", made["merge_id"], "--agent", "a"]) == 0
    assert {"key": GONE} in rows(KEYS)
    assert command(["entities", "split", made["merge_id"], "--agent", "a"]) == 1
    assert command(["entities", "merge", KEPT, "person:nobody", "--agent", "a"]) == 1
    assert "there is no entity person:nobody" in capsys.readouterr().err
    assert command(["entities", "split", "no-id", "--agent", "a"]) == 2
    assert command(["entities", "merges", "--agent", "a", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["merges"] == []

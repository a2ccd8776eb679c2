"""dedup_entities: who is one is merged, who only sounds alike is not, and nobody is asked about twice."""

from __future__ import annotations

from typing import Any

import pytest
from sqlalchemy import text

from producer.queues import Stage
from tests.integration.maintenance.conftest import RunJob, Tell, one_step, take_turn
from tests.scripted_model import Fault, ScriptedModel
from worker.maintenance import twins
from worker.maintenance.planning import PlacedRun, place
from worker.turns import hold as holding
from worker.turns.running import Applied, run_stage

JOB = "dedup_entities"
LIVING = "SELECT canonical_key AS key FROM memory_entities WHERE merged_into IS NULL AND entity_type = :t ORDER BY 1"


def living(rows: Any, kind: str = "person") -> list[str]:
    """The keys of the living entities of a type, the speaker's aside."""
    return [row["key"] for row in rows(LIVING, t=kind) if row["key"] != "person:rafael"]


@pytest.fixture
def twice(tell: Tell, model: ScriptedModel) -> ScriptedModel:
    """Mariana, whom a failed resolution made two of, and the model that says that she is one."""
    tell(("Mariana Costa", "Mariana Costa works at Orion Tech"), ("Mariana Costa", "Mariana Costa plays the violin"))
    tell(("Marianna Costa", "Marianna Costa lives in Recife"))
    model.on("entity_merge", {"reason": "one name in two spellings", "same": True})
    return model


def test_what_is_one_is_merged_into_the_one_of_which_more_is_known(twice, run_job: RunJob, rows):
    assert living(rows) == ["person:mariana_costa", "person:marianna_costa"]
    done = run_job(JOB)
    assert (done["outcome"], done["items"], twice.count("entity_merge")) == ("done", 1, 1)
    assert living(rows) == ["person:mariana_costa"]
    (merge,) = rows("SELECT gone_key, merged_by, reason FROM entity_merges")
    assert (merge["gone_key"], merge["merged_by"]) == ("person:marianna_costa", "job")
    assert "one name in two spellings" in merge["reason"]
    (asked,) = [call.payload["entities"] for call in twice.calls if call.task == "entity_merge"]
    assert [one["name"] for one in asked] == ["Mariana Costa", "Marianna Costa"]
    assert {fact["text"] for fact in asked[0]["facts"]} == {
        "Mariana Costa works at Orion Tech", "Mariana Costa plays the violin",
    }  # fmt: skip


def test_a_second_run_does_nothing_and_calls_no_model(twice, run_job: RunJob, rows):
    run_job(JOB)
    before, calls = rows("SELECT to_jsonb(e)::text AS r FROM memory_entities e ORDER BY 1"), len(twice.calls)
    again = run_job(JOB)
    assert (again["items"], again["steps"], len(twice.calls)) == (0, 0, calls)
    assert rows("SELECT to_jsonb(e)::text AS r FROM memory_entities e ORDER BY 1") == before


def test_what_a_model_says_are_two_is_never_asked_again(twice, run_job: RunJob, rows, tell: Tell):
    twice.on("entity_merge", {"reason": "two", "same": False})
    assert run_job(JOB)["items"] == 0
    tell(("Mariana Costa", "Mariana Costa has a boat"))
    run_job(JOB)
    assert twice.count("entity_merge") == 1
    assert len(living(rows)) == 2


def test_a_model_that_refuses_leaves_two(twice, run_job: RunJob, rows):
    twice.on("entity_merge", Fault.refusal())
    assert (run_job(JOB)["outcome"], len(living(rows))) == ("done", 2)


@pytest.mark.parametrize(
    ("one", "other"),
    [("Loja Centro 0001", "Loja Centro 0002"), ("Paulo Prado", "Paulo Prado Filho"), ("Ana Souza", "Ana Lima")],
)
def test_whom_the_spelling_forbids_is_not_even_asked_about(tell: Tell, model, run_job: RunJob, one: str, other: str):
    for name in (one, other):
        model.vector(name, [1.0, *[0.0] * 383])  # whatever the embedding says
        tell((name, f"{name} is in Recife"))
    run_job(JOB)
    assert model.count("entity_merge") == 0


def test_two_whom_an_edge_joins_or_one_sentence_names_are_two(tell: Tell, model, run_job: RunJob):
    tell(("Mariana Costa", "Mariana Costa works at Orion Tech"))
    tell(("Marianna Costa", "Marianna Costa is a friend of Mariana Costa"),
         edges=(("Marianna Costa", "friend_of", "Mariana Costa"),))  # fmt: skip
    run_job(JOB)
    assert model.count("entity_merge") == 0


def test_a_first_name_that_fits_two_is_asked_about_only_with_a_relation_in_common(tell: Tell, model, run_job: RunJob):
    edge = (("Bia Souza", "works_at", "Orion Tech"),)
    tell(("Bia Souza", "Bia Souza works at Orion Tech"), edges=edge)
    tell(("Bia Lima", "Bia Lima lives in Recife"))
    tell(("Bia", "Bia plays chess"))
    model.on("entity_merge", {"reason": "in doubt", "same": False})
    run_job(JOB)
    assert model.count("entity_merge") == 0
    tell(("Bia", "Bia works at Orion Tech"), edges=(("Bia", "works_at", "Orion Tech"),))
    run_job(JOB)
    asked = [call.payload["entities"] for call in model.calls if call.task == "entity_merge"]
    assert {one["name"] for one in asked[0]} == {"Bia", "Bia Souza"}
    assert len(asked) == 2, "now that it is not Bia Souza, it may be Bia Lima"


def test_what_many_share_says_nothing(tell: Tell, model, run_job: RunJob):
    for name in ("Caio Reis", "Davi Luz", "Enzo Sá", "Gil Paz", "Hugo Cruz", "Ivo Dias"):
        tell((name, f"{name} works at Orion Tech"), (name, f"{name} lives in Recife"),
             edges=((name, "works_at", "Orion Tech"), (name, "lives_in", "Recife")))  # fmt: skip
    run_job(JOB)
    assert model.count("entity_merge") == 0


def test_nobody_is_asked_about_more_than_a_few_times(tell: Tell, model, run_job: RunJob, rows, monkeypatch):
    monkeypatch.setattr(twins, "QUESTIONS_AN_ENTITY", 1)
    names = ["Mariana Costa", "Marianna Costa", "Mariana Costta", "Maryana Costa", "Mariana Kosta", "Mariahna Costa"]
    for number, name in enumerate(names):
        model.vector(name, [float(number == axis) for axis in range(384)])
        tell((name, f"{name} has a boat"))
    assert len(living(rows)) == len(names)
    model.on("entity_merge", {"reason": "in doubt", "same": False})
    run_job(JOB)
    assert 3 <= model.count("entity_merge") <= len(names), "there are fifteen pairs"
    assert run_job(JOB)["steps"] == 0


def test_a_nameless_holder_of_a_role_may_be_the_one_who_has_a_name(tell: Tell, model, run_job: RunJob, rows):
    tell(("Rafael's brother", "Rafael's brother lives in Recife"))
    tell(("Pedro", "Pedro is a brother of Rafael"), edges=(("Pedro", "sibling_of", "Rafael"),))
    assert len(living(rows)) == 2
    model.on("entity_merge", {"reason": "the only brother", "same": True})
    assert run_job(JOB)["items"] == 1
    assert living(rows) == ["person:pedro"]


def test_killed_between_plan_and_apply_it_ends_the_same(twice, rows, monkeypatch, database):
    place([PlacedRun("a", JOB)])
    given = take_turn()

    class Killed(BaseException):
        """Nobody catches it, like a kill."""

    def die(*_: object) -> None:
        raise Killed

    with monkeypatch.context() as patch:
        patch.setattr(holding, "lock_for_apply", die)
        with pytest.raises(Killed):
            run_stage(Stage.JOB, given.run_id, given.fence)
    assert len(living(rows)) == 2
    with database.begin() as connection:
        connection.execute(text("UPDATE agent_turns SET lease_until = mandua_now() - interval '1 s'"))
    assert isinstance(one_step(), Applied)
    assert living(rows) == ["person:mariana_costa"]
    assert twice.count("entity_merge") == 1, "the reply was kept"

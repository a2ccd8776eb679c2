"""What the tests of the jobs share: running one to its end, under turns like anybody."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from sqlalchemy import Engine, text

from tests.integration.turns.conftest import (  # noqa: F401
    accepted,
    later,
    model,
    process,
    rows,
)
from tests.scripted_model import ScriptedModel
from worker.maintenance.planning import PlacedRun, place
from worker.turns.dispatch import Dispatched, dispatch
from worker.turns.running import Applied, Outcome, run_stage

RunJob = Callable[..., dict[str, Any]]
Tell = Callable[..., None]


def take_turn(agent: str = "a") -> Dispatched:
    """The agent's turn, given to its head, which is there."""
    given = dispatch(agent)
    assert given.run_id is not None
    return given


def one_step(agent: str = "a") -> Outcome:
    """One step of whatever job is at the head of the agent."""
    given = take_turn(agent)
    (stage,) = given.stages
    return run_stage(stage, given.run_id, given.fence)  # type: ignore[arg-type]


@pytest.fixture
def run_job(database: Engine) -> RunJob:
    """Place a run of a job and take it through all its steps; returns its row of maintenance_runs."""

    def do(name: str, agent: str = "a") -> dict[str, Any]:
        place([PlacedRun(agent, name)])
        while dispatch_left(database, agent):
            outcome = one_step(agent)
            assert isinstance(outcome, Applied), outcome
        with database.connect() as connection:
            found = connection.execute(
                text("SELECT * FROM maintenance_runs WHERE job = :job AND agent_id = :agent"
                     " ORDER BY finished_at DESC LIMIT 1"), {"job": name, "agent": agent},
            )  # fmt: skip
            return dict(found.mappings().one())

    return do


def dispatch_left(database: Engine, agent: str) -> bool:
    """Whether the agent has anything unfinished."""
    with database.connect() as connection:
        query = "SELECT EXISTS (SELECT FROM runs WHERE agent_id = :agent AND finished_at IS NULL)"
        return bool(connection.execute(text(query), {"agent": agent}).scalar())


@pytest.fixture
def tell(process: Any, model: ScriptedModel) -> Tell:  # noqa: F811
    """A message of agent a whose facts are (subject, text), and edges (source, type, target)."""
    model.on("entity_resolution", lambda p: {"resolutions": [
        {"name_number": name["number"], "reason": "in doubt", "candidate_number": None} for name in p["names"]
    ]})  # fmt: skip
    model.on("reconciliation", lambda p: {"decisions": [
        {"fact_number": fact["number"], "reason": "", "action": "ADD", "existing_number": None} for fact in p["facts"]
    ]})  # fmt: skip

    def do(*facts: tuple[str, str], edges: tuple[tuple[str, str, str], ...] = ()) -> None:
        names = dict.fromkeys([subject for subject, _ in facts] + [end for s, _, t in edges for end in (s, t)])
        kinds = {"Orion Tech": "organization", "Recife": "place"}
        model.queue("informed_extraction", {
            "entities": [{"name": name, "type": kinds.get(name, "person"), "aliases": []} for name in names],
            "facts": [{"subject": subject, "text": said, "confidence_level": "explicit_statement"}
                      for subject, said in facts],
            "relations": [{"source": source, "rel_type": kind, "target": target} for source, kind, target in edges],
        })  # fmt: skip
        process(" and ".join(names) + ": " + ". ".join(said for _, said in facts))

    return do

"""What a run says it cost: each reply once, what was paid beside it apart, together what the provider bills."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any
from uuid import UUID

import pytest

from producer.queues import Stage
from tests.acceptance.stack import lives_in
from tests.scripted_model import EMBEDDING, Fault, ScriptedModel, tokens_of
from worker.llm.provider import Completion, Usage
from worker.turns.dispatch import dispatch
from worker.turns.hold import begin
from worker.turns.replies import TurnLedger
from worker.turns.running import Moved, Waiting, blame, run_stage
from worker.write.calls import CallUsage

BROKEN = Fault.broken("Claro! Anotado.")


pytestmark = pytest.mark.usefixtures("no_long_waits")


@dataclass
class OneRun:
    """One message's extraction, started as often as a test wants."""

    rows: Callable[..., list[dict[str, Any]]]
    later: Callable[[str], None]
    model: ScriptedModel
    hours: int = 0

    def begin(self) -> tuple[UUID, int]:
        """The run and the fence of its next start; an earlier one that still holds the turn is dead by now."""
        if self.rows("SELECT 1 FROM agent_turns WHERE stage_token IS NOT NULL"):
            self.hours += 1
            self.later(f"{self.hours} hours")
        while (given := dispatch("a")).run_id is None:  # it waits for some milliseconds after a failure
            assert given.wait is not None
        return given.run_id, given.fence

    def die(self, key: str, *, kept: bool = False) -> None:
        """A start that sends a call and dies, after its reply was ``kept`` or before it came."""
        start = begin(*self.begin(), Stage.EXTRACT)
        assert start is not None
        lost = TurnLedger(start.hold, start.row.sent or {}, {}).announce(key, "m")
        if kept:
            ledger = TurnLedger(start.hold, {}, {})
            ledger.store(key, Completion("{}", Usage(70, 7)), CallUsage(), lost)

    def extract(self) -> Any:
        """One whole start of the extraction."""
        return run_stage(Stage.EXTRACT, *self.begin())

    def cost(self) -> tuple[int, int, int]:
        """Tokens used and wasted, and calls, as the run says."""
        usage = CallUsage.model_validate(self.rows("SELECT usage FROM runs")[0]["usage"])
        wasted = usage.wasted_input_tokens + usage.wasted_output_tokens
        return usage.input_tokens + usage.output_tokens, wasted, usage.calls

    def one_call(self) -> int:
        """Tokens of one good call."""
        (call, *_) = [call for call in self.model.calls if call.task != EMBEDDING]
        return tokens_of(call, lives_in(call.payload))


@pytest.fixture
def run(accepted: Any, rows: Any, later: Any, model: ScriptedModel) -> OneRun:
    """A message of which nothing was read yet."""
    model.on("informed_extraction", lives_in)
    accepted("I live in Natal")
    return OneRun(rows, later, model)


def test_a_refused_call_costs_nothing_and_wastes_nothing(run: OneRun):
    run.model.queue("informed_extraction", Fault.status(429, retry_after=0.01), Fault.status(500))
    assert [type(run.extract()) for _ in range(3)] == [Waiting, Waiting, Moved]
    assert run.cost() == (run.one_call(), 0, 1)


def test_a_reply_that_cannot_be_read_is_paid_and_not_wasted(run: OneRun):
    run.model.queue("informed_extraction", BROKEN)
    assert [type(run.extract()) for _ in range(2)] == [Waiting, Moved]
    broken = tokens_of(run.model.calls[0], BROKEN)
    assert run.cost() == (run.one_call() + broken, 0, 2)


def test_a_call_that_was_lost_with_its_worker_is_wasted_once_whatever_comes_between(run: OneRun):
    run.die("informed_extraction:read-with-an-older-memory")
    run.model.queue("informed_extraction", Fault.status(429, retry_after=0.01), BROKEN)
    assert [type(run.extract()) for _ in range(3)] == [Waiting, Waiting, Moved]
    used, wasted, calls = run.cost()
    broken = tokens_of([call for call in run.model.calls if call.task != EMBEDDING][1], BROKEN)
    assert (used, calls) == (run.one_call() + broken, 2)
    assert wasted == broken, "as much as the answer to the call that was made instead of it"


def test_two_deaths_are_wasted_twice(run: OneRun):
    run.die("informed_extraction:x")
    run.die("informed_extraction:x")
    assert isinstance(run_stage(Stage.EXTRACT, *run.begin(), alone=True), Moved)
    assert run.cost() == (run.one_call(), 2 * run.one_call(), 1)


def test_a_kept_reply_is_counted_though_its_worker_died_before_it_could_say_so(run: OneRun, rows: Any):
    run.die("informed_extraction:x", kept=True)
    start = begin(*run.begin(), Stage.EXTRACT)
    assert start is not None
    ledger = TurnLedger(start.hold, start.row.sent, start.row.replies)
    kept = ledger.stored("informed_extraction:x")
    assert kept is not None
    assert (kept.completion.usage, kept.counted, kept.lost) == (Usage(70, 7), False, 0)
    again = ledger.stored("informed_extraction:x")
    assert again is not None
    assert again.counted, "the second look at it costs nothing more"
    assert start.row.sent == {}


def test_a_run_is_blamed_only_where_its_own_process_died_and_its_parent_saw_it(run: OneRun, rows: Any):
    for _ in range(2):
        run.die("informed_extraction:x")
    run_id, fence = run.begin()
    assert type(blame(run_id, fence)).__name__ == "Stale", "nothing was begun under this fence"
    assert begin(run_id, fence, Stage.EXTRACT) is not None
    assert type(blame(run_id, fence - 1)).__name__ == "Stale", "that was another start"
    assert type(blame(run_id, fence)).__name__ == "Parked"
    assert rows("SELECT state, cause FROM runs") == [{"state": "parked", "cause": "worker_died"}]
    assert rows("SELECT run_id, stage_token FROM agent_turns") == [{"run_id": None, "stage_token": None}]


def test_deaths_that_took_the_worker_along_do_not_park_a_message(run: OneRun):
    for _ in range(4):
        run.die("informed_extraction:x")
    assert isinstance(run_stage(Stage.EXTRACT, *run.begin(), alone=True), Moved)

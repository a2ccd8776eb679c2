"""The table of failures (behaviour: 4), row by row."""

from __future__ import annotations

import pytest

from producer.queues import RUN_STAGES, Stage
from worker.llm.provider import Cause
from worker.write.policy import (
    COUNTED_WAITS,
    DATABASE,
    OWN_ERROR,
    Action,
    Verdict,
    decide,
    without_waiting,
)

WAIT = Verdict(Action.WAIT)
COUNTED_WAIT = Verdict(Action.WAIT, counted=True)
FALL_BACK = Verdict(Action.FALL_BACK, counted=True)
PARK = Verdict(Action.PARK, counted=True)


def story(stage: Stage, cause: str) -> list[Action]:
    """What happens when ``cause`` never stops, until the run is parked or the stage has fallen back for good."""
    actions, failures, fallen_back = [], 0, False
    while len(actions) < 10:
        verdict = decide(stage, cause, failures, fallen_back=fallen_back)
        actions.append(verdict.action)
        failures += verdict.counted
        fallen_back = fallen_back or verdict.action is Action.FALL_BACK
        if verdict.action is Action.PARK:
            break
    return actions


@pytest.mark.parametrize("stage", RUN_STAGES)
@pytest.mark.parametrize("cause", [Cause.RATE_LIMITED, Cause.PROVIDER_ERROR, Cause.MODEL_UNAVAILABLE, DATABASE])
def test_what_is_nobodys_fault_waits_and_is_not_counted(stage: Stage, cause: str):
    assert decide(stage, cause, 5, fallen_back=False) == WAIT


def test_timeout_in_extract_is_retried_twice_then_blind_then_parked():
    blind = [Action.WAIT, Action.PARK]
    assert story(Stage.EXTRACT, Cause.TIMEOUT) == [Action.WAIT, Action.WAIT, Action.FALL_BACK, *blind]


def test_bad_reply_in_extract_is_asked_once_more_then_blind_then_parked():
    blind = [Action.WAIT, Action.WAIT, Action.PARK]
    assert story(Stage.EXTRACT, Cause.BAD_REPLY) == [Action.WAIT, Action.FALL_BACK, *blind]


@pytest.mark.parametrize("cause", [Cause.TIMEOUT, Cause.BAD_REPLY])
@pytest.mark.parametrize("failures", [1, 2, 3])
def test_one_more_failure_in_blind_extraction_costs_no_message(cause: Cause, failures: int):
    """Whatever it fell back for: one in ten calls fails in the chaos, and blind extraction makes four."""
    assert decide(Stage.EXTRACT, cause, failures, fallen_back=True) == COUNTED_WAIT


@pytest.mark.parametrize("stage", [Stage.RESOLVE, Stage.RECONCILE])
def test_resolve_and_reconcile_fall_back_instead_of_parking(stage: Stage):
    assert story(stage, Cause.TIMEOUT)[:3] == [Action.WAIT, Action.WAIT, Action.FALL_BACK]
    assert story(stage, Cause.BAD_REPLY)[:2] == [Action.WAIT, Action.FALL_BACK]
    assert decide(stage, Cause.REFUSED, 0, fallen_back=False) == FALL_BACK


@pytest.mark.parametrize("cause", [Cause.REFUSED, Cause.INVALID_REQUEST])
def test_a_refusal_in_extract_is_parked_at_once_without_blind(cause: Cause):
    assert decide(Stage.EXTRACT, cause, 0, fallen_back=False) == PARK


@pytest.mark.parametrize("stage", RUN_STAGES)
def test_our_own_error_is_parked_after_two_tries(stage: Stage):
    assert story(stage, OWN_ERROR) == [Action.WAIT, Action.PARK]


def test_a_provider_error_counts_only_while_the_model_answers_others():
    assert decide(Stage.EXTRACT, Cause.PROVIDER_ERROR, 0, fallen_back=False, model_well=True) == COUNTED_WAIT
    last = COUNTED_WAITS - 1
    assert decide(Stage.EXTRACT, Cause.PROVIDER_ERROR, last, fallen_back=False, model_well=True) == PARK
    assert decide(Stage.EXTRACT, Cause.PROVIDER_ERROR, last, fallen_back=False, model_well=False) == WAIT


def test_in_process_nothing_waits():
    assert without_waiting(Stage.EXTRACT, Cause.RATE_LIMITED, 0, fallen_back=False) == FALL_BACK
    assert without_waiting(Stage.EXTRACT, Cause.RATE_LIMITED, 0, fallen_back=True) == PARK
    assert without_waiting(Stage.RECONCILE, Cause.PROVIDER_ERROR, 0, fallen_back=False) == FALL_BACK

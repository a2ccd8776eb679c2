"""What a failure means for a message: the table of behaviour 4, per stage and cause, as a pure function.

Workers and the in-process pipeline read the same table; only the latter cannot wait.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from producer.queues import Stage
from worker.llm.provider import Cause

DATABASE = "database"  # gone, restarting, or refusing this statement for now (deadlock, serialisation)
OWN_ERROR = "own_error"
WORKER_DIED = "worker_died"

# A message that alone draws errors from a model which answers everybody else is not retried for ever.
COUNTED_WAITS = 8

_TRANSIENT = frozenset({Cause.RATE_LIMITED, Cause.PROVIDER_ERROR, Cause.MODEL_UNAVAILABLE, DATABASE})
_TRIES = {Cause.TIMEOUT: 3, Cause.BAD_REPLY: 2}
# Blind extraction is several calls, each of which may once go wrong; those that went well are not made again.
_TRIES_WITH_BLIND = 5
# A job that gets no answer about one item does for it what it can without, so that it comes to the next.
_FALLS_BACK = frozenset({Stage.RESOLVE, Stage.RECONCILE, Stage.JOB})


class Action(StrEnum):
    """What happens next: wait and retry, fall back to the simpler way of this stage, or park the run."""

    WAIT = "wait"
    FALL_BACK = "fall_back"
    PARK = "park"


@dataclass(frozen=True, slots=True)
class Verdict:
    """An action; ``counted`` says that the failure counts against the message."""

    action: Action
    counted: bool = False


def decide(stage: Stage, cause: str, failures: int, *, fallen_back: bool, model_well: bool = False) -> Verdict:
    """What to do after a failure of ``stage``.

    ``failures``: how many were counted against the message in this stage before. ``fallen_back``: the stage already
    runs its simpler way. ``model_well``: the model has answered other calls meanwhile.
    """
    if cause in _TRANSIENT:
        counted = model_well and cause == Cause.PROVIDER_ERROR
        if counted and failures + 1 >= COUNTED_WAITS:
            return _give_up(stage, fallen_back, blind_helps=False)
        return Verdict(Action.WAIT, counted)
    if cause in _TRIES:
        blind = fallen_back and stage is Stage.EXTRACT
        if (blind or not fallen_back) and failures + 1 < (_TRIES_WITH_BLIND if blind else _TRIES[Cause(cause)]):
            return Verdict(Action.WAIT, counted=True)
        return _give_up(stage, fallen_back, blind_helps=True)
    if cause in (Cause.REFUSED, Cause.INVALID_REQUEST):
        return _give_up(stage, fallen_back, blind_helps=False)
    return Verdict(Action.WAIT, counted=True) if failures == 0 else Verdict(Action.PARK, counted=True)


def without_waiting(stage: Stage, cause: str, failures: int, *, fallen_back: bool) -> Verdict:
    """The same table where nothing can wait (``run_write_pipeline``): a transient error is final at once."""
    if cause in _TRANSIENT:
        return _give_up(stage, fallen_back, blind_helps=True)
    return decide(stage, cause, failures, fallen_back=fallen_back)


def _give_up(stage: Stage, fallen_back: bool, *, blind_helps: bool) -> Verdict:
    can_fall_back = stage in _FALLS_BACK or (stage is Stage.EXTRACT and blind_helps)
    return Verdict(Action.FALL_BACK if can_fall_back and not fallen_back else Action.PARK, counted=True)

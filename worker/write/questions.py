"""What reconciliation would ask about a message, found out ahead of its turn; and one call for several such questions.

A question is asked ahead against the memory as it is now. Its answer is of use only if the very same question comes up
when it is the message's turn: if the memory has moved on, the question is another one, and is asked then. So asking
ahead saves calls and changes nothing.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from worker.db import ReadSession
from worker.llm.provider import Cause, Completion, ModelError
from worker.llm.verdicts import parse_decisions
from worker.write.calls import Calls, EmbeddingError
from worker.write.message import Message
from worker.write.plans import Extraction
from worker.write.reconciliation import reconcile
from worker.write.resolution import resolve

TASK = "reconciliation"
# Facts of one call. What does not fit any more is asked in its turn.
MAX_FACTS = 40


class _Asked(Exception):
    """A stage would ask the model now."""

    def __init__(self, task: str, payload: Mapping[str, Any]) -> None:
        super().__init__(task)
        self.task, self.payload = task, payload


class Listening(Calls):
    """Calls that embed, and end a stage where it would ask the model."""

    def ask(self, task: str, payload: Mapping[str, Any], *_: Any, **__: Any) -> Any:
        """Raise what would have been asked."""
        raise _Asked(task, payload)


def question_of(
    message: Message, extraction: Extraction, read: ReadSession, calls: Listening
) -> Mapping[str, Any] | None:
    """The payload that reconciliation would send for ``message`` now; None where it would ask nothing, or where the
    message has an ambiguous name, which is to be settled first. At most one embedding call a stage, no model call."""
    try:
        resolution = resolve(message, extraction, read, calls)
        reconcile(message, extraction, resolution, read, calls)
    except _Asked as asked:
        return asked.payload if asked.task == TASK else None
    except EmbeddingError:
        return None
    return None


@dataclass(frozen=True, slots=True)
class _Place:
    """Where a fact of the shared call comes from: a question, its own number there, and its existing facts' numbers by
    those of the call."""

    question: int
    fact_number: int
    existing: Mapping[int, int]


def ask_together(questions: Sequence[Mapping[str, Any]], calls: Calls) -> list[str]:
    """The reply (JSON text) to each of ``questions``, by one call, in order. Raises ModelError; BAD_REPLY where a fact
    has no answer, or one that needed mending."""
    facts: list[dict[str, Any]] = []
    places: dict[int, _Place] = {}
    numbers = 0
    for index, question in enumerate(questions):
        shared: dict[int, int] = {}  # an existing fact has one number in the whole question, and so here
        for fact in question["facts"]:
            for option in fact["existing"]:
                if option["number"] not in shared:
                    numbers += 1
                    shared[option["number"]] = numbers
            number = len(facts) + 1
            own = {shared[option["number"]]: option["number"] for option in fact["existing"]}
            places[number] = _Place(index, fact["number"], own)
            facts.append({
                **fact, "number": number, "message_date": question["message_date"],
                "existing": [{**option, "number": shared[option["number"]]} for option in fact["existing"]],
            })  # fmt: skip
    payload = {"message_date": questions[0]["message_date"], "facts": facts}
    return calls.ask(TASK, payload, lambda completion: _taken_apart(completion, places, len(questions)))


def that_fit(questions: Sequence[Mapping[str, Any] | None]) -> list[int]:
    """The places of those questions, in order, that go into one call."""
    chosen, facts = [], 0
    for place, question in enumerate(questions):
        if question is not None and facts + len(question["facts"]) <= MAX_FACTS:
            chosen.append(place)
            facts += len(question["facts"])
    return chosen


def _taken_apart(completion: Completion, places: Mapping[int, _Place], many: int) -> list[str]:
    if completion.truncated:
        raise ModelError(Cause.BAD_REPLY, "cut_off")
    parsed = parse_decisions(completion.text, {number: place.existing for number, place in places.items()})
    if parsed.repairs or parsed.rejects:
        raise ModelError(Cause.BAD_REPLY, "not_attributable")
    decisions: list[list[dict[str, Any]]] = [[] for _ in range(many)]
    for decision, place in zip(parsed.decisions, places.values(), strict=True):
        target = decision.existing_number
        decisions[place.question].append(
            {"fact_number": place.fact_number, "reason": decision.reason, "action": decision.action,
             "existing_number": None if target is None else place.existing[target]}
        )  # fmt: skip
    return [json.dumps({"decisions": items}, ensure_ascii=False) for items in decisions]

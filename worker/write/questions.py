"""What several messages ask of resolution and reconciliation, in one call each (issue 7, 5).

The messages are rehearsed: their stages run one after another in a transaction that is taken back, each on what those
before it leave behind. A question is noted there and answered for the time being as if nothing were known (no
candidate, ADD), so that a later fact meets the earlier ones of the same turn among its ``existing``. Then each task is
asked once for all of them, and the answers are kept by what they are about.

When the messages are applied, an answer holds only where its question still is the same: every option that there is
now was shown, and the one that was chosen is still among them. What an earlier message of the turn has changed
otherwise is asked anew, so that asking together saves calls and changes nothing in what is remembered.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

from worker.embedding.provider import EmbeddingProvider
from worker.llm.prompts import version_of
from worker.llm.provider import Cause, Completion, LLMProvider, ModelError, Usage
from worker.llm.verdicts import parse_decisions, parse_resolutions
from worker.write.calls import Calls, CallUsage, VectorCache
from worker.write.message import Message
from worker.write.told import ToldCalls

T = TypeVar("T")
Payload = Mapping[str, Any]

NAMES, DECISIONS = "entity_resolution", "reconciliation"
MAX_ITEMS = 40  # names, or facts, of one call
# What may be around a reply without a doubt about what it says.
_HARMLESS = {"fence_removed", "prose_around", "reasoning_removed"}


class Unanswered(Exception):
    """A stage needs an answer or a vector that is not at hand."""


@dataclass(frozen=True, slots=True)
class _Shape:
    """How a task writes its questions and answers: the keys of the items and their options, of the choices, of the
    numbers; and by which fields an item and an option are known again."""

    items: str
    options: str
    choices: str
    item_number: str
    option_number: str
    item_is: tuple[str, ...]
    option_is: tuple[str, ...]


_SHAPES = {
    NAMES: _Shape(
        "names", "candidates", "resolutions", "name_number", "candidate_number", ("name", "type"), ("name", "type")
    ),
    DECISIONS: _Shape(
        "facts", "existing", "decisions", "fact_number", "existing_number", ("subject", "text"),
        ("text", "since", "until"),
    ),
}  # fmt: skip

Identity = tuple[Any, ...]


@dataclass(frozen=True, slots=True)
class Question:
    """What the message at ``place`` of a turn asks: the payload that it would send alone."""

    place: int
    message: Message
    task: str
    payload: Payload


@dataclass(frozen=True, slots=True)
class _Answer:
    """An item's answer: the fields of its choice but the numbers, the option chosen, and those that were shown."""

    choice: Mapping[str, Any]
    chosen: Identity | None
    shown: frozenset[Identity]


@dataclass(slots=True)
class Answers:
    """The answers so far, and what each message's part in the calls has cost. Two options that look alike in all by
    which they are known again leave a question without an answer."""

    _known: dict[tuple[int, str, Identity], _Answer] = field(default_factory=dict)
    shares: dict[tuple[int, str], Usage] = field(default_factory=dict)

    def put(self, place: int, task: str, item: Payload, choice: Mapping[str, Any], chosen: Identity | None) -> None:
        """Keep what was chosen for an item."""
        shape = _SHAPES[task]
        shown = frozenset(_identity(option, shape.option_is) for option in item[shape.options])
        self._known[place, task, _identity(item, shape.item_is)] = _Answer(choice, chosen, shown)

    def reply(self, place: int, task: str, payload: Payload) -> str | None:
        """The reply (JSON text) to the payload, None where one of its items has no answer that holds."""
        shape = _SHAPES.get(task)
        if shape is None:
            return None
        choices = []
        for item in payload[shape.items]:
            known = self._known.get((place, task, _identity(item, shape.item_is)))
            options = {_identity(option, shape.option_is): option["number"] for option in item[shape.options]}
            if known is None or not known.shown.issuperset(options) or len(options) < len(item[shape.options]):
                return None
            if known.chosen is not None and known.chosen not in options:
                return None
            number = None if known.chosen is None else options[known.chosen]
            choices.append({shape.item_number: item["number"], **known.choice, shape.option_number: number})
        return json.dumps({shape.choices: choices}, ensure_ascii=False)


@dataclass(slots=True)
class Wanted:
    """What a rehearsal found missing: texts without a vector, and questions, each by the place of its message."""

    texts: dict[int, list[str]] = field(default_factory=dict)
    questions: list[Question] = field(default_factory=list)

    def __bool__(self) -> bool:
        return bool(self.texts or self.questions)

    def forget(self) -> None:
        """Begin anew."""
        self.texts.clear()
        self.questions.clear()

    def of(self, task: str) -> list[Question]:
        """The questions of a task, in the order of their messages."""
        return [question for question in self.questions if question.task == task]


class TurnCalls(Calls):
    """The calls of a message inside a transaction: nothing goes out. Answers and vectors are at hand, or the stage
    ends (Unanswered); with ``wanted``, in a rehearsal, a question is noted there and the stage goes on without."""

    def __init__(
        self, llm: LLMProvider, embeddings: EmbeddingProvider, message: Message, place: int, answers: Answers,
        wanted: Wanted | None, *, vectors: VectorCache, told: ToldCalls | None,
    ) -> None:  # fmt: skip
        super().__init__(llm, embeddings, vectors=vectors, usage=CallUsage(), told=told)
        self._message, self._place, self._answers, self._wanted = message, place, answers, wanted

    def ask(self, task: str, payload: Payload, parse: Callable[[Completion], T], **_: Any) -> T:
        """The message's part of the answers. Raises Unanswered."""
        text = self._answers.reply(self._place, task, payload)
        if text is None:
            if self._wanted is None or task not in _SHAPES:
                raise Unanswered
            self._wanted.questions.append(Question(self._place, self._message, task, payload))
            text = _undecided(task, payload)
        self.usage.prompts[task] = version_of(task, "")
        usage = self._answers.shares.get((self._place, task), Usage())
        return self._parsed(task, payload, Completion(text, usage), parse)

    def embed(self, texts: Sequence[str]) -> VectorCache:
        """The vectors, all of which are known. Raises Unanswered."""
        missing = [text for text in dict.fromkeys(texts) if text not in self.vectors]
        if missing:
            if self._wanted is not None:
                self._wanted.texts.setdefault(self._place, []).extend(missing)
            raise Unanswered
        return self.vectors


@dataclass(frozen=True, slots=True)
class _Item:
    """One name or fact of a shared call: as its message would send it, as it is sent, and its options by number."""

    question: Question
    own: Payload
    sent: Mapping[str, Any]
    options: Mapping[int, Identity]


def ask_together(task: str, questions: Sequence[Question], calls: Calls, answers: Answers) -> list[int]:
    """Ask ``task`` once for as many of ``questions``, in order, as one call holds, and keep the answers.

    Returns the places of the messages that were asked about. Raises ModelError; BAD_REPLY where an item has no answer,
    or one that needed mending: nothing is kept then.
    """
    shape, items = _SHAPES[task], _items(task, questions)
    if not items:
        return []
    payload = {**_about(task, items), shape.items: [item.sent for item in items]}
    choices = calls.ask(task, payload, lambda completion: _choices(task, completion, items))
    for item, (choice, number) in zip(items, choices, strict=True):
        answers.put(item.question.place, task, item.own, choice, None if number is None else item.options[number])
    return list(dict.fromkeys(item.question.place for item in items))


# -- parts -------------------------------------------------------------------------------------------------------------


def _identity(item: Payload, fields: Sequence[str]) -> Identity:
    return tuple(item.get(name) for name in fields)


def _undecided(task: str, payload: Payload) -> str:
    """The reply that chooses nothing."""
    shape = _SHAPES[task]
    action = {"action": "ADD"} if task == DECISIONS else {}
    numbers = [item["number"] for item in payload[shape.items]]
    choices = [{shape.item_number: number, **action, shape.option_number: None} for number in numbers]
    return json.dumps({shape.choices: choices})


def _items(task: str, questions: Sequence[Question]) -> list[_Item]:
    """The items of the first questions that fit in, numbered anew; an option of a fact has one number in the call."""
    shape, found = _SHAPES[task], list[_Item]()
    numbers: dict[Identity, int] = {}
    for question in questions:
        own = question.payload[shape.items]
        if len(found) + len(own) > MAX_ITEMS:
            break
        for item in own:
            shown = [(_identity(option, shape.option_is), option) for option in item[shape.options]]
            if task == DECISIONS:
                at: Mapping[Identity, int] = {key: numbers.setdefault(key, len(numbers) + 1) for key, _ in shown}
                more = {"message_date": question.payload["message_date"]}
            else:
                at = {key: number for number, (key, _) in enumerate(shown, 1)}
                more = {"message_number": question.place + 1}
            sent = {**item, "number": len(found) + 1, **more,
                    shape.options: [{**option, "number": at[key]} for key, option in shown]}  # fmt: skip
            found.append(_Item(question, item, sent, {number: key for key, number in at.items()}))
    return found


def _about(task: str, items: Sequence[_Item]) -> dict[str, Any]:
    """What a call says beside its items."""
    asked = {item.question.place: item.question for item in items}
    if task == DECISIONS:
        return {"message_date": items[0].question.payload["message_date"]}
    return {
        "messages": [
            {"number": place + 1, "message": one.message.text, "speaker": one.message.speaker}
            for place, one in asked.items()
        ]
    }


def _choices(
    task: str, completion: Completion, items: Sequence[_Item]
) -> list[tuple[Mapping[str, Any], int | None]]:
    """Each item's choice and the number of the option that it names."""
    if completion.truncated:
        raise ModelError(Cause.BAD_REPLY, "cut_off")
    options = {item.sent["number"]: item.options for item in items}
    found: list[tuple[Mapping[str, Any], int | None]]
    if task == NAMES:
        names = parse_resolutions(completion.text, options)
        mended = bool(names.repairs.keys() - _HARMLESS or names.rejects)
        found = [({"reason": one.reason}, one.candidate_number) for one in names.choices]
    else:
        facts = parse_decisions(completion.text, options)
        mended = bool(facts.repairs.keys() - _HARMLESS or facts.rejects)
        found = [({"reason": one.reason, "action": one.action}, one.existing_number) for one in facts.decisions]
    if mended:
        raise ModelError(Cause.BAD_REPLY, "not_attributable")
    return found

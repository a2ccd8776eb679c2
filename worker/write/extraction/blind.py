"""Blind extraction, the fallback: entities first, then facts and relations at the same time (behaviour: 4)."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any

from worker.llm.items import Emotion, ParsedExtraction
from worker.llm.provider import Cause, Completion, ModelError
from worker.llm.replies import parse_emotion
from worker.write.calls import Calls
from worker.write.extraction.informed import CutReply, Part, asked
from worker.write.extraction.reading import Reading
from worker.write.message import Message

TASKS = ("entity_scan", "fact_extraction", "relation_extraction")
# Waiting helps against these; giving the relations up for good would not be honest.
TRANSIENT = frozenset({Cause.RATE_LIMITED, Cause.PROVIDER_ERROR, Cause.MODEL_UNAVAILABLE})


def extract_blind(
    message: Message, part: Part, calls: Calls, *, instructions: str = "", salvage: bool = False
) -> Reading:
    """What the three tasks read in ``part``: the same items as informed extraction, without profiles and emotion.

    Facts are what counts: a failure of entities or facts raises ModelError, a failure of the relations for good is a
    degradation. ``salvage`` as in ``asked``.
    """
    reading = Reading()

    def ask(task: str, **extra: Any) -> ParsedExtraction:
        return asked(
            task,
            part.payload(message, **extra),
            message.speaker,
            calls,
            reading,
            instructions=instructions,
            salvage=salvage,
        )

    scanned = ask("entity_scan")
    reading.take(scanned)
    entities = [entity.model_dump() for entity in scanned.entities]
    with ThreadPoolExecutor(max_workers=2, thread_name_prefix="blind") as pool:
        facts = pool.submit(ask, "fact_extraction", entities=entities)
        edges = pool.submit(_relations, ask, entities, reading)
    reading.take(facts.result())
    if (found := _unless_final(edges, reading)) is not None:
        reading.take(found)
    return reading


def _relations(
    ask: Callable[..., ParsedExtraction], entities: list[dict[str, Any]], reading: Reading
) -> ParsedExtraction:
    """The relations, asked for once more where two names are there and none came back (behaviour: 4)."""
    first = ask("relation_extraction", entities=entities)
    if first.relations or len({entity["name"] for entity in entities}) < 2:
        return first
    reading.relation_retry_triggered = True
    # Another payload than the first, or a stored reply of the first would answer it.
    return ask("relation_extraction", entities=entities, attempt=2)


def _unless_final(edges: Future[ParsedExtraction], reading: Reading) -> ParsedExtraction | None:
    try:
        return edges.result()
    except CutReply:
        raise
    except ModelError as error:
        if error.cause in TRANSIENT:
            raise
        reading.degrade("facts without relations", error.cause.value)
        return None


def emotion_of(text: str, calls: Calls) -> Emotion | None:
    """The emotion of ``text``, by a call of its own; None where it fails, for it is never critical (behaviour: 2)."""
    parse: Callable[[Completion], Emotion] = lambda completion: parse_emotion(completion.text)  # noqa: E731
    try:
        return calls.ask("emotion", {"message": text}, parse)
    except ModelError:
        return None

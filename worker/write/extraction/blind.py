"""Blind extraction, the fallback: entities first, then facts and relations at the same time (behaviour: 4)."""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, TypeVar

from worker.llm.items import Emotion, ParsedExtraction
from worker.llm.provider import Cause, Completion, ModelError
from worker.llm.replies import parse_emotion, parse_extraction
from worker.write.calls import Calls
from worker.write.extraction.informed import CutReply, Part
from worker.write.extraction.reading import Reading
from worker.write.message import Message

TASKS = ("entity_scan", "fact_extraction", "relation_extraction")
# Waiting helps against these; giving the relations up for good would not be honest.
TRANSIENT = frozenset({Cause.RATE_LIMITED, Cause.PROVIDER_ERROR, Cause.MODEL_UNAVAILABLE})
T = TypeVar("T")


def extract_blind(
    message: Message,
    part: Part,
    calls: Calls,
    *,
    instructions: str = "",
    salvage: bool = False,
    with_emotion: bool = True,
) -> Reading:
    """What the four calls read in ``part``, with the same items as informed extraction but for profiles.

    Facts are what counts: a failure of entities or facts raises ModelError, a failure of the relations for good is a
    degradation, and the emotion is never critical. ``salvage`` as in ``extract_informed``.
    """
    reading = Reading()

    def ask(task: str, **extra: Any) -> ParsedExtraction:
        cut = False

        def parse(completion: Completion) -> ParsedExtraction:
            nonlocal cut
            cut = completion.truncated
            if cut and not salvage:
                raise CutReply
            return parse_extraction(completion.text, message.speaker)

        parsed = calls.ask(task, part.payload(message, **extra), parse, instructions=instructions)
        if cut:
            reading.degrade("complete items of a cut-off reply", "cut_off")
        return parsed

    scanned = ask("entity_scan")
    reading.take(scanned)
    entities = [entity.model_dump() for entity in scanned.entities]
    names = {entity.name for entity in scanned.entities}

    def relations() -> ParsedExtraction:
        first = ask("relation_extraction", entities=entities)
        if first.relations or len(names) < 2:
            return first
        reading.relation_retry_triggered = True
        # Another payload than the first, or a stored reply of the first would answer it.
        return ask("relation_extraction", entities=entities, attempt=2)

    with ThreadPoolExecutor(max_workers=3, thread_name_prefix="blind") as pool:
        facts = pool.submit(ask, "fact_extraction", entities=entities)
        edges = pool.submit(relations)
        mood = pool.submit(_emotion, part, calls) if with_emotion else None
    reading.take(facts.result())
    if (found := _unless_final(edges, reading)) is not None:
        reading.take(found)
    if mood is not None:
        reading.emotion = mood.result()
    return reading


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


def _emotion(part: Part, calls: Calls) -> Emotion | None:
    parse: Callable[[Completion], Emotion] = lambda completion: parse_emotion(completion.text)  # noqa: E731
    try:
        return calls.ask("emotion", {"message": part.text}, parse)
    except ModelError:
        return None  # not critical: neutral (behaviour: 2)

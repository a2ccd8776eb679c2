"""The extract stage: from a message to what it says (behaviour: 3 to 5). Reads the memory, writes nothing."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor

from producer.contract import Degradation
from producer.secrets import mask
from worker.db import ReadSession
from worker.llm.items import Emotion, ExtractedFact
from worker.llm.prompts import instructions_hash, prompt
from worker.write.calls import Calls, EmbeddingError
from worker.write.context import Context, known_context, narrowed
from worker.write.dedup import semantic_dedup
from worker.write.evidence import likely_mirrors
from worker.write.extraction import blind, informed
from worker.write.extraction.chunks import cut_into_parts, read_in_parts
from worker.write.extraction.claims import has_instructions, sentences
from worker.write.extraction.dates import Times
from worker.write.extraction.grounding import Ground, believed_again, ground
from worker.write.extraction.informed import Part
from worker.write.extraction.noise import noise_reason, spoken
from worker.write.extraction.normalise import normalise
from worker.write.extraction.reading import STAGE, Reading
from worker.write.message import Message
from worker.write.names import fold
from worker.write.plans import Dropped, Extraction

# What of a message is embedded: models read some 500 tokens and would cut the rest off themselves, or refuse.
EMBEDDED_CHARS = 1500


def embedding_text(message: Message) -> str:
    """The text under which ``calls.vectors`` holds the message's vector: masked, without pasted blocks, cut."""
    return heard_of(message).text[:EMBEDDED_CHARS]


def extract(message: Message, read: ReadSession, calls: Calls, *, fallback: str | None = None) -> Extraction:
    """What ``message`` says, as a plan. At most two SQL statements and two embedding calls, no connection over a call.

    ``fallback`` is the cause for which blind extraction is taken at once. Raises ModelError as it comes (whether to try
    again is the caller's to decide); EmbeddingError only where waiting helps. Noise gives mode ``none`` without a call.
    """
    heard = heard_of(message)
    if (reason := noise_reason(message, heard.text)) is not None:
        quiet = Reading()
        quiet.reject("message", reason)
        return Extraction(mode="none", rejected=quiet.rejected)
    is_blind = fallback is not None or not message.config.enable_informed_extraction
    context = Context() if is_blind else known_context(heard, read, calls, embed_as=heard.text[:EMBEDDED_CHARS])
    instructions = deployment_instructions(message)
    reading, chunks = _read(heard, context, calls, instructions, is_blind=is_blind)
    if context.embedding_failed:
        reading.degrade("known facts by importance", context.embedding_failed)
    if fallback is not None:
        reading.degradations.insert(0, Degradation(stage=STAGE, fell_back_to="blind", cause=fallback))
    reading = _checked(heard, reading, context)
    started = time.perf_counter()
    facts, dropped = _deduplicated(heard, reading, calls)
    return Extraction(
        mode="blind" if is_blind else "informed",
        entities=reading.entities,
        facts=facts,
        relations=reading.relations,
        profiles=reading.profiles,
        emotion=reading.emotion or Emotion(),
        known_keys=context.keys,
        dropped=dropped,
        relation_retry_triggered=reading.relation_retry_triggered,
        chunks=chunks,
        prompt_version=prompt_version(instructions, is_blind=is_blind),
        context_tokens=context.tokens,
        dedup_duration_ms=round((time.perf_counter() - started) * 1000, 3),
        degradations=reading.degradations,
        rejected=reading.rejected,
        repairs=dict(reading.repairs),
    )


def deployment_instructions(message: Message) -> str:
    """The deployer's own words for the prompt: instructions and preferred entity types; "" where there are none."""
    config = message.config
    lines = [config.extraction_instructions.strip()]
    if config.entity_types:
        lines.append(f"Preferred entity types, where one fits: {', '.join(config.entity_types)}.")
    return "\n".join(line for line in lines if line)


def prompt_version(instructions: str, *, is_blind: bool) -> str:
    """The versions of the prompts that were used, and a short hash of the deployment's instructions if it has any."""
    tasks = blind.TASKS if is_blind else (informed.TASK,)
    versions = "+".join(prompt(task).version for task in tasks)
    return f"{versions}/{instructions_hash(instructions)}" if instructions else versions


def heard_of(message: Message) -> Message:
    """``message`` as it may be read: without pasted blocks, with secrets masked, in the recent messages too."""
    said = mask(spoken(message.text).text).text
    recent = tuple(mask(spoken(text).text).text for text in message.recent_messages)
    if said == message.text and recent == message.recent_messages:
        return message
    return message.model_copy(update={"text": said, "recent_messages": recent})


def _read(heard: Message, context: Context, calls: Calls, instructions: str, *, is_blind: bool) -> tuple[Reading, int]:
    """What the model reads in all parts of the message, and how many parts that made."""
    parts = cut_into_parts(heard.text)
    budget = heard.config.informed_extraction_context_budget_tokens

    if is_blind:
        return _read_blindly(heard, parts, calls, instructions)

    def read_part(part: Part, salvage: bool) -> Reading:
        known = context if len(parts) == 1 else narrowed(context, part.text, budget)
        return informed.extract_informed(heard, part, known.payload, calls, instructions=instructions, salvage=salvage)

    return read_in_parts(parts, read_part)


def _read_blindly(heard: Message, parts: list[Part], calls: Calls, instructions: str) -> tuple[Reading, int]:
    """The same without context. The emotion is asked for once a message, beside all parts and their halves."""

    def read_part(part: Part, salvage: bool) -> Reading:
        return blind.extract_blind(heard, part, calls, instructions=instructions, salvage=salvage)

    with ThreadPoolExecutor(max_workers=1, thread_name_prefix="emotion") as pool:
        mood = pool.submit(blind.emotion_of, parts[0].text, calls)
        reading, count = read_in_parts(parts, read_part)
        reading.emotion = mood.result()
    return reading, count


def _checked(heard: Message, reading: Reading, context: Context) -> Reading:
    """``reading`` in order: one name per entity, nothing made up, dates that the message gives, no secret."""
    types = {fold(name): known.type for known in context.entities for name in (known.name, *known.aliases)}
    reading = normalise(reading, heard, types)
    stored = [
        text for known in context.entities for text in (known.name, *known.aliases, known.profile or "", *known.facts)
    ]
    claims = sentences(heard.text)
    given = Ground.of(heard.text, [*heard.recent_messages, *stored], heard.speaker, claims, heard.occurred_at)
    reading = ground(reading, given)
    if has_instructions(claims):
        reading.reject("message", "instructions_in_message")
    times = Times(heard.text, heard.occurred_at, claims)
    reading.facts = [_finished(fact, times, reading) for fact in reading.facts]
    reading.profiles = [
        profile.model_copy(update={"profile_text": mask(profile.profile_text).text}) for profile in reading.profiles
    ]
    return reading


def _finished(fact: ExtractedFact, times: Times, reading: Reading) -> ExtractedFact:
    fact, why = times.dated(fact)
    if why is not None:
        reading.repairs[why] += 1
    masked = mask(fact.text)
    value = mask(fact.value).text if fact.value else fact.value
    if masked.found or value != fact.value:
        return fact.model_copy(update={"text": masked.text, "value": value})
    return fact


def _deduplicated(heard: Message, reading: Reading, calls: Calls) -> tuple[list[ExtractedFact], list[Dropped]]:
    """The facts without near-duplicates. The message is embedded along, for its annotation, and so are the sentences
    that the relations will need: one call for all.

    A transient EmbeddingError passes through; with any other, all facts stay and a degradation says so.
    """
    try:
        mirrors = likely_mirrors(reading.facts, reading.relations, reading.entities, heard)
        vectors = calls.embed([heard.text[:EMBEDDED_CHARS], *(fact.text for fact in reading.facts), *mirrors])
    except EmbeddingError as error:
        if error.transient and not calls.without_embeddings:
            raise
        reading.degrade("all facts kept, none compared", error.cause.value)
        return reading.facts, []
    believed_again(reading, vectors, heard.text[:EMBEDDED_CHARS])
    return semantic_dedup(reading.facts, vectors, heard.config.semantic_dedup_threshold)

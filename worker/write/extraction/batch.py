"""Several messages of one conversation in one extraction call, and its reply taken apart again, message by message.

The parts are replies as the messages would have got them alone, so each message goes the ordinary way from there: its
own grounding, dates, speaker, deduplication. A reply that cannot be taken apart without a doubt is none.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from producer.secrets import mask
from worker.db import ReadSession
from worker.llm import coerce
from worker.llm.envelope import TEXT_KEYS, as_list, open_envelope
from worker.llm.items import ParsedExtraction
from worker.llm.provider import Cause, Completion, ModelError
from worker.llm.replies import parse_extraction
from worker.llm.reply_json import read_json
from worker.write.calls import Calls
from worker.write.context import known_context
from worker.write.evidence import likely_mirrors
from worker.write.extraction.chunks import cut_into_parts
from worker.write.extraction.informed import TASK
from worker.write.extraction.noise import noise_reason
from worker.write.extraction.stage import EMBEDDED_CHARS, deployment_instructions, heard_of
from worker.write.message import Message
from worker.write.names import fold, mentions

# Longer ones have enough to say for a call of their own; more than so much together, and details get lost.
MAX_MESSAGE_CHARS = 1_500
MAX_BATCH_CHARS = 6_000

# What a batch that fails with it says of its messages: nothing. Each is asked alone.
ONE_BY_ONE = frozenset({Cause.BAD_REPLY, Cause.REFUSED, Cause.INVALID_REQUEST, Cause.TIMEOUT})


@dataclass(frozen=True, slots=True)
class Part:
    """What the reply says of one message, as the JSON text that the message would have got alone, and what its
    extraction will embed if its facts stay as they are said: a wrong guess costs an embedding, a missing one a call."""

    text: str
    embedded: Sequence[str]


def may_share(message: Message) -> bool:
    """Whether ``message`` is read by one informed call that others may share."""
    if not message.config.enable_informed_extraction or len(message.text) > MAX_MESSAGE_CHARS:
        return False
    heard = heard_of(message)
    return noise_reason(message, heard.text) is None and len(cut_into_parts(heard.text)) == 1


def that_fit(messages: Sequence[Message]) -> list[Message]:
    """The first of ``messages`` and those after it that may share its call, as far as they fit in."""
    chosen, chars = list(messages[:1]), len(messages[0].text)
    for message in messages[1:]:
        if chars + len(message.text) <= MAX_BATCH_CHARS and may_share(message):
            chosen.append(message)
            chars += len(message.text)
    return chosen


def ask_together(messages: Sequence[Message], read: ReadSession, calls: Calls) -> list[Part]:
    """The reply to each of ``messages``, by one call. Raises ModelError; BAD_REPLY for a reply that
    cannot be attributed. At most two SQL statements and one embedding call; no connection over a call."""
    heard = [heard_of(message) for message in messages]
    told = "\n".join(message.text for message in heard)
    context = known_context(
        heard[0].model_copy(update={"text": told}), read, calls, embed_as=told[:EMBEDDED_CHARS]
    )
    return calls.ask(
        TASK, _payload(heard, context.payload), lambda completion: taken_apart(completion, heard),
        instructions=deployment_instructions(messages[0]),
    )  # fmt: skip


def _payload(heard: Sequence[Message], known: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """What the model is sent. Of the recent messages those that are not in the batch anyway."""
    said = [" ".join(message.text.split()) for message in heard]
    recent = dict.fromkeys(
        text for message in heard for text in message.recent_messages
        if not any(" ".join(text.split()).endswith(own) for own in said)
    )  # fmt: skip
    return {
        "messages": [
            {"number": number, "message": message.text, "speaker": message.speaker,
             "message_date": message.message_date}
            for number, message in enumerate(heard, 1)
        ],
        "recent_messages": list(recent),
        "known": list(known),
    }  # fmt: skip


def taken_apart(completion: Completion, heard: Sequence[Message]) -> list[Part]:
    """The reply to each of ``heard``. Raises ModelError(BAD_REPLY) where anything in it is nobody's."""
    if completion.truncated:
        raise ModelError(Cause.BAD_REPLY, "cut_off")
    reply = read_json(completion.text)
    envelope = open_envelope(reply.value, reply.repairs)
    if reply.repairs["repaired"] or not {"facts", "relations"} <= envelope.keys():
        raise ModelError(Cause.BAD_REPLY, "not_attributable")
    parts: list[dict[str, Any]] = [
        {"entities": [], "facts": [], "relations": [], "updated_profiles": [], "emotion": None} for _ in heard
    ]
    for section in ("facts", "relations"):
        for item in _objects(section, envelope):
            number = coerce.whole_number(item.pop("message_number", None))
            if number is None or not 1 <= number <= len(parts):
                raise ModelError(Cause.BAD_REPLY, "not_attributable")
            parts[number - 1][section].append(item)
    _give_entities(_objects("entities", envelope), parts, heard)
    _give_profiles(_objects("updated_profiles", envelope), parts)
    _give_emotions(envelope.get("emotions"), parts)
    texts = [json.dumps(part, ensure_ascii=False) for part in parts]
    # What cannot be read alone is no reply to keep.
    said = [parse_extraction(text, message.speaker) for text, message in zip(texts, heard, strict=True)]
    return [Part(text, _to_embed(one, message)) for text, one, message in zip(texts, said, heard, strict=True)]


def _to_embed(said: ParsedExtraction, heard: Message) -> list[str]:
    told = [*(fact.text for fact in said.facts), *likely_mirrors(said.facts, said.relations, said.entities, heard)]
    return [heard.text[:EMBEDDED_CHARS], *(mask(text).text for text in told)]


def _objects(section: str, envelope: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The items of a section. Anything but an object cannot say whose it is."""
    items = as_list(section, envelope.get(section), Counter())
    if items is None or any(not isinstance(item, dict) for item in items):
        raise ModelError(Cause.BAD_REPLY, "not_attributable")
    return [coerce.with_plain_keys(item) for item in items]


def _give_entities(entities: list[dict[str, Any]], parts: list[dict[str, Any]], heard: Sequence[Message]) -> None:
    """Each entity to the messages that name it, or whose facts and relations do."""
    for part, message in zip(parts, heard, strict=True):
        ends = [item.get(key) for item in (*part["facts"], *part["relations"])
                for key in ("subject", "source", "target")]  # fmt: skip
        named = {fold(end) for end in ends if isinstance(end, str)}
        texts = [str(item[key]) for item in part["facts"] for key in TEXT_KEYS if isinstance(item.get(key), str)]
        told = "\n".join((message.text, message.speaker, *texts))
        part["entities"] = [
            entity for entity in entities
            if (names := _names(entity)) and (named & set(map(fold, names)) or mentions(told, names))
        ]  # fmt: skip


def _give_profiles(profiles: list[dict[str, Any]], parts: list[dict[str, Any]]) -> None:
    """Each profile to the first message that has its entity: that is where a new one is made."""
    for profile in profiles:
        name = profile.get("name")
        for part in parts:
            known = {fold(other) for entity in part["entities"] for other in _names(entity)}
            if isinstance(name, str) and fold(name) in known:
                part["updated_profiles"].append(profile)
                break


def _give_emotions(emotions: Any, parts: list[dict[str, Any]]) -> None:
    for item in emotions if isinstance(emotions, list) else []:
        if isinstance(item, dict):
            plain = coerce.with_plain_keys(item)
            number = coerce.whole_number(plain.pop("message_number", None))
            if number is not None and 1 <= number <= len(parts):
                parts[number - 1]["emotion"] = plain


def _names(entity: Mapping[str, Any]) -> list[str]:
    aliases = entity.get("aliases")
    found = [entity.get("name"), *(aliases if isinstance(aliases, list) else [])]
    return [name for name in found if isinstance(name, str) and name.strip()]

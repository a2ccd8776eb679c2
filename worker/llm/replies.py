"""The one tolerant parser of replies to the extraction tasks; ``worker.llm.verdicts`` reads the other tasks' replies.

Item by item: a bad item is dropped, counted and reported, and never costs the good ones. What can be repaired is, and
is counted by kind. Only what is no reply at all raises: ModelError(BAD_REPLY) with the detail

- ``no_json``: there is no JSON in it; ``schema_echo``: it is the JSON schema that we sent; ``too_long``;
- ``wrong_shape``: JSON, but nothing in it is what was asked for;
- ``cut_empty``: it was cut off before its first whole item.

Each item is read from its own object and nothing is matched by position, so a dropped item can shift no other.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from worker.llm import coerce
from worker.llm.envelope import (
    SECTIONS,
    SOURCE_KEYS,
    TARGET_KEYS,
    TEXT_KEYS,
    as_list,
    key_is_a_name,
    open_envelope,
    section_of,
)
from worker.llm.items import (
    Emotion,
    ExtractedEntity,
    ExtractedFact,
    ExtractedProfile,
    ExtractedRelation,
    Item,
    ParsedExtraction,
    Reject,
)
from worker.llm.provider import Cause, ModelError
from worker.llm.reply_json import read_json

MAX_NAME_CHARS = 500
ITEM_KINDS = ("entity", "fact", "relation", "profile")
_SUBJECT_KEYS = ("subject", "entity", "about")
_TYPE_KEYS = ("rel_type", "type", "relation", "relation_type", "relationship", "predicate")
_ARROW = re.compile(r"^(.+?)\s*(?:→|-+>?)\s*\(?([\w ]+?)\)?\s*(?:→|-+>)\s*(.+)$")
# Where a repair ran over the end of a string: the rest is the reply's structure, not the sentence.
_LEAKED = re.compile(r'"\s*[}\]]|"\s*,\s*"\w+"\s*:')


class _Rejected(Exception):
    """An item that cannot be used; the argument is the coded reason."""


@dataclass(slots=True)
class _Reading:
    """One reply while it is read."""

    speaker: str
    speakers: Mapping[int, str] | None
    repairs: Counter[str]
    whole: frozenset[int] | None  # in a repaired reply, the ids of the objects that needed no repair
    rejects: list[Reject] = field(default_factory=list)
    seen: set[int] = field(default_factory=set)  # the ids of the objects that were read as items

    def each(self, kind: str, items: list[Any], read: Callable[[Any], Item]) -> list[Any]:
        """Return what ``read`` makes of each item, without those that it rejects."""
        kept: list[Any] = []
        for index, item in enumerate(items):
            self.seen.add(id(item))
            try:
                kept.append(read(item))
            except _Rejected as error:
                self.rejects.append(Reject(kind=kind, reason=str(error), index=index))
        return kept

    def message_number(self, item: Mapping[str, Any]) -> int | None:
        """Return the item's message number in a batch (a wrong one is rejected), None outside of one."""
        if self.speakers is None:
            return None
        number = coerce.whole_number(coerce.first_of(item, "message_number", "message", "number"))
        if number is None and len(self.speakers) == 1:
            return next(iter(self.speakers))
        if number not in self.speakers:
            raise _Rejected("unknown_message_number")
        return number

    def speaker_of(self, number: int | None) -> str:
        return self.speaker if self.speakers is None or number is None else self.speakers[number]

    def name(self, value: Any, blank: str) -> str:
        """Return a name on one line; a blank or missing one is rejected as ``blank``, an over-long one too."""
        if isinstance(value, dict):
            value = coerce.with_plain_keys(value).get("name")
        name = coerce.one_line(value)
        if name is None:
            raise _Rejected("wrong_type")
        if coerce.is_blank_name(name):
            raise _Rejected(blank)
        if len(name) > MAX_NAME_CHARS:
            raise _Rejected("name_too_long")
        return name

    # -- items ---------------------------------------------------------------------------------------------------

    def entity(self, value: Any) -> ExtractedEntity:
        if isinstance(value, str):
            self.repairs["string_item"] += 1
            value = {"name": value}
        if not isinstance(value, dict):
            raise _Rejected("wrong_type")
        item = coerce.with_plain_keys(value)
        name = self.name(coerce.first_of(item, "name", "entity", "entity_name", repairs=self.repairs), "blank_name")
        return ExtractedEntity(name=name, type=self.entity_type(item, name), aliases=self.aliases(item, name))

    def entity_type(self, item: Mapping[str, Any], name: str) -> str:
        value = coerce.first_of(item, "type", "entity_type", "kind", repairs=self.repairs)
        if isinstance(value, list) and value:
            value = value[0]
        plain = re.sub(r"[\s:/]+", "_", (coerce.one_line(value) or "").casefold()).strip("_")[:64]
        if plain and not coerce.is_degenerate(plain):
            return plain
        self.repairs["missing_type"] += 1
        return "person" if name.casefold() == self.speaker.casefold() else "concept"

    def aliases(self, item: Mapping[str, Any], name: str) -> list[str]:
        value = coerce.first_of(item, "aliases", "alias", "also_known_as")
        if isinstance(value, str):
            self.repairs["string_for_list"] += 1
            value = re.split(r"[,;]", value)
        kept: list[str] = []
        for index, alias in enumerate(value if isinstance(value, list) else []):
            try:
                plain = self.name(alias, "blank_alias")
            except _Rejected as error:
                self.rejects.append(Reject(kind="alias", reason=str(error), index=index))
                continue
            if plain != name and plain not in kept:
                kept.append(plain)
        return kept

    def fact(self, value: Any) -> ExtractedFact:
        item = self.fact_object(value)
        number = self.message_number(item)
        text = coerce.one_line(coerce.first_of(item, *TEXT_KEYS, repairs=self.repairs))
        if text is None:
            raise _Rejected("wrong_type")
        if self.whole is not None and id(value) not in self.whole and (leak := _LEAKED.search(text)):
            self.repairs["leaked_structure"] += 1
            text = text[: leak.start()].rstrip()
        if not text:
            raise _Rejected("empty_text")
        if coerce.is_degenerate(text):
            raise _Rejected("degenerate_text")
        category, importance = coerce.importance(item, self.repairs)
        found, precision = coerce.event_date(item, self.repairs)
        return ExtractedFact(
            subject=self.subject(item, number),
            text=text,
            action=coerce.fact_action(item.get("action"), self.repairs),
            confidence=coerce.confidence(item, self.repairs),
            importance=importance,
            importance_category=category,
            event_date=found,
            event_date_precision=precision,
            attribute_key=_scalar_text(item.get("attribute_key")),
            value=_scalar_text(item.get("value")),
            message_number=number,
        )

    def fact_object(self, value: Any) -> dict[str, Any]:
        if isinstance(value, str):
            self.repairs["string_item"] += 1
            return {"text": value}
        if not isinstance(value, dict):
            raise _Rejected("wrong_type")
        item = coerce.with_plain_keys(value)
        if isinstance(item.get("fact"), dict):  # {"fact": {"subject": …, "text": …}}
            self.repairs["unwrapped"] += 1
            return coerce.with_plain_keys(item["fact"])
        if any(key in item for key in TEXT_KEYS):
            return item
        if len(value) == 1:  # {"Bruna has a cat": ""}, {"Bruna": "Bruna has a cat"}
            (key, content), *_ = value.items()
            if content in (None, "", True) or content == {}:
                self.repairs["key_as_fact"] += 1
                return {"text": str(key)}
            if isinstance(content, str) and key_is_a_name(str(key)):
                self.repairs["key_as_subject"] += 1
                named = content if str(key).casefold() in content.casefold() else f"{key} {content}"
                return {"subject": str(key), "text": named}
        raise _Rejected("empty_text" if any(key in item for key in _SUBJECT_KEYS) else "wrong_shape")

    def subject(self, item: Mapping[str, Any], number: int | None) -> str:
        value = coerce.first_of(item, *_SUBJECT_KEYS)
        if isinstance(value, list) and len(value) == 1:
            value = value[0]
        if coerce.one_line(value) == "":
            self.repairs["missing_subject"] += 1
            return self.speaker_of(number)
        return self.name(value, "blank_subject")

    def relation(self, value: Any) -> ExtractedRelation:
        if isinstance(value, str) and (match := _ARROW.match(value.strip())):
            self.repairs["string_item"] += 1
            value = dict(zip(("source", "rel_type", "target"), match.groups(), strict=True))
        if isinstance(value, list) and len(value) == 3 and all(isinstance(part, str) for part in value):
            self.repairs["list_for_object"] += 1
            value = dict(zip(("source", "rel_type", "target"), value, strict=True))
        if not isinstance(value, dict):
            raise _Rejected("wrong_type")
        item = coerce.with_plain_keys(value)
        rel_type = coerce.one_line(coerce.first_of(item, *_TYPE_KEYS, repairs=self.repairs))
        if rel_type is None:
            raise _Rejected("wrong_type")
        if coerce.is_degenerate(rel_type):
            raise _Rejected("blank_rel_type")
        source = coerce.first_of(item, *SOURCE_KEYS, "subject", repairs=self.repairs)
        target = coerce.first_of(item, *TARGET_KEYS, repairs=self.repairs)
        return ExtractedRelation(
            source=self.name(source, "missing_end"),
            target=self.name(target, "missing_end"),
            rel_type=rel_type,
            message_number=self.message_number(item),
        )

    def profile(self, value: Any) -> ExtractedProfile:
        if not isinstance(value, dict):
            raise _Rejected("wrong_type")
        item = coerce.with_plain_keys(value)
        if len(value) == 1 and not {"profile_text", "profile", "text", "name"} & item.keys():  # [{"Clara": "…"}]
            self.repairs["map_for_list"] += 1
            item = dict(zip(("name", "profile_text"), *value.items(), strict=True))
        text = coerce.one_line(coerce.first_of(item, "profile_text", "profile", "text", repairs=self.repairs))
        if text is None:
            raise _Rejected("wrong_type")
        if coerce.is_degenerate(text):
            raise _Rejected("empty_text")
        name = self.name(coerce.first_of(item, "name", "entity"), "blank_name")
        return ExtractedProfile(name=name, profile_text=text)


def parse_extraction(text: str, speaker: str, *, speakers: Mapping[int, str] | None = None) -> ParsedExtraction:
    """Return what a reply to ``informed_extraction``, ``entity_scan``, ``fact_extraction`` or ``relation_extraction``
    holds. A fact without a subject is about ``speaker``.

    For a batch, ``speakers`` gives the speaker of each message by its number; an item for any other number is
    rejected. Raises ModelError(BAD_REPLY) where the reply is unusable as a whole (see the module's docstring).
    """
    reply = read_json(text)
    envelope = open_envelope(reply.value, reply.repairs)
    whole = frozenset(map(id, reply.loose)) if reply.repairs["repaired"] else None
    reading = _Reading(speaker, speakers, reply.repairs, whole)
    found: dict[str, list[Any]] = {}
    for kind, section, read in _readers(reading):
        items = as_list(section, envelope.get(section), reading.repairs)
        if items is None:
            reading.rejects.append(Reject(kind=kind, reason="wrong_type"))
        found[kind] = reading.each(kind, items or [], read)
    for loose in reply.loose:
        if id(loose) not in reading.seen:
            _salvage(loose, found, reading)
    emotion = _emotion(envelope, reading)
    emotions = _emotions(envelope, reading) if speakers is not None else {}
    parsed = ParsedExtraction(
        entities=found["entity"],
        facts=found["fact"],
        relations=found["relation"],
        profiles=found["profile"],
        emotion=emotion,
        emotions=emotions,
        repairs=dict(reading.repairs),
        rejects=reading.rejects,
    )
    _refuse_empty(parsed, envelope)
    return parsed


def _readers(reading: _Reading) -> list[tuple[str, str, Callable[[Any], Item]]]:
    return [
        ("entity", "entities", reading.entity),
        ("fact", "facts", reading.fact),
        ("relation", "relations", reading.relation),
        ("profile", "updated_profiles", reading.profile),
    ]


def _salvage(loose: dict[str, Any], found: dict[str, list[Any]], reading: _Reading) -> None:
    """Add an item that stands whole in the text of a broken reply but is missing from what the repair made of it."""
    section = section_of(coerce.with_plain_keys(loose))
    for kind, name, read in _readers(reading):
        if name != section:
            continue
        counted, rejected = Counter(reading.repairs), len(reading.rejects)
        try:
            item = read(loose)
        except _Rejected:
            item = None
        # Either it is there already or it was rejected already: neither its repairs nor its rejects count twice.
        if item is None or item in found[kind]:
            reading.repairs = counted
            del reading.rejects[rejected:]
        else:
            reading.repairs["salvaged"] += 1
            found[kind].append(item)


def _emotion(envelope: Mapping[str, Any], reading: _Reading) -> Emotion | None:
    value = envelope.get("emotion")
    return None if value is None else coerce.emotion(value, reading.repairs)


def _emotions(envelope: Mapping[str, Any], reading: _Reading) -> dict[int, Emotion]:
    """Return the emotions of a batch by message number: from a list of objects, or a map by number."""
    value = coerce.first_of(envelope, "emotions", "emotion")
    pairs: list[tuple[Any, Any]] = []
    if isinstance(value, dict) and value and all(coerce.whole_number(key) is not None for key in value):
        reading.repairs["map_for_list"] += 1
        pairs = list(value.items())
    else:
        for item in value if isinstance(value, list) else [value]:
            if isinstance(item, dict):
                plain = coerce.with_plain_keys(item)
                pairs.append((plain.get("message_number"), plain.get("emotion", item)))
    result: dict[int, Emotion] = {}
    only = next(iter(reading.speakers or {}), None) if len(reading.speakers or {}) == 1 else None
    for index, (key, item) in enumerate(pairs):
        number = coerce.whole_number(key) if key is not None else only
        if number is None or number not in (reading.speakers or {}):
            reading.rejects.append(Reject(kind="emotion", reason="unknown_message_number", index=index))
        else:
            result.setdefault(number, coerce.emotion(item, reading.repairs))
    return result


def _refuse_empty(parsed: ParsedExtraction, envelope: Mapping[str, Any]) -> None:
    """Raise where nothing was found for want of a readable reply: that must not look like "nothing to extract"."""
    if parsed.entities or parsed.facts or parsed.relations or parsed.profiles:
        return
    if parsed.cut:
        raise ModelError(Cause.BAD_REPLY, "cut_empty")
    sections = [envelope[key] for key in SECTIONS[:4] if key in envelope]
    # Items that are blank were read and found wanting; items of the wrong kind were not read at all.
    unread = [reject for reject in parsed.rejects if reject.kind in ITEM_KINDS]
    if not sections or (unread and all(reject.reason in ("wrong_type", "wrong_shape") for reject in unread)):
        raise ModelError(Cause.BAD_REPLY, "wrong_shape")


def parse_emotion(text: str) -> Emotion:
    """Return the emotion in a reply to ``emotion``. Raises ModelError(BAD_REPLY) where there is none."""
    reply = read_json(text)
    envelope = open_envelope(reply.value, reply.repairs)
    value = envelope.get("emotion", reply.value)
    if isinstance(value, list) and value:
        value = value[0]
    if isinstance(value, str) and value.strip():
        return coerce.emotion(value, reply.repairs)
    plain = coerce.with_plain_keys(value) if isinstance(value, dict) else {}
    if not {"primary", "emotion", "intensity", "energy_level"} & plain.keys():
        raise ModelError(Cause.BAD_REPLY, "wrong_shape")
    return coerce.emotion(plain, reply.repairs)


def _scalar_text(value: Any) -> str | None:
    """Return a value as text on one line; None for what is blank or no scalar."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (int, float)):
        return str(value)
    return coerce.one_line(value) or None

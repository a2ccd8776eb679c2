"""The extraction tasks: a payload in, the contract's entities, facts, relations, profiles and emotion out."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any

from worker.llm.offline import noise
from worker.llm.offline.dates import local_day
from worker.llm.offline.emotion import feel
from worker.llm.offline.names import find_names, kind_of
from worker.llm.offline.reader import read
from worker.llm.offline.sentences import language
from worker.llm.offline.state import Reading, Thing, roles_told
from worker.llm.offline.text import clean, fold, item, items, mentions, squeeze
from worker.llm.offline.writing import profile

Json = dict[str, Any]


def informed(payload: Mapping[str, Any]) -> Json:
    """``informed_extraction``, for one message or a batch."""
    if isinstance(payload.get("messages"), list | tuple):
        return _batch(payload)
    state = _read(payload, payload)
    return {**_parts(state), "updated_profiles": _profiles(state), "emotion": feel(clean(payload.get("message")))}


def entities(payload: Mapping[str, Any]) -> Json:
    """``entity_scan``."""
    return {"entities": _parts(_read(payload, payload))["entities"]}


def facts(payload: Mapping[str, Any]) -> Json:
    """``fact_extraction``: the names that the scan found are known names here."""
    return {"facts": _parts(_read(payload, payload))["facts"]}


def relations(payload: Mapping[str, Any]) -> Json:
    """``relation_extraction``."""
    return {"relations": _parts(_read(payload, payload))["relations"]}


def emotion(payload: Mapping[str, Any]) -> Json:
    """``emotion``."""
    return {"emotion": feel(clean(payload.get("message")))}


def _batch(payload: Mapping[str, Any]) -> Json:
    out: Json = {"entities": [], "facts": [], "relations": [], "updated_profiles": [], "emotions": []}
    recent = [clean(m) if isinstance(m, str) else "" for m in items(payload.get("recent_messages"))]
    names: dict[tuple[str, str], Json] = {}
    carried: list[Thing] = []
    for entry in items(payload.get("messages")):
        if not isinstance(entry, dict):
            continue
        state = _read({**payload, "recent_messages": recent[-6:]}, entry, carried)
        carried.extend(t for t in state.things if all(t is not c for c in carried))
        parts = _parts(state)
        number = entry.get("number")
        out["facts"] += [{**fact, "message_number": number} for fact in parts["facts"]]
        out["relations"] += [{**edge, "message_number": number} for edge in parts["relations"]]
        out["emotions"].append({"message_number": number, **feel(item(entry, "message"))})
        for entity in parts["entities"]:
            _merge_entity(names, entity)
        seen = {profile["name"] for profile in out["updated_profiles"]}
        out["updated_profiles"] += [p for p in _profiles(state) if p["name"] not in seen]
        recent.append(f"{item(entry, 'speaker')}: {item(entry, 'message')}")
    out["entities"] = list(names.values())
    return out


def _merge_entity(names: dict[tuple[str, str], Json], entity: Json) -> None:
    held = names.setdefault((fold(entity["name"]), entity["type"]), {**entity, "aliases": []})
    held["aliases"] += [a for a in entity["aliases"] if a not in held["aliases"]]


def _read(payload: Mapping[str, Any], entry: Mapping[str, Any], carried: list[Thing] | None = None) -> Reading:
    message = clean(entry.get("message"))
    speaker = squeeze(clean(entry.get("speaker"))) or "Speaker"
    state = Reading(speaker=speaker, today=local_day(entry.get("message_date")))
    _take_known(payload, state)
    state.known.extend(carried or [])
    if all(not t.answers_to(speaker) for t in state.known):
        state.known.append(Thing(speaker, "person"))
    recent = [clean(m) if isinstance(m, str) else item(m, "message") for m in items(payload.get("recent_messages"))]
    state.lang = language(" ".join([message, *recent[-3:]]))
    for line in recent[-6:]:
        _take_recent(line, state)
    read(message, state)
    return state


def _take_known(payload: Mapping[str, Any], state: Reading) -> None:
    """Known entities (informed) or scanned ones (blind), with the roles that their facts and profiles tell."""
    for entry in [*items(payload.get("known")), *items(payload.get("entities"))]:
        name = squeeze(item(entry, "name") if isinstance(entry, dict) else clean(entry))
        if not name:
            continue
        aliases = (
            [clean(a) for a in items(entry.get("aliases")) if isinstance(a, str)] if isinstance(entry, dict) else []
        )
        thing = Thing(name, item(entry, "type", "other").lower() or "other", [a for a in aliases if a])
        if thing.answers_to(state.speaker):
            # The speaker is called in the facts as the entity is shown, so that a nickname makes no second person.
            state.speaker = name
        state.known.append(thing)
        told = [item(f, "text") or clean(f) for f in items(entry.get("facts"))] if isinstance(entry, dict) else []
        told += re.split(r"(?<=[.;])\s+", item(entry, "profile")) if isinstance(entry, dict) else []
        for sentence in told:
            if found := roles_told(sentence, state.speaker):
                state.role_holders.setdefault(*found)


def _take_recent(line: str, state: Reading) -> None:
    """Names in earlier messages, in order: what a pronoun in this one can mean. Nothing else is read from them."""
    who, colon, said = line.partition(":")
    if not colon or len(who) > 40:
        who, said = "", line
    said = noise.speech(said)
    if who.strip() and fold(who) not in ("assistant", "user", "system", "bot"):
        state.context.append(Thing(who.strip(), "person"))
    earlier = Reading(speaker=who.strip() or state.speaker, today=None, lang=state.lang)
    read(said, earlier)
    known = {fold(t.name) for t in earlier.things}
    for name in find_names(said):
        if fold(name) not in known and kind_of(name, default="person") == "person":
            article = re.search(rf"\b([oa]) {re.escape(name)}", said, re.I)
            gender = ("f" if article[1].lower() == "a" else "m") if article else ""
            state.context.append(Thing(name, "person", gender=gender))
    for thing in earlier.things:
        if thing.kind in ("person", "pet") and not thing.name.islower():
            state.context = [t for t in state.context if not t.answers_to(thing.name)]
            state.context.append(thing)
    if fold(who) == fold(state.speaker):
        for role, holder in earlier.role_holders.items():
            state.role_holders.setdefault(role, holder)


def _parts(state: Reading) -> Json:
    """The reading in the contract's shape. An edge without a fact that names both ends is not returned."""
    told = [fact for fact in state.facts if noise.SECRET not in fact.text]
    named = _mentioned(state)
    return {
        "entities": [{"name": t.name, "type": t.kind, "aliases": list(dict.fromkeys(t.aliases))} for t in named],
        "facts": [
            {
                "subject": f.subject, "text": f.text, "action": "NEW", "confidence_level": f.level,
                "importance_category": f.category, "event_date": f.event_date, "event_date_precision": f.precision,
                "attribute_key": f.attribute_key, "value": f.value,
            }
            for f in told
        ],
        "relations": [
            {"source": e.source, "target": e.target, "rel_type": e.rel_type}
            for e in state.edges
            if any(mentions(f.text, e.source) and mentions(f.text, e.target) for f in told)
        ],
    }  # fmt: skip


def _mentioned(state: Reading) -> list[Thing]:
    """The things that facts or edges speak of; what was named in passing is no memory."""
    ends = {fold(n) for e in state.edges for n in (e.source, e.target)} | {fold(f.subject) for f in state.facts}
    kept = [t for t in state.things if fold(t.name) in ends or any(mentions(f.text, t.name) for f in state.facts)]
    return kept if state.facts else []


def _profiles(state: Reading) -> list[Json]:
    """A short English profile for each thing that is new here."""
    old = {fold(t.name) for t in state.known if t.name != state.speaker}
    out: list[Json] = []
    for thing in _mentioned(state):
        text = profile(thing.name, [f.text for f in state.facts if fold(f.subject) == fold(thing.name)])
        if text and fold(thing.name) not in old:
            out.append({"name": thing.name, "profile_text": text})
    return out

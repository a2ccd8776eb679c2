"""Where in a reply the sections are (entities, facts, relations, …), whatever shape the model gave to the whole."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping
from typing import Any

from worker.llm import coerce
from worker.llm.reply_json import is_schema

SECTIONS = ("entities", "facts", "relations", "updated_profiles", "emotion", "emotions")
_SYNONYMS = {"profiles": "updated_profiles", "relationships": "relations", "fact": "facts", "entity": "entities"}
TEXT_KEYS = ("text", "fact", "fact_text", "content", "statement")
SOURCE_KEYS, TARGET_KEYS = ("source", "from", "head"), ("target", "to", "object", "tail")


def open_envelope(value: Any, repairs: Counter[str], depth: int = 0) -> dict[str, Any]:
    """Return the object that holds the sections, whatever it was wrapped in (a list, ``{"result": …}``, a string).

    A top-level list of items is sorted into sections by what the items hold. Empty: there is no section in it.
    """
    if isinstance(value, str) and (depth or value.lstrip()[:1] in ("{", "[")):
        try:
            value = json.loads(value)
        except (ValueError, RecursionError):
            return {}
        repairs["json_in_string"] += 1
    if isinstance(value, list):
        return _open_list(value, repairs, depth)
    if not isinstance(value, dict):
        return {}
    plain = {_SYNONYMS.get(key, key): item for key, item in coerce.with_plain_keys(value).items()}
    if any(section in plain and not is_schema({section: plain[section]}) for section in SECTIONS):
        kind = section_of(plain)
        if kind is None or isinstance(value.get(kind), (list, dict)):
            return plain
    if kind := section_of(plain):
        repairs["item_at_top"] += 1
        return {kind: [value]}
    wrappers = [item for item in plain.values() if isinstance(item, (dict, list)) or (isinstance(item, str) and item)]
    if depth < 3:
        for inner in wrappers:
            if opened := open_envelope(inner, Counter(), depth + 1):
                repairs["unwrapped"] += 1
                return opened
    return {}


def _open_list(values: list[Any], repairs: Counter[str], depth: int) -> dict[str, Any]:
    repairs["list_at_top"] += 1
    merged: dict[str, Any] = {"facts": []} if not values else {}
    for value in values:
        if isinstance(value, list) and depth < 3:
            opened = open_envelope(value, repairs, depth + 1)
        elif isinstance(value, dict):
            opened = open_envelope(value, repairs, depth + 1) or ({"facts": [value]} if value else {})
        elif isinstance(value, str) and value.strip():
            opened = {"facts": [value]}
        else:
            opened = {}
        for key, item in opened.items():
            if isinstance(item, list) and isinstance(merged.get(key), list):
                merged[key] = [*merged[key], *item]
            elif item is not None:
                merged.setdefault(key, item)
    return merged


def section_of(item: Mapping[str, Any]) -> str | None:
    """Return the section that an object (with plain keys) belongs to by what it holds, None where it is no item."""
    if any(key in item for key in SOURCE_KEYS) and any(key in item for key in TARGET_KEYS):
        return "relations"
    if isinstance(item.get("profile_text"), str):
        return "updated_profiles"
    if any(isinstance(item.get(key), str) for key in TEXT_KEYS) and (
        "subject" in item or "action" in item or "importance_category" in item or len(item) == 1
    ):
        return "facts"
    if isinstance(item.get("name"), str) and ("type" in item or "aliases" in item) and "candidates" not in item:
        return "entities"
    return None


def key_is_a_name(key: str) -> bool:
    """Whether the key of a map can be meant as an entity's name, rather than as a key of some unknown shape."""
    return 0 < len(key) <= 80 and "_" not in key and not key.islower()


def as_list(section: str, value: Any, repairs: Counter[str]) -> list[Any] | None:
    """Return a section as a list of items: maps, single objects, nested lists and null are repaired. None: it is
    nothing of the kind."""
    if value is None:
        return []
    if isinstance(value, dict):
        repairs["map_for_list"] += 1
        return _list_of_map(section, value)
    if isinstance(value, str):
        if coerce.is_degenerate(value):
            return []
        repairs["string_for_list"] += 1
        return [value]
    if not isinstance(value, list):
        return None
    flat: list[Any] = []
    for item in value:
        nested = isinstance(item, list) and any(isinstance(part, (dict, list)) for part in item)
        flat.extend(item if nested else [item])
    return flat


def _list_of_map(section: str, value: dict[str, Any]) -> list[Any]:
    plain = coerce.with_plain_keys(value)
    if section_of(plain) == section or (section == "entities" and "name" in plain):
        return [value]
    name_key = {"facts": "subject", "relations": "source"}.get(section, "name")
    text_key = {"facts": "text", "updated_profiles": "profile_text", "entities": "type"}.get(section, "rel_type")
    items: list[Any] = []
    for key, item in value.items():
        for part in item if isinstance(item, list) else [item]:
            if isinstance(part, dict):
                items.append({name_key: key, **part} if not key.strip().isdecimal() else part)
            elif section == "facts" and not part:
                items.append(key)
            elif section == "facts" and isinstance(part, str):
                items.append(part if key.strip().isdecimal() else {key: part})
            else:
                items.append({name_key: key, text_key: part})
    return items

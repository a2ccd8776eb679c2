"""From the text of a reply to a JSON value, whatever the model wrapped around it or left out.

Strict JSON is taken as it is. Anything else is repaired, counted by kind. This is what guarantees that a bad neighbour
never costs a good item: every innermost object of the text that is valid JSON on its own is kept out of the repair,
and handed over apart as well (``Reply.loose``), so that the reader of the task can add what the repair swallowed.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from dataclasses import dataclass, field
from typing import Any

import json_repair

from worker.llm.cleaning import clean_json, clean_text
from worker.llm.provider import Cause, ModelError

# Far above any honest reply; keeps a runaway one from costing minutes of repairing.
MAX_REPLY_CHARS = 1_000_000
# The repair's time grows with the square of the stray quotes: two seconds for 3000, a quarter of a minute for 9000.
# What is whole does not count, so no honest reply comes near it.
MAX_BROKEN_QUOTES = 3000
MAX_BROKEN_OBJECTS = 10_000  # each failed try to read one costs a pass over the text before it

_FENCE = re.compile(r"^[ \t]*```[\w+-]*[ \t]*\r?$", re.MULTILINE)
_OPENING_FENCE = re.compile(r"```[\w+-]*\s*(?=[\[{])")
_CLOSING_FENCE = re.compile(r"\s*```\s*$")
_REASONING = re.compile(r"<(think|thinking|reasoning)>.*?(</\1>|\Z)", re.DOTALL | re.IGNORECASE)
_OBJECT = re.compile(r'\{\s*"')
_PLACEHOLDER = "mandua_whole_object"
_SCHEMA_KEYS = frozenset({"$defs", "$schema", "definitions", "additionalProperties"})


@dataclass(slots=True)
class Reply:
    """A reply's JSON. ``loose`` holds objects found whole in a reply that needed repairing, in order of appearance."""

    value: Any
    repairs: Counter[str] = field(default_factory=Counter)
    loose: list[dict[str, Any]] = field(default_factory=list)


def read_json(text: str) -> Reply:
    """Return the JSON in ``text``.

    Raises ModelError(BAD_REPLY) with the detail ``no_json`` (none there), ``too_long`` or ``schema_echo``.
    """
    if len(text) > MAX_REPLY_CHARS:
        raise ModelError(Cause.BAD_REPLY, "too_long")
    repairs: Counter[str] = Counter()
    try:
        reply = _read(clean_text(text), repairs)
    except (RecursionError, ValueError, TypeError, IndexError, KeyError, AttributeError):
        # Not only the decoder's own errors: a repair library may stumble over input that nobody foresaw.
        raise ModelError(Cause.BAD_REPLY, "no_json") from None
    if is_schema(reply.value):
        raise ModelError(Cause.BAD_REPLY, "schema_echo")
    return reply


def is_schema(value: Any) -> bool:
    """Whether ``value`` is a JSON schema (or a list of nothing else) rather than data that follows one."""
    if isinstance(value, list):
        return bool(value) and all(is_schema(item) for item in value)
    if not isinstance(value, dict):
        return False
    properties = value.get("properties")
    if isinstance(properties, dict) and any(_is_type(item) or is_schema(item) for item in properties.values()):
        return True
    if _SCHEMA_KEYS & value.keys() and ("properties" in value or "type" in value):
        return True
    return bool(value) and all(_is_type(item) for item in value.values())


def _is_type(value: Any) -> bool:
    """Whether ``value`` says what a JSON value should look like: ``{"type": "array", "items": …}``, ``{"$ref": …}``."""
    if not isinstance(value, dict):
        return False
    if isinstance(value.get("$ref"), str):
        return True
    kind = value.get("type")
    names = kind if isinstance(kind, list) else [kind]
    known = {"array", "object", "string", "number", "integer", "boolean", "null"}
    return bool(names) and all(isinstance(name, str) and name in known for name in names) and "name" not in value


def _read(text: str, repairs: Counter[str]) -> Reply:
    stripped = text.strip().lstrip("\ufeff").strip()
    try:
        return Reply(_loads(stripped, repairs), repairs)
    except ValueError:
        pass
    body = stripped
    if without := _REASONING.sub("", body):
        if without != body:
            repairs["reasoning_removed"] += 1
        body = without.strip()
    body = _unfence(body, repairs)
    try:
        return Reply(_loads(body, repairs), repairs)
    except ValueError:
        pass
    values, rest = _decode_values(body, repairs)
    if values and not rest:
        repairs["prose_around"] += 1
        return Reply(values[0] if len(values) == 1 else _merge(values, repairs), repairs)
    return _repair(body, repairs)


def _loads(text: str, repairs: Counter[str]) -> Any:
    return clean_json(json.loads(text, strict=False, object_pairs_hook=_pairs(repairs)))


def _pairs(repairs: Counter[str]) -> Any:
    """A hook that keeps both lists when a model writes one key twice; the decoder alone would keep the last."""

    def build(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        result: dict[str, Any] = {}
        for key, value in pairs:
            if isinstance(value, list) and isinstance(result.get(key), list):
                repairs["duplicate_key"] += 1
                result[key] = [*result[key], *value]
            else:
                result[key] = value
        return result

    return build


def _unfence(text: str, repairs: Counter[str]) -> str:
    """Drop a fence around the JSON. Backticks inside a string stay: only an opening one right before a bracket and a
    closing one at the very end, or on a line of its own, count."""
    opening = _OPENING_FENCE.search(text)
    if opening and _OPENING_FENCE.search(text, opening.end()):
        return text  # several blocks: each is found by its brackets
    first_bracket = re.search(r"[\[{]", text)
    if opening is None or first_bracket is None or opening.start() > first_bracket.start():
        return text
    repairs["fence_removed"] += 1
    body = text[opening.end() :]
    body = _CLOSING_FENCE.sub("", body)
    closing = _FENCE.search(body)
    return body[: closing.start()].rstrip() if closing else body


def _decode_values(text: str, repairs: Counter[str]) -> tuple[list[Any], bool]:
    """Return the JSON objects and lists that stand in ``text`` one after another, and whether a broken one is left."""
    decoder = json.JSONDecoder(strict=False, object_pairs_hook=_pairs(repairs))
    values: list[Any] = []
    position = 0
    while match := re.compile(r"[\[{]").search(text, position):
        try:
            value, position = decoder.raw_decode(text, match.start())
        except ValueError:
            # A bracket in prose ("[note]", "{name}") is no sign of a broken reply; one that opens JSON is.
            if re.match(r"\{\s*[\"'}]|\[\s*[\[{\"]|\{\s*\w+\s*:", text[match.start() :]):
                return values, True
            position = match.start() + 1
            continue
        if isinstance(value, dict) or (isinstance(value, list) and (not value or isinstance(value[0], (dict, list)))):
            values.append(clean_json(value))
    return values, False


def _merge(values: list[Any], repairs: Counter[str]) -> Any:
    """Join several top-level values: objects with lists under the same keys become one, others a list."""
    repairs["several_values"] += 1
    if all(isinstance(value, dict) and any(isinstance(v, list) for v in value.values()) for value in values):
        merged: dict[str, Any] = {}
        for value in values:
            for key, item in value.items():
                both_lists = isinstance(item, list) and isinstance(merged.get(key), list)
                merged[key] = [*merged[key], *item] if both_lists else item
        return merged
    flat: list[Any] = []
    for value in values:
        flat.extend(value if isinstance(value, list) else [value])
    return flat


def _repair(text: str, repairs: Counter[str]) -> Reply:
    start = re.search(r"[\[{]", text)
    if start is None:
        raise ValueError("no bracket")
    body = text[start.start() :]
    if re.match(r"\[\s*\{\s*\"(entities|facts|relations|resolutions|decisions)\"", body):
        # A list around the whole object would make the object itself look like the unfinished item of a cut reply.
        body = body[1:]
        repairs["list_at_top"] += 1
    repairs["repaired"] += 1
    skeleton, loose = _take_whole_objects(body)
    closed = _drop_unfinished(skeleton, repairs)
    try:
        value = json.loads(closed, strict=False, object_pairs_hook=_pairs(repairs))
    except ValueError:
        if closed.count('"') - 2 * len(loose) > MAX_BROKEN_QUOTES:
            repairs["beyond_repair"] += 1
            value = None
        else:
            value = json_repair.repair_json(closed, return_objects=True, skip_json_loads=True)
    value = _put_back(clean_json(value), loose)
    if isinstance(value, list):
        # Prose with a bracket in it becomes a list of its words; a reply is made of objects.
        value = value if any(isinstance(item, (dict, list)) and item for item in value) else None
    if not isinstance(value, (dict, list)) or not value:
        if not loose:
            raise ValueError("nothing to repair")
        value = {}
    return Reply(value, repairs, loose)


def _drop_unfinished(text: str, repairs: Counter[str]) -> str:
    """Return ``text`` without its last item where the reply stopped in the middle of it (half a sentence is no fact),
    its brackets closed; unchanged where it was not cut."""
    stack: list[tuple[str, int]] = []
    in_string, string_start, escaped = False, 0, False
    for position, character in enumerate(text):
        if in_string:
            if escaped:
                escaped = False
            elif character == "\\":
                escaped = True
            elif character == '"':
                in_string = False
        elif character == '"':
            in_string, string_start = True, position
        elif character in "{[":
            stack.append((character, position))
        elif character in "}]":
            if stack:
                stack.pop()
            if not stack:
                return text
    # A quote too many swaps inside and outside of strings: then the "unfinished string" ends as the reply should.
    if not stack or (in_string and re.sub(r"\s", "", text[string_start:]).endswith(_closed("", stack))):
        return text
    repairs["cut_reply"] += 1
    if not in_string and text.rstrip().endswith(("}", "]")):
        return _closed(text, stack)  # cut between two items: nothing is half
    for depth in range(len(stack) - 1, 0, -1):
        if stack[depth][0] == "{" and stack[depth - 1][0] == "[":
            return _closed(text[: stack[depth][1]], stack[:depth])
    return _closed(text[:string_start], stack) if in_string else text


def _closed(text: str, stack: list[tuple[str, int]]) -> str:
    closing = "".join("}" if bracket == "{" else "]" for bracket, _ in reversed(stack))
    return text.rstrip().rstrip(",") + closing


def _take_whole_objects(text: str) -> tuple[str, list[dict[str, Any]]]:
    """Return ``text`` with a placeholder for each innermost ``{…}`` that is valid JSON by itself, and these objects.

    So the repair of what is broken cannot touch what is not.
    """
    decoder = json.JSONDecoder(strict=False)
    found: list[dict[str, Any]] = []
    pieces: list[str] = []
    done = position = broken = 0
    while broken < MAX_BROKEN_OBJECTS and (opening := _OBJECT.search(text, position)):
        start = opening.start()
        position = start + 1
        try:
            value, end = decoder.raw_decode(text, start)
        except ValueError:
            broken += 1
            continue
        if not isinstance(value, dict) or not value or _holds_objects(value):
            continue
        pieces += [text[done:start], f'{{"{_PLACEHOLDER}": {len(found)}}}']
        found.append(clean_json(value))
        done = position = end
    return "".join([*pieces, text[done:]]), found


def _holds_objects(value: dict[str, Any]) -> bool:
    return any(
        isinstance(item, dict) or (isinstance(item, list) and any(isinstance(part, dict) for part in item))
        for item in value.values()
    )


def _put_back(value: Any, whole: list[dict[str, Any]]) -> Any:
    """Return ``value`` with the whole objects (these very ones) in the place of their placeholders."""
    if isinstance(value, dict):
        number = value.get(_PLACEHOLDER)
        if isinstance(number, int) and not isinstance(number, bool) and 0 <= number < len(whole):
            return whole[number]
        return {key: _put_back(item, whole) for key, item in value.items() if key != _PLACEHOLDER}
    if isinstance(value, list):
        return [_put_back(item, whole) for item in value]
    return value

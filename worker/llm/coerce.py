"""Single values of a reply, made what the contract says they are: names, numbers, dates, enumerations.

Each function returns the value, or a safe default and says so in ``repairs`` (counted by kind).
"""

from __future__ import annotations

import math
import re
import unicodedata
from collections import Counter
from collections.abc import Mapping
from datetime import date
from typing import Any, cast, get_args

from worker.llm.items import (
    CONFIDENCE_LEVELS,
    IMPORTANCE_CATEGORIES,
    UNKNOWN_CATEGORY,
    UNKNOWN_CONFIDENCE,
    UNKNOWN_IMPORTANCE,
    DecisionAction,
    Emotion,
    EmotionName,
    EnergyLevel,
    FactAction,
    Precision,
)

_WORD = re.compile(r"\w", re.UNICODE)
_ISO_DATE = re.compile(r"(\d{4})(?:-(\d{1,2})(?:-(\d{1,2}))?)?(?:[T ][\d:.]+(?:Z|[+-]\d{2}:?\d{2})?)?$")
_PRECISIONS: tuple[Precision, ...] = ("day", "month", "year")  # from fine to coarse
# What a model writes when it has nothing to write.
_EMPTY_WORDS = frozenset({"n/a", "na", "none", "null", "nil", "undefined", "unknown", "string", "todo", "tbd"})
_EMPTY_NAMES = frozenset({"n/a", "none", "null", "undefined", "unknown"})  # "Na" and "Nil" are names of people
_FACT_ACTIONS: dict[str, FactAction] = {
    "new": "NEW", "add": "NEW", "create": "NEW", "insert": "NEW",
    "update": "UPDATE", "modify": "UPDATE", "change": "UPDATE", "replace": "UPDATE",
}  # fmt: skip
# Only words that can mean nothing else. "merge", "keep", "ignore" are left out: taking them for NOOP may lose a fact.
_DECISION_ACTIONS: dict[str, DecisionAction] = {
    "add": "ADD", "new": "ADD", "create": "ADD", "insert": "ADD",
    "update": "UPDATE", "replace": "UPDATE", "supersede": "UPDATE",
    "noop": "NOOP", "none": "NOOP", "nochange": "NOOP", "unchanged": "NOOP",
    "delete": "DELETE", "remove": "DELETE", "retract": "DELETE", "invalidate": "DELETE",
}  # fmt: skip


def key_name(key: Any) -> str:
    """Return a key as the contract spells it: "relType", "Rel Type" and "REL_TYPE" are ``rel_type``."""
    spaced = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", str(key).strip())
    return re.sub(r"[\s\-]+", "_", spaced).casefold()


def with_plain_keys(value: Mapping[Any, Any]) -> dict[str, Any]:
    """Return ``value`` with its keys spelled as ``key_name`` does; the first of two equal keys stays."""
    result: dict[str, Any] = {}
    for key, item in value.items():
        result.setdefault(key_name(key), item)
    return result


def first_of(item: Mapping[str, Any], *keys: str, repairs: Counter[str] | None = None) -> Any:
    """Return the first value that is not None among ``keys``; any but the first key counts as a repair."""
    for number, key in enumerate(keys):
        if (value := item.get(key)) is not None:
            if number and repairs is not None:
                repairs["renamed_key"] += 1
            return value
    return None


def one_line(value: Any) -> str | None:
    """Return a string with its white space collapsed, "" for a blank or None, and None for what is no text at all."""
    if value is None:
        return ""
    return " ".join(value.split()) if isinstance(value, str) else None


def is_degenerate(text: str) -> bool:
    """Whether ``text`` says nothing: no letter or digit in any script, or a stand-in such as "N/A"."""
    return not _WORD.search(text.replace("_", "")) or text.strip(" .\"'").casefold() in _EMPTY_WORDS


def is_blank_name(name: str) -> bool:
    """Whether ``name`` names nothing: punctuation only, or a stand-in. A name may be an emoji alone."""
    named = any(
        unicodedata.category(character)[0] in "LN" or unicodedata.category(character) == "So" for character in name
    )
    return not named or name.casefold() in _EMPTY_NAMES


def whole_number(value: Any) -> int | None:
    """Return an int from an int, a whole float or a string of digits ("2", "#2", "candidate 2"); else None."""
    if isinstance(value, bool):
        return None
    if isinstance(value, int):
        return value
    if isinstance(value, float):
        return int(value) if math.isfinite(value) and value == int(value) else None
    if isinstance(value, str) and (match := re.fullmatch(r"\D{0,20}?(\d{1,9})\D?", value.strip())):
        return int(match.group(1))
    return None


def unit_number(value: Any) -> float | None:
    """Return a number from 0 to 1 (a string of one, too), None for anything else; a bool is no number."""
    if isinstance(value, bool):
        return None
    if isinstance(value, str):
        try:
            value = float(value.strip())
        except ValueError:
            return None
    if isinstance(value, (int, float)) and 0 <= value <= 1:  # NaN compares false
        return float(value)
    return None


def enum_word(value: Any) -> str:
    """Return the letters of an enumerated value, folded: "Update " and "action=update" are update, "NO-OP" is noop."""
    if not isinstance(value, str):
        return ""
    return re.sub(r"[\W_]+", "", value.rpartition("=")[2]).casefold()


def confidence(item: Mapping[str, Any], repairs: Counter[str]) -> float:
    """Return the confidence of a fact: by its level, else its number, else 0.60."""
    level, number = item.get("confidence_level"), item.get("confidence")
    for value in (level, number):
        if isinstance(value, str) and (known := CONFIDENCE_LEVELS.get(key_name(value))) is not None:
            return known
    for value in (number, level):
        if (plain := unit_number(value)) is not None:
            repairs["number_for_level"] += 1
            return plain
    if level is not None or number is not None:
        repairs["unknown_confidence"] += 1
    return UNKNOWN_CONFIDENCE


def importance(item: Mapping[str, Any], repairs: Counter[str]) -> tuple[str, float]:
    """Return the importance category of a fact and its number; unknown ones are 0.50."""
    value = first_of(item, "importance_category", "importance")
    category = key_name(value) if isinstance(value, str) else ""
    if category in IMPORTANCE_CATEGORIES:
        return category, IMPORTANCE_CATEGORIES[category]
    if value is not None:
        repairs["unknown_importance"] += 1
    return UNKNOWN_CATEGORY, UNKNOWN_IMPORTANCE


def fact_action(value: Any, repairs: Counter[str]) -> FactAction:
    """Return NEW or UPDATE; null and unknown actions are NEW."""
    if value is None:
        return "NEW"
    action = _FACT_ACTIONS.get(enum_word(value))
    if action is None:
        repairs["unknown_action"] += 1
        return "NEW"
    if value != action:
        repairs["enum_drift"] += 1
    return action


def decision_action(value: Any, repairs: Counter[str]) -> DecisionAction:
    """Return a decision; null and unknown ones are ADD, because a near-duplicate beats a lost fact."""
    action = _DECISION_ACTIONS.get(enum_word(value))
    if action is None:
        repairs["unknown_action"] += 1
        return "ADD"
    if value != action:
        repairs["enum_drift"] += 1
    return action


def event_date(item: Mapping[str, Any], repairs: Counter[str]) -> tuple[date | None, Precision | None]:
    """Return a fact's date and its precision: the coarser of what is said and what is written ("2024-05" is a month).

    What is no ISO date ("yesterday", "2024-13-40") is no date.
    """
    value = item.get("event_date")
    if value is None or value == "":
        return None, None
    text = str(value).strip() if isinstance(value, (str, int)) and not isinstance(value, bool) else ""
    match = _ISO_DATE.match(text)
    try:
        if match is None:
            raise ValueError(text)
        year, month, day = (int(part) if part else None for part in match.groups())
        found = date(year or 0, month or 1, day or 1)
    except ValueError:
        repairs["bad_date"] += 1
        return None, None
    written: Precision = "day" if day else "month" if month else "year"
    said = enum_word(item.get("event_date_precision"))
    if said in _PRECISIONS:
        return found, max(written, said, key=_PRECISIONS.index)
    return found, written


def emotion(value: Any, repairs: Counter[str]) -> Emotion:
    """Return a valid emotion: an unknown one is neutral, an unknown energy medium, the intensity between 0 and 1."""
    if isinstance(value, list) and value:
        repairs["list_for_object"] += 1
        value = value[0]
    if isinstance(value, str):
        repairs["string_item"] += 1
        value = {"primary": value}
    if not isinstance(value, dict):
        repairs["unknown_emotion"] += 1
        return Emotion()
    item = with_plain_keys(value)
    primary = enum_word(first_of(item, "primary", "emotion", "name", "label"))
    if primary not in get_args(EmotionName):
        repairs["unknown_emotion"] += 1
        primary = "neutral"
    energy = enum_word(first_of(item, "energy_level", "energy"))
    if energy not in get_args(EnergyLevel):
        repairs["unknown_energy"] += 1
        energy = "medium"
    return Emotion(
        primary=cast(EmotionName, primary),
        intensity=_intensity(item.get("intensity"), repairs),
        energy_level=cast(EnergyLevel, energy),
    )


def _intensity(value: Any, repairs: Counter[str]) -> float:
    if (plain := unit_number(value)) is not None:
        return plain
    repairs["bad_intensity"] += 1
    try:
        number = 0.0 if isinstance(value, bool) or value is None else float(value)
    except (TypeError, ValueError, OverflowError):
        return 0.0
    return 0.0 if math.isnan(number) else min(1.0, max(0.0, number))


def truth(value: Any) -> bool | None:
    """Return a yes or no, also from a word or 0 and 1; None where it is neither."""
    if isinstance(value, bool):
        return value
    if isinstance(value, int) and value in (0, 1):
        return bool(value)
    word = enum_word(value)
    if word in {"true", "yes", "same", "sim"}:
        return True
    return False if word in {"false", "no", "different", "not"} else None

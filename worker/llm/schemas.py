"""The JSON schema of each task's reply, for models that can be held to one.

Strict style throughout: every key required, none added, lists instead of free maps, null where there may be nothing.
Reasons come before choices, so that a model thinks before it decides. Only a batch's facts and relations have a
``message_number``: a single message pays for none.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, get_args

from worker.llm.items import CONFIDENCE_LEVELS, IMPORTANCE_CATEGORIES, DecisionAction, EmotionName, EnergyLevel

Schema = dict[str, Any]

_TEXT: Schema = {"type": "string"}
_TEXT_OR_NULL: Schema = {"type": ["string", "null"]}
_NUMBER: Schema = {"type": "number"}
_INTEGER: Schema = {"type": "integer"}
_INTEGER_OR_NULL: Schema = {"type": ["integer", "null"]}
_TRUTH: Schema = {"type": "boolean"}


def _object(**properties: Schema) -> Schema:
    return {
        "type": "object",
        "properties": properties,
        "required": list(properties),
        "additionalProperties": False,
    }


def _list(items: Schema) -> Schema:
    return {"type": "array", "items": items}


def _one_of(*words: str) -> Schema:
    return {"type": "string", "enum": list(words)}


_ENTITIES = _list(_object(name=_TEXT, type=_TEXT, aliases=_list(_TEXT)))
_FACT: dict[str, Schema] = {
    "subject": _TEXT,
    "text": _TEXT,
    "action": _one_of("NEW", "UPDATE"),
    "confidence_level": _one_of(*CONFIDENCE_LEVELS),
    "importance_category": _one_of(*IMPORTANCE_CATEGORIES),
    "event_date": _TEXT_OR_NULL,
    "event_date_precision": {"type": ["string", "null"], "enum": ["day", "month", "year", None]},
    "attribute_key": _TEXT_OR_NULL,
    "value": _TEXT_OR_NULL,
}
_RELATION: dict[str, Schema] = {"source": _TEXT, "target": _TEXT, "rel_type": _TEXT}
_FACTS, _RELATIONS = _list(_object(**_FACT)), _list(_object(**_RELATION))
_PROFILES = _list(_object(name=_TEXT, profile_text=_TEXT))
_MOOD: dict[str, Schema] = {
    "primary": _one_of(*get_args(EmotionName)),
    "intensity": _NUMBER,
    "energy_level": _one_of(*get_args(EnergyLevel)),
}
_EMOTION = _object(**_MOOD)

SCHEMAS: Mapping[str, Schema] = {
    "informed_extraction": _object(
        entities=_ENTITIES,
        facts=_FACTS,
        relations=_RELATIONS,
        updated_profiles=_PROFILES,
        emotion=_EMOTION,
    ),
    "entity_scan": _object(entities=_ENTITIES),
    "fact_extraction": _object(facts=_FACTS),
    "relation_extraction": _object(relations=_RELATIONS),
    "emotion": _object(emotion=_EMOTION),
    "entity_resolution": _object(
        resolutions=_list(_object(name_number=_INTEGER, reason=_TEXT, candidate_number=_INTEGER_OR_NULL))
    ),
    "reconciliation": _object(
        decisions=_list(
            _object(
                fact_number=_INTEGER,
                reason=_TEXT,
                action=_one_of(*get_args(DecisionAction)),
                existing_number=_INTEGER_OR_NULL,
            )
        )
    ),
    "entity_profile": _object(text=_TEXT),
    "entity_summary": _object(text=_TEXT),
    "fact_merge": _object(reason=_TEXT, same=_TRUTH, text=_TEXT),
    "entity_merge": _object(reason=_TEXT, same=_TRUTH),
    "cluster_summary": _object(label=_TEXT, text=_TEXT),
    "meta_observations": _object(
        observations=_list(
            _object(title=_TEXT, text=_TEXT, kind=_TEXT, fact_numbers=_list(_INTEGER), confidence=_NUMBER)
        )
    ),
}
BATCH = _object(
    entities=_ENTITIES,
    facts=_list(_object(message_number=_INTEGER, **_FACT)),
    relations=_list(_object(message_number=_INTEGER, **_RELATION)),
    updated_profiles=_PROFILES,
    emotions=_list(_object(message_number=_INTEGER, **_MOOD)),
)


def schema_of(task: str, payload: Mapping[str, Any]) -> Schema | None:
    """The schema of the reply to ``task`` with ``payload``; None for a task that has none."""
    return BATCH if task == "informed_extraction" and "messages" in payload else SCHEMAS.get(task)

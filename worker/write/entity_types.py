"""Which entity types mean the same sort of thing. Types are free strings; models drift between their synonyms."""

from __future__ import annotations

from functools import lru_cache

from worker.write.names import type_name

_FAMILIES = {
    "person": "person human individual people man woman child pessoa persona personne mensch user speaker",
    "organization": "organization organisation company org business employer startup firm institution team agency "
    "school university empresa organizacao organizacion",
    "place": "place location city country state region neighborhood neighbourhood town village "
    "lugar local cidade ciudad",
    "product": "product software app application tool device service technology produto producto",
    "pet": "pet animal dog cat bird",
    "event": "event meeting trip evento",
    "topic": "topic subject hobby activity skill interest",
}
_FAMILY_OF = {word: family for family, members in _FAMILIES.items() for word in members.split()}
# What a reader writes where it does not know; "concept" is the parser's word for a missing type.
_UNSURE = frozenset({"unknown", "other", "concept", "thing", "entity", "none", "null", "misc", "object", "undefined"})


@lru_cache(maxsize=1024)
def family(entity_type: str) -> str:
    """The sort of thing that a type names: "company" is an "organization"; an unfamiliar type is its own family."""
    kind = type_name(entity_type)
    return _FAMILY_OF.get(kind, kind)


def unsure(entity_type: str) -> bool:
    """Whether a type says nothing about what the thing is."""
    return not entity_type.strip() or type_name(entity_type) in _UNSURE


def is_person(entity_type: str) -> bool:
    """Whether a type means a person."""
    return family(entity_type) == "person"


def types_like(entity_type: str) -> list[str]:
    """All types of the same family, for an indexed lookup."""
    kind = type_name(entity_type)
    return sorted({kind, *_FAMILIES.get(family(entity_type), "").split()})


def compatible(one: str, other: str) -> bool:
    """Whether two types can be one entity's: the same family, or one of them unsure (behaviour: 6)."""
    return unsure(one) or unsure(other) or family(one) == family(other)

"""Replies of the model, in the shape of the contract, short to write."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any


def fact(subject: str, text: str, **fields: Any) -> dict[str, Any]:
    """An explicit statement."""
    return {"subject": subject, "text": text, "action": "NEW", "confidence_level": "explicit_statement"} | fields


def entity(name: str, kind: str = "person", *aliases: str) -> dict[str, Any]:
    """A person, or what ``kind`` says."""
    return {"name": name, "type": kind, "aliases": list(aliases)}


def edge(source: str, rel_type: str, target: str) -> dict[str, str]:
    """A relation."""
    return {"source": source, "rel_type": rel_type, "target": target}


def extraction(
    facts: Sequence[Any] = (), entities: Sequence[Any] = (), relations: Sequence[Any] = (), **more: Any
) -> dict[str, Any]:
    """A whole reply to an extraction task."""
    return {
        "entities": list(entities),
        "facts": list(facts),
        "relations": list(relations),
        "updated_profiles": [],
        "emotion": {"primary": "neutral", "intensity": 0.0, "energy_level": "medium"},
    } | more


def on_every(action: str) -> Any:
    """A reconciliation that decides so about every fact, citing its first existing one."""

    def decide(payload: dict[str, Any]) -> dict[str, Any]:
        return {
            "decisions": [
                {
                    "fact_number": item["number"],
                    "reason": "scripted",
                    "action": action,
                    "existing_number": item["existing"][0]["number"] if item["existing"] else None,
                }
                for item in payload["facts"]
            ]
        }

    return decide

"""The system prompts: one file a task, constant, so that providers cache them and a result can be traced to its prompt.

Messages and stored context never go in here; they are data in the user turn. Each prompt's example is about invented
names (``CANARY``); what a model copies from an example is thereby recognised wherever it turns up.
"""

from __future__ import annotations

import hashlib
import re
from dataclasses import dataclass
from functools import cache
from importlib.resources import files

TASKS = (
    "informed_extraction",
    "entity_scan",
    "fact_extraction",
    "relation_extraction",
    "emotion",
    "entity_resolution",
    "reconciliation",
    "entity_profile",
    "entity_summary",
    "fact_merge",
    "entity_merge",
    "cluster_summary",
    "meta_observations",
)

# Names that occur in the examples and nowhere else. A stored text that holds one of them was copied, not read.
CANARIES = ("Zyrphia Quellbrook", "Zyrphia", "Quellbrook", "Zyr", "Vantrell Oyx", "Oyx", "Morquist Bay")
CANARY = CANARIES[0]


@dataclass(frozen=True, slots=True)
class Prompt:
    """A task's system prompt; ``version`` is a short hash of its text and changes with every change of it."""

    text: str
    version: str


@cache
def prompt(task: str) -> Prompt:
    """Return the prompt of ``task``. Raises KeyError for a task that has none."""
    if task not in TASKS:
        raise KeyError(task)
    text = (files(__name__) / f"{task}.md").read_text(encoding="utf-8").strip()
    return Prompt(text, hashlib.sha256(text.encode("utf-8")).hexdigest()[:12])


def version_of(task: str, instructions: str = "") -> str:
    """The version of a task's prompt and, where a deployment adds ``instructions``, a short hash of them behind "/"."""
    return prompt(task).version + (f"/{instructions_hash(instructions)}" if instructions else "")


def instructions_hash(instructions: str) -> str:
    """A short hash of a deployment's own instructions."""
    return hashlib.blake2b(instructions.encode("utf-8", "replace"), digest_size=4).hexdigest()


def holds_canary(text: str, given: str = "") -> bool:
    """Whether ``text`` has a name of the examples that ``given`` (what the model was shown of the memory) does not."""
    return any(pattern.search(text) and not pattern.search(given) for pattern in _canary_patterns())


def without_canaries(text: str, given: str = "") -> str:
    """``text`` with those names of the examples that ``given`` does not have as "[example]"."""
    for pattern in _canary_patterns():
        if not pattern.search(given):
            text = pattern.sub("[example]", text)
    return text


@cache
def _canary_patterns() -> tuple[re.Pattern[str], ...]:
    # Boundaries are ASCII (in Chinese nothing stands around a name), and a space may be anything ("vantrell_oyx").
    spelled = (r"[\W_]+".join(map(re.escape, name.split())) for name in CANARIES)
    return tuple(re.compile(rf"(?<![A-Za-z0-9]){name}(?![A-Za-z0-9])", re.I) for name in spelled)

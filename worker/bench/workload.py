"""What is said in the benchmark and how the model answers: three entities, two facts and one relation a message.

Everything follows from the numbers of a message, so that both sides, and every run, hear the same.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

SPEAKER = "Rafael Moura"
_SYLLABLES = ("ba", "co", "di", "fe", "gu", "la", "mo", "ne", "pi", "ru", "sa", "to", "va", "xe", "zu", "qui")
TOPICS = ("chess", "opera", "rowing", "pottery", "botany", "fencing", "baking", "sailing", "drawing", "physics")


def coined(number: int, syllables: int = 4) -> str:
    """A name like no other, and unlike its neighbours': ``number``, spread out, in syllables."""
    number = number * 40_503 % len(_SYLLABLES) ** syllables
    parts = []
    for _ in range(syllables):
        number, digit = divmod(number, len(_SYLLABLES))
        parts.append(_SYLLABLES[digit])
    return "".join(reversed(parts)).capitalize()


@dataclass(frozen=True, slots=True)
class Spoken:
    """One message: somebody known or new (``person``), a firm (``firm``), and what is said about both by ``topic``."""

    number: int
    person: int
    firm: int

    @property
    def name(self) -> str:
        """Two words, unlike all others."""
        return f"{coined(self.person + 300, 3)} {coined(self.person + 1_900)}"

    @property
    def organization(self) -> str:
        return f"{coined(self.firm + 7_000)} {coined(self.firm + 700, 3)}"

    @property
    def topic(self) -> str:
        return TOPICS[self.number % len(TOPICS)]

    @property
    def text(self) -> str:
        """The message."""
        return (
            f"{self.name} works at {self.organization} and told me about {self.topic} club number {self.number}; "
            f"I visited {self.organization} for report {self.number}."
        )

    @property
    def facts(self) -> tuple[tuple[str, str], ...]:
        """Subject and text of its two facts."""
        return (
            (self.name, f"{self.name} runs {self.topic} club number {self.number}"),
            (SPEAKER, f"{SPEAKER} visited {self.organization} for report {self.number}"),
        )


def spoken(number: int, people: int) -> Spoken:
    """Message ``number`` of somebody who knows ``people`` people, half as many firms among them."""
    return Spoken(number, number * 7 % people, number * 3 % max(1, people // 2))


def numbered(text: str) -> int:
    """The number of the message that ``text`` is, or quotes."""
    return int(text.rpartition("for report ")[2].split(".")[0])


def reply_to(task: str, payload: Mapping[str, Any], people: int) -> Any:
    """What the model answers to a call of mandua's (llm.md)."""
    if task in ("reconciliation", "entity_resolution"):
        key, many = ("decisions", payload["facts"]) if task == "reconciliation" else ("resolutions", payload["names"])
        choice = {"action": "ADD", "existing_number": None} if key == "decisions" else {"candidate_number": None}
        number = "fact_number" if key == "decisions" else "name_number"
        return {key: [{number: item["number"], "reason": "another one", **choice} for item in many]}
    if task == "informed_extraction" and "messages" in payload:
        whole = [_extracted(spoken(numbered(item["message"]), people), item["number"]) for item in payload["messages"]]
        return {
            "entities": [entity for one in whole for entity in one["entities"]],
            "facts": [fact for one in whole for fact in one["facts"]],
            "relations": [edge for one in whole for edge in one["relations"]],
            "updated_profiles": [], "emotions": [],
        }  # fmt: skip
    return {
        **_extracted(spoken(numbered(str(payload["message"])), people), None),
        "updated_profiles": [],
        "emotion": {"primary": "neutral", "intensity": 0.0, "energy_level": "medium"},
    }


def _extracted(said: Spoken, message_number: int | None) -> dict[str, list[dict[str, Any]]]:
    own = {} if message_number is None else {"message_number": message_number}
    return {
        "entities": [
            {"name": said.name, "type": "person", "aliases": []},
            {"name": said.organization, "type": "organization", "aliases": []},
            {"name": SPEAKER, "type": "person", "aliases": []},
        ],
        "facts": [
            {"subject": subject, "text": text, "action": "NEW", "confidence_level": "explicit_statement",
             "importance_category": "stable_preference", **own}
            for subject, text in said.facts
        ],
        "relations": [{"source": said.name, "target": said.organization, "rel_type": "works_at", **own}],
    }  # fmt: skip

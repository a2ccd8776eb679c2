"""What is said in the chaos: messages that can be told apart wherever they turn up, and the model's replies to them."""

from __future__ import annotations

import random
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from producer import WriteRequest
from tests.acceptance.stack import lives_in
from tests.scripted_model import Fault

AGENTS = 30
POISON = "Poison"

# What beat's jobs ask meanwhile is about an entity and many messages, so it is on the bill of none.
JOB_REPLIES: Mapping[str, Any] = {
    "entity_merge": {"same": False, "reason": "two places"},
    "fact_merge": {"same": False, "reason": "two places", "text": ""},
    "entity_profile": {"text": "Somebody who moves a lot."},
    "entity_summary": {"text": "Somebody who moves a lot."},
}

_SYLLABLES = [consonant + vowel for consonant in "bcdfghjklmnprstvz" for vowel in "aeiou"]


@dataclass(frozen=True)
class Said:
    """One message. ``place`` occurs in no other one; ``by_worker``: who accepts it; ``turn``: the how manyeth of its
    agent that goes the same way."""

    agent: int
    place: str
    by_worker: bool
    turn: int

    @property
    def agent_id(self) -> str:
        return f"agent{self.agent:02}"

    @property
    def bulk(self) -> bool:
        """Odd agents import, even ones chat; one lane an agent, so that its order is the order of its seq."""
        return self.agent % 2 == 1

    @property
    def speaker(self) -> str:
        return f"Person{self.agent:02}"

    @property
    def poisonous(self) -> bool:
        """Whether the model refuses it, however it is asked."""
        return self.place.startswith(POISON)

    @property
    def message_id(self) -> str:
        return f"{'w' if self.by_worker else 'd'}{self.turn}-{self.place}"

    @property
    def fact(self) -> str:
        return f"{self.speaker} lives in {self.place}"

    def request(self) -> WriteRequest:
        """As the producer sends it, every time with the same message_id."""
        return WriteRequest(
            agent_id=self.agent_id, message=f"I live in {self.place}", speaker_name=self.speaker,
            message_id=self.message_id,
        )  # fmt: skip


def messages(many: int, seed: int, *, poison: int) -> list[Said]:
    """``many`` messages in the order of sending: half for the worker to accept, half for the database, ``poison`` of
    them refused by the model."""
    dice = random.Random(seed)
    names: set[str] = set()
    while len(names) < many:
        names.add("".join(dice.choices(_SYLLABLES, k=6)).capitalize())
    poisoned = set(dice.sample(range(many), poison))
    ordered = sorted(names)
    dice.shuffle(ordered)
    made = []
    for number, name in enumerate(ordered):
        turn, agent = divmod(number // 2, AGENTS)
        place = f"{POISON} {name}" if number in poisoned else name
        made.append(Said(agent, place, number % 2 == 0, turn))
    return made


def place_of(payload: Mapping[str, Any]) -> str:
    """The place that a call is about: one call of any task belongs to one message."""
    if "message" in payload:
        return str(payload["message"]).removeprefix("I live in ")
    return str(payload["facts"][0]["text"]).partition(" lives in ")[2]


def reply_to(task: str, payload: Mapping[str, Any]) -> Any:
    """What the model answers where nothing goes wrong."""
    if task == "reconciliation":  # the newest home replaces the one before
        return {
            "decisions": [
                {"fact_number": fact["number"], "reason": "moved", "action": "UPDATE",
                 "existing_number": fact["existing"][0]["number"]}
                for fact in payload["facts"]
            ]
        }  # fmt: skip
    if task == "entity_resolution":  # every place is one of its own
        return {
            "resolutions": [
                {"name_number": name["number"], "reason": "another one", "candidate_number": None}
                for name in payload["names"]
            ]
        }
    if task in JOB_REPLIES:
        return JOB_REPLIES[task]
    if place_of(payload).startswith(POISON):
        return Fault.refusal()
    if task == "emotion":
        return {"emotion": {"primary": "neutral", "intensity": 0.0, "energy_level": "medium"}}
    whole = lives_in(payload)
    parts = {"entity_scan": ("entities",), "fact_extraction": ("facts",), "relation_extraction": ("relations",)}
    return {key: whole[key] for key in parts[task]} if task in parts else whole

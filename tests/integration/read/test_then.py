"""What was true then, and what was believed then, against the log of messages (behaviour: 12; issue 8)."""

from __future__ import annotations

import random
from dataclasses import dataclass
from datetime import datetime

import pytest
from sqlalchemy import Engine, text

from tests.integration.write.scene import Scene, day
from tests.integration.write.test_order_free_history import CITIES, TOPICS, decide
from worker.read import get_facts

MESSAGES = 24
QUESTIONS = 100


@dataclass(frozen=True)
class Told:
    """One line of the log: what was said, the day it is about, and when it was stored."""

    city: str
    at: datetime
    stored: datetime


def oracle(log: list[Told], as_of: datetime, known_at: datetime) -> str | None:
    """Where Ana lived at ``as_of`` as far as anybody knew at ``known_at``: the last word before it, of those heard."""
    heard = [told for told in log if told.stored <= known_at and told.at <= as_of]
    return max(heard, key=lambda told: told.at).city if heard else None


@pytest.mark.parametrize("seed", [1, 2])
def test_as_of_and_known_at_are_right_for_a_hundred_pairs(database: Engine, seed: int) -> None:
    chance = random.Random(seed)
    scene = Scene(database, TOPICS, **dict.fromkeys(CITIES, "place"))
    log: list[Told] = []
    for number in chance.sample(range(MESSAGES), MESSAGES):  # told in any order
        city = chance.choice(CITIES)
        words = f"Ana lives in {city}"
        scene.write(words, [("Ana", words)], at=day(number), decide=decide, names=CITIES)
        with database.connect() as connection:
            log.append(Told(city, day(number), connection.execute(text("SELECT mandua_now()")).scalar_one()))
    wrong = []
    with database.connect() as connection:
        for _ in range(QUESTIONS):
            known_at = chance.choice(log).stored
            as_of = day(chance.randrange(MESSAGES))
            rows = get_facts(connection, scene.agent, as_of=as_of, known_at=known_at)
            found = [row["fact_text"].removeprefix("Ana lives in ") for row in rows]
            expected = oracle(log, as_of, known_at)
            if found != ([expected] if expected else []):
                wrong.append((as_of, known_at, expected, found))
        now = [row["fact_text"] for row in get_facts(connection, scene.agent)]
        assert now == [f"Ana lives in {oracle(log, day(MESSAGES), log[-1].stored)}"]
        for number in range(MESSAGES):
            (row,) = get_facts(connection, scene.agent, as_of=day(number)) or [{"fact_text": None}]
            city = oracle(log, day(number), log[-1].stored)
            assert row["fact_text"] == (city and f"Ana lives in {city}")
    assert wrong == [], f"{len(wrong)} of {QUESTIONS}"


def test_pages_and_times_without_zone(database: Engine) -> None:
    scene = Scene(database)
    scene.write("x", [("Ana", f"Ana likes number {n}") for n in range(5)], at=day(1))
    with database.connect() as connection:
        pages = [get_facts(connection, scene.agent, limit=2, offset=n) for n in (0, 2, 4)]
        assert [len(page) for page in pages] == [2, 2, 1]
        assert len({row["id"] for page in pages for row in page}) == 5
        with pytest.raises(ValueError, match="as_of has no zone"):
            get_facts(connection, scene.agent, as_of=datetime(2020, 1, 1))  # noqa: DTZ001

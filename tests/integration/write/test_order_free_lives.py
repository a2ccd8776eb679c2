"""A life told in any order is remembered alike (behaviour: 8, "Time"; design: promise 9): the whole pipeline, with the
offline reader and the local embeddings, in one process and over the live and the bulk lane."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from sqlalchemy import Engine

from producer.queues import Lane
from tests.integration.write.lives import told_in_process, told_to_workers
from worker.llm.offline import OfflineProvider
from worker.models_in_use import embedding_model

CITIES = {"en": ("Lima", "Quito", "Oslo"), "pt": ("Curitiba", "Recife", "Manaus")}
FIRMS = ("Acme", "Orion", "Vertix")
PEOPLE = ("Ana", "Bia")
Strand = Callable[[str], st.SearchStrategy[list[str]]]

WORDS: dict[str, dict[str, tuple[str, ...]]] = {
    "en": {
        "home": ("I moved to {}.", "I live in {}."),
        "job": ("I work at {}.", "I started working at {}."),
        "leave": ("I left {}.", "I no longer work at {}."),
        "love": ("I am dating {}.", "I am married to {}."),
        "part": ("I broke up with {}.", "I broke up with {}."),
        "like": ("I like {}.", "I don't like {}.", "I no longer like {}."),
        "trade": ("I am a nurse.", "I became a pilot."),
        "things": ("tea", "jazz"),
    },
    "pt": {
        "home": ("Me mudei para {}.", "Moro em {}."),
        "job": ("Trabalho na {}.", "Comecei a trabalhar na {}."),
        "leave": ("Saí da {}.", "Não trabalho mais na {}."),
        "love": ("Namoro a {}.", "Sou casado com a {}."),
        "part": ("Terminei com a {}.", "Terminei com a {}."),
        "like": ("Gosto de {}.", "Não gosto de {}.", "Não gosto mais de {}."),
        "trade": ("Sou enfermeiro.", "Virei piloto."),
        "things": ("chá", "jazz"),
    },
}


def homes(language: str) -> st.SearchStrategy[list[str]]:
    """One city after another, some of them twice."""
    said = st.tuples(st.sampled_from(WORDS[language]["home"]), st.sampled_from(CITIES[language]))
    return st.lists(said.map(lambda pair: pair[0].format(pair[1])), min_size=2, max_size=4)


def jobs(language: str) -> st.SearchStrategy[list[str]]:
    """Jobs that are left, or go over into the next."""

    def told(firms: list[str], hows: list[int]) -> list[str]:
        lines = []
        for firm, how in zip(firms, hows, strict=False):
            lines.append(WORDS[language]["job"][how % 2].format(firm))
            if how > 1:
                lines.append(WORDS[language]["leave"][how % 2].format(firm))
        return lines

    firms = st.lists(st.sampled_from(FIRMS), min_size=1, max_size=3, unique=True)
    return st.builds(told, firms, st.lists(st.integers(0, 3), min_size=3, max_size=3))


def loves(language: str) -> st.SearchStrategy[list[str]]:
    """Being with somebody, and the end of it."""

    def told(people: list[str], kind: int, last: bool) -> list[str]:
        lines = []
        for person in people:
            lines += [WORDS[language]["love"][kind].format(person), WORDS[language]["part"][kind].format(person)]
        return lines[:-1] if last else lines

    people = st.lists(st.sampled_from(PEOPLE), min_size=1, max_size=2, unique=True)
    return st.builds(told, people, st.integers(0, 1), st.booleans())


def tastes(language: str) -> st.SearchStrategy[list[str]]:
    """Liking and not liking one thing, in turn."""
    said = st.lists(st.sampled_from(WORDS[language]["like"]), min_size=2, max_size=4)
    return st.builds(
        lambda lines, thing: [line.format(thing) for line in lines], said, st.sampled_from(WORDS[language]["things"])
    )


def trades(language: str) -> st.SearchStrategy[list[str]]:
    """A profession, and the next one."""
    return st.just(list(WORDS[language]["trade"]))


STRANDS: dict[str, Strand] = {"homes": homes, "jobs": jobs, "loves": loves, "tastes": tastes, "trades": trades}


@st.composite
def lives(draw: st.DrawFn, *only: str) -> list[str]:
    """One to three strands of a life in one language, woven into each other."""
    language = draw(st.sampled_from(["en", "pt"]))
    names = draw(st.lists(st.sampled_from(only or tuple(STRANDS)), min_size=1, max_size=3, unique=True))
    strands = [draw(STRANDS[name](language)) for name in names]
    woven = []
    while any(strands):
        strand = draw(st.sampled_from([strand for strand in strands if strand]))
        woven.append(strand.pop(0))
    return woven


# A life is short as it is: shrinking it takes minutes of a real database and tells little more.
SLOWLY: dict[str, Any] = {
    "deadline": None,
    "suppress_health_check": list(HealthCheck),
    "phases": (Phase.explicit, Phase.reuse, Phase.generate),
}


@settings(max_examples=40, **SLOWLY)
@given(data=st.data())
def test_any_permutation_of_a_life_is_remembered_alike(database: Engine, working: None, data: st.DataObject) -> None:
    life = data.draw(lives(), "life")
    order = data.draw(st.permutations(range(len(life))), "order")
    llm, embeddings = OfflineProvider(), embedding_model()
    straight = told_in_process(database, llm, embeddings, life, range(len(life)))
    other = told_in_process(database, llm, embeddings, life, order)
    assert straight == other, "\n".join(straight.differences(other))


@settings(max_examples=12, **SLOWLY)
@given(data=st.data())
def test_a_life_split_over_the_lanes_is_remembered_alike(database: Engine, working: None, data: st.DataObject) -> None:

    life = data.draw(lives(), "life")
    order = data.draw(st.permutations(range(len(life))), "order")
    lanes = data.draw(st.lists(st.sampled_from([Lane.LIVE, Lane.BULK]), min_size=len(life), max_size=len(life)))
    straight = told_to_workers(database, life, range(len(life)), [Lane.LIVE] * len(life))
    other = told_to_workers(database, life, order, lanes)
    assert straight == other, "\n".join(straight.differences(other))


@settings(max_examples=8, **SLOWLY)
@given(data=st.data())
def test_a_backlog_read_in_bulk_turns_is_remembered_alike(database: Engine, working: None, data: st.DataObject) -> None:
    life = data.draw(lives(), "life")
    order = data.draw(st.sampled_from([list(range(len(life))), list(reversed(range(len(life))))]), "order")
    lanes = [Lane.BULK] * len(life)
    alone = told_to_workers(database, life, order, lanes, turn=1)
    together = told_to_workers(database, life, order, lanes, turn=8)
    assert alone == together, "\n".join(alone.differences(together))

"""`mandua demo` from nothing: its own servers, workers and memory; and what is left of it afterwards."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest

from tests.acceptance.command import Mandua, fresh_home, interrupt


@pytest.fixture
def mandua() -> Iterator[Mandua]:
    with fresh_home() as made:
        yield made


def test_the_demo_shows_what_the_memory_can_do_and_a_second_run_changes_nothing(mandua: Mandua) -> None:
    began = time.monotonic()
    first = mandua.run("demo", "--json")
    print(f"demo: {time.monotonic() - began:.1f} s")
    assert first.code == 0, first.err
    shown = first.json
    assert set(shown) == {"events", "runs", "entities", "facts", "relations"}
    assert shown["events"] >= 14
    assert sum(shown["runs"].values()) == shown["events"]
    assert set(shown["runs"]) <= {"ok", "empty"}
    assert "offline reader" in first.err

    facts = {fact["id"]: fact for fact in shown["facts"]}
    replaced = [(facts[fact["supersedes_fact_id"]], fact) for fact in facts.values() if fact["supersedes_fact_id"]]
    assert replaced
    assert all(old["valid_to"] == new["valid_from"] and old["invalidated_at"] for old, new in replaced)
    assert any(entity["aliases"] == ["Nina"] for entity in shown["entities"])
    # Told on 20 May, of the day before.
    assert any(fact["event_date"] == "2022-05-19" and "ontem" in fact["fact_text"] for fact in facts.values())
    fallen = [edge for edge in shown["relations"] if edge["invalidated_at"]]
    assert any(facts[edge["evidence_fact_id"]]["valid_to"] == edge["valid_to"] for edge in fallen)
    assert mandua.processes() == []

    second = mandua.run("demo", "--json")
    assert (second.code, second.json) == (0, shown)
    assert (mandua.home / ".local/share/mandua/demo").is_dir()
    assert mandua.run("entities", "--agent", "demo", "--json").json == {"entities": []}  # the user's own memory
    assert mandua.processes() == []


def test_a_demo_that_is_interrupted_leaves_no_process(mandua: Mandua) -> None:
    demo = mandua.start("demo")
    assert demo.stderr is not None
    while not (line := demo.stderr.readline()).startswith("  ok"):  # the first message is through
        assert line, "the demo ended early"
    interrupt(demo)
    demo.communicate(timeout=60)
    assert demo.returncode == 130
    assert mandua.processes() == []

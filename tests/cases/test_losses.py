"""LOS and SIZ: what must not get lost, neither a message, nor a part of it, nor what belongs to a fact."""

from __future__ import annotations

import json
import threading
from typing import Any

import numpy as np
import pytest

from tests.cases.conftest import Memory
from tests.cases.replies import entity, extraction, fact
from tests.scripted_model import EMBEDDING, Fault, hashing_vector

DAY = "Hoje o café estava bom e a chuva não parou. Fiquei em casa lendo um livro comprido sobre pontes antigas.\n\n"


def diary(chars: int, **found: str) -> str:
    """A diary that says each sentence of ``found`` at its place in percent (p50)."""
    days = [DAY] * (chars // len(DAY))
    for place, sentence in found.items():
        days.insert(len(days) * int(place[1:]) // 100, sentence + "\n\n")
    return "".join(days)


def told(payload: dict[str, Any]) -> dict[str, Any]:
    """A model that reports the lines about Nilo."""
    return extraction(
        [fact("Nilo", line) for line in payload["message"].splitlines() if "Nilo" in line], [entity("Nilo", "pet")]
    )


@pytest.mark.parametrize("raw", ["Claro! Anotado.", "", "null", "I cannot see any facts, sorry."])
def test_los_04_an_unreadable_reply_falls_back_to_blind(memory: Memory, raw: str) -> None:
    memory.model.on("informed_extraction", Fault.broken(raw))
    memory.model.on("entity_scan", {"entities": [entity("Bruna")]})
    memory.model.on("fact_extraction", {"facts": [fact("Bruna", "Bruna adora jabuticaba")]})
    memory.model.on("relation_extraction", {"relations": []})
    memory.model.on("emotion", {"emotion": {"primary": "joy", "intensity": 0.7, "energy_level": "high"}})
    result = memory.write("Adoro jabuticaba.")
    assert (result.status, memory.texts()) == ("degraded", ["Bruna adora jabuticaba"])
    assert [(item.stage, item.fell_back_to, item.cause) for item in result.degradations] == [
        ("extract", "blind", "bad_reply")
    ]
    assert memory.model.count("informed_extraction") == 2
    assert result.emotion is not None
    assert result.emotion.primary == "joy"


def test_los_04_where_that_fails_too_the_message_is_kept_to_be_replayed(memory: Memory) -> None:
    for task in ("informed_extraction", "entity_scan"):
        memory.model.on(task, "Claro! Anotado.")
    result = memory.write("Adoro jabuticaba.")
    assert (result.status, result.success, result.error) == ("failed", False, "extract: bad_reply")
    (run,) = memory.rows("SELECT state, stage, cause FROM runs WHERE agent_id = :agent")
    assert (run["state"], run["stage"], run["cause"]) == ("parked", "extract", "bad_reply")
    assert memory.rows("SELECT message FROM memory_events WHERE agent_id = :agent") == [
        {"message": "Adoro jabuticaba."}
    ]


def test_los_05_a_chunk_whose_reply_is_cut_off_is_divided_and_the_others_are_kept(memory: Memory) -> None:
    said = diary(40_000, p5="Nilo come peixe.", p45="Nilo é preto.", p55="Nilo dorme muito.", p95="Nilo caça ratos.")
    whole: list[int] = []
    lock = threading.Lock()

    def answer(payload: dict[str, Any]) -> Any:
        if payload["chunk"]["number"] == 3 and len(payload["message"]) > 5000:
            return Fault.length('{"facts": [{"subject": "Nilo", "text": "Nilo é pr')
        with lock:
            whole.append(payload["chunk"]["number"])
        return told(payload)

    memory.model.on("informed_extraction", answer)
    result = memory.write(said)
    assert memory.texts() == ["Nilo caça ratos.", "Nilo come peixe.", "Nilo dorme muito.", "Nilo é preto."]
    assert (result.status, result.degradations) == ("ok", [])
    assert sorted(whole) == [1, 2, 3, 3, 4, 5, 6]


def test_los_05_a_chunk_that_never_fits_costs_only_itself(memory: Memory) -> None:
    said = diary(40_000, p5="Nilo come peixe.", p95="Nilo caça ratos.")

    def answer(payload: dict[str, Any]) -> Any:
        return Fault.length('{"facts": [{"subj') if payload["chunk"]["number"] == 3 else told(payload)

    memory.model.on("informed_extraction", answer)
    result = memory.write(said)
    assert memory.texts() == ["Nilo caça ratos.", "Nilo come peixe."]
    assert result.status == "degraded"
    assert memory.model.count("informed_extraction") < 60


def test_los_05_a_short_message_is_given_more_room(memory: Memory) -> None:
    memory.model.queue(
        "informed_extraction",
        Fault.length('{"facts": [{"subject": "Bruna", "text": "Bruna mora em Recife"}, {"subject": "Br'),
        extraction([fact("Bruna", "Bruna mora em Recife"), fact("Bruna", "Bruna tem um gato")], [entity("Bruna")]),
    )
    result = memory.write("Moro em Recife e tenho um gato.")
    assert memory.texts() == ["Bruna mora em Recife", "Bruna tem um gato"]
    assert (result.status, result.degradations) == ("ok", [])
    bounds = [call.body.get("max_tokens") for call in memory.model.calls if call.task == "informed_extraction"]
    assert bounds == [None, 4096]


@pytest.mark.parametrize("second", [Fault.length('{"facts": [{"subj'), Fault.status(400), Fault.broken("Anotado.")])
def test_los_05_where_there_is_no_more_room_whole_items_are_taken_and_it_says_so(memory: Memory, second: Fault) -> None:
    cut = '{"facts": [{"subject": "Bruna", "text": "Bruna mora em Recife"}, {"subject": "Bruna", "text": "Bruna te'
    memory.model.queue("informed_extraction", Fault.length(cut), second)
    memory.model.on("informed_extraction", Fault.length(cut))
    result = memory.write("Moro em Recife e tenho um gato.")
    assert memory.texts() == ["Bruna mora em Recife"]
    assert (result.status, [item.cause for item in result.degradations]) == ("degraded", ["cut_off"])


@pytest.mark.parametrize("place", [0, 1, 2])
def test_los_06_a_rejected_fact_shifts_nothing_of_the_others(memory: Memory, place: int) -> None:
    facts: list[dict[str, Any]] = [
        {"subject": "Bruna", "text": "Bruna nasceu em Olinda", "action": "NEW", "confidence": 0.95},
        {"subject": "Léo", "text": "Léo é primo da Bruna", "action": "NEW", "confidence": 0.8},
    ]
    facts.insert(place, {"subject": "Bruna", "text": "...", "action": "NEW", "confidence": 0.1})
    memory.model.on("informed_extraction", extraction(facts, [entity("Bruna"), entity("Léo")]))
    result = memory.write("Nasci em Olinda e o Léo é meu primo.")
    stored = {row["fact_text"]: row for row in memory.facts()}
    assert {text: (row["entity_key"], round(row["confidence"], 2)) for text, row in stored.items()} == {
        "Bruna nasceu em Olinda": ("person:bruna", 0.95),
        "Léo é primo da Bruna": ("person:leo", 0.8),
    }
    for text, row in stored.items():
        assert row["source_event_id"] == result.event_id
        vector = np.array(
            json.loads(str(row["embedding"])) if isinstance(row["embedding"], str) else row["embedding"].to_list()
        )
        assert float(vector @ np.array(hashing_vector(text, 384))) > 0.99


@pytest.mark.parametrize("reader", ["scripted", "offline"])
@pytest.mark.parametrize("place", ["p1", "p50", "p98"])
def test_siz_01_the_one_fact_in_60_kb_is_stored(memory: Memory, reader: str, place: str) -> None:
    said = diary(60_000, **{place: "Adotei o gato Nilo."})
    if reader == "scripted":
        memory.model.on("informed_extraction", told)
    result = memory.write(said)
    assert any("Nilo" in text for text in memory.texts())
    assert result.status == "ok"
    (event,) = memory.rows("SELECT message FROM memory_events WHERE agent_id = :agent")
    assert event["message"] == said
    embedded = [text for call in memory.model.calls if call.task == EMBEDDING for text in call.payload["texts"]]
    assert max(map(len, embedded)) <= 1500


@pytest.mark.parametrize(
    "filler", ["今天下雨，我在家看书。", "Сегодня шёл дождь, и я читала. ", "x" * 997 + " ", "# Title\n\n| a | b |\n"]
)
def test_siz_01_whatever_the_text_is_made_of(memory: Memory, filler: str) -> None:
    half = filler * (30_000 // len(filler))
    memory.model.on("informed_extraction", told)
    memory.write(f"{half}\nAdotei o gato Nilo.\n{half}")
    assert memory.texts() == ["Adotei o gato Nilo."]

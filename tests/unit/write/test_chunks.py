"""Long input: cut at structure, split where a reply does not fit, one bad chunk costs only itself."""

from __future__ import annotations

import json
import threading
import time
from itertools import pairwise
from typing import Any

import pytest

from tests.unit.write.answers import Answers, Embeddings, calls_of, fact, message, no_memory, reply
from worker.llm.provider import Cause, Completion, ModelError
from worker.write.extraction import embedding_text, extract
from worker.write.extraction.chunks import FLOOR_CHARS, cut_into_parts, split_text

DAY = "Hoje o café estava bom e a chuva não parou. Fiquei em casa lendo um livro comprido sobre pontes antigas.\n\n"


def diary(chars: int, **found: str) -> str:
    """A diary of about ``chars`` characters that says each sentence of ``found`` at a place given in percent (p50)."""
    days = [DAY] * (chars // len(DAY))
    for place, sentence in found.items():
        days.insert(len(days) * int(place[1:]) // 100, sentence + "\n\n")
    return "".join(days)


def told(payload: Any) -> Any:
    """A model that reports the sentences about Nilo in what it is sent."""
    facts = [fact("Bruna", line) for line in payload["message"].splitlines() if "Nilo" in line]
    return reply(facts)


def run(said: str, model: Answers, **fields: Any) -> Any:
    return extract(message(said), no_memory(), calls_of(model, Embeddings()), **fields)


def test_parts_are_cut_at_structure_and_lose_nothing() -> None:
    text = diary(40_000)
    parts = cut_into_parts(text)
    assert [part.number for part in parts] == [1, 2, 3, 4, 5, 6]
    assert {part.of for part in parts} == {6}
    assert "".join("".join(part.text.split()) for part in parts) == "".join(text.split())
    assert all(part.text.startswith("Hoje") and part.text.endswith(".") for part in parts)
    assert parts[0].hint == ""
    assert all(later.hint and earlier.text.endswith(later.hint) for earlier, later in pairwise(parts))


@pytest.mark.parametrize("text", ["x" * 5000, "字" * 5000, "a b " * 2000, "# h\n" * 2000, "\n" * 3000 + "a"])
def test_splitting_ends_whatever_the_text(text: str) -> None:
    pieces = split_text(text, 3)
    assert all(piece.strip() for piece in pieces)
    assert "".join("".join(piece.split()) for piece in pieces) == "".join(text.split())


def test_headings_open_a_chunk() -> None:
    section = "word " * 500
    parts = split_text(f"# One\n{section}\n# Two\n{section}\n# Three\n{section}", 3)
    assert [part.split("\n")[0] for part in parts] == ["# One", "# Two", "# Three"]


def test_siz_01_a_fact_in_the_middle_of_60_kb_is_found() -> None:
    model = Answers().on("informed_extraction", told)
    said = diary(60_000, p50="Adotei o gato Nilo.")
    plan = run(said, model)
    assert [item.text for item in plan.facts] == ["Adotei o gato Nilo."]
    assert plan.chunks == model.count() == 9
    assert plan.degradations == []
    payloads = model.payloads("informed_extraction")
    assert sorted(payload["chunk"]["number"] for payload in payloads) == list(range(1, 10))
    assert len(embedding_text(message(said))) <= 1500


def test_los_05_a_chunk_whose_reply_is_cut_off_is_split_and_the_others_are_kept() -> None:
    said = diary(40_000, p5="Nilo come peixe.", p45="Nilo é preto.", p55="Nilo dorme muito.", p95="Nilo caça.")

    def answer(payload: Any) -> Any:
        if payload["chunk"]["number"] in (3, 4) and len(payload["message"]) > 5000:
            return Completion('{"facts": [{"subject": "Bruna", "text": "Nilo é', truncated=True)
        return told(payload)

    model = Answers().on("informed_extraction", answer)
    plan = run(said, model)
    assert {item.text for item in plan.facts} == {
        "Nilo come peixe.",
        "Nilo é preto.",
        "Nilo dorme muito.",
        "Nilo caça.",
    }
    assert plan.degradations == []
    assert model.count() == 6 + 4
    assert plan.chunks == 8


def test_los_05_splitting_has_a_floor() -> None:
    def answer(payload: Any) -> Any:
        return Completion(json.dumps(told(payload))[:-40] + '{"su', truncated=True)

    model = Answers().on("informed_extraction", answer)
    plan = run(diary(3000, p50="Adotei o gato Nilo."), model)
    assert "Adotei o gato Nilo." not in [item.text for item in plan.facts] or plan.degradations
    assert all(len(p["message"]) > 0 for p in model.payloads("informed_extraction"))
    assert min(len(p["message"]) for p in model.payloads("informed_extraction")) > FLOOR_CHARS / 3
    assert model.count() < 40
    assert "cut_off" in {item.cause for item in plan.degradations}


@pytest.mark.parametrize("cause", [Cause.TIMEOUT, Cause.BAD_REPLY, Cause.REFUSED])
def test_one_failing_chunk_costs_only_itself(cause: Cause) -> None:
    model = Answers().on("informed_extraction", lambda p: cause if "GIFT" in p["message"] else told(p))
    said = diary(20_000, p10="Nilo come peixe.", p50="GIFT\n\nNilo é preto.", p95="Nilo caça.")
    plan = run(said, model)
    found = {item.text for item in plan.facts}
    assert {"Nilo come peixe.", "Nilo caça."} <= found
    assert [item.cause for item in plan.degradations] == [cause.value]
    assert (
        plan.degradations[0].fell_back_to.endswith("of part 2 of 3")
        or "part 2 of 3" in plan.degradations[0].fell_back_to
    )


def test_a_transient_error_in_one_chunk_is_the_whole_messages() -> None:
    model = Answers().on("informed_extraction", lambda p: Cause.RATE_LIMITED if "GIFT" in p["message"] else told(p))
    with pytest.raises(ModelError, match="rate_limited"):
        run(diary(20_000, p50="GIFT"), model)


def test_where_no_chunk_can_be_read_the_stage_fails() -> None:
    with pytest.raises(ModelError, match="refused"):
        run(diary(20_000), Answers().on("informed_extraction", Cause.REFUSED))


def test_chunks_are_read_at_the_same_time() -> None:
    together = threading.Barrier(4, timeout=30)

    def meeting(payload: Any) -> Any:
        together.wait()  # passes only if four are asked for at once
        return told(payload)

    assert run(diary(27_000), Answers().on("informed_extraction", meeting)).chunks == 4


def test_the_same_fact_in_two_chunks_is_one() -> None:
    model = Answers().on("informed_extraction", told)
    plan = run(diary(20_000, p5="Adotei o gato Nilo.", p90="Adotei o gato Nilo!"), model)
    assert len(plan.facts) == 1


def test_blind_extraction_takes_chunks_as_well() -> None:
    model = Answers()
    model.on("entity_scan", {"entities": [{"name": "Nilo", "type": "pet", "aliases": []}]})
    model.on("fact_extraction", lambda payload: {"facts": told(payload)["facts"]})
    model.on("relation_extraction", {"relations": [{"source": "Bruna", "target": "Nilo", "rel_type": "owns"}]})
    plan = run(diary(20_000, p50="Adotei o gato Nilo."), model, fallback="timeout")
    assert [item.text for item in plan.facts] == ["Adotei o gato Nilo."]
    assert plan.chunks == 3
    assert (model.count("entity_scan"), model.count("fact_extraction"), model.count("emotion")) == (3, 3, 1)
    assert len(plan.relations) == 1


def test_checking_a_long_message_takes_no_time_to_speak_of() -> None:
    facts = [
        fact("Bruna", f"Bruna leu o livro {number} sobre pontes", event_date="2025-03-17", event_date_precision="day")
        for number in range(150)
    ]
    model = Answers().on("informed_extraction", reply(facts))
    begun = time.process_time()  # of this process alone, whatever else the machine does
    run(diary(190_000), model)
    assert time.process_time() - begun < 15

"""Whatever becomes of a reply on its way, the parser raises nothing but ModelError and loses no good item."""

from __future__ import annotations

import contextlib
import json
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from worker.llm.provider import ModelError
from worker.llm.replies import parse_emotion, parse_extraction
from worker.llm.verdicts import (
    parse_cluster_summary,
    parse_decisions,
    parse_entity_merge,
    parse_fact_merge,
    parse_observations,
    parse_resolutions,
    parse_text,
)

QUICK = settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.too_slow])

# Words of any script, with what tends to break parsers: quotes, brackets, backticks, backslashes, newlines.
sentence = st.text(st.sampled_from("abcé 博ж\"'{}[]`\\\n:,0-"), min_size=1, max_size=30).map(
    lambda t: f"Bruna diz {t.strip()} sim"
)
good_fact = st.builds(
    lambda text, action: {"subject": "Bruna", "text": " ".join(text.split()), "action": action},
    sentence,
    st.sampled_from(["NEW", "UPDATE"]),
)
junk = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False)
    | st.sampled_from(["", "...", "-", "\u200b"]),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["subject", "action", "x"]), inner, max_size=3)
    ),
    max_leaves=6,
)
anything = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=12), inner, max_size=4),
    max_leaves=12,
)
keys = st.sampled_from(
    ["entities", "facts", "relations", "updated_profiles", "emotion", "emotions", "name", "text", "subject", "type",
     "properties", "decisions", "resolutions", "action", "fact_number", "name_number", "candidate_number", "source",
     "target", "rel_type", "aliases", "confidence", "event_date", "message_number", "observations", "same", "$defs"]
)  # fmt: skip
shaped = st.recursive(
    anything,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(keys, inner, max_size=5),
    max_leaves=12,
)


def parse_all(text: str) -> None:
    """Give a text to every parser; only ModelError may come out."""
    readers: list[Any] = [
        lambda: parse_extraction(text, "Bruna"),
        lambda: parse_extraction(text, "Bruna", speakers={1: "Bruna", 2: "Léo"}),
        lambda: parse_emotion(text),
        lambda: parse_decisions(text, {1: [1, 2], 2: []}),
        lambda: parse_decisions(text, {1: [1]}),
        lambda: parse_resolutions(text, {1: [1, 2], 2: [1]}),
        lambda: parse_text(text),
        lambda: parse_fact_merge(text),
        lambda: parse_entity_merge(text),
        lambda: parse_cluster_summary(text),
        lambda: parse_observations(text, [1, 2]),
    ]
    for read in readers:
        with contextlib.suppress(ModelError):
            result = read()
            dumped = result if isinstance(result, str) else result.model_dump_json()
            dumped.encode("utf-8")
            assert "\x00" not in dumped


@QUICK
@given(st.text(max_size=80))
def test_any_text_is_read_or_refused(text: str) -> None:
    parse_all(text)


@QUICK
@given(shaped)
def test_any_json_is_read_or_refused(value: Any) -> None:
    parse_all(json.dumps(value))


@QUICK
@given(shaped, st.data())
def test_any_mutilated_json_is_read_or_refused(value: Any, data: st.DataObject) -> None:
    text = json.dumps(value, ensure_ascii=False)
    start = data.draw(st.integers(0, len(text)))
    end = data.draw(st.integers(start, len(text)))
    inserted = data.draw(st.sampled_from(["", '"', "}", "{", "]", "```", "\\", "\n", "\x00", "\ud800"]))
    parse_all(text[:start] + inserted + text[end:])


@QUICK
@given(st.lists(st.tuples(st.booleans(), good_fact, junk), min_size=1, max_size=6))
def test_a_bad_neighbour_never_costs_a_good_fact(items: list[tuple[bool, dict[str, str], Any]]) -> None:
    facts = [good if is_good else bad for is_good, good, bad in items]
    expected = [good["text"] for is_good, good, _ in items if is_good]
    parsed = parse_extraction(json.dumps({"facts": facts, "entities": ["Bruna"]}), "Bruna")
    assert [fact.text for fact in parsed.facts if fact.text.startswith("Bruna diz")] == expected


@QUICK
@given(st.lists(good_fact, min_size=1, max_size=5, unique_by=lambda f: f["text"]), st.data())
def test_a_cut_reply_keeps_every_whole_fact_and_nothing_half(facts: list[dict[str, str]], data: st.DataObject) -> None:
    pieces = [json.dumps(fact, ensure_ascii=False) for fact in facts]
    whole = '{"facts": [' + ", ".join(pieces) + "]}"
    cut = data.draw(st.integers(len('{"facts": [') + len(pieces[0]), len(whole)))
    ends = [whole.index(piece) + len(piece) for piece in pieces]
    expected = [fact["text"] for fact, end in zip(facts, ends, strict=True) if end <= cut]
    parsed = parse_extraction(whole[:cut], "Bruna")
    assert [fact.text for fact in parsed.facts] == expected


@QUICK
@given(st.lists(good_fact, min_size=2, max_size=5, unique_by=lambda f: f["text"]), st.data())
def test_a_fact_that_stands_whole_in_a_broken_reply_is_found(facts: list[dict[str, str]], data: st.DataObject) -> None:
    pieces = [json.dumps(fact, ensure_ascii=False) for fact in facts]
    victim = data.draw(st.integers(0, len(pieces) - 1))
    place = data.draw(st.integers(1, len(pieces[victim]) - 1))
    pieces[victim] = (
        pieces[victim][:place] + data.draw(st.sampled_from(["", '"', "\n", "'", "]"])) + pieces[victim][place + 1 :]
    )
    frame = data.draw(
        st.sampled_from(['{"facts": [%s]}', '```json\n{"facts": [%s]}\n```', "[%s]", 'Sure: {"facts": [%s]} Done.'])
    )
    parsed = parse_extraction(frame % ", ".join(pieces), "Bruna")
    found = {fact.text for fact in parsed.facts}
    assert {fact["text"] for number, fact in enumerate(facts) if number != victim} <= found

"""classify_input and select_strategy by the source's tables."""

from __future__ import annotations

import pytest

from worker.write.strategy import ExtractionMode, InputType, classify_input, select_strategy

BULLETS = "- one thing\n- another thing\n"


@pytest.mark.parametrize(
    ("text", "kind", "mode"),
    [
        ("", InputType.SHORT, ExtractionMode.SINGLE_SHOT),
        ("Minha esposa se chama Ana e moramos em Sao Paulo.", InputType.SHORT, ExtractionMode.SINGLE_SHOT),
        ("x" * 499, InputType.SHORT, ExtractionMode.SINGLE_SHOT),
        ("x" * 500, InputType.MEDIUM, ExtractionMode.SINGLE_SHOT),
        ("x" * 2000, InputType.MEDIUM, ExtractionMode.SINGLE_SHOT),
        ("x" * 2001, InputType.LONG, ExtractionMode.CHUNKED),
        (BULLETS, InputType.SHORT, ExtractionMode.SINGLE_SHOT),
        (BULLETS + "x" * 600, InputType.STRUCTURED, ExtractionMode.SINGLE_SHOT),
        (BULLETS + "x" * 2500, InputType.STRUCTURED, ExtractionMode.CHUNKED),
        ("# Title\n" + "x" * 600, InputType.STRUCTURED, ExtractionMode.SINGLE_SHOT),
        ("Title\n=====\n" + "x" * 600, InputType.STRUCTURED, ExtractionMode.SINGLE_SHOT),
        ("| a | b |\n| 1 | 2 |\n" + "x" * 600, InputType.STRUCTURED, ExtractionMode.SINGLE_SHOT),
        ("1. first\n2. second\n" + "x" * 600, InputType.STRUCTURED, ExtractionMode.SINGLE_SHOT),
        ("a - b # c\n" + "x" * 600, InputType.MEDIUM, ExtractionMode.SINGLE_SHOT),
    ],
)
def test_tables(text: str, kind: InputType, mode: ExtractionMode) -> None:
    found = classify_input(text)
    assert found.input_type is kind
    assert found.char_count == len(text)
    assert found.estimated_tokens == len(text) // 4
    strategy = select_strategy(found)
    assert strategy.mode is mode
    assert strategy.reason
    assert strategy.max_tokens_per_call > 0
    if mode is ExtractionMode.SINGLE_SHOT:
        assert (strategy.estimated_chunks, strategy.chunk_context_hint) == (1, None)
    else:
        assert strategy.estimated_chunks >= 2
        assert strategy.chunk_context_hint


def test_features_are_counted() -> None:
    found = classify_input("# A\ntext\n\n## B\n- x\n- y\n\n| a | b |\n| c | d |\n")
    assert (found.has_headers, found.has_bullets, found.has_tables) == (True, True, True)
    assert (found.section_count, found.line_count) == (2, 9)
    plain = classify_input("one\n\ntwo\n\nthree")
    assert (plain.has_headers, plain.section_count, plain.line_count) == (False, 3, 5)


def test_the_types_are_strings() -> None:
    assert InputType.SHORT == "short"
    assert ExtractionMode.CHUNKED == "chunked"

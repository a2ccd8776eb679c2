"""How a text is extracted: in one go, or in chunks. Pure functions of the text (behaviour: 10)."""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import StrEnum

SHORT_CHARS = 500  # below: short
LONG_CHARS = 2000  # above: long, or chunked if structured
# A chunk is as large as a reply can carry safely: some 1,750 tokens of text make up to twice that in JSON.
CHUNK_CHARS = 7000
SINGLE_SHOT_TOKENS = 4096

_HEADER = re.compile(r"^[ \t]{0,3}(?:#{1,6}[ \t]+\S|[^\n|]{1,80}\n[ \t]{0,3}(?:={3,}|-{3,})[ \t]*$)", re.MULTILINE)
_BULLET = re.compile(r"^[ \t]*(?:[-*+\u2022\u2023\u25e6\u30fb]|\d{1,3}[.)])[ \t]+\S", re.MULTILINE)
_TABLE_ROW = re.compile(r"^[ \t]*\|.*\|[ \t]*$|^[^|\n]+\|[^|\n]+\|[^\n]*$", re.MULTILINE)
_PARAGRAPH = re.compile(r"\n[ \t]*\n")


class InputType(StrEnum):
    """What a text looks like; see ``classify_input``."""

    SHORT = "short"
    MEDIUM = "medium"
    LONG = "long"
    STRUCTURED = "structured"


class ExtractionMode(StrEnum):
    """In one call, or one call a chunk."""

    SINGLE_SHOT = "single_shot"
    CHUNKED = "chunked"


@dataclass(frozen=True, slots=True)
class InputClassification:
    """What ``classify_input`` found. ``estimated_tokens`` is characters // 4."""

    input_type: InputType
    char_count: int
    estimated_tokens: int
    has_headers: bool
    has_bullets: bool
    has_tables: bool
    section_count: int
    line_count: int


@dataclass(frozen=True, slots=True)
class ExtractionStrategy:
    """How to extract. ``max_tokens_per_call`` bounds one call; ``chunk_context_hint`` is None unless chunked."""

    mode: ExtractionMode
    reason: str
    max_tokens_per_call: int
    estimated_chunks: int
    chunk_context_hint: str | None


def classify_input(text: str) -> InputClassification:
    """What kind of input ``text`` is, by its length and its headers, bullets and tables; no model is asked.

    Short: under 500 characters. Structured: over 500, with a header, two bullets or a table. Medium: 500 to 2000.
    Long: over 2000.

    >>> classify_input("I moved to Recife yesterday.").input_type.value
    'short'
    """
    chars = len(text)
    headers = len(_HEADER.findall(text))
    has_bullets = len(_BULLET.findall(text)) >= 2
    has_tables = len(_TABLE_ROW.findall(text)) >= 2
    structured = headers > 0 or has_bullets or has_tables
    if chars < SHORT_CHARS:
        kind = InputType.SHORT
    elif structured and chars > SHORT_CHARS:
        kind = InputType.STRUCTURED
    else:
        kind = InputType.MEDIUM if chars <= LONG_CHARS else InputType.LONG
    paragraphs = sum(bool(part.strip()) for part in _PARAGRAPH.split(text))
    return InputClassification(
        input_type=kind,
        char_count=chars,
        estimated_tokens=chars // 4,
        has_headers=headers > 0,
        has_bullets=has_bullets,
        has_tables=has_tables,
        section_count=headers or paragraphs,
        line_count=len(text.splitlines()),
    )


def select_strategy(classification: InputClassification) -> ExtractionStrategy:
    """How to extract what was classified so: short and medium in one call, long and structured over 2000 in chunks.

    >>> strategy = select_strategy(classify_input("word " * 3000))
    >>> strategy.mode.value, strategy.estimated_chunks
    ('chunked', 3)
    """
    kind, chars = classification.input_type, classification.char_count
    if kind in (InputType.SHORT, InputType.MEDIUM) or chars <= LONG_CHARS:
        reason = f"{kind.value} input of {chars} characters fits in one call"
        return ExtractionStrategy(ExtractionMode.SINGLE_SHOT, reason, SINGLE_SHOT_TOKENS, 1, None)
    return ExtractionStrategy(
        mode=ExtractionMode.CHUNKED,
        reason=f"{kind.value} input of {chars} characters is over {LONG_CHARS}",
        max_tokens_per_call=CHUNK_CHARS // 4,
        estimated_chunks=max(2, -(-chars // CHUNK_CHARS)),
        chunk_context_hint=_hint(classification),
    )


def _hint(classification: InputClassification) -> str:
    if classification.input_type is not InputType.STRUCTURED:
        return "part of a long text"
    marks = [
        name
        for name, there in (
            ("headers", classification.has_headers),
            ("bullet points", classification.has_bullets),
            ("tables", classification.has_tables),
        )
        if there
    ]
    return f"part of a structured document with {' and '.join(marks)}"

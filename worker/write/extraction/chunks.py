"""Long input: cut at structure, extracted in parallel, merged; one failing chunk costs only itself (behaviour: 10)."""

from __future__ import annotations

import re
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

from worker.llm.provider import Cause, ModelError
from worker.write.extraction.blind import TRANSIENT
from worker.write.extraction.informed import CutReply, Part
from worker.write.extraction.reading import Reading
from worker.write.strategy import ExtractionMode, classify_input, select_strategy

HINT_CHARS = 240
PARALLEL_CALLS = 4
# A text this short is not cut further: if its reply does not fit, the complete items of it are taken.
FLOOR_CHARS = 800
# What a chunk can be spared for; anything else is the whole message's problem.
_OWN_FAULT = frozenset({Cause.TIMEOUT, Cause.BAD_REPLY, Cause.REFUSED, Cause.INVALID_REQUEST})
_MAY_PASS = frozenset({Cause.TIMEOUT, Cause.BAD_REPLY})

# From best to worst: before a heading, at a blank line, at a line's end, at a sentence's end, at a space.
_CUTS = (
    re.compile(r"\n(?=[ \t]{0,3}#{1,6}[ \t])"),
    re.compile(r"\n[ \t]*\n"),
    re.compile(r"\n"),
    re.compile(r"(?<=[.!?…])[\"'”’)\]]*\s+|(?<=[。！？])"),
    re.compile(r"\s+"),
)

# Reads one part; the flag says that complete items of a cut-off reply are better than none.
ReadPart = Callable[[Part, bool], Reading]


def cut_into_parts(text: str) -> list[Part]:
    """The parts in which ``text`` is extracted: one, or as many as its strategy says, cut at structure.

    Each part but the first has the end of the part before as its hint; nothing of the text is in two parts, so that
    nothing is extracted twice.
    """
    strategy = select_strategy(classify_input(text))
    if strategy.mode is ExtractionMode.SINGLE_SHOT:
        return [Part(text)]
    pieces = split_text(text, strategy.estimated_chunks)
    return [
        Part(piece, number, len(pieces), pieces[number - 2][-HINT_CHARS:] if number > 1 else "")
        for number, piece in enumerate(pieces, start=1)
    ]


def split_text(text: str, count: int) -> list[str]:
    """``text`` in about ``count`` pieces of like size, none blank; joined they give the text but for white space."""
    size = -(-len(text) // count)
    pieces: list[str] = []
    rest = text
    while len(rest) > size * 1.15:
        at = _cut_near(rest, size)
        pieces.append(rest[:at])
        rest = rest[at:]
    pieces.append(rest)
    return [piece.strip() for piece in pieces if piece.strip()]


def read_in_parts(parts: list[Part], read: ReadPart) -> tuple[Reading, int]:
    """All parts read and merged in order, and how many parts were asked for in the end.

    A part that fails for reasons of its own is tried again in halves, then given up with a degradation that names it.
    Raises ModelError where waiting helps (the replies of the other parts are kept), and where no part could be read.
    """
    if len(parts) == 1:
        return read_one(parts[0], read)
    with ThreadPoolExecutor(max_workers=min(PARALLEL_CALLS, len(parts)), thread_name_prefix="chunk") as pool:
        results = [pool.submit(_read_or_fail, part, read) for part in parts]
    merged, asked, failures = Reading(), 0, []
    for part, result in zip(parts, results, strict=True):
        outcome = result.result()
        if isinstance(outcome, ModelError):
            failures.append((part, outcome))
            continue
        merged.add(outcome[0])
        asked += outcome[1]
    for _, error in failures:
        if error.cause not in _OWN_FAULT or len(failures) == len(parts):
            raise error
    for part, error in failures:
        merged.degrade(f"all but part {part.number} of {part.of}", error.cause.value)
    return merged, asked + len(failures)


def read_one(part: Part, read: ReadPart) -> tuple[Reading, int]:
    """One part read, in halves where its reply was cut off, and how many parts that made. Raises ModelError."""
    try:
        return read(part, len(part.text) < FLOOR_CHARS), 1
    except CutReply:
        return _read_halves(part, read)


def _read_or_fail(part: Part, read: ReadPart) -> tuple[Reading, int] | ModelError:
    long = len(part.text) >= FLOOR_CHARS
    try:
        return read(part, not long), 1
    except CutReply as error:
        failed: ModelError = error
    except ModelError as error:
        if error.cause not in _MAY_PASS or error.cause in TRANSIENT:
            return error
        failed = error
    try:
        # Half the text makes half the reply: what was cut off, timed out or came back broken often goes through.
        return _read_halves(part, read) if long else read_one(part, read)
    except ModelError as error:
        return error if error.cause in TRANSIENT else failed


def _read_halves(part: Part, read: ReadPart) -> tuple[Reading, int]:
    merged, asked, failed = Reading(), 0, None
    pieces = split_text(part.text, 2)
    for place, piece in enumerate(pieces):
        hint = part.hint if place == 0 else pieces[place - 1][-HINT_CHARS:]
        try:
            number, of = (part.number, part.of) if part.of > 1 else (place + 1, len(pieces))
            reading, count = read_one(Part(piece, number, of, hint), read)
        except ModelError as error:
            if error.cause not in _OWN_FAULT:
                raise
            failed = error
            continue
        merged.add(reading)
        asked += count
    if failed is not None:
        if asked == 0:
            raise failed
        merged.degrade(f"half of part {part.number} of {part.of}", failed.cause.value)
    return merged, asked


def _cut_near(text: str, size: int) -> int:
    """Where to cut ``text``: at the best kind of gap between 2/3 and 1.15 of ``size``, the nearest one of its kind."""
    low, high = max(1, size * 2 // 3), min(len(text) - 1, int(size * 1.15))
    for gap in _CUTS:
        ends = [match.end() for match in gap.finditer(text, low, high)]
        if ends:
            return min(ends, key=lambda end: abs(end - size))
    return size

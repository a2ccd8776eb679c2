"""Informed extraction: one call that sees the message and what is known (behaviour: 3.3)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from worker.llm.items import ParsedExtraction
from worker.llm.provider import Cause, Completion, ModelError
from worker.llm.replies import parse_extraction
from worker.write.calls import Calls
from worker.write.extraction.reading import Reading
from worker.write.message import Message

TASK = "informed_extraction"
# Room for the reply to a text that is not divided any more, where the provider's own limit had cut it off.
LARGER_REPLY_TOKENS = 4096
LARGEST_REPLY_TOKENS = 16_384
# Of these the first reply's complete items are better than nothing; for the others waiting helps.
_NO_LARGER_REPLY = frozenset({Cause.BAD_REPLY, Cause.TIMEOUT, Cause.INVALID_REQUEST, Cause.REFUSED})


class CutReply(ModelError):
    """A reply that the output limit cut off. Nothing of it is used unless the caller cannot ask for less."""

    def __init__(self) -> None:
        super().__init__(Cause.BAD_REPLY, "cut_off")


@dataclass(frozen=True, slots=True)
class Part:
    """A stretch of the message to extract from; ``hint`` is the end of the part before, for a text in several parts."""

    text: str
    number: int = 1
    of: int = 1
    hint: str = ""

    def payload(self, message: Message, **extra: Any) -> dict[str, Any]:
        """What the model is sent: the message with this part as its text."""
        sent = message.payload(**extra)
        sent["message"] = self.text
        if self.of > 1:
            sent["chunk"] = {"number": self.number, "of": self.of, "hint": self.hint}
        return sent


def extract_informed(
    message: Message,
    part: Part,
    known: Sequence[Mapping[str, Any]],
    calls: Calls,
    *,
    instructions: str = "",
    salvage: bool = False,
) -> Reading:
    """What one call reads in ``part``; ``salvage`` as in ``asked``. Raises ModelError."""
    degraded = Reading()
    payload = part.payload(message, known=list(known))
    parsed = asked(TASK, payload, message.speaker, calls, degraded, instructions=instructions, salvage=salvage)
    reading = Reading.of(parsed)
    reading.degradations = degraded.degradations
    return reading


def asked(
    task: str,
    payload: Mapping[str, Any],
    speaker: str,
    calls: Calls,
    reading: Reading,
    *,
    instructions: str = "",
    salvage: bool = False,
) -> ParsedExtraction:
    """The parsed reply to one extraction call, never one that was cut off and parsed as if whole.

    A reply that was cut off raises CutReply, so that the caller can ask for less. With ``salvage`` (the text is too
    short to be divided) it is asked once more with room for a larger reply; if that is cut off too, or the model has no
    larger one to give, its complete items are taken and ``reading`` notes the degradation. Raises ModelError.
    """
    first: Completion | None = None
    taken_cut = False

    def parse(completion: Completion) -> ParsedExtraction:
        nonlocal first, taken_cut
        if completion.truncated and first is None:
            first = completion
            raise CutReply
        taken_cut = completion.truncated
        return parse_extraction(completion.text, speaker)

    try:
        return calls.ask(task, payload, parse, instructions=instructions)
    except CutReply:
        if not salvage or first is None:
            raise
    room = min(LARGEST_REPLY_TOKENS, max(LARGER_REPLY_TOKENS, 4 * first.usage.output_tokens))
    try:
        parsed = calls.ask(task, payload, parse, instructions=instructions, max_tokens=room)
    except ModelError as error:
        if error.cause not in _NO_LARGER_REPLY:
            raise
        taken_cut, parsed = True, parse_extraction(first.text, speaker)
    if taken_cut:
        reading.degrade("complete items of a cut-off reply", "cut_off")
    return parsed

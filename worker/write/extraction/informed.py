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
    """What one call reads in ``part``.

    ``salvage`` takes the complete items of a reply that was cut off, and says so in the degradations; without it such
    a reply raises CutReply. Raises ModelError.
    """
    cut = False

    def parse(completion: Completion) -> ParsedExtraction:
        nonlocal cut
        cut = completion.truncated
        if cut and not salvage:
            raise CutReply
        return parse_extraction(completion.text, message.speaker)

    parsed = calls.ask(TASK, part.payload(message, known=list(known)), parse, instructions=instructions)
    reading = Reading.of(parsed)
    if cut:
        reading.degrade("complete items of a cut-off reply", "cut_off")
    return reading

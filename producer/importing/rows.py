"""What a format reader hands on, and what an import makes of it."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Literal

from producer.contract import RequestError, WriteRequest

Role = Literal["user", "assistant"]


class UnreadableExport(RequestError):
    """A file, folder or archive that cannot be imported as it is; ``str()`` says what was seen and what to do."""


@dataclass(frozen=True, slots=True)
class Found:
    """A message as a format's file has it, before speakers, zones and ids are settled.

    ``at`` has a zone or not (then it is local time of the export's owner), or is None where nobody knows.
    ``speaker_id`` is the platform's own id of the speaker, which tells two people of one name apart.
    ``message_id`` is the platform's own, already unique among all its messages; None: made from the content.
    """

    line: int
    text: str
    speaker: str
    at: datetime | None
    speaker_id: str | None = None
    role: Role = "user"
    session: str | None = None
    message_id: str | None = None
    aliases: tuple[str, ...] = ()
    agent_id: str | None = None  # where a row names one of its own


@dataclass(frozen=True, slots=True)
class Skipped:
    """Something in a file that is not handed in.

    ``rejected``: it should have been a message and is broken; else it is none by nature (a system line, a picture
    without a caption). ``line`` counts from 1; ``content`` is what stands there where it is rejected.
    """

    line: int
    reason: str
    content: Any = None
    rejected: bool = False
    file: str = ""


@dataclass(frozen=True, slots=True)
class Row:
    """A message to be handed in, and where it stands: the line's number, from 1, and its content."""

    line: int
    content: Any
    request: WriteRequest
    file: str = ""


@dataclass
class Notes:
    """What a reader noticed on its way, filled while it reads. Each warning is kept once."""

    format: str = ""
    date_order: str | None = None
    side_files: int = 0
    shifted: int = 0  # local times that the clocks jumped over
    aliases: dict[str, set[str]] = field(default_factory=dict)
    left_out: Counter[str] = field(default_factory=Counter)  # parts of messages: attachments and the like
    _warnings: dict[str, None] = field(default_factory=dict)

    def warn(self, text: str) -> None:
        """Keep ``text``, once."""
        self._warnings[text] = None

    @property
    def warnings(self) -> list[str]:
        """All that should be said, in the order in which it was noticed."""
        said = list(self._warnings)
        if self.shifted:
            said.append(f"{self.shifted} local times never were (the clocks went forward); they count as an hour later")
        said += [f"{many} {what} left out" for what, many in self.left_out.items()]
        return said

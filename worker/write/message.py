"""The message as the stages see it: plain data, the same for a worker, a test and a notebook."""

from __future__ import annotations

from datetime import datetime
from functools import cached_property
from typing import Any
from uuid import UUID

from pydantic import BaseModel, ConfigDict

from producer.contract import MemoryConfig


class Message(BaseModel):
    """One event with the request that came with it.

    ``occurred_at`` carries the message's own offset (that is what "yesterday" resolves against) and is None where the
    time is unknown. ``config`` has the write's overrides applied.
    """

    model_config = ConfigDict(frozen=True, ignored_types=(cached_property,))

    event_id: UUID
    agent_id: str
    text: str
    speaker: str
    speaker_aliases: tuple[str, ...] = ()
    role: str = "user"
    source: str = "api"
    session_id: str | None = None
    occurred_at: datetime | None = None
    recent_messages: tuple[str, ...] = ()
    config: MemoryConfig = MemoryConfig()
    verbose: bool = False

    @cached_property
    def message_date(self) -> str | None:
        """Local date and time with the weekday in English, "2025-06-15T23:30:00-03:00 Sunday"; None if unknown."""
        if self.occurred_at is None:
            return None
        weekdays = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")
        return f"{self.occurred_at.isoformat(timespec='seconds')} {weekdays[self.occurred_at.weekday()]}"

    def payload(self, **extra: Any) -> dict[str, Any]:
        """What every task that reads the message sends to the model (README, "The model's contract")."""
        return {
            "message": self.text,
            "speaker": self.speaker,
            "message_date": self.message_date,
            "recent_messages": list(self.recent_messages),
            **extra,
        }

"""What an import would hand in, counted while it is read: flat in memory, however long the history."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

from producer.contract import WriteRequest
from producer.importing.pricing import input_tokens, price_of, tokens_of
from producer.importing.rows import Notes, Row, Skipped

# From this share of a file's messages on, one and the same time is no coincidence.
_SAME_SHARE, _SAME_FROM = 0.9, 20
_EARLIEST = datetime(1995, 1, 1, tzinfo=UTC)


@dataclass
class Preview:
    """The numbers of an import; ``note`` each item as it is read, then take ``report``."""

    notes: Notes = field(default_factory=Notes)
    messages: int = 0
    characters: int = 0
    agents: set[str] = field(default_factory=set)
    speakers: Counter[str] = field(default_factory=Counter)
    roles: dict[str, str] = field(default_factory=dict)
    skipped: Counter[str] = field(default_factory=Counter)
    rejected: int = 0
    tokens: int = 0
    to_model: int = 0  # messages that cost a call: those of people
    tokens_to_model: int = 0
    first: datetime | None = None
    last: datetime | None = None
    now: int = 0
    unknown: int = 0
    odd: int = 0
    _same: datetime | None = None
    _same_count: int = 0
    _same_total: int = 0

    def counting(self, items: Iterable[Row | Skipped]) -> Iterator[Row | Skipped]:
        """``items``, each counted as it goes by."""
        for item in items:
            self.note(item)
            yield item

    def note(self, item: Row | Skipped) -> None:
        """Count ``item``."""
        if isinstance(item, Skipped):
            self.skipped[item.reason] += 1
            self.rejected += item.rejected
        elif item.request.blank:
            self.skipped["is blank"] += 1
        else:
            self._message(item.request)

    def _message(self, request: WriteRequest) -> None:
        self.messages += 1
        self.agents.add(request.agent_id)
        self.speakers[request.speaker_name] += 1
        self.roles.setdefault(request.speaker_name, request.role)
        self.tokens += tokens_of(request.message)
        self.characters += len(request.message)
        asked = input_tokens(request)
        self.to_model += asked > 0
        self.tokens_to_model += asked
        if isinstance(request.occurred_at, datetime):
            self._dated(request.occurred_at)
        elif request.occurred_at is None:
            self.now += 1
        else:
            self.unknown += 1

    def _dated(self, at: datetime) -> None:
        self.first = at if self.first is None or at < self.first else self.first
        self.last = at if self.last is None or at > self.last else self.last
        if at < _EARLIEST or at > datetime.now(UTC) + timedelta(days=1):
            self.odd += 1
        # The one time that most messages can have, found without keeping any other (a vote by pairs).
        if self._same_count == 0:
            self._same = at
        self._same_count += 1 if at == self._same else -1
        self._same_total += 1

    def suspicions(self) -> list[str]:
        """What is odd about the dates."""
        said = []
        # LoCoMo dates its sessions, not its turns: many turns of one time are its way.
        votes = self._same_count
        if self._same is not None and self._same_total >= _SAME_FROM and self.notes.format != "locomo":
            share = (votes + self._same_total) / 2 / self._same_total
            if share >= _SAME_SHARE:
                said.append(
                    f"timestamps are suspicious: nearly all messages have the same time, {self._same.isoformat()}; a "
                    "history that was moved from another app often has the day of the move only"
                )
        if self.odd:
            said.append(f"timestamps are suspicious: {self.odd} lie before 1995 or in the future")
        if self.unknown:
            said.append(f"{self.unknown} messages have no time; what they say is kept without a date")
        if self.now:
            said.append(f"{self.now} rows have no occurred_at and would be dated now")
        return said

    def report(self, model: str | None = None, per_sec: float | None = None) -> dict[str, Any]:
        """All of it, as plain data.

        ``tokens`` estimates what the messages alone come to. ``calls`` are the messages that are read by the model,
        ``cost_usd`` what that costs by the price list of ``model`` (default MANDUA_LLM_MODEL): None where no model is
        named, where the list does not have it, or where litellm is not installed. ``seconds`` is how long the workers
        will be at it if they go on as they do, ``per_sec`` messages a second (``run.rate``): None where that is not
        known. ``first`` and ``last`` are ISO times, None where no message has one.
        """
        return {
            "format": self.notes.format,
            "messages": self.messages,
            "speakers": dict(self.speakers.most_common()),
            "roles": self.roles,
            "aliases": {name: sorted(others) for name, others in self.notes.aliases.items()},
            "first": self.first.isoformat() if self.first else None,
            "last": self.last.isoformat() if self.last else None,
            "date_order": self.notes.date_order,
            "skipped": dict(self.skipped.most_common()),
            "rejected": self.rejected,
            "side_files": self.notes.side_files,
            "characters": self.characters,
            "tokens": self.tokens,
            "calls": self.to_model,
            "cost_usd": self.cost(model or os.environ.get("MANDUA_LLM_MODEL") or None),
            "per_sec": None if per_sec is None else round(per_sec, 2),
            "seconds": None if not per_sec else round(self.messages / per_sec),
            "warnings": self.notes.warnings + self.suspicions(),
        }

    def cost(self, model: str | None) -> float | None:
        """The estimated price in US dollars, None where it is not known. The first call imports litellm (seconds)."""
        if model is None or not self.to_model:
            return None
        price = price_of(model)
        return None if price is None else round(price.of(self.to_model, self.tokens_to_model), 4)

"""Short ways to ask the offline reader in tests."""

from __future__ import annotations

import json
from typing import Any

from worker.llm.offline import OfflineProvider

TUESDAY = "2025-03-18T15:00:00+00:00 (Tuesday)"


def ask(task: str, payload: dict[str, Any]) -> dict[str, Any]:
    """The reply to one task, parsed."""
    reply: dict[str, Any] = json.loads(OfflineProvider().complete(task, "", payload).text)
    return reply


def extract(message: str, speaker: str = "Bruna", date: str | None = TUESDAY, **more: Any) -> dict[str, Any]:
    """An informed extraction of one message."""
    payload = {"message": message, "speaker": speaker, "message_date": date, "recent_messages": [], "known": [], **more}
    return ask("informed_extraction", payload)


def told(message: str, speaker: str = "Bruna", date: str | None = TUESDAY, **more: Any) -> list[tuple[str, str]]:
    """(subject, text) of the facts of one message."""
    return [(fact["subject"], fact["text"]) for fact in extract(message, speaker, date, **more)["facts"]]


def edges(message: str, speaker: str = "Bruna", **more: Any) -> set[tuple[str, str, str]]:
    """(source, rel_type, target) of the relations of one message."""
    return {(r["source"], r["rel_type"], r["target"]) for r in extract(message, speaker, **more)["relations"]}


def decide(new: str, *existing: str, subject: str = "Bruna", **more: Any) -> tuple[str, int | None]:
    """Action and cited number for one fact against existing ones."""
    known = [
        {"number": i, "text": text, "since": "2024-01-01", "confidence": 0.95} for i, text in enumerate(existing, 1)
    ]
    fact = {"number": 1, "subject": subject, "text": new, "confidence": 0.95, "existing": known}
    reply = ask("reconciliation", {"message_date": TUESDAY, "facts": [fact], **more})
    decision = reply["decisions"][0]
    assert list(decision)[1] == "reason"  # the reason comes before the choice
    return decision["action"], decision["existing_number"]

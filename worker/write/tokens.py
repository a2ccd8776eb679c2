"""How long a text is for a model, and what a prompt is made of."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

# What of the user turn is counted by name; the rest of it (task, speaker, date, brackets) is counted together.
NAMED_PARTS = ("message", "recent_messages", "known", "entities", "chunk")


def estimated_tokens(value: object) -> int:
    """Tokens of ``value`` as JSON, estimated from above: UTF-8 bytes / 3, rounded up.

    No tokenizer, because each model has its own and most download their vocabulary. English has 4 bytes a token,
    Portuguese 3.5, Chinese and Japanese 3 to 4, so that the budget is kept with all of them.
    """
    written = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)
    return -(-len(written.encode("utf-8", "replace")) // 3)


@dataclass(frozen=True, slots=True)
class SentPrompt:
    """One prompt as it was sent: the constant text, the deployment's instructions behind it, the user turn.

    It quotes the message, so it is for the eyes of who wrote it: a dry run's trace, never a log.
    """

    task: str
    text: str
    instructions: str
    payload: Mapping[str, Any]

    @property
    def tokens(self) -> dict[str, int]:
        """Estimated tokens by part: system, instructions, each named part of the user turn, the rest, the total."""
        user = {"task": self.task, **self.payload}
        parts = {"system": estimated_tokens(self.text), "instructions": estimated_tokens(self.instructions)}
        parts |= {name: estimated_tokens(user[name]) for name in NAMED_PARTS if name in user}
        named = sum(parts.values()) - parts["system"] - parts["instructions"]
        parts["rest"] = max(0, estimated_tokens(user) - named)
        return parts | {"total": sum(parts.values())}

    def shown(self) -> dict[str, Any]:
        """The prompt as a trace shows it."""
        return {
            "task": self.task,
            "system": self.text,
            "instructions": self.instructions,
            "user": {"task": self.task, **self.payload},
            "tokens": self.tokens,
        }

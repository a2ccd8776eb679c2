"""What a language model is to this project: one blocking call, from a task and its payload to a text.

The shapes of payloads and replies are a contract of their own (README, "The model's contract"); this file only knows
that a call has a task name, a constant system prompt, a JSON payload and a total deadline.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Protocol, runtime_checkable


class Cause(StrEnum):
    """Why a call or a stage failed. The value is what operators see; it never quotes a text."""

    TIMEOUT = "timeout"
    RATE_LIMITED = "rate_limited"
    PROVIDER_ERROR = "provider_error"
    MODEL_UNAVAILABLE = "model_unavailable"  # wrong key, unknown model, exhausted quota: nobody's message is to blame
    REFUSED = "refused"
    INVALID_REQUEST = "invalid_request"
    BAD_REPLY = "bad_reply"


class ModelError(Exception):
    """A call that brought no usable reply.

    ``str()`` holds the cause and coded details only, so it is safe to log and to show in Flower.
    ``retry_after`` is in seconds, where the provider said so. ``model`` is the one that was asked; None for a call that
    was not made.
    """

    def __init__(
        self, cause: Cause, detail: str = "", *, retry_after: float | None = None, model: str | None = None
    ) -> None:
        super().__init__(f"{cause.value}{': ' + detail if detail else ''}")
        self.model = model
        self.cause = cause
        self.detail = detail
        self.retry_after = retry_after


@dataclass(frozen=True, slots=True)
class Usage:
    """Tokens of one call as the provider reported them; zero where it reported none."""

    input_tokens: int = 0
    output_tokens: int = 0
    cost_usd: float | None = None  # None: the model's price is not known
    cached_input_tokens: int = 0  # of the input tokens, those that the provider had cached (and bills for less)


@dataclass(frozen=True, slots=True)
class Completion:
    """A model's reply. ``truncated`` says that it was cut off at the output limit (finish_reason length)."""

    text: str
    usage: Usage = field(default_factory=Usage)
    truncated: bool = False
    model: str = ""


@runtime_checkable
class LLMProvider(Protocol):
    """A language model behind one blocking call."""

    def complete(
        self,
        task: str,
        system: str,
        payload: Mapping[str, Any],
        *,
        schema: Mapping[str, Any] | None = None,
        timeout: float = 30.0,
        max_tokens: int | None = None,
    ) -> Completion:
        """Answer ``payload`` (it goes as JSON, with its ``task``, into the user turn) under ``system``.

        ``timeout`` is the total deadline of the call in seconds. ``max_tokens`` bounds the reply; without it the
        provider's own limit holds. It is only passed where it is set. Raises ModelError, nothing else.
        """
        ...

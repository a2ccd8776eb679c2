"""What a script for the model is made of: faults, calls, and handles that hold calls back."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True)
class Fault:
    """Something that goes wrong instead of a reply; see the constructors."""

    kind: str
    text: str = ""
    status_code: int = 500
    seconds: float = 0.0
    retry_after: str | None = None
    code: str | None = None
    number: int = 0

    @classmethod
    def status(
        cls, status: int, *, retry_after: float | str | None = None, code: str | None = None, text: str = ""
    ) -> Fault:
        """An HTTP error, with Retry-After (seconds or an HTTP date) and the error's ``code`` and message."""
        after = None if retry_after is None else str(retry_after)
        return cls("status", status_code=status, retry_after=after, code=code, text=text)

    @classmethod
    def timeout(cls, seconds: float = 60.0) -> Fault:
        """No answer for ``seconds``, then the connection is closed."""
        return cls("timeout", seconds=seconds)

    @classmethod
    def disconnect(cls) -> Fault:
        """The connection is closed at once."""
        return cls("timeout", seconds=0.0)

    @classmethod
    def broken(cls, text: str) -> Fault:
        """A reply with this raw text, finish_reason stop."""
        return cls("text", text=text)

    @classmethod
    def refusal(cls, text: str = "I cannot help with that.") -> Fault:
        """A refusal, as structured output reports it (message.refusal)."""
        return cls("refusal", text=text)

    @classmethod
    def content_filter(cls) -> Fault:
        """A reply that the provider's filter stopped (finish_reason content_filter)."""
        return cls("content_filter")

    @classmethod
    def length(cls, text: str) -> Fault:
        """A reply cut off at the output limit (finish_reason length)."""
        return cls("length", text=text)

    @classmethod
    def drip(cls, text: str = "{}", *, interval: float = 0.05) -> Fault:
        """A reply that comes one byte every ``interval`` seconds: each read is quick, the whole is not."""
        return cls("drip", text=text, seconds=interval)

    @classmethod
    def short_batch(cls, missing: int = 1) -> Fault:
        """Embeddings: so many vectors fewer than texts."""
        return cls("short_batch", number=missing)

    @classmethod
    def wrong_width(cls, width: int) -> Fault:
        """Embeddings: vectors of another width."""
        return cls("wrong_width", number=width)

    @classmethod
    def floats(cls) -> Fault:
        """Vectors as lists of floats, whatever encoding was asked for."""
        return cls("floats")

    @classmethod
    def shuffled(cls) -> Fault:
        """Embeddings: the right vectors in reverse order, with their right ``index``."""
        return cls("shuffled")


@dataclass(frozen=True)
class Call:
    """One call that came in. ``at`` is time.monotonic(); ``body`` the whole request."""

    task: str
    payload: dict[str, Any]
    system: str
    at: float
    body: dict[str, Any] = field(repr=False, default_factory=dict)


class Hold:
    """Calls of one task (``where`` narrows them by payload) that wait until ``release``; leaving the ``with`` block
    releases them."""

    def __init__(self, task: str, where: Callable[[dict[str, Any]], bool] | None = None) -> None:
        self.task = task
        self._where = where
        self._condition = threading.Condition()
        self._arrived = 0
        self._released = False

    def concerns(self, call: Call) -> bool:
        """Whether ``call`` is one of those that wait here."""
        return call.task == self.task and (self._where is None or self._where(call.payload))

    def wait_arrived(self, timeout: float = 30.0, *, count: int = 1) -> None:
        """Return once ``count`` calls have arrived. Raises TimeoutError."""
        with self._condition:
            if not self._condition.wait_for(lambda: self._arrived >= count, timeout):
                raise TimeoutError(f"{self._arrived} of {count} calls of {self.task} after {timeout} s")

    def release(self) -> None:
        """Let all of them go on, and those to come."""
        with self._condition:
            self._released = True
            self._condition.notify_all()

    def pass_through(self) -> None:
        """What a call does: arrive, then wait."""
        with self._condition:
            self._arrived += 1
            self._condition.notify_all()
            self._condition.wait_for(lambda: self._released)

    def __enter__(self) -> Hold:
        return self

    def __exit__(self, *_: object) -> None:
        self.release()

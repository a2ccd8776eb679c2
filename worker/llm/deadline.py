"""A total deadline around a blocking call.

The time limits of HTTP clients hold for each read, so a server that drips a byte now and then keeps a call for ever.
Here the call runs in a thread of its own and is waited for exactly as long as the deadline says. A call that is given
up ends by itself: its thread knows the deadline (``remaining``), and the HTTP client checks it at every chunk.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Generic, TypeVar

T = TypeVar("T")

# Threads that were given up but have not ended. That many can only mean that nothing ends any more; more threads
# would not help.
MAX_ABANDONED = 128

_state = threading.local()
_lock = threading.Lock()
_abandoned = 0


class DeadlineExceeded(Exception):
    """The call did not end in time. It may still be running for a moment."""


def remaining() -> float | None:
    """Return the seconds that the current thread's call has left (negative: none), None outside of one."""
    deadline: float | None = getattr(_state, "deadline", None)
    return None if deadline is None else deadline - time.monotonic()


def call_within(seconds: float, function: Callable[[], T]) -> T:
    """Return what ``function`` returns, or raise what it raises, within ``seconds``.

    Raises DeadlineExceeded when it takes longer, at once if there is no time left or too many calls hang.
    """
    if seconds <= 0 or _abandoned >= MAX_ABANDONED:
        raise DeadlineExceeded
    call = _Call(function, time.monotonic() + seconds)
    # A daemon: a call that hangs must not keep the process from ending.
    threading.Thread(target=call.run, name="outside-call", daemon=True).start()
    if not call.done.wait(seconds) and call.give_up():
        raise DeadlineExceeded
    if call.error is not None:
        raise call.error
    return call.result[0]


class _Call(Generic[T]):
    """One call in its thread: its outcome, and whether anybody still waits for it."""

    def __init__(self, function: Callable[[], T], deadline: float) -> None:
        self._function = function
        self._deadline = deadline
        self._given_up = False
        self.done = threading.Event()
        self.result: list[T] = []
        self.error: BaseException | None = None

    def run(self) -> None:
        global _abandoned
        _state.deadline = self._deadline
        try:
            self.result.append(self._function())
        except BaseException as error:  # it is raised again in the thread that waits
            self.error = error
        with _lock:
            self.done.set()
            if self._given_up:
                _abandoned -= 1

    def give_up(self) -> bool:
        """Stop waiting. False: the call has just ended after all."""
        global _abandoned
        with _lock:
            if self.done.is_set():
                return False
            self._given_up = True
            _abandoned += 1
        return True

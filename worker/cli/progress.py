"""How far a long command is: a bar on a terminal, plain lines elsewhere, JSON lines where JSON is asked for.

All of it goes to standard error; standard output is for what was asked for.
"""

from __future__ import annotations

import json
import sys
import time
from types import TracebackType
from typing import Self

from worker.cli import console

# Seconds between two plain lines, or two events.
INTERVAL = 5.0


class Progress:
    """A context manager; tell it ``phase``, how many are ``done`` and of how many (None: nobody knows)."""

    def __init__(self, *, as_json: bool = False) -> None:
        self._as_json = as_json
        self._phase = ""
        self._first, self._begun, self._told = 0, 0.0, 0.0
        self._bar = None if as_json or not sys.stderr.isatty() else _Bar()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._bar is not None:
            self._bar.stop()

    def __call__(self, phase: str, done: int, of: int | None) -> None:
        """Show it, if it is time to: at the beginning and end of a phase, and every five seconds between."""
        if self._bar is not None:
            self._bar.show(phase, done, of)
            return
        now = time.monotonic()
        if phase != self._phase:
            self._phase, self._first, self._begun = phase, done, now
        elif now - self._told < INTERVAL and done != of:
            return
        self._told = now
        rate = (done - self._first) / (now - self._begun) if now > self._begun else 0.0
        left = (of - done) / rate if of is not None and rate > 0 else None
        if self._as_json:
            told = {"event": "progress", "phase": phase, "done": done, "of": of, "per_sec": round(rate, 1),
                    "seconds_left": None if left is None else round(left)}  # fmt: skip
            print(json.dumps(told), file=sys.stderr, flush=True)
        else:
            console.say(_line(phase, done, of, rate, left))


def _line(phase: str, done: int, of: int | None, rate: float, left: float | None) -> str:
    said = f"{phase}: {done}" + ("" if of is None else f" of {of}")
    if rate > 0:
        said += f", {rate:.0f} a second" if rate >= 10 else f", {rate:.1f} a second"
    return said + (f", {_span(left)} left" if left else "")


def _span(seconds: float) -> str:
    if seconds < 90:
        return f"{seconds:.0f} s"
    return f"{seconds / 60:.0f} min" if seconds < 5400 else f"{seconds / 3600:.1f} h"


class _Bar:
    """The bar of one phase after the other."""

    def __init__(self) -> None:
        from rich.progress import BarColumn, MofNCompleteColumn, TextColumn, TimeRemainingColumn
        from rich.progress import Progress as RichProgress

        self._bars = RichProgress(
            TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(),
            TextColumn("{task.fields[rate]}"), TimeRemainingColumn(), console=console.output(stderr=True),
        )  # fmt: skip
        self._phases: dict[str, tuple[int, float]] = {}
        self._task = self._bars.add_task("", total=None, rate="", visible=False)
        self._bars.start()

    def show(self, phase: str, done: int, of: int | None) -> None:
        now = time.monotonic()
        if phase not in self._phases:
            ended = self._bars.tasks[-1]
            self._bars.update(ended.id, total=ended.completed)
            self._bars.stop_task(ended.id)
            self._phases[phase] = done, now
            self._task = self._bars.add_task(phase, total=of, completed=done, rate="")
        first, begun = self._phases[phase]
        rate = f"{(done - first) / (now - begun):.0f}/s" if now - begun > 0.5 else ""
        self._bars.update(self._task, completed=done, total=of, rate=rate)

    def stop(self) -> None:
        self._bars.stop()

"""What a stage asked and was answered, as ``mandua trace`` shows it: masked like all that is kept, and bounded."""

from __future__ import annotations

import json
import threading
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from producer.contract import clean_text
from producer.secrets import mask
from worker.llm.prompts import without_canaries

MAX_CHARS = 12_000  # of one payload or reply
MAX_CHARS_A_START = 60_000  # of all of one start of a stage; what comes then is named, and not quoted
MAX_CALLS = 60


@dataclass(frozen=True, slots=True)
class _Note:
    """One call as it was made."""

    payload: Mapping[str, Any]
    reply: str | None
    about: dict[str, Any]


@dataclass(slots=True)
class ToldCalls:
    """The calls of one start of a stage. Thread-safe. Masked when they are kept; those of a rehearsal are not."""

    left_out: int = 0
    _notes: list[_Note] = field(default_factory=list)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def note(
        self,
        task: str,
        version: str,
        payload: Mapping[str, Any],
        *,
        reply: str | None = None,
        error: tuple[str, str] | None = None,
        ms: float = 0.0,
        tokens: tuple[int, int] = (0, 0),
        kept: bool = False,
    ) -> None:
        """Note one call: what was sent beside the constant prompt (of ``version``), and its reply or its error (cause,
        detail). ``kept``: the reply is an earlier try's. ``tokens``: in, out. The payload is not to change any more."""
        about: dict[str, Any] = {"task": task, "prompt": version, "ms": round(ms, 1),
                                 "input_tokens": tokens[0], "output_tokens": tokens[1]}  # fmt: skip
        if error is not None:
            about["cause"], about["detail"] = error
        if kept:
            about["kept"] = True
        with self._lock:
            if len(self._notes) < MAX_CALLS:
                self._notes.append(_Note(payload, reply, about))
            else:
                self.left_out += 1

    def calls(self) -> list[dict[str, Any]]:
        """The calls as they may be kept; beyond MAX_CHARS_A_START without their texts."""
        with self._lock:
            notes = list(self._notes)
        room, told = MAX_CHARS_A_START, []
        for note in notes:
            # An example that a model copies is stored nowhere, not even where its reply is told, or is asked about
            # further.
            given = _as_json({key: value for key, value in note.payload.items() if key != "entities"})
            texts = {"sent": without_canaries(_as_json(note.payload), given)}
            if note.reply is not None:
                texts["reply"] = without_canaries(note.reply, given)
            call = dict(note.about)
            for name, text in texts.items():
                shown = clean_text(mask(text[:MAX_CHARS]).text)
                room -= len(shown)
                more = f" … ({len(text) - MAX_CHARS} more)" if len(text) > MAX_CHARS else ""
                call[name] = shown + more if room >= 0 else None
            told.append(call)
        return told


def _as_json(payload: Mapping[str, Any]) -> str:
    return json.dumps(payload, ensure_ascii=False, default=str)

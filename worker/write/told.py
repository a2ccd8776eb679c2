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


@dataclass(slots=True)
class ToldCalls:
    """The calls of one start of a stage. Thread-safe."""

    calls: list[dict[str, Any]] = field(default_factory=list)
    left_out: int = 0
    _chars: int = 0
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
        detail). ``kept``: the reply is an earlier try's. ``tokens``: in, out."""
        # An example that a model copies is stored nowhere, not even where its reply is told, or is asked about further.
        given = _as_json({key: value for key, value in payload.items() if key != "entities"})
        sent = self._quoted(without_canaries(_as_json(payload), given))
        call: dict[str, Any] = {"task": task, "prompt": version, "sent": sent, "ms": round(ms, 1),
                                "input_tokens": tokens[0], "output_tokens": tokens[1]}  # fmt: skip
        if reply is not None:
            call["reply"] = self._quoted(without_canaries(reply, given))
        if error is not None:
            call["cause"], call["detail"] = error
        if kept:
            call["kept"] = True
        with self._lock:
            if len(self.calls) < MAX_CALLS:
                self.calls.append(call)
            else:
                self.left_out += 1

    def _quoted(self, text: str) -> str | None:
        shown = clean_text(mask(text[:MAX_CHARS]).text)
        with self._lock:
            self._chars += len(shown)
            if self._chars > MAX_CHARS_A_START:
                return None
        return shown + (f" … ({len(text) - MAX_CHARS} more)" if len(text) > MAX_CHARS else "")


def _as_json(payload: Mapping[str, Any]) -> str:
    return json.dumps(payload, ensure_ascii=False, default=str)

"""The replies of a stage, kept in the ledger between its starts, and the calls whose reply is lost."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

from producer.queues import Stage
from worker.llm.provider import Completion, Usage
from worker.models_in_use import language_model
from worker.settings import settings
from worker.turns import hold as holding
from worker.turns import limits
from worker.turns.hold import Hold
from worker.write.calls import CallUsage, KeptReply, model_of
from worker.write.told import ToldCalls

# The part of a shared call's reply that is a message's own (worker.turns.batches), or the word that it has none.
BATCHED = "informed_extraction:batched"

_answered_at: dict[str, float] = {}


class TurnLedger:
    """Keeps the replies of a stage that asks more than once, and renews the lease before each call.

    ``lost``: calls of earlier starts, by key, that were sent and whose reply nobody has.
    """

    def __init__(self, hold: Hold, sent: dict[str, int], replies: dict[str, Any]) -> None:
        self._hold = hold
        self._lock = threading.Lock()
        self.lost = dict(sent)
        self._replies = replies
        self.told = ToldCalls()  # what this start asked and was answered
        self.cooled: set[str] = set()  # models whose pause was just over: their answer is news to everybody

    def announce(self, key: str, model: str) -> int:
        """See ReplyLedger. Raises LostHold, and ModelError where the model is to be left alone: no call is made."""
        cooling = holding.announce(self._hold, key, model)
        limits.refuse_while_cooling(model, cooling)
        if cooling is not None:
            self.cooled.add(model)
        limits.take_token(model, settings())
        with self._lock:
            return self.lost.pop(self._same(key), 0)

    def _same(self, key: str) -> str:
        """The lost call that ``key`` makes good: itself, else one of the same task (the memory, and so the payload,
        may have changed since)."""
        task = key.partition(":")[0] + ":"
        return key if key in self.lost else next((other for other in self.lost if other.startswith(task)), key)

    def unanswered(self, key: str, lost: int) -> None:
        """See ReplyLedger."""
        if lost:
            with self._lock:
                self.lost[key] = lost

    def stored(self, key: str) -> KeptReply | None:
        """See ReplyLedger."""
        kept = self._replies.get(key)
        if kept is None and key.startswith("informed_extraction:"):
            kept = self._replies.pop(BATCHED, None)  # once: a second question wants another answer
        if kept is None or "text" not in kept:
            return None
        usage = kept.pop("usage", None)  # counted from now on
        if usage is None:
            return KeptReply(Completion(kept["text"]))
        return KeptReply(Completion(kept["text"], Usage(**usage)), counted=False, lost=kept["lost"])

    def keep_batched(self, completion: Completion, lost: int) -> None:
        """Keep this message's part of a shared call's reply, for the call that it would have made alone. Raises
        LostHold."""
        kept = {"text": completion.text, "usage": asdict(completion.usage), "lost": lost}
        holding.keep_reply(self._hold, BATCHED, json.dumps(kept, ensure_ascii=False))
        self._replies[BATCHED] = kept

    def store(self, key: str, completion: Completion, usage: CallUsage, lost: int) -> None:
        """See ReplyLedger. A stage's only reply is stored with its plan instead, a statement less."""
        if usage.calls > 1 or self._hold.stage in (Stage.EXTRACT, Stage.JOB):
            kept = {"text": completion.text, "usage": asdict(completion.usage), "lost": lost}
            holding.keep_reply(self._hold, key, json.dumps(kept, ensure_ascii=False))


def note_calls(usage: CallUsage, ledger: TurnLedger, asked: Mapping[str, int]) -> None:
    """Note which models answered since ``asked`` (calls by task) was taken, and what was paid for nothing."""
    for model in {model_of(language_model(), task) for task, n in usage.by_task.items() if n > asked.get(task, 0)}:
        _note_answer(model, news=model in ledger.cooled)
    usage.waste(sum(ledger.lost.values()))  # nothing asks for these again
    ledger.lost.clear()


def _note_answer(model: str, *, news: bool) -> None:
    """Note that the model answered: at once where that is news, else at most once a second a process."""
    now = time.monotonic()
    if news or now - _answered_at.get(model, -10.0) >= 1.0:
        _answered_at[model] = now
        limits.note_answer(model)

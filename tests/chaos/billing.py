"""A scripted model that fails one call in ten, by the seed, and keeps the bill that a provider would send."""

from __future__ import annotations

import json
import random
import threading
from collections import Counter, defaultdict
from dataclasses import dataclass, field
from typing import Any

from tests.chaos.story import JOB_REPLIES, place_of, reply_to
from tests.scripted_model import EMBEDDING, Call, Fault, ScriptedModel, tokens_of

FAULTY = 0.10


@dataclass
class Bill:
    """What the calls for one message came to: answered ones and their tokens, ones met with silence, with an error."""

    answered: int = 0
    tokens: int = 0
    silent: int = 0
    refused: int = 0
    by_question: defaultdict[str, list[int]] = field(default_factory=lambda: defaultdict(list))

    @property
    def uncertain(self) -> int:
        """Tokens by which answers to the same question differ, the whole one from the broken one. A reply that was lost
        with its worker can only be counted as the next one to its question is."""
        return sum((max(tokens) - min(tokens)) * (len(tokens) - 1) for tokens in self.by_question.values())


class BillingModel(ScriptedModel):
    """Answers by ``story.reply_to``; one call in ten is a 429, a 500, silence or broken JSON.

    What is answered is billed, whether or not the caller still lives to read it.
    """

    def __init__(self, seed: int, *, latency: float, silence: float) -> None:
        super().__init__(latency=latency)
        self._dice = random.Random(seed)
        self._dice_lock = threading.Lock()
        self._silence = silence
        self.faults: Counter[str] = Counter()
        self.bills: defaultdict[str, Bill] = defaultdict(Bill)

    def answer(self, call: Call) -> Any:
        """The reply, or what goes wrong instead of it."""
        super().answer(call)
        with self._dice_lock:
            fault = self._fault(call)
        if call.task == EMBEDDING:
            return fault
        answer = fault if fault is not None else reply_to(call.task, call.payload)
        if call.task in JOB_REPLIES:
            return answer
        with self._dice_lock:
            self._bill(call, answer)
        return answer

    def _fault(self, call: Call) -> Fault | None:
        if self._dice.random() >= FAULTY:
            return None
        kinds = {
            "429": Fault.status(429, retry_after=round(self._dice.uniform(0.1, 1.0), 1)),
            "500": Fault.status(500),
            "timeout": Fault.timeout(self._silence),
            "broken": Fault.broken('{"facts": [{"subject": "Per'),
        }
        # Silence of the embeddings is no wait but a degradation: near facts would no longer be seen.
        kind = self._dice.choice(["429", "500"] if call.task == EMBEDDING else list(kinds))
        self.faults[kind] += 1
        return kinds[kind]

    def _bill(self, call: Call, answer: Any) -> None:
        bill = self.bills[place_of(call.payload)]
        if not isinstance(answer, Fault) or answer.kind not in ("status", "timeout"):
            bill.answered += 1
            bill.tokens += (tokens := tokens_of(call, answer))
            bill.by_question[json.dumps(call.payload, sort_keys=True)].append(tokens)
        elif answer.kind == "timeout":
            bill.silent += 1
        else:
            bill.refused += 1

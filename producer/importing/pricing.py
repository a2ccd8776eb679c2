"""What an import is expected to cost, in tokens and US dollars: an estimate, not a bill."""

from __future__ import annotations

import importlib.util
import os
import re
from dataclasses import dataclass

from producer.contract import MemoryConfig, WriteRequest

# What a message costs beside its own text, in tokens, as `mandua bench --only bulk` counts them: what is known of those
# it names and the facts that are near its own; and, shared by the messages of a batch, the instructions of extraction
# and reconciliation (900) and their schemas (600). And the replies.
OWN_TOKENS = 450
SHARED_TOKENS = 1_500
REPLY_TOKENS = 350

# Prices may rise with the length of a call; ours are about this long.
_USUAL = 1_000
_USUAL_BATCH = MemoryConfig().bulk_batch

# Scripts without spaces between words come to about one token a character, others to one in four.
_DENSE = re.compile(r"[\u0e00-\u0eff\u1100-\u11ff\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]")


@dataclass(frozen=True, slots=True)
class Price:
    """US dollars of an input token, and of one message's replies."""

    token: float
    reply: float

    def of(self, calls: int, tokens: int) -> float:
        """What ``calls`` messages with ``tokens`` input tokens in all are expected to cost."""
        return calls * self.reply + tokens * self.token


FREE = Price(0.0, 0.0)


def price_of(model: str | None) -> Price | None:
    """The price of ``model`` by litellm's list; None where the list does not have it or litellm is not installed.

    No model is the offline reader, which costs nothing. The first call imports litellm (seconds).
    """
    if not model:
        return FREE
    if importlib.util.find_spec("litellm") is None:
        return None
    # Its price list comes with it; an estimate is no reason to go out to the network.
    os.environ.setdefault("LITELLM_LOCAL_MODEL_COST_MAP", "True")
    # Nor to take settings out of a .env file in the current folder, as its import does by default.
    os.environ.setdefault("LITELLM_MODE", "PRODUCTION")
    import litellm

    try:
        prompt, reply = litellm.cost_per_token(model=model, prompt_tokens=_USUAL, completion_tokens=_USUAL)
    except Exception:  # it raises a bare Exception for a model that is not in its list
        return None
    return Price(float(prompt) / _USUAL, float(reply) / _USUAL * REPLY_TOKENS)


def tokens_of(text: str) -> int:
    """About how many tokens ``text`` comes to."""
    dense = 0 if text.isascii() else len(_DENSE.findall(text))
    return dense + (len(text) - dense) // 4


def input_tokens(request: WriteRequest) -> int:
    """About how many input tokens a message of a backlog comes to, its part of the prompts included; 0 without a call.

    How many share the prompts is what the message asks for, else what workers do unless they are told otherwise.
    """
    if request.role != "user":
        return 0
    batch: int = request.config_overrides.get("bulk_batch", _USUAL_BATCH)
    told = tokens_of(request.message) + sum(len(text) // 4 for text in request.recent_messages)
    return OWN_TOKENS + SHARED_TOKENS // batch + told

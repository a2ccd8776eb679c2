"""What an import is expected to cost, in tokens and US dollars: an estimate, not a bill."""

from __future__ import annotations

import importlib.util
import os
import re
from dataclasses import dataclass

from producer.contract import WriteRequest

# What one message costs beside its own text, in tokens, reckoned from the lengths of the prompts: instructions (1,300)
# and schema (500) of the extraction, what is known of those it names (400), every second time a reconciliation (400);
# and the replies.
CALL_TOKENS = 2_600
REPLY_TOKENS = 350

# Prices may rise with the length of a call; ours are about this long.
_USUAL = 1_000

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
    """About how many input tokens a message comes to with its prompts; 0 for one that costs no call."""
    if request.role != "user":
        return 0
    return CALL_TOKENS + tokens_of(request.message) + sum(len(text) // 4 for text in request.recent_messages)

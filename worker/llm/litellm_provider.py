"""Any real language model, through litellm: one blocking call, one total deadline, errors as causes."""

from __future__ import annotations

import json
import math
import threading
import time
from collections.abc import Mapping
from typing import Any

from worker.llm.cleaning import clean_json, clean_text
from worker.llm.deadline import call_within
from worker.llm.litellm_client import litellm_module, model_error
from worker.llm.provider import Cause, Completion, ModelError, Usage


class LiteLLMProvider:
    """A model by its litellm name (``gpt-4o-mini``, ``ollama/qwen2.5``), another one for single tasks by ``per_task``.

    Thread-safe. Keys and addresses are read from the environment, as litellm reads them.
    """

    def __init__(self, model: str, *, per_task: Mapping[str, str] | None = None) -> None:
        self.model = model
        self._per_task = dict(per_task or {})
        self._formats: dict[str, str | None] = {}
        self._plain: set[str] = set()
        self._lock = threading.Lock()

    def model_for(self, task: str) -> str:
        """Return the name of the model that answers ``task``."""
        return self._per_task.get(task, self.model)

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
        """Answer as the protocol says. A reply that was cut off is returned with ``truncated``; a refused one raises
        ModelError(REFUSED), an empty one ModelError(BAD_REPLY, empty)."""
        model = self.model_for(task)
        messages = [
            {"role": "system", "content": clean_text(system)},
            {
                "role": "user",
                "content": json.dumps(
                    clean_json({"task": task, **payload}), ensure_ascii=False, separators=(",", ":"), default=str
                ),
            },
        ]
        try:
            litellm_module()  # its first import takes seconds and is not the model's time
            end = time.monotonic() + timeout
            response_format = self._response_format(model, task, schema, timeout)
            try:
                response = self._call(model, messages, response_format, end, max_tokens)
            except Exception as error:
                if response_format is None or not _dislikes_format(error):
                    raise
                # Some servers refuse a format that they are said to know. Asked plainly, now and from now on.
                with self._lock:
                    self._plain.add(model)
                response = self._call(model, messages, None, end, max_tokens)
            return _completion(response, model)
        except Exception as error:
            raise model_error(error) from None

    def _call(
        self,
        model: str,
        messages: list[dict[str, str]],
        response_format: dict[str, Any] | None,
        end: float,
        max_tokens: int | None,
    ) -> Any:
        litellm = litellm_module()
        left = end - time.monotonic()
        # The client's own limits hold for each step. They are part of the key under which litellm keeps its clients:
        # whole seconds, or each call would make a client of its own.
        per_read = max(1, math.ceil(left))
        extra: dict[str, Any] = {} if response_format is None else {"response_format": response_format}
        if max_tokens is not None:
            extra["max_tokens"] = max_tokens
        return call_within(
            left,
            lambda: litellm.completion(
                model=model,
                messages=messages,
                temperature=0,
                timeout=per_read,
                num_retries=0,
                max_retries=0,
                drop_params=True,
                **extra,
            ),
        )

    def _response_format(
        self, model: str, task: str, schema: Mapping[str, Any] | None, timeout: float
    ) -> dict[str, Any] | None:
        """Return the strongest format that the model is known to take: a schema, any JSON object, or none."""
        if schema is None or model in self._plain:
            return None
        if model not in self._formats:
            # For some local servers litellm asks the server itself what its model can do.
            self._formats[model] = call_within(timeout, lambda: _best_format(model))
        kind = self._formats[model]
        if kind == "json_schema":
            return {"type": kind, "json_schema": {"name": task, "schema": dict(schema), "strict": True}}
        return {"type": kind} if kind else None


def _best_format(model: str) -> str | None:
    litellm = litellm_module()
    litellm.get_llm_provider(model=model)  # raises for a name that is no model's
    if litellm.supports_response_schema(model=model):
        return "json_schema"
    return "json_object" if "response_format" in (litellm.get_supported_openai_params(model=model) or []) else None


def _dislikes_format(error: Exception) -> bool:
    text = str(error).casefold()
    about_format = any(word in text for word in ("response_format", "json_schema", "json_object", "response schema"))
    return getattr(error, "status_code", None) in (400, 422) and about_format


def _completion(response: Any, model: str) -> Completion:
    """Return litellm's response as a Completion."""
    if not getattr(response, "choices", None):
        raise ModelError(Cause.PROVIDER_ERROR, "no_choices")
    choice = response.choices[0]
    message = choice.message
    extra = getattr(message, "provider_specific_fields", None) or {}
    if choice.finish_reason == "content_filter" or getattr(message, "refusal", None) or extra.get("refusal"):
        raise ModelError(Cause.REFUSED, "content_filter" if choice.finish_reason == "content_filter" else "refusal")
    text = clean_text(message.content or "")
    truncated = choice.finish_reason == "length"
    if not text.strip() and not truncated:
        raise ModelError(Cause.BAD_REPLY, "empty")
    return Completion(text, _usage(response, model), truncated, model=model)


def _usage(response: Any, model: str) -> Usage:
    usage = getattr(response, "usage", None)
    details = getattr(usage, "prompt_tokens_details", None)
    return Usage(
        input_tokens=_count(usage, "prompt_tokens"),
        output_tokens=_count(usage, "completion_tokens"),
        cost_usd=_cost(response, model),
        cached_input_tokens=_count(details, "cached_tokens"),
    )


def _count(holder: Any, name: str) -> int:
    value = getattr(holder, name, None)
    return value if isinstance(value, int) and value > 0 else 0


def _cost(response: Any, model: str) -> float | None:
    """Return the price by litellm's list (cached tokens at their own price), None where the model is not in it."""
    hidden = getattr(response, "_hidden_params", None) or {}
    if "response_cost" in hidden:  # it has looked it up already, which takes a while where the list has no such model
        return None if hidden["response_cost"] is None else float(hidden["response_cost"])
    try:
        return float(litellm_module().completion_cost(completion_response=response, model=model))
    except Exception:  # it raises a bare Exception for an unknown model; a price is never worth a reply
        return None

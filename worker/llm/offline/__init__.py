"""The ``offline`` reader: what answers when no model is configured.

It is **not a language model**. It reads plain English and Portuguese sentences by patterns: a subject, a verb in a form
that it knows, and what follows. The same message always gives the same reply; it knows nothing but the payload, keeps
no state, opens no connection and costs nothing. It answers every task of the model's contract in the same JSON as a
model, through the same parser, so that the demo, the tests and a first try need no key and no network. What it does
not understand it leaves out.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any

from worker.llm.provider import Cause, Completion, ModelError, Usage

# task: module and function. Modules are imported when first asked for, so that a worker starts fast.
_TASKS = {
    "informed_extraction": ("extraction", "informed"),
    "entity_scan": ("extraction", "entities"),
    "fact_extraction": ("extraction", "facts"),
    "relation_extraction": ("extraction", "relations"),
    "emotion": ("extraction", "emotion"),
    "entity_resolution": ("resolution", "resolve"),
    "reconciliation": ("decisions", "reconcile"),
    "entity_profile": ("writing", "entity_text"),
    "entity_summary": ("writing", "entity_text"),
    "fact_merge": ("writing", "fact_merge"),
    "entity_merge": ("writing", "entity_merge"),
    "cluster_summary": ("writing", "cluster_summary"),
    "meta_observations": ("writing", "observations"),
}


class OfflineProvider:
    """An ``LLMProvider`` that reads by rules. It is not a language model, and says so."""

    name = "offline"

    def describe(self) -> str:
        """One line for people: what is in use, and what it is not."""
        return "offline: a small rule-based reader of plain English and Portuguese sentences, not a language model"

    def complete(
        self,
        task: str,
        system: str,  # noqa: ARG002 - prompts are for models; the contract of the task is enough here
        payload: Mapping[str, Any],
        *,
        schema: Mapping[str, Any] | None = None,  # noqa: ARG002 - the shapes are the contract's already
        timeout: float = 30.0,  # noqa: ARG002 - it answers in milliseconds
        max_tokens: int | None = None,  # noqa: ARG002 - its replies are never cut
    ) -> Completion:
        """Answer ``task`` from ``payload`` alone. An unknown task is an invalid request."""
        place = _TASKS.get(task)
        if place is None:
            raise ModelError(Cause.INVALID_REQUEST, "unknown task")
        answer: Callable[[Mapping[str, Any]], dict[str, Any]] = getattr(
            import_module(f"{__name__}.{place[0]}"), place[1]
        )
        text = json.dumps(answer(payload), ensure_ascii=False)
        return Completion(text=text, usage=Usage(), model=self.name)


__all__ = ["OfflineProvider"]

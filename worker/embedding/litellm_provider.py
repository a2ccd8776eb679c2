"""Hosted embeddings, through litellm: batches, one total deadline, and no vector taken on trust."""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from typing import Any

import numpy as np

from worker.embedding.provider import Vectors
from worker.llm.cleaning import clean_text
from worker.llm.deadline import call_within
from worker.llm.litellm_client import litellm_module, model_error
from worker.llm.provider import Cause, ModelError

BATCH = 128
# Embedding models take about 8000 tokens; in the scripts with the most tokens a character is about one.
MAX_CHARS = 8000


class LiteLLMEmbedding:
    """An embedding model by its litellm name. Thread-safe."""

    def __init__(self, model: str, dimensions: int) -> None:
        if dimensions < 1:
            raise ValueError("dimensions must be 1 or more")
        self.model = model
        self._dimensions = dimensions

    @property
    def dimensions(self) -> int:
        """The width that was configured; a vector of another width is an error."""
        return self._dimensions

    def embed(self, texts: Sequence[str], *, timeout: float = 30.0) -> Vectors:
        """Embed as the protocol says; texts beyond MAX_CHARS by their beginning. A batch that comes back short or of
        another width raises ModelError(PROVIDER_ERROR, short_batch or wrong_width)."""
        try:
            litellm_module()  # its first import takes seconds and is not the model's time
            end = time.monotonic() + timeout
            plain = [_prepared(text) for text in texts]
            rows = [self._batch(plain[start : start + BATCH], end) for start in range(0, len(plain), BATCH)]
        except Exception as error:
            raise model_error(error) from None
        return np.concatenate(rows) if rows else np.empty((0, self._dimensions), dtype=np.float32)

    def _batch(self, texts: list[str], end: float) -> Vectors:
        litellm = litellm_module()
        left = end - time.monotonic()
        response = call_within(
            left,
            lambda: litellm.embedding(
                model=self.model,
                input=texts,
                dimensions=self._dimensions,  # dropped for models that have one width only
                encoding_format="float",
                timeout=max(1, math.ceil(left)),
                num_retries=0,
                max_retries=0,
                drop_params=True,
            ),
        )
        return self._checked(list(response.data or []), len(texts))

    def _checked(self, data: list[Any], expected: int) -> Vectors:
        ordered: dict[int, Any] = {}
        for place, item in enumerate(data):
            index = item.get("index")
            ordered[index if isinstance(index, int) else place] = item.get("embedding")
        if sorted(ordered) != list(range(expected)):
            raise ModelError(Cause.PROVIDER_ERROR, "short_batch")
        rows = [ordered[index] for index in range(expected)]
        if any(not isinstance(row, (list, tuple)) or len(row) != self._dimensions for row in rows):
            raise ModelError(Cause.PROVIDER_ERROR, "wrong_width")
        matrix = np.asarray(rows, dtype=np.float32)
        norms = np.linalg.norm(matrix, axis=1, keepdims=True)
        if not np.all(np.isfinite(matrix)) or np.any(norms == 0):
            raise ModelError(Cause.PROVIDER_ERROR, "bad_vector")
        return np.asarray(matrix / norms, dtype=np.float32)


def _prepared(text: str) -> str:
    return clean_text(text)[:MAX_CHARS].strip() or "."  # several providers refuse an empty text

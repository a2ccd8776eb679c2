"""Hosted embeddings, through litellm: batches, one total deadline, and no vector taken on trust."""

from __future__ import annotations

import base64
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
        self._encoding: str | None = None  # known once a call has told

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
        encoding = self._encoding or _encoding_of(self.model)
        try:
            response = self._call(texts, end, encoding)
        except Exception as error:
            if encoding == "float" or self._encoding or getattr(error, "status_code", None) not in (400, 422):
                raise
            # Some servers take floats only. If that is what it was, they are asked so from now on.
            encoding = "float"
            response = self._call(texts, end, encoding)
        self._encoding = encoding
        return self._checked(list(response.data or []), len(texts))

    def _call(self, texts: list[str], end: float, encoding: str) -> Any:
        litellm = litellm_module()
        left = end - time.monotonic()
        return call_within(
            left,
            lambda: litellm.embedding(
                model=self.model,
                input=texts,
                dimensions=self._dimensions,  # dropped for models that have one width only
                encoding_format=encoding,
                timeout=max(1, math.ceil(left)),
                num_retries=0,
                max_retries=0,
                drop_params=True,
            ),
        )

    def _checked(self, data: list[Any], expected: int) -> Vectors:
        ordered: dict[int, Any] = {}
        for place, item in enumerate(data):
            index = item.get("index")
            ordered[index if isinstance(index, int) else place] = _decoded(item.get("embedding"))
        if sorted(ordered) != list(range(expected)):
            raise ModelError(Cause.PROVIDER_ERROR, "short_batch")
        rows = [ordered[index] for index in range(expected)]
        if any(not isinstance(row, (list, tuple, np.ndarray)) or len(row) != self._dimensions for row in rows):
            raise ModelError(Cause.PROVIDER_ERROR, "wrong_width")
        matrix = np.asarray(rows, dtype=np.float32)
        norms = np.linalg.norm(matrix, axis=1, keepdims=True)
        if not np.all(np.isfinite(matrix)) or np.any(norms == 0):
            raise ModelError(Cause.PROVIDER_ERROR, "bad_vector")
        return np.asarray(matrix / norms, dtype=np.float32)


def _encoding_of(model: str) -> str:
    """Return what vectors are asked for: base64 in OpenAI's protocol, whose client takes 6 ms of CPU for eight vectors
    of 384 floats and a tenth of that for their bytes."""
    provider = litellm_module().get_llm_provider(model=model)[1]
    return "base64" if provider in ("openai", "azure") else "float"


def _decoded(vector: Any) -> Any:
    """Return a vector that came as bytes in base64 as floats, any other as it is."""
    if not isinstance(vector, str):
        return vector
    try:
        return np.frombuffer(base64.b64decode(vector, validate=True), dtype="<f4")
    except ValueError:
        raise ModelError(Cause.PROVIDER_ERROR, "bad_vector") from None


def _prepared(text: str) -> str:
    return clean_text(text)[:MAX_CHARS].strip() or "."  # several providers refuse an empty text

"""What an embedding model is to this project: texts in, unit vectors out."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

Vectors = NDArray[np.float32]


@runtime_checkable
class EmbeddingProvider(Protocol):
    """An embedding model behind one blocking call."""

    @property
    def dimensions(self) -> int:
        """The width of every vector."""
        ...

    def embed(self, texts: Sequence[str], *, timeout: float = 30.0) -> Vectors:
        """Embed ``texts`` as a float32 array of shape (len(texts), dimensions), rows of unit length, in order.

        ``timeout`` is the total deadline in seconds. Raises worker.llm.provider.ModelError, nothing else; a batch that
        comes back short, or of another width, is a provider error.
        """
        ...

"""The width of the vector columns: chosen when the database is made, fixed from then on."""

import os

# Above this pgvector cannot index a full-precision vector.
WIDEST_VECTOR = 2000


def vector_type() -> str:
    """The column type for MANDUA_EMBEDDING_DIMENSIONS (384, as the default embeddings have it, if unset)."""
    width = int(os.environ.get("MANDUA_EMBEDDING_DIMENSIONS") or 384)
    if not 1 <= width <= 2 * WIDEST_VECTOR:
        raise ValueError(f"MANDUA_EMBEDDING_DIMENSIONS is {width}; it must be between 1 and {2 * WIDEST_VECTOR}")
    return f"{'vector' if width <= WIDEST_VECTOR else 'halfvec'}({width})"

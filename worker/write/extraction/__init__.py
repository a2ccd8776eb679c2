"""Extraction: from a message to entities, facts, relations, profiles and an emotion (behaviour: 3 to 5)."""

from worker.write.extraction.stage import embedding_text, extract

__all__ = ["embedding_text", "extract"]

"""The write pipeline, free of Celery, and its programming interface.

The names below are the public ones (README, "From Python"). They load when they are first used, so that a small tool
that needs one of them does not pay for all.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from worker.write.canonicalization import canonicalize_attribute_key, normalize_key, validate_proposed_key
    from worker.write.corrections import CorrectionResult, detect_and_record_corrections, is_user_correction
    from worker.write.entities import create_or_update_entity, get_entities_for_user, get_entity_by_key
    from worker.write.pending import clear_pending, get_pending, save_pending_execution, save_pending_selection
    from worker.write.pipeline import run_write_pipeline
    from worker.write.strategy import (
        ExtractionMode,
        ExtractionStrategy,
        InputClassification,
        InputType,
        classify_input,
        select_strategy,
    )

_HOME = {
    "canonicalization": ("canonicalize_attribute_key", "normalize_key", "validate_proposed_key"),
    "corrections": ("CorrectionResult", "detect_and_record_corrections", "is_user_correction"),
    "entities": ("create_or_update_entity", "get_entities_for_user", "get_entity_by_key"),
    "pending": ("clear_pending", "get_pending", "save_pending_execution", "save_pending_selection"),
    "pipeline": ("run_write_pipeline",),
    "strategy": (
        "ExtractionMode", "ExtractionStrategy", "InputClassification", "InputType", "classify_input", "select_strategy",
    ),
}  # fmt: skip
_MODULE_OF = {name: module for module, names in _HOME.items() for name in names}

__all__ = [
    "CorrectionResult",
    "ExtractionMode",
    "ExtractionStrategy",
    "InputClassification",
    "InputType",
    "canonicalize_attribute_key",
    "classify_input",
    "clear_pending",
    "create_or_update_entity",
    "detect_and_record_corrections",
    "get_entities_for_user",
    "get_entity_by_key",
    "get_pending",
    "is_user_correction",
    "normalize_key",
    "run_write_pipeline",
    "save_pending_execution",
    "save_pending_selection",
    "select_strategy",
    "validate_proposed_key",
]


def __getattr__(name: str) -> Any:
    if name in _MODULE_OF:
        return getattr(import_module(f"worker.write.{_MODULE_OF[name]}"), name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")

"""The language model behind a small protocol: real ones through litellm, ``offline`` where none is configured."""

from __future__ import annotations

from collections.abc import Mapping

from worker.llm.provider import LLMProvider

# Which setting chooses the model of a task: MANDUA_LLM_MODEL_<group>.
TASK_GROUPS: Mapping[str, str] = {
    "informed_extraction": "EXTRACTION",
    "entity_scan": "EXTRACTION",
    "fact_extraction": "EXTRACTION",
    "relation_extraction": "EXTRACTION",
    "emotion": "EXTRACTION",
    "entity_resolution": "RESOLUTION",
    "reconciliation": "RECONCILIATION",
    "entity_profile": "JOBS",
    "entity_summary": "JOBS",
    "fact_merge": "JOBS",
    "entity_merge": "JOBS",
    "cluster_summary": "JOBS",
    "meta_observations": "JOBS",
}


def llm_from_environment(env: Mapping[str, str]) -> LLMProvider:
    """Return the model that ``env`` configures: MANDUA_LLM_MODEL through litellm, with MANDUA_LLM_MODEL_EXTRACTION,
    _RESOLUTION, _RECONCILIATION and _JOBS for single groups of tasks; without any of them the offline reader.

    Raises ValueError where only single groups have a model: a memory half read by a model and half by patterns is
    nothing that anybody would want by accident.
    """
    model = env.get("MANDUA_LLM_MODEL", "").strip()
    if not model:
        groups = [name for name in sorted(set(TASK_GROUPS.values())) if env.get(f"MANDUA_LLM_MODEL_{name}", "").strip()]
        if groups:
            raise ValueError(f"MANDUA_LLM_MODEL is needed as well, not only MANDUA_LLM_MODEL_{groups[0]}")
        from worker.llm.offline import OfflineProvider

        return OfflineProvider()
    from worker.llm.litellm_provider import LiteLLMProvider

    chosen = {task: env.get(f"MANDUA_LLM_MODEL_{group}", "").strip() for task, group in TASK_GROUPS.items()}
    return LiteLLMProvider(model, per_task={task: name for task, name in chosen.items() if name})

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
    _RESOLUTION, _RECONCILIATION and _JOBS for single groups of tasks; without it the offline reader."""
    model = env.get("MANDUA_LLM_MODEL", "").strip()
    if not model:
        from worker.llm.offline import OfflineProvider

        return OfflineProvider()
    from worker.llm.litellm_provider import LiteLLMProvider

    chosen = {task: env.get(f"MANDUA_LLM_MODEL_{group}", "").strip() for task, group in TASK_GROUPS.items()}
    return LiteLLMProvider(model, per_task={task: name for task, name in chosen.items() if name})

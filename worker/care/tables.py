"""Which tables hold an agent's memory, and which rows of them are the agent's."""

from __future__ import annotations

_OWN = "t.agent_id = :agent"
_OF_FACT = "EXISTS (SELECT 1 FROM memory_facts f WHERE f.id = t.fact_id AND f.agent_id = :agent)"
_OF_RUN = "EXISTS (SELECT 1 FROM runs r WHERE r.id = t.run_id AND r.agent_id = :agent)"

# In the order of the references, which is the order of restoring: table, which rows, by what they are ordered.
AGENT_TABLES: tuple[tuple[str, str, str], ...] = (
    ("agent_seq", _OWN, "t.agent_id"),
    ("agent_turns", _OWN, "t.agent_id"),
    ("memory_events", _OWN, "t.recorded_at, t.id"),
    ("event_annotations",
     "EXISTS (SELECT 1 FROM memory_events e WHERE e.id = t.event_id AND e.agent_id = :agent)", "t.event_id"),
    ("memory_entities", _OWN, "t.canonical_key"),
    ("entity_merges", _OWN, "t.merged_at, t.id"),
    ("memory_entities_distinct", _OWN, "t.one_key, t.other_key"),
    ("memory_entity_aliases", _OWN, "t.alias_folded, t.entity_type"),
    ("memory_facts", _OWN, "t.ingested_at, t.id"),
    ("memory_fact_confirmations", _OF_FACT, "t.fact_id, t.event_id"),
    ("memory_fact_revisions", _OF_FACT, "t.id"),
    ("memory_facts_distinct", _OF_FACT, "t.fact_id, t.other_id"),
    ("memory_fact_entity_links", _OWN, "t.fact_id, t.entity_key"),
    ("memory_entity_relationships", _OWN, "t.id"),
    ("memory_relationship_evidence",
     "EXISTS (SELECT 1 FROM memory_entity_relationships r WHERE r.id = t.relationship_id AND r.agent_id = :agent)",
     "t.relationship_id, t.fact_id"),
    ("memory_attribute_registry", _OWN, "t.attribute_key"),
    ("pending_operations", _OWN, "t.agent_id"),
    ("runs", _OWN, "t.seq"),
    ("run_plans", _OF_RUN, "t.run_id"),
    ("run_results", _OF_RUN, "t.run_id"),
    ("maintenance_runs", _OWN, "t.run_id"),
    ("spending", _OWN, "t.day"),
    ("failed_records", _OWN, "t.event_id"),
)  # fmt: skip

# Tables that belong to the deployment, not to an agent. A test holds that each table is in one of the two lists.
DEPLOYMENT_TABLES = frozenset(
    {"alembic_version", "dry_runs", "workers", "model_health", "ledger_marks", "run_totals", "forgotten_events",
     "forget_receipts", "imports", "import_rows"}
)  # fmt: skip

# The planner's statistics, taken anew: they quote common and typical values, which may have been forgotten; and of what
# was brought back the workers' plans know nothing yet.
ANALYZE = """
ANALYZE memory_events, event_annotations, memory_entities, memory_entity_aliases, memory_facts, memory_fact_revisions,
  memory_fact_confirmations, memory_fact_entity_links, memory_entity_relationships, memory_relationship_evidence,
  entity_merges, memory_entities_distinct, runs, run_plans, run_results, imports, import_rows
"""

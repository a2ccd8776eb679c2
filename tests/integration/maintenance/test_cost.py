"""What the jobs cost: by what changed, not by what is stored."""

from __future__ import annotations

from typing import Any

from sqlalchemy import Engine, text

from tests.integration.maintenance.conftest import RunJob
from tests.integration.turns.conftest import counted
from tests.scripted_model import EMBEDDING, ScriptedModel
from worker.maintenance.schedule import JOBS

STORED, CHANGED = 1_000, 10

# Names of letters only, none like another; the last ten of the thousand are spelled like ten of the others, and each
# of them has two facts that say one thing. Only these ten were touched since the jobs last looked.
MANY = f"""
CREATE TEMP TABLE person ON COMMIT DROP AS
SELECT n, CASE WHEN n > {STORED - CHANGED} THEN name(n - {CHANGED}) || right(name(n - {CHANGED}), 1) ELSE name(n) END
         AS name, n > {STORED - CHANGED} AS changed
  FROM generate_series(1, {STORED}) n;
INSERT INTO memory_entities (agent_id, canonical_key, entity_type, display_name, embedding, facts_changed_at,
                             profile_refreshed_at, facts_deduped_at, scored_at, summary_refreshed_at, twins_sought_at)
SELECT 'a', 'person:' || name, 'person', initcap(name), point(n),
       mandua_now() - CASE WHEN changed THEN interval '1 d' ELSE interval '9 d' END, done, done, done,
       mandua_now() - interval '8 d', done
  FROM person, LATERAL (SELECT mandua_now() - CASE WHEN changed THEN interval '2 d' ELSE interval '0' END AS done) d;
INSERT INTO memory_entity_aliases (agent_id, alias_folded, entity_type, alias, entity_key)
SELECT 'a', name, 'person', initcap(name), 'person:' || name FROM person;
INSERT INTO memory_facts (id, agent_id, entity_key, fact_text, text_hash, embedding, confidence, source_event_id,
                          valid_from)
SELECT gen_random_uuid(), 'a', 'person:' || name, initcap(name) || said, md5(name || said)::bytea,
       CASE WHEN changed THEN point(n) END, 0.95,
       (SELECT id FROM memory_events LIMIT 1), mandua_now()
  FROM person, (VALUES (1, ' likes tea'), (2, ' likes tea a lot')) v (which, said)
"""
FUNCTIONS = """
CREATE FUNCTION name(n integer) RETURNS text LANGUAGE sql AS
  $$ SELECT left(translate(md5(n::text), '0123456789', 'ghijklmnop'), 9) $$;
CREATE FUNCTION point(n integer) RETURNS vector LANGUAGE sql AS  -- no two nearer than 1/3
  $$ SELECT format('{%s:1,%s:1,%s:1}/384', n % 127 + 1, n % 113 + 128, n % 131 + 250)::sparsevec::vector $$;
"""


def test_calls_are_bounded_by_the_ten_that_changed(
    process, model: ScriptedModel, database: Engine, run_job: RunJob, rows
):
    process("I live in Curitiba")
    for job in JOBS:
        run_job(job.name)
    with database.begin() as connection:
        connection.execute(text(FUNCTIONS))
        connection.execute(text(MANY))
    model.on("entity_merge", {"reason": "one name in two spellings", "same": True})
    model.on("fact_merge", {"reason": "they say the same", "same": True, "text": ""})
    spent: dict[str, Any] = {}
    for job in JOBS:
        before, done = len(model.calls), 0
        with counted(database) as statements:
            done = run_job(job.name)["items"]
        asked = [call.task for call in model.calls[before:] if call.task != EMBEDDING]
        spent[job.name] = (len(asked), done, len(statements))
    print("calls, items, statements:", spent)
    assert {name: calls for name, (calls, _, _) in spent.items()} == {
        "dedup_entities": CHANGED, "dedup_facts": CHANGED, "promote_attributes": 0, "score_importance": 0,
        "mark_stale": 0, "consolidate_entity_profiles": CHANGED, "refresh_summaries": CHANGED,
    }  # fmt: skip
    assert len(rows("SELECT 1 FROM entity_merges")) == CHANGED
    calls = len(model.calls)
    for job in JOBS:
        assert run_job(job.name)["items"] == 0
    assert len(model.calls) == calls

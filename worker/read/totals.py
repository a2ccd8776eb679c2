"""Sums over finished runs: what the counters of metrics and "today" in ``mandua status`` are made of.

``run_totals`` holds the sums of runs that were folded (``worker.turns.totals``); a reader adds those that finished
since, in the same statement, so that nothing is counted twice or missed while a fold is under way.
"""

from __future__ import annotations

from worker.read.rows import Reader, fetch

# Upper bounds in seconds of the histogram of stage times; what is above the last one is in "+Inf".
BUCKETS = (0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0)
_BUCKETS = f"ARRAY[{', '.join(str(bound) for bound in BUCKETS)}]::double precision[]"

# metric, label, detail: runs of messages (status; stage of a failure), parked (stage; cause), stage_seconds (stage;
# number of the bucket, 0 being the lowest), stage_seconds_sum (stage), tokens and tokens_wasted (input, output),
# cost_usd, embedding_calls, and llm_calls (task), waits (cause), repairs (kind), rejects (reason).
# Bounded by runs_finished: it reads the runs that finished between the two bounds and nothing else.
SUMS = f"""
WITH done AS MATERIALIZED (
  SELECT (r.finished_at AT TIME ZONE 'UTC')::date AS day, r.status, r.stage, r.cause, r.usage, r.timings
    FROM runs r WHERE r.finished_at > {{after}} AND r.finished_at <= {{until}}
), timed AS (
  SELECT d.day, t.key AS stage, CAST(t.value AS double precision) / 1000 AS seconds
    FROM done d CROSS JOIN LATERAL jsonb_each_text(d.timings) t
), counted AS (
  SELECT d.day, c.metric, e.key, CAST(e.value AS double precision) AS value
    FROM done d
    CROSS JOIN LATERAL (VALUES ('llm_calls', d.usage -> 'by_task'), ('waits', d.usage -> 'waits'),
                               ('repairs', d.usage -> 'repairs'), ('rejects', d.usage -> 'rejects')) c (metric, counts)
    CROSS JOIN LATERAL jsonb_each_text(c.counts) e
  UNION ALL
  SELECT d.day, c.metric, c.label, CAST(d.usage ->> c.field AS double precision)
    FROM done d
    CROSS JOIN (VALUES ('tokens', 'input', 'input_tokens'), ('tokens', 'output', 'output_tokens'),
                       ('tokens_wasted', 'input', 'wasted_input_tokens'),
                       ('tokens_wasted', 'output', 'wasted_output_tokens'),
                       ('cost_usd', '', 'cost_usd'), ('embedding_calls', '', 'embedding_calls'))
               c (metric, label, field)
   WHERE d.usage ->> c.field IS NOT NULL
)
SELECT day, 'runs' AS metric, status AS label, CASE WHEN status = 'failed' THEN stage ELSE '' END AS detail,
       CAST(count(*) AS double precision) AS value
  FROM done WHERE stage <> 'job' GROUP BY 1, 3, 4
UNION ALL
SELECT day, 'parked', stage, cause, count(*) FROM done WHERE status = 'failed' GROUP BY 1, 3, 4
UNION ALL
SELECT day, 'stage_seconds', stage, CAST(width_bucket(seconds, {_BUCKETS}) AS text), count(*)
  FROM timed GROUP BY 1, 3, 4
UNION ALL
SELECT day, 'stage_seconds_sum', stage, '', sum(seconds) FROM timed GROUP BY 1, 3
UNION ALL
SELECT day, metric, key, '', sum(value) FROM counted GROUP BY 1, 2, 3
"""  # noqa: S608

_SINCE_FOLDED = SUMS.format(
    after="(SELECT at FROM ledger_marks WHERE name = 'folded')", until="CAST('infinity' AS timestamptz)"
)

TOTALS = f"""
SELECT metric, label, detail, sum(value) AS value
  FROM (SELECT day, metric, label, detail, value FROM run_totals UNION ALL ({_SINCE_FOLDED})) t
 WHERE NOT CAST(:today AS boolean) OR day = (mandua_now() AT TIME ZONE 'UTC')::date
 GROUP BY 1, 2, 3
"""  # noqa: S608

Totals = dict[tuple[str, str, str], float]


def totals(reader: Reader, *, today: bool = False) -> Totals:
    """Sums over all runs that ever finished, or those that finished ``today`` (UTC), by (metric, label, detail)."""
    rows = fetch(reader, TOTALS, {"today": today})
    return {(row["metric"], row["label"], row["detail"]): float(row["value"]) for row in rows}

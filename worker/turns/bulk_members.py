"""Who goes along in a bulk turn: the runs behind the one whose turn it is; how they are taken and given back."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from sqlalchemy.orm import Session

from producer.queues import Lane, Stage
from worker.db import sql
from worker.settings import settings
from worker.turns import hold as holding
from worker.turns import limits
from worker.turns.applying import bill
from worker.turns.hold import Hold, Start
from worker.write.calls import CallUsage, VectorCache
from worker.write.message import Message
from worker.write.plans import PLAN_VERSION, Extraction
from worker.write.questions import MAX_ITEMS

# Invariant: only consecutive runs are taken along, each extracted by this version and never begun, failed or waited
# since, with no call whose reply is lost; behind any other one the memory will be another anyway. Nobody's live message
# waits for it.
TAKE_ALONG = """
WITH mine AS ({mine}), near AS (
  SELECT r.id, r.seq, bool_and(
           r.state = 'accepted' AND (r.stage = 'resolve' OR r.stage = 'upsert' AND p.resolution IS NULL)
           AND r.starts = 0 AND r.failures = 0 AND r.waits = 0 AND r.fallback IS NULL AND r.ready_at IS NULL
           AND coalesce(p.extraction ->> 'plan_version' = :plan_version AND p.sent = '{{}}', false)
           AND jsonb_array_length(p.extraction -> 'facts') <= :most_facts
           AND coalesce(r.request #>> '{{config_overrides,bulk_turn}}', '') <> '1') OVER (ORDER BY r.seq) AS fits
    FROM (SELECT u.* FROM runs u WHERE u.agent_id = :agent AND u.lane = 1 AND u.finished_at IS NULL
             AND u.seq > (SELECT seq FROM runs WHERE id = :run) ORDER BY u.lane, u.seq LIMIT :many) r
    LEFT JOIN run_plans p ON p.run_id = r.id
), taken AS (
  UPDATE runs r SET starts = 1, attempts = r.attempts + 1
    FROM near n, mine WHERE r.id = n.id AND n.fits
     AND NOT EXISTS (SELECT 1 FROM runs l WHERE l.agent_id = :agent AND l.lane = 0 AND l.finished_at IS NULL)
  RETURNING r.*
)
SELECT t.id, t.agent_id, t.seq, t.request, t.usage, t.timings, t.attempts, t.starts, mandua_now() AS begun_at,
       e.id AS event_id, e.message, e.speaker_name, e.role, e.source, e.session_id, e.occurred_at, e.offset_minutes,
       p.extraction, p.vector_texts, p.vectors
  FROM taken t JOIN memory_events e ON e.id = t.event_id JOIN run_plans p ON p.run_id = t.id ORDER BY t.seq
"""

# Invariant: what was not applied stands as it was, only that its part of the calls is paid.
GIVE_BACK = """
WITH given AS (
  SELECT * FROM unnest(CAST(:runs AS uuid[]), CAST(:usages AS text[]), CAST(:ins AS bigint[]), CAST(:outs AS bigint[]),
                       CAST(:usds AS double precision[])) AS g (id, usage, input_tokens, output_tokens, usd)
), freed AS (
  UPDATE runs r SET starts = greatest(r.starts - 1, 0), usage = CAST(g.usage AS jsonb)
    FROM given g WHERE r.id = g.id AND r.finished_at IS NULL RETURNING g.*
)
INSERT INTO spending AS s (day, agent_id, input_tokens, output_tokens, cost_usd)
SELECT (mandua_now() AT TIME ZONE 'UTC')::date, :agent, sum(input_tokens), sum(output_tokens), sum(usd) FROM freed
HAVING sum(input_tokens) + sum(output_tokens) > 0
ON CONFLICT (day, agent_id) DO UPDATE SET input_tokens = s.input_tokens + excluded.input_tokens,
   output_tokens = s.output_tokens + excluded.output_tokens, cost_usd = s.cost_usd + excluded.cost_usd
"""
LET_GO = """
WITH mine AS ({mine}), freed AS (
  UPDATE runs r SET starts = greatest(r.starts - 1, 0) FROM mine WHERE r.id = ANY (:runs) AND r.finished_at IS NULL
)
SELECT 1 FROM mine
"""
# Invariant: as after as many turns of one message each. (The turn's release has counted one.)
AS_ONE_BY_ONE = """
WITH reached AS (UPDATE runs SET stage = 'upsert' WHERE id = ANY (:runs))
UPDATE agent_turns SET version = version + :more WHERE agent_id = :agent
"""


@dataclass(slots=True)
class Member:
    """One message of the turn, and what it brings along."""

    start: Start
    message: Message
    extraction: Extraction
    vectors: VectorCache
    usage: CallUsage

    @classmethod
    def of(cls, start: Start, message: Message, usage: CallUsage) -> Member:
        """The message of a begun run."""
        row = start.row
        vectors = VectorCache.load(row.vector_texts or [], row.vectors or b"")
        return cls(start, message, Extraction.model_validate(row.extraction), vectors, usage)


def leads(start: Start, message: Message) -> bool:
    """Whether a run may take others along: at its first try, and while there is money left."""
    row = start.row
    if row.lane != Lane.BULK or message.config.bulk_turn < 2:
        return False
    if row.starts != 1 or row.failures or row.waits or row.fallback or row.sent:
        return False
    if start.hold.stage is Stage.UPSERT:  # with something to apply it has plans of its own already
        return Extraction.model_validate(row.extraction).empty and limits.out_of_money(settings(), row) is None
    return len(row.extraction["facts"]) <= MAX_ITEMS


def take_along(start: Start, many: int, message_of: Callable[[Any], Message]) -> list[Member]:
    """Those of the next ``many`` runs that may go along with ``start``, each a start counted. Raises LostHold."""
    rows = holding.rows_as_holder(
        TAKE_ALONG, start.hold, many=many, plan_version=str(PLAN_VERSION), most_facts=MAX_ITEMS
    )
    lead = start.hold
    return [
        Member.of(
            Start(Hold(row.id, row.agent_id, lead.stage, lead.token, lead.fence), row), message_of(row),
            CallUsage.model_validate(row.usage),
        )
        for row in rows
    ]  # fmt: skip


def count_as_one_by_one(session: Session, agent_id: str, done: Sequence[Member]) -> None:
    """Leave the runs and the turn's version as after as many turns of one message each."""
    given = {"runs": [member.start.hold.run_id for member in done], "more": len(done) - 1, "agent": agent_id}
    session.connection().execute(sql(AS_ONE_BY_ONE), given)


def give_back(session: Session, agent_id: str, left: Sequence[tuple[Member, CallUsage]]) -> None:
    """Give back who was not applied, each with what its part of the calls has cost by now."""
    if not left:
        return
    bills = [bill(member.start, usage) for member, usage in left]
    given = {
        "runs": [member.start.hold.run_id for member, _ in left], "usages": [one.usage for one in bills],
        "ins": [one.input_tokens for one in bills], "outs": [one.output_tokens for one in bills],
        "usds": [one.cost_usd for one in bills], "agent": agent_id,
    }  # fmt: skip
    session.connection().execute(sql(GIVE_BACK), given)


def let_go(hold: Hold, members: Sequence[Member]) -> None:
    """Let go of ``members`` where nothing came of the turn. Raises LostHold."""
    holding.as_holder(LET_GO, hold, runs=[member.start.hold.run_id for member in members])

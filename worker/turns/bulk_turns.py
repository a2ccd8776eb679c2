"""Reconciliation calls that several runs share: in the bulk lane, consecutive messages that were extracted already.

The run whose turn it is finds out what those behind it would ask, asks all of it at once, and keeps each answer with
its run under the key of the very call that it answers. They still take their turns one after another; a call that comes
up as it was foreseen finds its reply, any other is made. So nobody can see a bulk turn but in the number of calls.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

import numpy as np
import structlog
from sqlalchemy import Row, text

from producer.queues import Lane
from worker.db import autocommit, read_session
from worker.llm.prompts import prompt
from worker.llm.provider import Completion, ModelError
from worker.models_in_use import embedding_model, language_model
from worker.turns import hold as holding
from worker.turns.batches import Together, shares
from worker.turns.hold import Start
from worker.turns.replies import FORESEEN, TurnLedger
from worker.write.calls import Calls, CallUsage, EmbeddingError, VectorCache, call_key
from worker.write.message import Message
from worker.write.names import display_name
from worker.write.plans import PLAN_VERSION, Extraction
from worker.write.questions import TASK, Listening, ask_together, question_of, that_fit

# Invariant: whoever holds the agent's turn is the only one at work on runs past their extraction, so these need no
# claim. Only consecutive ones: behind a run that is not extracted yet, the memory will be another one anyway.
BEHIND = """
SELECT r.id, r.agent_id, r.request, r.usage, e.id AS event_id, e.message, e.speaker_name, e.role, e.source,
       e.session_id, e.occurred_at, e.offset_minutes, r.stage, r.failures, p.extraction, p.vector_texts, p.vectors,
       p.replies
  FROM runs r JOIN memory_events e ON e.id = r.event_id LEFT JOIN run_plans p ON p.run_id = r.id
 WHERE r.agent_id = :agent AND r.lane = 1 AND r.finished_at IS NULL
   AND r.seq > (SELECT seq FROM runs WHERE id = :run)
 ORDER BY r.lane, r.seq LIMIT :many
"""

# Invariant: an answer is kept, and its cost counted, under the turn of the run that asked, for runs that still wait to
# be resolved. The one that asked counts its own share with its plan.
KEEP = """
WITH mine AS ({mine}), given AS (
  SELECT g.* FROM mine CROSS JOIN unnest(
    CAST(:runs AS uuid[]), CAST(:kept AS text[]), CAST(:usages AS text[]), CAST(:ins AS bigint[]),
    CAST(:outs AS bigint[]), CAST(:usds AS double precision[]), CAST(:texts AS text[]), CAST(:blobs AS bytea[]))
    AS g (id, kept, usage, input_tokens, output_tokens, usd, vector_texts, vectors)
), counted AS (
  UPDATE runs r SET usage = coalesce(CAST(g.usage AS jsonb), r.usage)
    FROM given g WHERE r.id = g.id AND r.stage = 'resolve' AND r.finished_at IS NULL
  RETURNING g.*
), spent AS (
  INSERT INTO spending AS s (day, agent_id, input_tokens, output_tokens, cost_usd)
  SELECT (mandua_now() AT TIME ZONE 'UTC')::date, :agent, sum(input_tokens), sum(output_tokens), sum(usd) FROM counted
  HAVING sum(input_tokens) + sum(output_tokens) > 0
  ON CONFLICT (day, agent_id) DO UPDATE SET input_tokens = s.input_tokens + excluded.input_tokens,
     output_tokens = s.output_tokens + excluded.output_tokens, cost_usd = s.cost_usd + excluded.cost_usd
), noted AS (
  UPDATE run_plans p SET replies = p.replies || CAST(c.kept AS jsonb), vector_texts = CAST(c.vector_texts AS jsonb),
         vectors = c.vectors
    FROM counted c WHERE p.run_id = c.id
)
SELECT 1 FROM mine
"""

log = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class _Foreseen:
    """The run whose turn it is and those behind it, what each would ask, and the answers by their place."""

    runs: Sequence[UUID]
    rows: Sequence[Any]
    vectors: Sequence[VectorCache]
    questions: Sequence[Mapping[str, Any] | None]
    replies: Mapping[int, str]


def foresee(
    start: Start, message: Message, message_of: Callable[[Any], Message], calls: Calls, usage: CallUsage,
    ledger: TurnLedger,
) -> None:  # fmt: skip
    """Ask ahead what the run and up to ``bulk_turn`` - 1 behind it are about to ask. Raises LostHold.

    A call that fails, or whose reply does not answer everything, changes nothing: each asks for itself in its turn.
    """
    if not _leads(start, message):
        return
    rows = _behind(start, message.config.bulk_turn - 1)
    if not rows:
        return
    runs = [start.hold.run_id, *(row.id for row in rows)]
    vectors = [calls.vectors, *(VectorCache.load(row.vector_texts, row.vectors) for row in rows)]
    extractions = [Extraction.model_validate(row.extraction) for row in (start.row, *rows)]
    _embed_names(extractions, vectors, calls)
    messages = [message, *map(message_of, rows)]
    questions = [_question(*one, usage) for one in zip(messages, extractions, vectors, strict=True)]
    chosen = that_fit(questions)
    replies: dict[int, str] = {}
    billed, together = CallUsage(), Together(ledger, f"{TASK}:foreseen")
    if len(chosen) > 1:
        asking = Calls(language_model(), embedding_model(), timeout=calls.timeout, ledger=together, usage=billed)
        try:
            answers = ask_together([questions[place] or {} for place in chosen], asking)
            replies = dict(zip(chosen, answers, strict=True))
        except ModelError as error:
            log.warning("bulk_turn_asked_one_by_one", cause=error.cause.value, messages=len(chosen))
            usage.take(billed)  # paid, and of no use
    foreseen = _Foreseen(runs, [start.row, *rows], vectors, questions, replies)
    _keep(start, foreseen, together.completion, billed, usage)


def _leads(start: Start, message: Message) -> bool:
    row = start.row
    return (
        row.lane == Lane.BULK
        and message.config.bulk_turn > 1
        and row.starts == 1
        and not (row.failures or row.fallback or FORESEEN in (row.replies or {}))
        and Extraction.model_validate(row.extraction).facts != []
    )


def _behind(start: Start, many: int) -> list[Row[Any]]:
    with autocommit() as connection:
        found = connection.execute(
            text(BEHIND), {"agent": start.hold.agent_id, "run": start.hold.run_id, "many": many}
        ).all()
    rows: list[Row[Any]] = []
    for row in found:
        plan = row.extraction or {}
        if row.stage not in ("resolve", "upsert") or plan.get("plan_version") != PLAN_VERSION:
            break
        if row.stage == "resolve" and not row.failures and FORESEEN not in row.replies:
            rows.append(row)
    return rows


def _embed_names(extractions: Sequence[Extraction], vectors: Sequence[VectorCache], calls: Calls) -> None:
    """Embed the names of all of them in one call, so that no message has to ask for its own. Without embeddings each
    finds that out in its turn."""
    names = [{display_name(name) for name in _names(extraction)} for extraction in extractions]
    try:
        found = calls.embed(sorted(set().union(*names)))
    except EmbeddingError:
        return
    for own, cache in zip(names, vectors, strict=True):
        missing = sorted(name for name in own if name not in cache)
        if missing:
            cache.add(missing, np.stack([found[name] for name in missing]))


def _names(extraction: Extraction) -> Iterator[str]:
    yield from (entity.name for entity in extraction.entities)
    yield from (fact.subject for fact in extraction.facts)
    yield from (end for relation in extraction.relations for end in (relation.source, relation.target))


def _question(
    message: Message, extraction: Extraction, vectors: VectorCache, usage: CallUsage
) -> Mapping[str, Any] | None:
    listening = Listening(language_model(), embedding_model(), vectors=vectors)
    try:
        return question_of(message, extraction, read_session, listening)
    finally:
        usage.embedding_calls += listening.usage.embedding_calls


def _keep(start: Start, found: _Foreseen, completion: Completion, billed: CallUsage, usage: CallUsage) -> None:
    """Keep each answer under the key of its call, and the word that its run was looked at."""
    replies, questions = found.replies, found.questions
    parts = shares(completion.usage, max(len(replies), 1))
    given: list[tuple[Any, ...]] = []
    for place, (run, row) in enumerate(zip(found.runs, found.rows, strict=True)):
        kept: dict[str, Any] = {FORESEEN: {"at": place}}
        counted, tokens = None, (0, 0, 0.0)
        if place in replies:
            share = parts[list(replies).index(place)]
            kept[call_key(TASK, prompt(TASK).text, questions[place] or {})] = {"text": replies[place]}
            # What the leader's costs today is counted with its plan; in its usage it stands at once, lest it die.
            own = usage if place == 0 else CallUsage.model_validate(row.usage)
            own.add(TASK, Completion(replies[place], share), calls=int(place == min(replies)))
            own.prompts |= billed.prompts
            counted = own.model_dump_json()
            if place:
                tokens = share.input_tokens, share.output_tokens, share.cost_usd or 0.0
        texts, blob = found.vectors[place].dump()
        plain = json.dumps(texts, ensure_ascii=False)
        given.append((run, json.dumps(kept, ensure_ascii=False), counted, *tokens, plain, blob))
    names = ("runs", "kept", "usages", "ins", "outs", "usds", "texts", "blobs")
    columns = dict(zip(names, map(list, zip(*given, strict=True)), strict=True))
    holding.as_holder(KEEP, start.hold, **columns)

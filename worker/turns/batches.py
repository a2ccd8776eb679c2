"""Extraction calls that several runs share: in the bulk lane, neighbouring messages of one conversation.

The run that is about to be extracted claims those behind it, asks for all at once, embeds what all of them will need in
one call, and leaves each its own part of the reply as a kept reply, with its vectors; their extraction then goes the
ordinary way and finds both, as a rule right behind the leader's. So nothing else knows of batches, and a leader that
dies leaves claims whose lease ends: each of those runs is then read alone.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID, uuid4

import structlog
from sqlalchemy import Row

from producer.queues import Lane
from worker.db import autocommit, read_session, sql
from worker.llm.provider import Completion, ModelError, Usage
from worker.models_in_use import embedding_model, language_model
from worker.turns import hold as holding
from worker.turns.hold import Start
from worker.turns.life import LEASE_END, periods, worker_name
from worker.turns.replies import BATCHED, TurnLedger
from worker.write.calls import Calls, CallUsage, EmbeddingError, KeptReply, VectorCache
from worker.write.extraction.batch import (
    MAX_MESSAGE_CHARS,
    ONE_BY_ONE,
    Part,
    ask_together,
    may_share,
    that_fit,
)
from worker.write.extraction.informed import TASK
from worker.write.message import Message

# How far behind its leader a neighbour may stand.
WINDOW = 48

# Invariant: only runs that nobody has begun, and that nothing is kept for, are claimed, each by one leader; who finds
# one claimed leaves it. A run that has failed, waited or seen a death is read alone.
CLAIM = f"""
WITH near AS (
  SELECT r.id FROM runs r
   WHERE r.agent_id = :agent AND r.lane = 1 AND r.finished_at IS NULL
     AND r.seq > (SELECT seq FROM runs WHERE id = :run) ORDER BY r.lane, r.seq LIMIT {WINDOW}
), free AS (
  SELECT r.id FROM near n JOIN runs r ON r.id = n.id JOIN memory_events e ON e.id = r.event_id
   WHERE r.state = 'accepted' AND r.stage = 'extract' AND r.starts = 0 AND r.failures = 0 AND r.waits = 0
     AND r.fallback IS NULL AND r.ahead_token IS NULL AND r.ready_at IS NULL
     AND e.role = 'user' AND e.session_id IS NOT DISTINCT FROM :session AND length(e.message) <= {MAX_MESSAGE_CHARS}
     AND coalesce(r.request -> 'config_overrides', '{{}}') = CAST(:overrides AS jsonb)
     AND NOT EXISTS (SELECT 1 FROM run_plans p WHERE p.run_id = r.id)
   ORDER BY r.seq LIMIT :many FOR NO KEY UPDATE OF r SKIP LOCKED
), claimed AS (
  UPDATE runs r SET starts = 1, ahead_token = :token, ahead_worker = :worker, ahead_until = {LEASE_END}
    FROM free f WHERE r.id = f.id RETURNING r.id, r.seq, r.event_id, r.agent_id, r.request, r.usage
)
SELECT c.id, c.agent_id, c.request, c.usage, e.id AS event_id, e.message, e.speaker_name, e.role, e.source,
       e.session_id, e.occurred_at, e.offset_minutes
  FROM claimed c JOIN memory_events e ON e.id = c.event_id ORDER BY c.seq
"""  # noqa: S608

# Invariant: a reply is kept, and what it cost is counted, only for a run that is still claimed under this token; with
# that the claim ends. ahead_sent_at: the extraction that was sent ahead found the run claimed and left, so it is sent
# anew.
KEEP = """
WITH given AS (
  SELECT * FROM unnest(CAST(:runs AS uuid[]), CAST(:replies AS text[]), CAST(:usages AS text[]),
                       CAST(:ins AS bigint[]), CAST(:outs AS bigint[]), CAST(:usds AS double precision[]),
                       CAST(:texts AS text[]), CAST(:vectors AS bytea[]))
             AS g (id, reply, usage, input_tokens, output_tokens, usd, texts, vectors)
), freed AS (
  UPDATE runs r SET starts = greatest(r.starts - 1, 0), ahead_token = NULL, ahead_worker = NULL, ahead_until = NULL,
         ahead_sent_at = NULL, usage = coalesce(CAST(g.usage AS jsonb), r.usage)
    FROM given g WHERE r.id = g.id AND r.ahead_token = :token AND r.finished_at IS NULL
  RETURNING r.id, g.reply, g.input_tokens, g.output_tokens, g.usd, g.texts, g.vectors
), spent AS (
  INSERT INTO spending AS s (day, agent_id, input_tokens, output_tokens, cost_usd)
  SELECT (mandua_now() AT TIME ZONE 'UTC')::date, :agent, sum(input_tokens), sum(output_tokens), sum(usd) FROM freed
  HAVING sum(input_tokens) + sum(output_tokens) > 0
  ON CONFLICT (day, agent_id) DO UPDATE SET input_tokens = s.input_tokens + excluded.input_tokens,
     output_tokens = s.output_tokens + excluded.output_tokens, cost_usd = s.cost_usd + excluded.cost_usd
)
INSERT INTO run_plans AS p (run_id, replies, vector_texts, vectors)
SELECT id, jsonb_build_object(CAST(:key AS text), CAST(reply AS jsonb)), CAST(texts AS jsonb), vectors
  FROM freed WHERE reply IS NOT NULL
ON CONFLICT (run_id) DO UPDATE SET replies = p.replies || excluded.replies, vector_texts = excluded.vector_texts,
   vectors = excluded.vectors
"""

# Kept in place of a part of a reply: this message was in a call that brought nothing.
ALONE = json.dumps({"alone": True})

log = structlog.get_logger()


@dataclass(frozen=True, slots=True)
class Shared:
    """Whether a run had claimed others, and those whose part of its call's reply is kept with them."""

    claimed: bool
    answered: tuple[UUID, ...] = ()


NOBODY = Shared(False)


class Together:
    """The ledger of a shared call: announced as the leader's, its reply kept in parts."""

    def __init__(self, leader: TurnLedger, key: str) -> None:
        self._leader, self._key = leader, key
        self.completion = Completion("")
        self.lost = 0

    def announce(self, key: str, model: str) -> int:  # noqa: ARG002
        """See ReplyLedger."""
        self.lost = self._leader.announce(self._key, model)
        return self.lost

    def unanswered(self, key: str, lost: int) -> None:  # noqa: ARG002
        """See ReplyLedger."""
        self._leader.unanswered(self._key, lost)

    def stored(self, key: str) -> KeptReply | None:  # noqa: ARG002
        """Nothing is kept of a call that several share."""
        return None

    def store(self, key: str, completion: Completion, usage: CallUsage, lost: int) -> None:  # noqa: ARG002
        """Remember what it cost."""
        self.completion = completion


def share(
    start: Start, message: Message, message_of: Callable[[Any], Message], usage: CallUsage, ledger: TurnLedger,
    vectors: VectorCache,
) -> Shared:
    """Extract ``message`` together with its neighbours, as many as its ``bulk_batch`` allows.

    Afterwards its part of the reply is in ``ledger``, what it will embed in ``vectors``, and each neighbour's with its
    run; where the call brings nothing that can be attributed, all of them are marked to be asked alone. ``message_of``
    makes a Message of a row. Raises ModelError where waiting helps, LostHold.
    """  # fmt: skip
    if not _leads(start, message):
        return NOBODY
    batch = _Batch(start, message, message_of, ledger)
    if not batch.neighbours:
        return Shared(batch.claimed)
    try:
        batch.ask()
    except ModelError as error:
        if error.cause not in ONE_BY_ONE:
            raise
        batch.alone = True
        usage.take(batch.billed)  # it was paid, and brought nothing
        log.warning("batch_asked_one_by_one", cause=error.cause.value, messages=1 + len(batch.neighbours))
    finally:
        batch.let_go()
        usage.embedding_calls += batch.billed.embedding_calls
    batch.keep_own(vectors)
    return Shared(True, () if batch.alone else tuple(row.id for row in batch.neighbours))


def _leads(start: Start, message: Message) -> bool:
    """Whether a run may ask for others: at its first try, with nothing kept of any before."""
    row = start.row
    return (
        row.lane == Lane.BULK
        and message.config.bulk_batch > 1
        and message.role == "user"
        and row.starts == 1
        and not (row.failures or row.waits or row.fallback or row.replies or row.sent)
        and may_share(message)
    )


class _Batch:
    """A leader, the neighbours that it has claimed, and what their call brought."""

    def __init__(
        self, start: Start, message: Message, message_of: Callable[[Any], Message], ledger: TurnLedger
    ) -> None:
        self._start, self._leader, self._token = start, ledger, uuid4()
        self._claimed = self._claim(message)
        by_event = {row.event_id: row for row in self._claimed}
        self._messages = that_fit([message, *(message_of(row) for row in self._claimed)])
        self.neighbours = [by_event[other.event_id] for other in self._messages[1:]]
        self.claimed = bool(self._claimed)
        self.alone = False
        self.billed = CallUsage()
        self._parts: list[Part] = []
        self._vectors: list[VectorCache] = []  # of each part; none where they are not to be had
        self._together = Together(ledger, BATCHED)
        if not self.neighbours:
            self.let_go()

    def _claim(self, message: Message) -> Sequence[Row[Any]]:
        with autocommit() as connection:
            return connection.execute(
                sql(CLAIM),
                {"run": self._start.hold.run_id, "agent": self._start.hold.agent_id, "session": message.session_id,
                 "overrides": json.dumps(self._start.row.request.get("config_overrides") or {}),
                 "many": message.config.bulk_batch - 1, "token": self._token, "worker": worker_name(), **periods()},
            ).all()  # fmt: skip

    def ask(self) -> None:
        """Ask for all of them. Raises ModelError, LostHold. No trace: it would quote messages that are not its own."""
        calls = Calls(
            language_model(), embedding_model(), timeout=self._messages[0].config.extraction_timeout_sec,
            ledger=self._together, usage=self.billed,
        )  # fmt: skip
        self._parts = ask_together(self._messages, read_session, calls)
        self._embed(calls)

    def _embed(self, calls: Calls) -> None:
        """Embed what their extractions will ask for, in one call. Where that fails each of them asks for itself, and
        finds out what to do about it."""
        try:
            known = calls.embed([text for part in self._parts for text in part.embedded])
        except EmbeddingError as error:
            log.warning("batch_embedded_one_by_one", cause=error.cause.value)
            return
        self._vectors = [VectorCache.of(known, part.embedded) for part in self._parts]

    def let_go(self) -> None:
        """Leave each claimed run its part of the reply, or the word that it is to be asked alone, or nothing."""
        if not self._claimed:
            return
        given = {row.id: self._given(place, row) for place, row in enumerate(self.neighbours, 1)}
        nothing: tuple[Any, ...] = (None, None, 0, 0, 0.0, "[]", b"")
        columns = zip(*(given.get(row.id, nothing) for row in self._claimed), strict=True)
        names = ("replies", "usages", "ins", "outs", "usds", "texts", "vectors")
        with autocommit() as connection:
            connection.execute(
                sql(KEEP),
                {"runs": [row.id for row in self._claimed], "token": self._token, "key": BATCHED,
                 "agent": self._start.hold.agent_id, **dict(zip(names, map(list, columns), strict=True))},
            )  # fmt: skip

    def _given(self, place: int, row: Row[Any]) -> tuple[str | None, str | None, int, int, float, str, bytes]:
        """Reply, usage (both JSON), tokens in and out, US dollars, texts (JSON) and their vectors: what the neighbour
        at ``place`` gets and bears."""
        if not self._parts:
            return (ALONE if self.alone else None), None, 0, 0, 0.0, "[]", b""
        share = shares(self._together.completion.usage, len(self._parts))[place]
        usage = CallUsage.model_validate(row.usage)
        usage.prompts |= self.billed.prompts
        usage.add(TASK, Completion(self._parts[place].text, share), calls=0)
        reply = json.dumps({"text": self._parts[place].text}, ensure_ascii=False)
        texts, vectors = self._vectors[place].dump() if self._vectors else ([], b"")
        return (
            reply, usage.model_dump_json(), share.input_tokens, share.output_tokens, share.cost_usd or 0.0,
            json.dumps(texts, ensure_ascii=False), vectors,
        )  # fmt: skip

    def keep_own(self, vectors: VectorCache) -> None:
        """Keep the leader's own part, with its share of the cost, and add to its ``vectors``. Raises LostHold."""
        if self._vectors:
            vectors.take(self._vectors[0])
        if self._parts:
            own = shares(self._together.completion.usage, len(self._parts))[0]
            self._leader.keep_batched(Completion(self._parts[0].text, own), self._together.lost)
        elif self.alone:
            holding.keep_reply(self._start.hold, BATCHED, ALONE)


def shares(usage: Usage, many: int) -> list[Usage]:
    """``usage`` in ``many`` parts that add up to it; the first one has the rest."""
    usd = None if usage.cost_usd is None else usage.cost_usd / many
    each = Usage(usage.input_tokens // many, usage.output_tokens // many, usd, usage.cached_input_tokens // many)
    rest = many - 1
    first = Usage(
        usage.input_tokens - rest * each.input_tokens,
        usage.output_tokens - rest * each.output_tokens,
        usd,
        usage.cached_input_tokens - rest * each.cached_input_tokens,
    )
    return [first, *[each] * rest]

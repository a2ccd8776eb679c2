"""Bulk turns: up to ``bulk_turn`` consecutive messages of a backlog, extracted already, in one turn (issue 7, 5).

The run whose turn it is takes those behind it along. Together they ask one call about all ambiguous names and one about
all facts (``worker.write.questions``), and are applied in order in one transaction.
What cannot go along, because it fails, or needs an answer that nobody foresaw, ends the turn before it: it takes the
next turn, alone if need be, where the table of failures holds for it as for any other message.

Whoever holds the agent's turn is the only one at work on runs past their extraction. Those that are taken along count a
start, so that a worker which dies meanwhile leaves each of them one death: they are run one by one then.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import structlog
from sqlalchemy import Row
from sqlalchemy.orm import Session

from producer.queues import Lane, Stage
from worker.db import engine, sql, take_back, within
from worker.llm.provider import Completion, ModelError
from worker.models_in_use import embedding_model, language_model
from worker.settings import settings
from worker.turns import hold as holding
from worker.turns import limits
from worker.turns.applying import bill, finish
from worker.turns.batches import Together, shares
from worker.turns.causes import classify
from worker.turns.hold import Hold, LostHold, Start
from worker.turns.replies import TurnLedger, note_calls
from worker.write.applied import Applied
from worker.write.calls import Calls, CallUsage, EmbeddingError, VectorCache
from worker.write.extraction.batch import ONE_BY_ONE
from worker.write.message import Message
from worker.write.names import display_name
from worker.write.plans import PLAN_VERSION, Extraction
from worker.write.policy import DATABASE
from worker.write.questions import (
    DECISIONS,
    MAX_ITEMS,
    NAMES,
    Answers,
    TurnCalls,
    Unanswered,
    Wanted,
    ask_together,
)
from worker.write.stages import Plans, plan_stage
from worker.write.told import ToldCalls
from worker.write.upsert import upsert

MAX_REHEARSALS = 5  # one for the texts to embed, one for the names, one for the facts, and to spare

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

log = structlog.get_logger()


class _Cut(Exception):
    """A message cannot be applied in this turn; it and those behind it are no longer among its members."""


@dataclass(slots=True)
class _Member:
    """One message of the turn, and what it brings along."""

    start: Start
    message: Message
    extraction: Extraction
    vectors: VectorCache
    usage: CallUsage


@dataclass(frozen=True, slots=True)
class _Done:
    """One message that was applied in the open transaction."""

    member: _Member
    plans: Plans
    applied: Applied
    timings: dict[str, float]
    calls: TurnCalls
    told: ToldCalls


@dataclass(frozen=True, slots=True)
class _Paid:
    """One shared call: what it cost, how long it took (milliseconds), and the places of those it was made for."""

    task: str
    completion: Completion
    lost: int
    ms: float
    places: Sequence[int]


def take(
    start: Start, message: Message, message_of: Callable[[Any], Message], usage: CallUsage, ledger: TurnLedger
) -> str | None:
    """Apply the run and those behind it in one turn, and free the turn; the run's status.

    None where it goes the ordinary way, alone: nothing was applied then. Raises LostHold, ModelError where waiting
    helps, and DBAPIError.
    """
    if not _leads(start, message):
        return None
    own = _Member(start, message, Extraction.model_validate(start.row.extraction), _vectors(start.row), usage)
    others = [_member(start, row, message_of) for row in _take_along(start, message.config.bulk_turn - 1)]
    if not others:
        return None
    return _Turn(own, others, ledger).run()


def _leads(start: Start, message: Message) -> bool:
    """Whether a run may take others along: at its first try, and while there is money left."""
    row = start.row
    if row.lane != Lane.BULK or message.config.bulk_turn < 2:
        return False
    if row.starts != 1 or row.failures or row.waits or row.fallback or row.sent:
        return False
    if start.hold.stage is Stage.UPSERT:  # with something to apply it has plans of its own already
        return Extraction.model_validate(row.extraction).empty and limits.out_of_money(settings(), row) is None
    return len(row.extraction["facts"]) <= MAX_ITEMS


def _take_along(start: Start, many: int) -> Sequence[Row[Any]]:
    return holding.rows_as_holder(
        TAKE_ALONG, start.hold, many=many, plan_version=str(PLAN_VERSION), most_facts=MAX_ITEMS
    )


def _member(leader: Start, row: Row[Any], message_of: Callable[[Any], Message]) -> _Member:
    hold = Hold(row.id, row.agent_id, leader.hold.stage, leader.hold.token, leader.hold.fence)
    extraction = Extraction.model_validate(row.extraction)
    return _Member(Start(hold, row), message_of(row), extraction, _vectors(row), CallUsage.model_validate(row.usage))


def _vectors(row: Row[Any]) -> VectorCache:
    return VectorCache.load(row.vector_texts or [], row.vectors or b"")


class _Turn:
    """One bulk turn."""

    def __init__(self, leader: _Member, others: Sequence[_Member], ledger: TurnLedger) -> None:
        self._leader, self._all, self._ledger = leader, [leader, *others], ledger
        self._members = list(self._all)  # those that go along; at least the leader, until it turns out that it cannot
        self._calls = Calls(
            language_model(), embedding_model(), timeout=leader.message.config.extraction_timeout_sec,
            usage=leader.usage,
        )  # fmt: skip
        self._answers = Answers()
        self._paid: list[_Paid] = []

    def run(self) -> str | None:
        """See ``take``."""
        try:
            status = self._run()
        except LostHold:
            raise
        except Exception as error:
            self._bear_all()
            cause, code, _ = classify(error)
            if cause == DATABASE:
                raise
            if _waits(error):
                self._let_go()
                raise
            log.warning("bulk_turn_run_one_by_one", cause=cause, code=code, messages=len(self._all))
            return None  # the starts stay counted: each of them is run alone
        if status is None:
            self._bear_all()
            self._let_go()
        return status

    def _run(self) -> str | None:
        self._embed({place: _texts(member.extraction) for place, member in enumerate(self._members)})
        asked: set[str] = set()
        for _ in range(MAX_REHEARSALS):
            wanted = Wanted()
            status = self._apply(wanted)
            if status is not None or not self._members:
                return status
            if wanted.texts:
                self._embed(wanted.texts)
                continue
            open_tasks = [task for task in (NAMES, DECISIONS) if wanted.of(task) and task not in asked]
            if not open_tasks:
                break
            self._ask(open_tasks[0], wanted)
            asked.add(open_tasks[0])
            if open_tasks[0] == DECISIONS:
                break
        return self._apply(None)

    # -- what goes out: nothing is held open here ----------------------------------------------------------------------

    def _embed(self, texts: Mapping[int, Sequence[str]]) -> None:
        """Embed what the messages at these places need, in one call. Raises EmbeddingError."""
        missing = {
            place: [one for one in dict.fromkeys(own) if one not in self._members[place].vectors]
            for place, own in texts.items()
        }
        found = self._calls.embed(sorted({one for own in missing.values() for one in own}))
        for place, own in missing.items():
            if own:
                self._members[place].vectors.add(own, np.stack([found[one] for one in own]))

    def _ask(self, task: str, wanted: Wanted) -> None:
        """Ask all questions of a task in one call. Raises ModelError, LostHold."""
        together, billed = Together(self._ledger, f"{task}:turn"), CallUsage()
        calls = Calls(
            language_model(), embedding_model(), timeout=self._calls.timeout, ledger=together, usage=billed
        )  # no trace: it would quote messages that are not its own
        begun = time.perf_counter()
        try:
            places = ask_together(task, wanted.of(task), calls, self._answers)
        except ModelError:
            self._leader.usage.take(billed)
            raise
        if places:
            note_calls(billed, self._ledger, {})
            ms = (time.perf_counter() - begun) * 1000
            self._paid.append(_Paid(task, together.completion, together.lost, ms, places))
            parts = shares(together.completion.usage, len(places))
            self._answers.shares |= {(place, task): part for place, part in zip(places, parts, strict=True)}

    # -- in one transaction --------------------------------------------------------------------------------------------

    def _apply(self, wanted: Wanted | None) -> str | None:
        """Apply the messages, in order. With ``wanted`` it is a rehearsal: taken back where anything is wanted.

        A message that cannot be applied ends the turn before it: all is taken back, and those before it begin anew.
        Returns the leader's status once all is committed, None where nothing was.
        """
        while self._members:
            try:
                return self._attempt(wanted)
            except _Cut:
                if wanted is not None:
                    wanted.forget()
        return None

    def _attempt(self, wanted: Wanted | None) -> str | None:
        """See ``_apply``. Raises _Cut."""
        with Session(engine()) as session:
            holding.lock_for_apply(session.connection(), self._leader.start.hold)
            try:
                done = self._applied(session, wanted)
            except _Cut:
                take_back(session)
                raise
            if wanted or not done:
                take_back(session)
                return None
            statuses = [self._finish(session, place, one) for place, one in enumerate(done)]
            runs = [one.member.start.hold.run_id for one in done]
            given = {"runs": runs, "more": len(done) - 1, "agent": self._leader.start.hold.agent_id}
            session.connection().execute(sql(AS_ONE_BY_ONE), given)
            self._give_back(session, len(done))
            session.commit()
        log.info("bulk_turn", messages=len(done), left=len(self._all) - len(done))
        return statuses[0]

    def _applied(self, session: Session, wanted: Wanted | None) -> list[_Done]:
        """Those that were applied: all, but for what has no answer. Raises _Cut, DBAPIError."""
        done: list[_Done] = []
        for place, member in enumerate(self._members):
            try:
                done.append(self._one(session, place, member, wanted))
            except Unanswered:  # it has written nothing yet
                if wanted is None:
                    break
            except Exception as error:
                cause, code, _ = classify(error)
                if cause == DATABASE:  # nobody's fault, and the transaction may be gone
                    raise
                log.warning("bulk_turn_cut", cause=cause, code=code, cut=str(member.start.hold.run_id))
                del self._members[place:]
                raise _Cut from None
        return done

    def _one(self, session: Session, place: int, member: _Member, wanted: Wanted | None) -> _Done:
        """Take one message through its stages. Raises Unanswered."""
        told = ToldCalls()
        calls = TurnCalls(
            language_model(), embedding_model(), member.message, place, self._answers, wanted, vectors=member.vectors,
            told=told if settings().keep_traces else None,
        )  # fmt: skip
        plans, timings, begun = Plans(member.extraction), dict[str, float](), time.perf_counter()
        if not member.extraction.empty:
            read = within(session)
            found = plan_stage(Stage.RESOLVE, member.message, plans, read, calls)
            timings[Stage.RESOLVE.value] = _ms_since(begun) + self._waited(NAMES, place)
            begun = time.perf_counter()
            plans = plan_stage(Stage.RECONCILE, member.message, found, read, calls)
            timings[Stage.RECONCILE.value] = _ms_since(begun) + self._waited(DECISIONS, place)
            begun = time.perf_counter()
        applied = upsert(session, member.message, *plans.ready(), member.vectors)
        timings[Stage.UPSERT.value] = _ms_since(begun)
        return _Done(member, plans, applied, timings, calls, told)

    def _finish(self, session: Session, place: int, one: _Done) -> str:
        usage = self._usage(place)
        usage.prompts |= one.calls.usage.prompts
        return finish(
            session, one.member.start, one.member.message, one.plans, one.applied, usage, one.timings, one.told,
            turn_of=len(self._all),
        )  # fmt: skip

    # -- what it cost --------------------------------------------------------------------------------------------------

    def _waited(self, task: str, place: int) -> float:
        """Milliseconds of a shared call, in equal parts."""
        return sum(paid.ms / len(paid.places) for paid in self._paid if paid.task == task and place in paid.places)

    def _usage(self, place: int) -> CallUsage:
        """The usage of the message at ``place`` with its share of the calls; the first one counts the call itself."""
        usage = self._all[place].usage.model_copy(deep=True)
        for paid in self._paid:
            if place in paid.places:
                first = place == paid.places[0]
                part = Completion("", self._answers.shares[place, paid.task])
                usage.add(paid.task, part, calls=int(first), lost=paid.lost if first else 0)
        return usage

    def _bear_all(self) -> None:
        """The leader bears what was paid, where no turn came of it."""
        for paid in self._paid:
            self._leader.usage.add(paid.task, paid.completion, lost=paid.lost)
        self._paid.clear()

    def _give_back(self, session: Session, applied: int) -> None:
        """Give back those behind the first ``applied`` ones, with what their part of the calls cost."""
        left = list(enumerate(self._all))[applied:]
        if not left:
            return
        bills = [bill(member.start, self._usage(place)) for place, member in left]
        given = {
            "runs": [member.start.hold.run_id for _, member in left], "usages": [one.usage for one in bills],
            "ins": [one.input_tokens for one in bills], "outs": [one.output_tokens for one in bills],
            "usds": [one.cost_usd for one in bills], "agent": self._leader.start.hold.agent_id,
        }  # fmt: skip
        session.connection().execute(sql(GIVE_BACK), given)

    def _let_go(self) -> None:
        """Let go of the others where nothing came of the turn. Raises LostHold."""
        holding.as_holder(
            LET_GO, self._leader.start.hold, runs=[member.start.hold.run_id for member in self._all[1:]]
        )


def _waits(error: Exception) -> bool:
    """Whether all of them wait for what went wrong; everything else each finds out for itself."""
    if isinstance(error, EmbeddingError):
        return error.transient
    return isinstance(error, ModelError) and error.cause not in ONE_BY_ONE


def _texts(extraction: Extraction) -> list[str]:
    """What its stages are likely to embed: facts and names. (Facts were embedded when they were extracted.)"""
    names = [entity.name for entity in extraction.entities]
    names += [fact.subject for fact in extraction.facts]
    names += [end for relation in extraction.relations for end in (relation.source, relation.target)]
    shown = [name for name in map(display_name, names) if name]
    return [*shown, *(fact.text for fact in extraction.facts)]


def _ms_since(begun: float) -> float:
    return round((time.perf_counter() - begun) * 1000, 3)

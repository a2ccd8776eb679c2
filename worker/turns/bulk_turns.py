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

import structlog
from sqlalchemy.orm import Session

from producer.queues import Stage
from worker.db import engine, take_back, within
from worker.llm.provider import Completion, ModelError
from worker.models_in_use import embedding_model, language_model
from worker.settings import settings
from worker.turns import hold as holding
from worker.turns.applying import finish
from worker.turns.batches import Together, shares
from worker.turns.bulk_members import Member, count_as_one_by_one, give_back, leads, let_go, take_along
from worker.turns.causes import classify
from worker.turns.hold import LostHold, Start
from worker.turns.replies import TurnLedger, note_calls
from worker.write.applied import Applied
from worker.write.calls import Calls, CallUsage, EmbeddingError, VectorCache
from worker.write.extraction.batch import ONE_BY_ONE
from worker.write.message import Message
from worker.write.names import display_name
from worker.write.plans import Extraction
from worker.write.policy import DATABASE
from worker.write.questions import (
    DECISIONS,
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

log = structlog.get_logger()


class _Cut(Exception):
    """A message cannot be applied in this turn; it and those behind it are no longer among its members."""


@dataclass(frozen=True, slots=True)
class _Done:
    """One message that was applied in the open transaction."""

    member: Member
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
    if not leads(start, message):
        return None
    others = take_along(start, message.config.bulk_turn - 1, message_of)
    if not others:
        return None
    return _Turn(Member.of(start, message, usage), others, ledger).run()


class _Turn:
    """One bulk turn."""

    def __init__(self, leader: Member, others: Sequence[Member], ledger: TurnLedger) -> None:
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
            self._members[place].vectors.take(VectorCache.of(found, own))

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
            count_as_one_by_one(session, self._leader.start.hold.agent_id, [one.member for one in done])
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

    def _one(self, session: Session, place: int, member: Member, wanted: Wanted | None) -> _Done:
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
        left = [(self._all[place], self._usage(place)) for place in range(applied, len(self._all))]
        give_back(session, self._leader.start.hold.agent_id, left)

    def _let_go(self) -> None:
        """Let go of the others where nothing came of the turn. Raises LostHold."""
        let_go(self._leader.start.hold, self._all[1:])


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

"""Limits that all workers share: a pause after 429, a breaker for a model that cannot be used, a bucket of calls a
second, and what may be spent a day.

They live in Postgres beside the ledger. Whoever meets one gives its run back and waits; nobody's message is to blame
and nothing is parked.
"""

from __future__ import annotations

import threading
import time
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from worker.db import autocommit, sql
from worker.llm.provider import Cause, ModelError
from worker.settings import Settings

SPEND_LIMIT = "spend_limit"
IMPORT_LIMIT = "cost_limit"

# Seconds after which a run looks again whether there is money: a limit may have been raised meanwhile.
SPEND_RECHECK, IMPORT_RECHECK = 300.0, 60.0

# The longest that a slot waits for its turn at the bucket; above it the run is given back.
LONGEST_INLINE = 3.0

FIRST_PAUSE = 5.0  # seconds a model that cannot be used is left alone; doubled up to LONGEST_PAUSE while it stays so
LONGEST_PAUSE = 300.0
PROBE_SECONDS = 15.0

# Invariant: the longest pause anybody was told stands. An answer ends a breaker's pause, not that of a 429: a call
# that was under way may well be answered after another one was told to wait.
TRIP = """
INSERT INTO model_health AS m (model, cool_until, cause, trips)
VALUES (:model, mandua_now() + make_interval(secs => CAST(:seconds AS double precision)), :cause, 1)
ON CONFLICT (model) DO UPDATE
   SET cool_until = greatest(m.cool_until, mandua_now() + make_interval(secs => CAST(:seconds AS double precision)
         * CASE WHEN :doubling THEN power(2, least(m.trips, 6)) ELSE 1 END)),
       cause = excluded.cause, trips = m.trips + 1
"""
ANSWERED = """
INSERT INTO model_health (model, answered_at) VALUES (:model, mandua_now())
ON CONFLICT (model) DO UPDATE
   SET answered_at = greatest(model_health.answered_at, excluded.answered_at), trips = 0,
       cool_until = CASE WHEN model_health.cause = 'rate_limited' THEN model_health.cool_until END,
       cause = CASE WHEN model_health.cause = 'rate_limited' THEN model_health.cause END
"""
# Invariant: after a breaker's pause one caller tries, the others wait for what it finds.
PROBE = """
UPDATE model_health SET cool_until = mandua_now() + make_interval(secs => CAST(:seconds AS double precision))
 WHERE model = :model AND cause = 'model_unavailable' AND cool_until <= mandua_now() RETURNING 1
"""
# Invariant: each call takes one token; below zero it stands for a place in the queue, :longest seconds of it at most.
TAKE_TOKEN = """
INSERT INTO model_health AS m (model, tokens, refilled_at) VALUES (:model, :burst - 1, mandua_now())
ON CONFLICT (model) DO UPDATE
   SET tokens = least(:burst, coalesce(m.tokens, :burst)
                + :rate * extract(epoch FROM mandua_now() - coalesce(m.refilled_at, mandua_now()))) - 1,
       refilled_at = mandua_now()
 WHERE least(:burst, coalesce(m.tokens, :burst)
       + :rate * extract(epoch FROM mandua_now() - coalesce(m.refilled_at, mandua_now()))) - 1 >= -:rate * :longest
RETURNING greatest(0, -tokens / :rate) AS wait
"""
SPENT_TODAY = """
SELECT coalesce(sum(input_tokens + output_tokens), 0) AS tokens, coalesce(sum(cost_usd), 0) AS usd
  FROM spending WHERE day = (mandua_now() AT TIME ZONE 'UTC')::date
"""
# Of what its runs keep, those that are under way included; what they are out for now is not in it.
IMPORT_SPENT = """
SELECT coalesce(sum(CAST(usage ->> 'cost_usd' AS double precision)), 0) FROM runs WHERE import_id = :import
"""
TO_MIDNIGHT = """
SELECT extract(epoch FROM date_trunc('day', mandua_now() AT TIME ZONE 'UTC') + interval '1 day'
                        - (mandua_now() AT TIME ZONE 'UTC'))
"""


@dataclass(frozen=True, slots=True)
class Cooling:
    """That a model is left alone: ``seconds`` from now on (0 or less: the pause is over), and why."""

    cause: str
    seconds: float


class _Remembered:
    """What everybody has spent today, looked up once in a while."""

    FRESH = 5.0

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._at = -self.FRESH
        self._tokens, self._usd = 0, 0.0

    def look(self) -> tuple[int, float]:
        with self._lock:
            if time.monotonic() - self._at >= self.FRESH:
                with autocommit() as connection:
                    row = connection.execute(sql(SPENT_TODAY)).one()
                self._tokens, self._usd, self._at = int(row.tokens), float(row.usd), time.monotonic()
            return self._tokens, self._usd


class _ImportsRemembered:
    """What imports have cost, each looked up once in a while; a large one, which takes longer to add up, less often."""

    FRESH, TIMES = 5.0, 20.0

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._known: dict[UUID, tuple[float, float]] = {}  # until when it is taken as it is, US dollars

    def look(self, import_id: UUID) -> float:
        with self._lock:
            until, usd = self._known.get(import_id, (0.0, 0.0))
            asked = time.monotonic()
            if asked >= until:
                with autocommit() as connection:
                    usd = float(connection.execute(sql(IMPORT_SPENT), {"import": import_id}).scalar_one())
                now = time.monotonic()
                self._known[import_id] = now + max(self.FRESH, self.TIMES * (now - asked)), usd
            return usd


_everybody, _imports = _Remembered(), _ImportsRemembered()


def refuse_while_cooling(model: str, cooling: Cooling | None) -> None:
    """Raise ModelError if ``model`` is to be left alone. After a breaker's pause exactly one caller may try."""
    if cooling is None:
        return
    if cooling.seconds > 0:
        raise ModelError(Cause(cooling.cause), "cooling", retry_after=cooling.seconds)
    if cooling.cause == Cause.MODEL_UNAVAILABLE:
        with autocommit() as connection:
            probing = connection.execute(sql(PROBE), {"model": model, "seconds": PROBE_SECONDS}).one_or_none()
        if probing is None:
            raise ModelError(Cause.MODEL_UNAVAILABLE, "cooling", retry_after=PROBE_SECONDS)


def take_token(model: str, limits: Settings) -> None:
    """Wait for this call's place at the model's bucket. Raises ModelError where that would take too long."""
    if limits.llm_calls_per_sec is None:
        return
    rate, burst = limits.llm_calls_per_sec, float(limits.llm_burst)
    with autocommit() as connection:
        parameters = {"model": model, "rate": rate, "burst": burst, "longest": LONGEST_INLINE}
        wait = connection.execute(sql(TAKE_TOKEN), parameters).scalar_one_or_none()
    if wait is None:
        raise ModelError(Cause.RATE_LIMITED, "our own limit", retry_after=LONGEST_INLINE)
    if wait > 0:
        time.sleep(float(wait))


def trip(error: ModelError) -> None:
    """Make everybody leave a model alone that told one of us to wait, or that cannot be used."""
    if error.model is None:
        return
    if error.cause is Cause.RATE_LIMITED and error.retry_after:
        _trip(error.model, error.cause, min(error.retry_after, LONGEST_PAUSE), doubling=False)
    elif error.cause is Cause.MODEL_UNAVAILABLE:
        _trip(error.model, error.cause, FIRST_PAUSE, doubling=True)


def _trip(model: str, cause: Cause, seconds: float, *, doubling: bool) -> None:
    with autocommit() as connection:
        connection.execute(
            sql(TRIP), {"model": model, "cause": cause.value, "seconds": seconds, "doubling": doubling}
        )


def note_answer(model: str) -> None:
    """Note that ``model`` answered: it is well, and a pause is over."""
    with autocommit() as connection:
        connection.execute(sql(ANSWERED), {"model": model})


def out_of_money(limits: Settings, row: Any) -> tuple[str, float] | None:
    """Why a begun run (its row) has to wait for money, and for how many seconds at most; None while there is some.

    Checked before a stage may call. An import that has come to its limit waits until that is raised.
    """
    seconds = spend_wait(limits, int(row.spent_tokens), float(row.spent_usd))
    if seconds is not None:
        return SPEND_LIMIT, min(seconds, SPEND_RECHECK)
    if row.import_limit is not None and _imports.look(row.import_id) >= row.import_limit:
        return IMPORT_LIMIT, IMPORT_RECHECK
    return None


def spend_wait(limits: Settings, agent_tokens: int, agent_usd: float) -> float | None:
    """Seconds until the day's limit is lifted, or None while there is money left. Checked before a stage may call."""
    over = (limits.agent_daily_tokens is not None and agent_tokens >= limits.agent_daily_tokens) or (
        limits.agent_daily_usd is not None and agent_usd >= limits.agent_daily_usd
    )
    if not over and (limits.daily_tokens is not None or limits.daily_usd is not None):
        tokens, usd = _everybody.look()
        over = (limits.daily_tokens is not None and tokens >= limits.daily_tokens) or (
            limits.daily_usd is not None and usd >= limits.daily_usd
        )
    if not over:
        return None
    with autocommit() as connection:
        return float(connection.execute(sql(TO_MIDNIGHT)).scalar_one())

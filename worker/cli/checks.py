"""What ``doctor`` looks at beyond the servers themselves: clocks, time limits, life signs, runs that wait."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    from sqlalchemy.engine import Connection

    from worker.cli.broker import Broker

# A worker's clock dates what is sent without a time, and the cool-down of models; nothing else depends on it.
MOST_SKEW = 2.0

CLOCK = "SELECT extract(epoch FROM clock_timestamp())"


@dataclass(frozen=True, slots=True)
class Check:
    """One thing looked at. ``warning`` does not fail the command; ``remedy`` is empty where all is well."""

    name: str
    state: Literal["ok", "warning", "broken"]
    detail: str
    remedy: str = ""


def database_clock(connection: Connection) -> Check:
    """Whether this host and Postgres agree on the time."""
    from sqlalchemy import text

    return _clock("clock of the database", lambda: float(connection.execute(text(CLOCK)).scalar_one()))


def broker_clock(broker: Broker) -> Check | None:
    """Whether this host and Redis agree on the time; None where Redis does not say."""
    if broker.time() is None:
        return None
    return _clock("clock of the broker", lambda: float(broker.time() or 0.0))


def _clock(name: str, ask: Callable[[], float]) -> Check:
    before = time.time()
    there = ask()
    after = time.time()
    skew = there - (before + after) / 2
    # Half the round trip is what cannot be known.
    certain = max(0.0, abs(skew) - (after - before) / 2)
    if certain <= MOST_SKEW:
        return Check(name, "ok", f"{skew:+.1f} s from this host's")
    return Check(name, "warning", f"{skew:+.1f} s from this host's", "keep all hosts' clocks right with NTP")


def visibility(options: dict[str, Any], lease_sec: float, *, is_redis: bool) -> Check | None:
    """Whether Redis gives a task to a second worker before the first one's lease ends; None for other brokers."""
    if not is_redis:
        return None
    timeout = float(options.get("visibility_timeout", 3600))
    detail = f"{timeout:.0f} s, a lease lasts {lease_sec:.0f} s"
    if timeout > lease_sec:
        return Check("visibility timeout", "ok", detail)
    remedy = "set MANDUA_LEASE_SEC below it: a task would be delivered again while its first worker is still at it"
    return Check("visibility timeout", "warning", detail, remedy)


def ledger_checks(connection: Connection) -> list[Check]:
    """Silent workers, a beat that does not beat, models left alone, runs that wait, failures."""
    from worker.read import ledger
    from worker.settings import settings

    return [
        _silent(ledger.workers_silent(connection)),
        _beat(ledger.last_sweep_sec(connection), settings().sweep_sec),
        _models(ledger.models_cooling(connection)),
        _waiting(ledger.ledger(connection)["waiting"]),
    ]


def _silent(silent: list[dict[str, Any]]) -> Check:
    if not silent:
        return Check("silent workers", "ok", "none")
    names = ", ".join(f"{row['name']} ({float(row['silent_sec']):.0f} s)" for row in silent[:5])
    remedy = "their work goes on elsewhere; find out what ended them, and that something starts them again"
    return Check("silent workers", "warning", f"{len(silent)} in the last hour: {names}", remedy)


def _beat(age: float | None, sweep_sec: float) -> Check:
    remedy = "start `mandua beat` (and a worker that serves `turns`): without it nothing finds what a broker dropped"
    if age is None:
        return Check("beat", "warning", "the sweeper was never at work", remedy)
    if age > max(30.0, 6 * sweep_sec):
        return Check("beat", "warning", f"the sweeper was last at work {age:.0f} s ago", remedy)
    return Check("beat", "ok", f"the sweeper was at work {age:.0f} s ago")


def _models(cooling: list[dict[str, Any]]) -> Check:
    open_breakers = [row for row in cooling if row["cause"] == "model_unavailable"]
    if open_breakers:
        names = ", ".join(f"{row['model']} for {row['seconds']:.0f} s more" for row in open_breakers)
        remedy = "check its key, its name and its quota; runs wait meanwhile, and go on by themselves"
        return Check("breakers", "warning", f"open: {names}", remedy)
    return Check("breakers", "ok", "closed")


def _waiting(waiting: dict[str, int]) -> Check:
    if not waiting:
        return Check("waiting runs", "ok", "none")
    counts = ", ".join(f"{cause} {many}" for cause, many in waiting.items())
    remedy = "`mandua status` shows since when"
    if "spend_limit" in waiting:
        remedy = (
            "a spend limit is reached: they go on tomorrow (UTC), or when MANDUA_DAILY_… or MANDUA_AGENT_DAILY_… is "
            "raised"
        )
    elif "cost_limit" in waiting:
        remedy = "an import has come to its --limit-cost: `mandua imports` names it, --resume with a new one goes on"
    return Check("waiting runs", "warning", counts, remedy)

"""Prometheus metrics, read from Postgres: one scrape of one small process tells of all workers.

Workers are many, restart and die; what one of them had counted would die with it, be scraped from as many ports, and
still not say how long the oldest message waits. The ledger outlives them, counts each run once however often it was
begun, and is exact after a crash. So counters are sums over finished runs (``worker.read.totals``) and gauges are what
the ledger holds now. What a run has cost shows when it has finished, not while it waits.

Labels are coded: stages, causes, tasks, lanes. No agent, no id, no text.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager

from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily, Metric
from prometheus_client.registry import Collector
from sqlalchemy.engine import Connection
from sqlalchemy.exc import SQLAlchemyError

from worker.read import ledger
from worker.read.totals import BUCKETS, Totals, totals

Connect = Callable[[], AbstractContextManager[Connection]]
Queues = Callable[[], Mapping[str, int] | None]
Values = dict[tuple[str, ...], float]  # by the values of the labels

# Several scrapers, or an impatient one, ask the database once.
FRESH_SECONDS = 2.0

# Sums of run_totals by metric: name, help, labels (taken from label and detail, in this order).
COUNTERS: dict[str, tuple[str, str, tuple[str, ...]]] = {
    "runs": ("mandua_runs", "Finished runs by status; of failures also the stage.", ("status", "stage")),
    "parked": ("mandua_runs_parked", "Runs that were given up.", ("stage", "cause")),
    "llm_calls": ("mandua_llm_calls", "Answered model calls.", ("task",)),
    "embedding_calls": ("mandua_embedding_calls", "Answered embedding calls.", ()),
    "tokens": ("mandua_tokens", "Tokens of model calls, those paid twice included.", ("direction",)),
    "tokens_wasted": ("mandua_tokens_wasted", "Tokens of calls paid twice because a worker died.", ("direction",)),
    "cost_usd": ("mandua_cost_usd", "US dollars of the calls whose price is known.", ()),
    "waits": ("mandua_waits", "Times that a run was given back to wait.", ("cause",)),
    "repairs": ("mandua_repairs", "Repairs of model replies.", ("kind",)),
    "rejects": ("mandua_rejects", "Items of replies that were not stored.", ("reason",)),
}

GAUGES: dict[str, tuple[str, tuple[str, ...]]] = {
    "mandua_database_up": ("Whether the database answered this scrape.", ()),
    "mandua_queue_messages": ("Messages in the broker, where it can count them.", ("queue",)),
    "mandua_lag_seconds": ("Age of the oldest unfinished run.", ("lane",)),
    "mandua_unfinished_runs": ("Unfinished runs.", ("lane",)),
    "mandua_unfinished_runs_by_stage": ("Unfinished runs by their next stage.", ("stage",)),
    "mandua_waiting_runs": ("Runs that were given back and wait.", ("cause",)),
    "mandua_parked_runs": ("Failures that stand.", ("stage", "cause")),
    "mandua_model_cooling_seconds": ("For how long a model is left alone.", ("model", "cause")),
    "mandua_workers": ("Worker processes by their life signs.", ("state",)),
    "mandua_cost_today_usd": ("US dollars spent today (UTC).", ()),
    "mandua_tokens_today": ("Tokens spent today (UTC).", ()),
    "mandua_last_sweep_age_seconds": ("Since the sweeper was at work; absent if it never was.", ()),
}
STAGE_SECONDS = "mandua_stage_seconds"

# Everything that a scrape can hold, as Prometheus stores it.
NAMES = frozenset(
    {*GAUGES, *(f"{name}_total" for name, _, _ in COUNTERS.values()),
     *(f"{STAGE_SECONDS}_{part}" for part in ("bucket", "sum", "count"))}
)  # fmt: skip


class LedgerCollector(Collector):
    """Collects from the database that ``connect`` opens; ``queues`` counts the broker's messages by queue."""

    def __init__(self, connect: Connect, queues: Queues = lambda: None) -> None:
        self._connect = connect
        self._queues = queues
        self._lock = threading.Lock()
        self._read_at = -FRESH_SECONDS
        self._families: list[Metric] = []
        self._highest: Totals = {}

    def describe(self) -> Iterable[Metric]:
        """Nothing: registering must not need a database."""
        return []

    def collect(self) -> Iterable[Metric]:
        """All families, at most two seconds old. Without a database only ``mandua_database_up 0``."""
        with self._lock:
            if time.monotonic() - self._read_at >= FRESH_SECONDS:
                self._families = self._read()
                self._read_at = time.monotonic()
            return list(self._families)

    def _read(self) -> list[Metric]:
        try:
            with self._connect() as connection:
                sums = self._never_less(totals(connection))
                found = [*_counters(sums), _stage_seconds(sums), *_gauges(connection)]
        except SQLAlchemyError:
            return [_gauge("mandua_database_up", {(): 0})]
        queues = _gauge("mandua_queue_messages", _by_one(self._queues() or {}))
        return [_gauge("mandua_database_up", {(): 1}), queues, *found]

    def _never_less(self, sums: Totals) -> Totals:
        """``sums``, or what was shown before: an erased agent may take runs along that were not folded yet, and
        Prometheus would take a smaller counter for a restart and count everything again."""
        for key, value in sums.items():
            self._highest[key] = max(value, self._highest.get(key, 0.0))
        return self._highest


def _counters(sums: Totals) -> Iterator[Metric]:
    for metric, (name, described, labels) in COUNTERS.items():
        family = CounterMetricFamily(name, described, labels=list(labels))
        values = {key: value for key, value in sums.items() if key[0] == metric}
        if not values and not labels:
            values = {(metric, "", ""): 0.0}
        for (_, label, detail), value in sorted(values.items()):
            family.add_metric([label, detail][: len(labels)], value)
        yield family


def _stage_seconds(sums: Totals) -> Metric:
    family = HistogramMetricFamily(STAGE_SECONDS, "Seconds of a stage, waits left out.", labels=["stage"])
    for stage in sorted({label for metric, label, _ in sums if metric == "stage_seconds"}):
        count, buckets = 0.0, []
        for number, bound in enumerate((*BUCKETS, float("inf"))):
            count += sums.get(("stage_seconds", stage, str(number)), 0.0)
            buckets.append(("+Inf" if number == len(BUCKETS) else str(bound), count))
        family.add_metric([stage], buckets, sums.get(("stage_seconds_sum", stage, ""), 0.0))
    return family


def _gauges(connection: Connection) -> Iterator[Metric]:
    now = ledger.ledger(connection)
    yield _gauge("mandua_lag_seconds", _by_one(now["lag_sec"]))
    yield _gauge("mandua_unfinished_runs", _by_one(now["by_lane"]))
    yield _gauge("mandua_unfinished_runs_by_stage", _by_one(now["by_stage"]))
    yield _gauge("mandua_waiting_runs", _by_one(now["waiting"]))
    parked: Values = {(row["stage"], row["cause"]): row["count"] for row in now["failed"]}
    yield _gauge("mandua_parked_runs", parked)
    cooling: Values = {(row["model"], row["cause"]): row["seconds"] for row in ledger.models_cooling(connection)}
    yield _gauge("mandua_model_cooling_seconds", cooling)
    alive, silent = ledger.workers_alive(connection), ledger.workers_silent(connection)
    yield _gauge("mandua_workers", {("alive",): len(alive), ("silent",): len(silent)})
    yield _gauge("mandua_cost_today_usd", {(): now["today"]["cost_usd"]})
    yield _gauge("mandua_tokens_today", {(): now["today"]["total_tokens"]})
    age = ledger.last_sweep_sec(connection)
    yield _gauge("mandua_last_sweep_age_seconds", {} if age is None else {(): age})


def _by_one(values: Mapping[str, float]) -> Values:
    return {(name,): value for name, value in values.items()}


def _gauge(name: str, values: Values) -> Metric:
    """The gauge ``name`` of GAUGES with a value for each combination of its labels."""
    described, labels = GAUGES[name]
    family = GaugeMetricFamily(name, described, labels=list(labels))
    for key, value in values.items():
        family.add_metric(list(key), float(value))
    return family

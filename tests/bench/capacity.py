"""On paper: what so many messages a day need, from measured figures (BENCHMARKS.md) and named assumptions.

``python -m tests.bench.capacity [--messages 10000000]`` prints it. Nothing in it is measured by it: one minute at the
day's peak is played through (agents by popularity, one message of an agent at a time, so many slots), and a year's
memories are drawn, to see what the largest ones and the fullest partition hold.
"""

from __future__ import annotations

import argparse
import heapq
import math
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

GIB = 2**30


@dataclass(frozen=True)
class Measured:
    """Of one message of the benchmark's workload, on the machine of BENCHMARKS.md; sizes with indexes."""

    worker_cpu: float = 0.046  # seconds
    database_cpu: float = 0.013
    model_calls: float = 2.0
    input_tokens: float = 1_445
    output_tokens: float = 266
    facts: float = 2.4  # stored, those of relations included
    broker_commands: float = 44
    bytes_of_facts: float = 10_100
    bytes_of_the_rest: float = 2_400  # events, entities, edges
    bytes_of_ledger: float = 6_100  # runs and results, kept for a while
    nearest_bytes_a_fact: float = 2_048  # the index of neighbours
    facts_searched_exactly: int = 20_000  # an agent with fewer does without that index (worker.read.finding)


@dataclass(frozen=True)
class Assumed:
    """What no benchmark says."""

    messages_a_day: float = 10_000_000
    agents: int = 1_000_000
    peak: float = 2.5  # the busiest minute, of the mean
    model_seconds: float = 1.5  # a call
    busy: float = 0.6  # of a core, at the peak
    slots: int = 32  # of a worker process
    slots_in_use: float = 0.7
    spread: float = 1.5  # sigma of the lognormal by which agents differ in how much they say
    kept_facts: float = 0.6  # of those said; the rest confirms what is known
    keep_runs_days: float = 30
    server_memory: float = 256 * GIB
    shared_for_index: float = 0.5  # of a server's memory
    dollars_a_million_in: float = 0.15
    dollars_a_million_out: float = 0.60


@dataclass(frozen=True)
class Minute:
    """One minute at the peak: seconds from accept to applied, and the most slots that were busy."""

    messages: int
    median: float
    p95: float
    busy_slots: int


@dataclass(frozen=True)
class Need:
    """What it takes. Sizes in GiB, rates a second."""

    rate: float
    peak_rate: float
    worker_cores: float
    worker_processes: int
    minute: Minute
    database_cores: float
    gib_a_day: float
    gib_a_year: float
    nearest_gib_a_year: float
    nearest_gib_of_large_agents: float
    agents_beyond_exact: float
    partitions: int
    fullest_partition: float
    facts_to_partition_at: float
    days_to_partition_at: float
    broker_commands: float
    dollars_a_day: float


def needed(measured: Measured, assumed: Assumed, seed: int = 1) -> Need:
    """What ``assumed`` needs if a message costs what was ``measured``."""
    draw = np.random.default_rng(seed)
    rate = assumed.messages_a_day / 86_400
    peak_rate = rate * assumed.peak
    cores = peak_rate * measured.worker_cpu / assumed.busy
    held = measured.model_calls * assumed.model_seconds + measured.worker_cpu + measured.database_cpu
    processes = math.ceil(max(cores, peak_rate * held / assumed.slots_in_use / assumed.slots))
    minute = peak_minute(draw, assumed, peak_rate, held, processes * assumed.slots)

    said = draw.lognormal(0, assumed.spread, assumed.agents)  # how much each says, and so a year's facts
    facts = said / said.mean() * 365 * assumed.messages_a_day / assumed.agents * measured.facts * assumed.kept_facts
    beyond = facts > measured.facts_searched_exactly
    facts_a_day = assumed.messages_a_day * measured.facts * assumed.kept_facts
    nearest = 365 * facts_a_day * measured.nearest_bytes_a_fact
    of_large = nearest * float(facts[beyond].sum() / facts.sum())
    room = assumed.server_memory * assumed.shared_for_index
    partitions = 2 ** math.ceil(math.log2(max(1.0, nearest / room)))
    lasting = assumed.messages_a_day * (
        measured.bytes_of_facts * assumed.kept_facts + measured.bytes_of_the_rest
    )  # fmt: skip
    ledger = assumed.messages_a_day * measured.bytes_of_ledger * assumed.keep_runs_days
    limit = room / measured.nearest_bytes_a_fact
    tokens = (measured.input_tokens * assumed.dollars_a_million_in
              + measured.output_tokens * assumed.dollars_a_million_out) / 1e6  # fmt: skip
    return Need(
        rate=rate, peak_rate=peak_rate, worker_cores=cores, worker_processes=processes, minute=minute,
        database_cores=peak_rate * measured.database_cpu / assumed.busy,
        gib_a_day=lasting / GIB, gib_a_year=(365 * lasting + ledger) / GIB,
        nearest_gib_a_year=nearest / GIB, nearest_gib_of_large_agents=of_large / GIB,
        agents_beyond_exact=float(beyond.mean()), partitions=partitions,
        fullest_partition=fullest(draw, facts, partitions), facts_to_partition_at=limit,
        days_to_partition_at=limit / facts_a_day, broker_commands=peak_rate * measured.broker_commands,
        dollars_a_day=assumed.messages_a_day * tokens,
    )  # fmt: skip


def peak_minute(draw: np.random.Generator, assumed: Assumed, rate: float, held: float, slots: int) -> Minute:
    """Play one minute: Poisson arrivals, agents by how much they say, an agent's messages one after another. Each
    takes ``held`` seconds of one of ``slots``, more or less."""
    many = int(draw.poisson(rate * 60))
    arrivals = np.sort(draw.uniform(0, 60, many))
    said = draw.lognormal(0, assumed.spread, min(assumed.agents, 200_000))
    agents = draw.choice(len(said), many, p=said / said.sum())
    lasts = held * draw.gamma(4, 0.25, many)
    return _played(arrivals.tolist(), agents.tolist(), lasts.tolist(), slots)


def _played(arrivals: Sequence[float], agents: Sequence[int], lasts: Sequence[float], slots: int) -> Minute:
    waiting: dict[int, deque[int]] = {}  # of agents that are busy or wait for a slot, what comes after
    ready: deque[int] = deque()  # messages whose turn it is, without a slot yet
    ends: list[tuple[float, int]] = []
    took = [0.0] * len(arrivals)
    most = place = 0
    while place < len(arrivals) or ends:
        if not ends or (place < len(arrivals) and arrivals[place] <= ends[0][0]):
            now, agent = arrivals[place], agents[place]
            if agent in waiting:
                waiting[agent].append(place)
            else:
                waiting[agent] = deque()
                ready.append(place)
            place += 1
        else:
            now, done = heapq.heappop(ends)
            took[done] = now - arrivals[done]
            after = waiting[agents[done]]
            if after:
                ready.append(after.popleft())
            else:
                del waiting[agents[done]]
        while ready and len(ends) < slots:
            begun = ready.popleft()
            heapq.heappush(ends, (now + lasts[begun], begun))
        most = max(most, len(ends))
    ordered = sorted(took) or [0.0]
    return Minute(len(took), ordered[len(ordered) // 2], ordered[int(0.95 * len(ordered))], most)


def fullest(draw: np.random.Generator, facts: np.ndarray, partitions: int) -> float:
    """Facts of the fullest of ``partitions``, of the mean, where agents are spread by hash."""
    filled = np.bincount(draw.integers(0, partitions, len(facts)), weights=facts, minlength=partitions)
    return float(filled.max() / filled.mean())


def told(need: Need, measured: Measured, assumed: Assumed) -> str:
    """The answer in lines."""
    return f"""\
{assumed.messages_a_day:,.0f} messages a day of {assumed.agents:,} agents: {need.rate:.0f} a second, \
{need.peak_rate:.0f} at the peak
workers      {need.worker_cores:.0f} cores at {assumed.busy:.0%}; {need.worker_processes} processes of \
{assumed.slots} slots
             peak minute: median {need.minute.median:.1f} s, p95 {need.minute.p95:.1f} s with \
{assumed.model_seconds:g} s a call; {need.minute.busy_slots} slots busy
database     {need.database_cores:.0f} cores at {assumed.busy:.0%}; {need.gib_a_day:,.0f} GiB a day, \
{need.gib_a_year:,.0f} after a year ({assumed.keep_runs_days:g} days of ledger included)
index memory {need.nearest_gib_a_year:,.0f} GiB after a year if all facts are in the index of neighbours;
             {need.nearest_gib_of_large_agents:,.0f} if only those of agents beyond \
{measured.facts_searched_exactly:,} facts ({need.agents_beyond_exact:.2%} of them)
partitions   by hash of the agent, once the index outgrows {assumed.shared_for_index:.0%} of \
{assumed.server_memory / GIB:.0f} GiB: at {need.facts_to_partition_at / 1e6:,.0f} M facts
             (day {need.days_to_partition_at:.1f} at this rate); {need.partitions} for a year, the fullest \
{need.fullest_partition:.2f} × the mean
broker       {need.broker_commands:,.0f} commands a second at the peak
model        {assumed.messages_a_day * measured.input_tokens / 1e9:.1f} G tokens in, \
{assumed.messages_a_day * measured.output_tokens / 1e9:.1f} G out: ${need.dollars_a_day:,.0f} a day"""


def main() -> None:
    """Print what is needed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--messages", type=float, default=Assumed.messages_a_day, help="messages a day")
    parser.add_argument("--agents", type=int, default=Assumed.agents)
    chosen = parser.parse_args()
    measured, assumed = Measured(), Assumed(messages_a_day=chosen.messages, agents=chosen.agents)
    print(told(needed(measured, assumed), measured, assumed))


if __name__ == "__main__":
    main()

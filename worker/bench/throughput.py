"""How many messages go through: many agents, one agent's backlog, more worker processes; beside a bare Celery chain."""

from __future__ import annotations

import time

from producer import WriteRequest
from worker.bench.figures import Figure
from worker.bench.scene import ALL_QUEUES, Scene, model
from worker.bench.skeleton import bare_celery
from worker.bench.workload import SPEAKER, spoken

PEOPLE = 200
SLOTS = 16


def backlog(scene: Scene, agents: int, each: int, *, bulk: bool, name: str = "a") -> int:
    """Accept ``each`` messages of ``agents`` agents, taking turns; returns how many."""
    with scene.client() as client:
        requests = [
            WriteRequest(agent_id=f"{name}{agent}", message=spoken(number, PEOPLE).text, speaker_name=SPEAKER)
            for number in range(each)
            for agent in range(agents)
        ]
        for start in range(0, len(requests), 2_000):
            client.enqueue_many(requests[start : start + 2_000], bulk=bulk)
    return len(requests)


def many_agents(scene: Scene, *, agents: int = 20, each: int = 30, latency: float = 0.5) -> list[Figure]:
    """Messages a second of a backlog of ``agents`` agents, two worker processes of 16 slots, ``latency`` a call, in the
    live lane and then as bulk; beside bare Celery on the same processes, with tasks that do nothing and with two that
    wait as a call does."""
    scene.fresh()
    many = agents * each
    with (
        model(people=PEOPLE, latency=latency) as answering,
        scene.workers(scene.environment(answering), (SLOTS, ALL_QUEUES), (SLOTS, ALL_QUEUES)),
    ):
        warm = backlog(scene, 4 * SLOTS, 1, bulk=False, name="warm")
        scene.until_finished(warm)
        answering.reset()
        scene.say(f"throughput: {agents} agents, {each} messages each, {latency} s a call")
        began = time.monotonic()
        backlog(scene, agents, each, bulk=False)
        scene.until_finished(warm + many)
        rate = many / (time.monotonic() - began)
        calls = answering.calls()
        began = time.monotonic()
        backlog(scene, agents, each, bulk=True, name="b")
        scene.until_finished(warm + 2 * many)
        shared = many / (time.monotonic() - began)
    empty = bare_celery(scene, messages=many, slots=SLOTS)
    waiting = bare_celery(scene, messages=many, slots=SLOTS, latency=latency)
    most = agents / latency
    return [
        Figure(f"{agents} agents, backlog", rate, "messages/s", note=f"{latency} s a call, {many} messages"),
        Figure(f"{agents} agents, bulk backlog", shared, "messages/s", note="up to 8 messages a call and a turn"),
        Figure("bare Celery, five empty tasks", empty, "messages/s", note="nine transactions a message"),
        Figure(f"{agents} agents / bare Celery, empty", rate / empty, "×", at_least=0.6,
               note=f"by order alone, {agents} agents with a call a turn make at most {most:.0f}/s"),
        Figure(f"bare Celery, two tasks wait {latency} s", waiting, "messages/s", note="in no order"),
        Figure(f"{agents} agents / bare Celery that waits", rate / waiting, "×"),
        *calls_a_message(calls, many),
    ]  # fmt: skip


def calls_a_message(calls: dict[str, int], many: int) -> list[Figure]:
    """Model calls, tokens and embedding calls a message."""
    kinds = ("informed_extraction", "entity_resolution", "reconciliation", "emotion", "entity_scan")
    asked = sum(calls.get(kind, 0) for kind in kinds)
    told = ", ".join(f"{kind} {calls.get(kind, 0) / many:.2f}" for kind in kinds if calls.get(kind))
    return [
        Figure("model calls a message, mean", asked / many, "", at_most=2.0, note=told),
        Figure("input tokens a message", calls.get("input_tokens", 0) / many, "tokens"),
        Figure("embedding calls a message", calls.get("embedding", 0) / many, "", at_most=3.0),
    ]


def one_agent(scene: Scene, *, messages: int = 400, latency: float = 0.5) -> list[Figure]:
    """Messages a second of one agent's bulk backlog."""
    scene.fresh()
    with model(people=PEOPLE, latency=latency) as answering:
        scene.say(f"throughput: one agent, {messages} bulk messages, {latency} s a call")
        with scene.workers(scene.environment(answering), (16, ALL_QUEUES), (16, ALL_QUEUES)):
            began = time.monotonic()
            backlog(scene, 1, messages, bulk=True)
            scene.until_finished(messages)
            seconds = time.monotonic() - began
        applied = scene.value("SELECT count(*) FROM runs WHERE state = 'done'")
    return [
        Figure("one agent, bulk backlog", messages / seconds, "messages/s", note=f"{latency} s a call"),
        Figure("one agent, messages lost", messages - applied, "", at_most=0),
    ]


def scale_out(scene: Scene, *, latency: float = 2.0, each: int = 4) -> list[Figure]:
    """Throughput of 1, 2 and 4 worker processes of 8 slots; as a share of linear, from one process."""
    rates: dict[int, float] = {}
    for processes in (1, 2, 4):
        scene.fresh()
        with model(people=PEOPLE, latency=latency) as answering:
            scene.say(f"scale out: {processes} worker processes, {latency} s a call")
            agents = processes * 16
            with scene.workers(scene.environment(answering), *[(8, ALL_QUEUES)] * processes):
                warm = backlog(scene, agents, 1, bulk=False, name="warm")
                scene.until_finished(warm)
                began = time.monotonic()
                many = backlog(scene, agents, each, bulk=False)
                scene.until_finished(warm + many)
                rates[processes] = many / (time.monotonic() - began)
    return [
        Figure("1 worker process", rates[1], "messages/s", note=f"8 slots, {latency} s a call"),
        Figure("2 processes / 2 × one", rates[2] / rates[1] / 2, "", at_least=0.85),
        Figure("4 processes / 4 × one", rates[4] / rates[1] / 4, "", at_least=0.85, note="until the cores are full"),
    ]

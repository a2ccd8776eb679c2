"""Accepting under load: two producers for a while, what comes out at the other end, and the worker's memory."""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import threading
import time
from pathlib import Path

from producer import MemoryClient, WriteRequest
from worker.bench.figures import Figure
from worker.bench.scene import ALL_QUEUES, LIVE_QUEUES, ROOT, Scene, model
from worker.bench.workload import SPEAKER, spoken

PEOPLE = 200
PRODUCERS = 2
AGENTS = 50


def accept_under_load(scene: Scene, *, seconds: float = 60.0, settle: int = 2_000) -> list[Figure]:
    """Two producers send single messages as fast as they are accepted, once by the broker, once by the database.

    Figures: messages accepted a second, applied a second meanwhile, and how much a worker's memory grew after its
    first ``settle`` messages.
    """
    figures: list[Figure] = []
    for accept in ("worker", "database"):
        scene.fresh()
        with (
            model(people=PEOPLE, latency=0.0) as answering,
            scene.workers(scene.environment(answering), (16, LIVE_QUEUES), (16, ALL_QUEUES)) as workers,
        ):
            scene.say(f"accept under load: {PRODUCERS} producers, {seconds:.0f} s, accepted by the {accept}")
            memory = _Memory([worker.process.pid for worker in workers], scene)
            before = scene.value("SELECT count(*) FROM runs WHERE finished_at IS NOT NULL")
            sent = _produce(scene, accept, seconds)
            done = scene.value("SELECT count(*) FROM runs WHERE finished_at IS NOT NULL") - before
            recorded = scene.value("SELECT count(*) FROM memory_events")
            memory.stop()
        figures += [
            Figure(f"accepted by the {accept}", sent / seconds, "messages/s", note=f"{recorded:,} events at the end"),
            Figure(f"applied meanwhile ({accept})", done / seconds, "messages/s", note="no latency of the model"),
            memory.growth(f"memory growth of a worker ({accept})", settle),
        ]
    return figures


class _Memory:
    """Samples the memory of processes every half second, with how many messages were applied by then."""

    def __init__(self, pids: list[int], scene: Scene) -> None:
        self._pids, self._scene = pids, scene
        self._samples: list[tuple[int, float]] = []
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._sample, daemon=True)
        self._thread.start()

    def _sample(self) -> None:
        while not self._over.wait(0.5):
            done = self._scene.value("SELECT count(*) FROM runs WHERE finished_at IS NOT NULL")
            self._samples.append((done, max(resident_mb(pid) for pid in self._pids)))

    def stop(self) -> None:
        """Sample no more."""
        self._over.set()
        self._thread.join()

    def growth(self, name: str, settle: int) -> Figure:
        """The largest process at the end against the moment when ``settle`` messages were applied, in per cent."""
        after = [megabytes for done, megabytes in self._samples if done >= settle] or [self._samples[-1][1]]
        done = self._samples[-1][0]
        note = f"{after[0]:.0f} to {after[-1]:.0f} MB from message {min(settle, done):,} to {done:,}"
        return Figure(name, 100 * (after[-1] / after[0] - 1), "%", note=note)


def resident_mb(pid: int) -> float:
    """Megabytes of memory that a process holds; 0 when it is gone."""
    try:
        pages = int(Path(f"/proc/{pid}/statm").read_text(encoding="ascii").split()[1])
    except (OSError, IndexError):
        return 0.0
    return pages * 4096 / 1e6


def _produce(scene: Scene, accept: str, seconds: float) -> int:
    arguments = [sys.executable, "-m", "worker.bench.accepting", "--accept", accept, "--seconds", str(seconds)]
    addresses = json.dumps([scene.valkey.url, scene.database_url])
    producers = [
        subprocess.Popen([*arguments, "--name", str(number)], cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                         text=True)
        for number in range(PRODUCERS)
    ]  # fmt: skip
    for producer in producers:  # by standard input: an argument with a password is everybody's to read
        assert producer.stdin is not None
        producer.stdin.write(addresses)
        producer.stdin.close()
    sent = 0
    for producer in producers:
        assert producer.stdout is not None
        sent += int(producer.stdout.read())
        producer.wait()
        producer.stdout.close()
    return sent


def main() -> None:
    """One producer: sends for a while, one message at a time, and prints how many were accepted."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--accept", choices=["worker", "database"], required=True)
    parser.add_argument("--seconds", type=float, required=True)
    parser.add_argument("--name", required=True)
    chosen = parser.parse_args()
    broker, database = json.loads(sys.stdin.read())
    sent = 0
    with MemoryClient(broker, database, accept=chosen.accept) as client:
        end = time.monotonic() + chosen.seconds
        while time.monotonic() < end:
            agent = f"p{chosen.name}-{sent % AGENTS}"
            request = WriteRequest(agent_id=agent, message=spoken(sent, PEOPLE).text, speaker_name=SPEAKER)
            client.enqueue(request.agent_id, request.message, request.speaker_name)
            sent += 1
    print(sent)


if __name__ == "__main__":
    main()

"""Cold start: from the command to a worker that takes tasks."""

from __future__ import annotations

import time

from worker.bench.figures import Figure
from worker.bench.scene import ALL_QUEUES, WORKER, Celery, Scene, model


def cold_start(scene: Scene) -> list[Figure]:
    """Seconds until a worker is ready, with a real model configured and with the offline reader."""
    scene.fresh()
    with model(people=10, latency=0.0) as answering:
        return [
            Figure("cold start, real model", _seconds(scene, scene.environment(answering)), "s", at_most=6),
            Figure("cold start, offline", _seconds(scene, scene.environment()), "s", at_most=3),
        ]


def _seconds(scene: Scene, environment: dict[str, str]) -> float:
    scene.say("cold start of a worker")
    began = time.monotonic()
    worker = Celery([*WORKER, "--concurrency", "16", "-n", "cold@%h", "-Q", ALL_QUEUES], environment)
    try:
        worker.wait_ready()
        return time.monotonic() - began
    finally:
        worker.stop()

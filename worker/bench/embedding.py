"""With the default embeddings, which are worked out in the worker itself: how fast, and how often a text is."""

from __future__ import annotations

import time

from worker.bench.cost import measure
from worker.bench.figures import Figure
from worker.bench.scene import ALL_QUEUES, Scene, model
from worker.bench.throughput import PEOPLE, backlog

FEW = 20  # people that are talked of again and again
LOCAL = {"MANDUA_EMBEDDING_MODEL": "local", "MANDUA_EMBEDDING_DIMENSIONS": "384"}


def default_embeddings(scene: Scene, *, agents: int = 20, each: int = 15) -> list[Figure]:
    """Messages a second of ``agents`` agents by two worker processes, the model without latency; and of messages one
    after another, how many texts were embedded and how many vectors were worked out for them."""
    scene.fresh()
    with model(people=PEOPLE, latency=0.0) as answering:
        scene.say("embedding: messages one after another with the default embeddings")
        alone = measure(scene, {**answering.environment(), **LOCAL}, people=FEW)
        scene.fresh()
        scene.say(f"embedding: {agents} agents, {each} messages each, with the default embeddings")
        environment = scene.environment(answering, **LOCAL)
        with scene.workers(environment, (8, ALL_QUEUES), (8, ALL_QUEUES)):
            began = time.monotonic()
            many = backlog(scene, agents, each, bulk=False)
            scene.until_finished(many)
            rate = many / (time.monotonic() - began)
    return [
        Figure("default embeddings, 20 agents", rate, "messages/s", note="2 processes, model without latency"),
        Figure("default embeddings, CPU of a message", alone["cpu"] * 1000, "ms"),
        Figure("default embeddings, texts embedded twice", alone["repeats_most"], "", at_most=0,
               note="of one message, over all stages"),
        Figure("default embeddings, vectors worked out", alone["vectors"], "a message",
               note=f"of {alone['texts']:.1f} texts; the others were cached"),
    ]  # fmt: skip

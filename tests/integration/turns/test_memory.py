"""A worker's memory: a message leaves no object behind, but for what the bounded caches hold."""

from __future__ import annotations

import functools
import gc
import itertools
import sys

from tests.scripted_model import ScriptedModel
from worker.bench.workload import reply_to, spoken

PEOPLE = 200
EACH = 25
CACHED = type(functools.lru_cache(lambda: None))


def objects() -> int:
    """Blocks of memory that living Python objects have, the caches emptied."""
    for found in gc.get_objects():
        if type(found) is CACHED and found.__module__.startswith("worker.write."):
            found.cache_clear()
    gc.collect()
    return sys.getallocatedblocks()


def test_no_object_of_a_message_outlives_it(process, model: ScriptedModel):
    for task in ("informed_extraction", "entity_resolution", "reconciliation"):
        model.on(task, lambda payload, task=task: reply_to(task, payload, PEOPLE))
    measured = []
    for start in range(0, 5 * EACH, EACH):
        for number in range(start, start + EACH):
            process(spoken(number, PEOPLE).text)
        model.reset()
        measured.append(objects())
    left = [(later - earlier) / EACH for earlier, later in itertools.pairwise(measured)]
    print(f"blocks that a message leaves: {left}")
    assert min(left) < 20  # a message makes thousands; the test's own server and log leave some

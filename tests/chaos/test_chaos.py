"""Nothing lost, nothing doubled, in order, while everything that can be killed is killed. And a control without fences.

``./mandua test chaos``; some minutes. The seed is printed; ``MANDUA_TEST_SEED`` repeats a run as far as processes on
a busy machine can be repeated.
"""

from __future__ import annotations

import json
import os
import random
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.chaos.billing import BillingModel
from tests.chaos.checks import Books, applied_too_often, books, broken_promises, summary
from tests.chaos.disasters import Disasters
from tests.chaos.scene import Producer, Scene, environment, runner
from tests.chaos.story import messages
from worker import schema
from worker.local.postgres import EmbeddedPostgres
from worker.local.valkey import EmbeddedValkey

pytestmark = [pytest.mark.chaos, pytest.mark.timeout(1500)]

SEED = int(os.environ.get("MANDUA_TEST_SEED") or random.SystemRandom().randrange(1_000_000))
UNCHECKED = Path(__file__).with_name("unchecked")


@contextmanager
def scene(folder: Path, more: Mapping[str, str]) -> Iterator[Scene]:
    """A durable Postgres, a broker, a failing model, both pools and beat under the runner; all gone afterwards."""
    postgres, valkey = EmbeddedPostgres(folder / "postgres", durable=True), EmbeddedValkey(folder / "valkey")
    config = folder / "config.json"
    # One by one: the bill is kept by message, and what a lost shared call cost whom nobody can say.
    config.write_text(json.dumps({"extraction_timeout_sec": 5, "bulk_batch": 1, "bulk_turn": 1}))
    with BillingModel(SEED, latency=0.1, silence=7) as model:
        try:
            postgres.start()
            valkey.start()
            schema.upgrade(postgres.url)
            with runner(environment(postgres, valkey, model, config, more), folder / "logs") as running:
                yield Scene(postgres, valkey, model, running)
        finally:
            valkey.stop()
            postgres.stop()


@pytest.fixture
def folder() -> Iterator[Path]:
    """Not pytest's own: an embedded Postgres of root runs as another user."""
    with tempfile.TemporaryDirectory(prefix="mandua-chaos-") as made:
        Path(made).chmod(0o755)
        yield Path(made)


def live_through(
    on: Scene, many: int, poison: int, plan: Mapping[str, int], enough: Callable[[], bool] = lambda: False
) -> Books:
    """Send ``many`` messages while ``plan`` happens, until ``enough`` came of it; returns the books once nothing is
    unfinished."""
    said = messages(many, SEED, poison=poison)
    producers = on.producers = [Producer(on, said, by_worker=by_worker, ahead=90) for by_worker in (True, False)]
    for producer in producers:
        producer.start()
    disasters = Disasters(on, SEED)
    disasters.bring(disasters.shuffled(**plan), over=many, enough=enough)
    on.say("the last disaster")
    for producer in producers:
        producer.join(300)
        assert producer.error is None, repr(producer.error)
    on.until(lambda: (now := on.counts())["finished"] >= many and not now["jobs_under_way"], "the end of all runs")
    on.say("over")
    kept = books(on, said, producers)
    print(f"\nseed {SEED}; {time.monotonic() - on.began:.0f} s; {dict(disasters.done)}; faults {dict(on.model.faults)}")
    print(summary(kept))
    print(*(f"  {line}" for line in broken_promises(kept)[:40]), sep="\n")
    assert on.model.errors == [], "of the script itself"
    return kept


def test_nothing_is_lost_and_nothing_doubled_while_everything_is_killed(folder: Path):
    with scene(folder, {}) as on:
        kept = live_through(
            on, 600, 8,
            {"kill_worker": 8, "kill_child": 2, "pause_worker": 2, "kill_beat": 1, "lose_broker": 1,
             "lose_broker_and_workers": 1, "crash_postgres": 2},
        )  # fmt: skip
    assert broken_promises(kept) == []


def test_without_the_fence_the_same_checks_fail(folder: Path):
    """The negative control: workers that write without asking whether they still may."""
    with scene(folder, {"PYTHONPATH": f"{UNCHECKED}:{os.environ.get('PYTHONPATH', '')}"}) as on:
        # Where a worker stands when it is paused is chance, and some of the places are harmless.
        kept = live_through(on, 360, 0, {"kill_worker": 1, "pause_worker": 11}, lambda: bool(applied_too_often(on)))
    broken = broken_promises(kept)
    print(f"{len(broken)} broken promises, such as", *broken[:6], sep="\n  ")
    assert [line for line in broken if line.startswith("applied_once")], "a run was applied twice"

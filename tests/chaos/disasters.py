"""What goes wrong, one thing after another, each when the work has gone on a little since the last."""

from __future__ import annotations

import contextlib
import os
import random
import signal
from collections import Counter
from collections.abc import Callable, Sequence

import redis

from tests.chaos.scene import WORKERS, Scene


class Disasters:
    """Brings them about and counts them."""

    def __init__(self, scene: Scene, seed: int) -> None:
        self._scene = scene
        self._dice = random.Random(seed)
        self.done: Counter[str] = Counter()

    def bring(self, plan: Sequence[str], *, over: int, enough: Callable[[], bool] = lambda: False) -> None:
        """Bring about ``plan``, spread over the first ``over`` finished runs, until ``enough`` came of it."""
        for number, name in enumerate(plan, start=1):
            due = number * over // (len(plan) + 1)
            self._scene.until(lambda due=due: self._scene.counts()["finished"] >= due, f"{due} finished runs")
            if self._scene.failed() or enough():
                return
            happen: Callable[[], None] = getattr(self, name)
            happen()

    def shuffled(self, **many: int) -> list[str]:
        """So many of each, in an order of the seed."""
        plan = [name for name, times in sorted(many.items()) for _ in range(times)]
        self._dice.shuffle(plan)
        return plan

    # -- what can happen ---------------------------------------------------------------------------------------------

    def kill_worker(self) -> None:
        """SIGKILL to a whole worker, in the middle of its work."""
        name = WORKERS[self.done["kill_worker"] % 2]
        busy = self._wait_at_work(name)
        self._kill(name)
        self._note("kill_worker", f"SIGKILL of {name}, {len(busy)} processes at work")

    def kill_child(self) -> None:
        """SIGKILL to one child of the prefork pool, in the middle of its work."""
        victims = sorted(self._wait_at_work("prefork") - {self._scene.runner.pids().get("prefork")})[:1]
        for pid in victims:
            with contextlib.suppress(ProcessLookupError):  # a run's own process may have ended by itself
                os.kill(pid, signal.SIGKILL)
        self._note("kill_child", f"SIGKILL of {len(victims)} child of prefork")

    def pause_worker(self) -> None:
        """A worker stands still until it is taken for dead and others have done its work; then it wakes up."""
        name = WORKERS[self.done["pause_worker"] % 2]
        self._scene.until(lambda: self._scene.held(name), f"{name} with a turn", 40)
        group = self._scene.runner.pids().get(name)
        if group is None:
            return
        os.killpg(group, signal.SIGSTOP)
        held = self._scene.held(name)
        # One that stands still inside a transaction holds its locks, so that others may not get at everything.
        done = self._scene.until(lambda: not self._scene.unfinished(held), f"the {len(held)} runs of {name}", 12)
        os.killpg(group, signal.SIGCONT)
        self._note("pause_worker", f"{name} stood still with {len(held)} turns" + (", all taken over" if done else ""))

    def kill_beat(self) -> None:
        """SIGKILL to beat."""
        self._scene.until(lambda: "beat" in self._scene.runner.pids(), "beat")
        self._kill("beat")
        self._note("kill_beat", "SIGKILL of beat")

    def lose_broker(self) -> None:
        """The broker is emptied, killed and started again; nobody touches the workers."""
        self._empty_broker()
        self._scene.valkey.kill()
        self._scene.valkey.start()
        self._note("lose_broker", "broker flushed, killed, started again")

    def lose_broker_and_workers(self) -> None:
        """The same, and both workers are killed at the same moment."""
        for name in WORKERS:
            self._wait_at_work(name)
        self._empty_broker()
        self._scene.valkey.kill()
        for name in WORKERS:
            self._kill(name)
        self.done["kill_worker"] += 2
        self._scene.valkey.start()
        self._note("lose_broker", "broker flushed, killed, started again, and SIGKILL of both workers")

    def crash_postgres(self) -> None:
        """The database is killed and started again, everybody at work."""
        self._wait_at_work(self._dice.choice(WORKERS))
        self._scene.postgres.kill()
        self._scene.postgres.start()
        self._note("crash_postgres", "Postgres killed, started again")

    # -- how ---------------------------------------------------------------------------------------------------------

    def _wait_at_work(self, name: str) -> set[int]:
        busy: set[int] = set()

        def look() -> bool:
            nonlocal busy
            busy = self._scene.at_work(name)
            return bool(busy)

        self._scene.until(look, f"{name} at work", 40)
        return busy

    def _kill(self, name: str) -> None:
        """And wait until the runner knows: nothing else may be done to a process that is gone."""
        group = self._scene.runner.pids().get(name)
        if group is not None:
            os.killpg(group, signal.SIGKILL)
            self._scene.until(lambda: self._scene.runner.pids().get(name) != group, f"the end of {name}")

    def _empty_broker(self) -> None:
        with redis.Redis.from_url(self._scene.valkey.url) as client:
            client.flushall()

    def _note(self, name: str, text: str) -> None:
        self.done[name] += 1
        self._scene.say(text)
